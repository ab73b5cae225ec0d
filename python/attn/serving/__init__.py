"""Batches of sequences whose keys lie in pages: `attn.decode`, `attn.mla_decode`, `attn.prefill`,
`attn.DecodePlan` and what belongs to them. `attn.torch_serving` is its public module."""
