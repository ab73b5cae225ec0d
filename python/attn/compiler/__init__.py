"""The compiler's library, its cache and simulator. `attn.kernel` and `attn.sim` are its public
modules."""
