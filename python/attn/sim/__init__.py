"""Kernels without a GPU: any PTX on numpy arrays (`run`), and Triton's kernels on CPU tensors
(`triton`), both on the simulator and checked for races.
"""

from .host_array import HostArray
from .runs import Dim3, Empty, Run, TensorMap, empty, run
from .triton_setup import triton

__all__ = ["Dim3", "Empty", "HostArray", "Run", "TensorMap", "empty", "run", "triton"]
