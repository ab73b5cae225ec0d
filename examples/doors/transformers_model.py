"""A model of transformers, with random weights, on attn's kernels: on a GPU if there is one, else
on the simulator. Needs torch and transformers."""

import attn
import torch
from transformers import Gemma2Config, Gemma2ForCausalLM

attn.hf.register()
device = "cuda" if torch.cuda.is_available() else "cpu"
config = Gemma2Config(
    vocab_size=96, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, head_dim=32, sliding_window=12, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
model = Gemma2ForCausalLM(config).eval().half().to(device)
prompt = torch.randint(3, 96, (2, 30), device=device)
padding = torch.ones_like(prompt)
padding[0, :9] = 0
texts = []
for name in ("attn", "eager"):
    model.set_attn_implementation(name)
    texts.append(model.generate(prompt, attention_mask=padding, max_new_tokens=8, do_sample=False))
assert torch.equal(*texts)
print(f"8 tokens of 2 prompts: {texts[0][:, 30:].tolist()}")
