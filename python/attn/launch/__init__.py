"""Launch records, bundles and the CUDA driver: what runs a compiled kernel without a compiler.
`attn.record`, `attn.bundle` and `attn.runtime` are its public modules."""
