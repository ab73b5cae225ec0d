"""Other libraries' calls, computed by this one's kernels."""
