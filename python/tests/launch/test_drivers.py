"""Machines without a driver, or with an old one."""

import contextlib

import attn
import pytest
from attn import runtime
from attn.launch import cuda_driver
from test_record import make_views
from test_runtime import make_bytes


def test_no_driver(monkeypatch):
    def refuse(name):
        raise OSError(f"{name}: cannot open shared object file")

    cuda_driver.load.cache_clear()
    cuda_driver.get_device.cache_clear()
    monkeypatch.setattr(cuda_driver.ctypes, "CDLL", refuse)
    with pytest.raises(attn.DriverError, match="no CUDA driver"):
        runtime.load(make_bytes())(**make_views())


def test_old_driver(monkeypatch):
    """One without a function that launches need, and one that does not know the PTX."""

    class Old:
        cuInit = lambda flags: 0  # noqa: E731

    cuda_driver.load.cache_clear()
    cuda_driver.get_device.cache_clear()
    monkeypatch.setattr(cuda_driver.ctypes, "CDLL", lambda name: Old)
    with pytest.raises(attn.DriverError, match="driver is too old: .*; that of CUDA 12 or later"):
        runtime.load(make_bytes())(**make_views())
    Old.cuModuleLoadData = lambda *_: 222
    monkeypatch.setattr(cuda_driver, "load", lambda: Old)
    monkeypatch.setattr(cuda_driver, "outside_capture", contextlib.nullcontext)
    message = "attn_fwd: the CUDA driver is too old for this PTX; update it, or load a bundle"
    with pytest.raises(attn.DriverError, match=message):
        cuda_driver.Module(b"", "attn_fwd")
