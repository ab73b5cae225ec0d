"""Attention under the names of hosts: torch's SDPA, transformers, FlexAttention. `attn.torch`,
`attn.hf` and `attn.flex_attention` are its public names."""
