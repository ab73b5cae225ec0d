"""Memory of a device that plans own."""

from __future__ import annotations

import ctypes
import weakref

from . import _driver


class Memory:
    """Bytes of a device, freed with this object."""

    def __init__(self, device: int, size: int, what: str) -> None:
        driver = _driver.load()
        address = ctypes.c_uint64()
        with _driver.get_device(device):
            status = driver.cuMemAlloc_v2(ctypes.byref(address), max(size, 1))
            _driver.check(status, "cuMemAlloc", f"{what} of {size} bytes")
        self.address: int = address.value
        self._device = device
        weakref.finalize(self, _free, device, address.value)

    def clear(self, size: int) -> None:
        """Fills the first `size` bytes with zeros, before anything else is launched."""
        driver = _driver.load()
        with _driver.get_device(self._device):
            what = f"zeros of {size} bytes"
            _driver.check(driver.cuMemsetD8_v2(self.address, 0, size), "cuMemsetD8", what)
            _driver.check(driver.cuCtxSynchronize(), "cuCtxSynchronize", what)


def _free(device: int, address: int) -> None:
    with _driver.get_device(device):
        _driver.load().cuMemFree_v2(address)
