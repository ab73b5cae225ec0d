"""Functions of Python that become regions of a problem. `attn.mods` is its public module."""
