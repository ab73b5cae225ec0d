"""FlexAttention's arguments on attn's kernels: on a GPU if there is one, else on the simulator.
Needs torch."""

import attn
import torch
from torch.nn.attention.flex_attention import create_block_mask

device = "cuda" if torch.cuda.is_available() else "cpu"
q, k, v = torch.randn(3, 1, 4, 256, 64, device=device).half()


def window(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx <= 70)


def alibi(score, b, h, q_idx, kv_idx):
    return score + (kv_idx - q_idx) * torch.exp2(-2.0 * (h + 1))


mask = create_block_mask(window, None, None, 256, 256, device=device)
o = attn.flex_attention(q, k, v, score_mod=alibi, block_mask=mask)
# The block mask is not needed: the compiler finds the blocks in the function.
same = attn.attention(q, k, v, score_mod=alibi, mask_mod=window)
assert torch.equal(o, same)
print(f"with and without a block mask: {tuple(o.shape)}, equal bits")
