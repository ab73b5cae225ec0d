"""Kernels without a GPU: any PTX on numpy arrays (`run`), Triton's kernels (`triton`) and CuTe
DSL's (`cute`) on arrays in host memory, all on the simulator and checked for races.
"""

from .cute_setup import cute
from .host_array import HostArray
from .runs import Dim3, Empty, Run, TensorMap, empty, run
from .triton_setup import triton

__all__ = ["Dim3", "Empty", "HostArray", "Run", "TensorMap", "cute", "empty", "run", "triton"]
