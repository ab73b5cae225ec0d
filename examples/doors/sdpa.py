"""torch's scaled_dot_product_attention on attn's kernels: on a GPU if there is one, else on the
simulator. Needs torch."""

import attn
import torch
from torch.nn import functional

device = "cuda" if torch.cuda.is_available() else "cpu"
q, k, v = torch.randn(3, 1, 4, 100, 320, device=device).half()
seen = torch.rand(100, 100, device=device) > 0.2
want = functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), seen)
with attn.torch.sdpa(strict=True):
    got = functional.scaled_dot_product_attention(q, k, v, seen)
error = (got - want).abs().max().item()
print(f"head dimension 320 with a mask: largest error {error:.1e}")
assert error < 5e-3
