"""Memory of a device that plans own."""

from __future__ import annotations

import ctypes
import weakref

from . import cuda_driver


class Memory:
    """Bytes of a device, freed with this object."""

    def __init__(self, device: int, size: int, what: str) -> None:
        driver = cuda_driver.load()
        address = ctypes.c_uint64()
        with cuda_driver.get_device(device):
            status = driver.cuMemAlloc_v2(ctypes.byref(address), max(size, 1))
            cuda_driver.check(status, "cuMemAlloc", f"{what} of {size} bytes")
        self.address: int = address.value
        self._device = device
        weakref.finalize(self, _free, device, address.value)

    def clear(self, size: int) -> None:
        """Fills the first `size` bytes with zeros, before anything else is launched."""
        driver = cuda_driver.load()
        with cuda_driver.get_device(self._device):
            what = f"zeros of {size} bytes"
            cuda_driver.check(driver.cuMemsetD8_v2(self.address, 0, size), "cuMemsetD8", what)
            cuda_driver.check(driver.cuCtxSynchronize(), "cuCtxSynchronize", what)


def _free(device: int, address: int) -> None:
    with cuda_driver.get_device(device):
        cuda_driver.load().cuMemFree_v2(address)
