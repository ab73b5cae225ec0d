"""`attn.compile`, `attn.attention` and `attn.prepare`. `attn.functional` and `attn.torch_op` are
its public modules."""
