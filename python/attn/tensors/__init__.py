"""Tensors of torch, numpy and others as views in the order of the kernels, and copies of those
that no kernel takes."""
