"""Launches on arrays in host memory: to the GPU and back."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .. import arrays, runtime
from ..errors import ArgumentError, DriverError
from ..record import DYNAMIC, TensorView
from . import cuda_driver

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def has_device() -> bool:
    """Whether there is a driver and a GPU."""
    try:
        driver = cuda_driver.load()
    except DriverError:
        return False
    count = ctypes.c_int()
    return driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def launch(
    kernel: runtime.LoadedKernel, inputs: Mapping[str, Any]
) -> dict[str, NDArray[np.generic]]:
    """Copies the inputs to device 0, launches, and returns what the kernel wrote;
    outputs begin as NaN (bytes 0xFF), those that are updated as they are given, or as zeros. The
    record's shapes have to be static."""
    import numpy as np

    device = cuda_driver.get_device(0)
    driver = cuda_driver.load()
    name = f"kernel {kernel.name}"
    views: dict[str, TensorView] = {}
    buffers: dict[str, NDArray[np.generic]] = {}
    with device:
        try:
            for tensor, record in kernel.binder.tensors.items():
                if 0 in record.shape:
                    # A tensor without elements lies as one with them would.
                    sizes = [max(each, 1) for each in record.shape]
                    strides = (math.prod(sizes[dim + 1 :]) for dim in range(len(sizes)))
                    record = record._replace(strides=tuple(strides))
                if DYNAMIC in (*record.shape, *record.strides):
                    raise ArgumentError(
                        f'{name}: tensor "{tensor}": expected a static shape, got '
                        f"{list(record.shape)}; launch on arrays of the GPU"
                    )
                carrier, width = arrays.CARRIERS[record.dtype]
                steps = zip(record.shape, record.strides, strict=True)
                extent = 1 + sum((size - 1) * stride for size, stride in steps)
                if 0 in record.shape:
                    extent = 0
                memory = np.frombuffer(bytearray(b"\xff" * extent * width), carrier)
                buffers[tensor] = memory
                if tensor in kernel.binder.updated and tensor not in inputs:
                    memory[...] = 0
                elif tensor not in kernel.binder.written or tensor in kernel.binder.updated:
                    if tensor not in inputs:
                        raise ArgumentError(f'{name}: tensor "{tensor}": missing')
                    # Its shape before it is made dense.
                    given = arrays.read_elements(tensor, inputs[tensor], record.dtype)
                    if given.shape != record.shape:
                        raise ArgumentError(
                            f'{name}: tensor "{tensor}": expected shape {list(record.shape)}, got '
                            f"{list(given.shape)}"
                        )
                    array = arrays.to_elements(tensor, given, record.dtype)
                    _as_strided(memory, record)[...] = array
                address = ctypes.c_uint64()
                status = driver.cuMemAlloc_v2(ctypes.byref(address), max(memory.nbytes, 1))
                cuda_driver.check(status, "cuMemAlloc", f"{name}: {memory.nbytes} bytes")
                views[tensor] = record._replace(address=address.value)
                status = driver.cuMemcpyHtoD_v2(address, memory.ctypes.data, memory.nbytes)
                cuda_driver.check(status, "cuMemcpyHtoD", f'{name}: tensor "{tensor}"')
            kernel.prepare(views)([view.address for view in views.values()], 0)
            cuda_driver.check(
                driver.cuCtxSynchronize(), "cuCtxSynchronize", name, kernel.launch_record
            )
            outputs = {}
            for tensor in kernel.binder.written:
                memory = buffers[tensor]
                status = driver.cuMemcpyDtoH_v2(
                    memory.ctypes.data, views[tensor].address, memory.nbytes
                )
                cuda_driver.check(status, "cuMemcpyDtoH", f'{name}: tensor "{tensor}"')
                outputs[tensor] = np.ascontiguousarray(_as_strided(memory, views[tensor]))
            dtypes = {tensor: view.dtype for tensor, view in views.items()}
            return arrays.restore(outputs, inputs, dtypes)
        finally:
            for view in views.values():
                driver.cuMemFree_v2(view.address)


def _as_strided(memory: NDArray[np.generic], view: TensorView) -> NDArray[np.generic]:
    import numpy as np

    steps = [stride * memory.itemsize for stride in view.strides]
    return np.lib.stride_tricks.as_strided(memory, view.shape, steps)
