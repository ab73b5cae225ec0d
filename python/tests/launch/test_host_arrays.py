"""Kernel.run: on the simulator without a GPU, else through a driver, of which a
stand-in is here."""

import ctypes

import attn
import numpy as np
import pytest
from attn.launch import cuda_driver, host_arrays
from conftest import make_rng
from test_runtime import FakeDevice, FakeFunction, FakeModule


@pytest.fixture
def no_device(monkeypatch):
    monkeypatch.setattr(host_arrays, "has_device", lambda: False)


class Driver:
    """A driver whose device memory is the host's."""

    def __init__(self):
        self.memory = {}

    def cuMemAlloc_v2(self, pointer, size):
        # At multiples of 16 bytes, as the driver's.
        memory = ctypes.create_string_buffer(size + 256)
        address = -(-ctypes.addressof(memory) // 256) * 256
        self.memory[address] = memory
        pointer._obj.value = address
        return 0

    def cuMemFree_v2(self, address):
        del self.memory[address]
        return 0

    def cuMemcpyHtoD_v2(self, target, source, size):
        ctypes.memmove(getattr(target, "value", target), source, size)
        return 0

    def cuMemcpyDtoH_v2(self, target, source, size):
        ctypes.memmove(target, source, size)
        return 0

    def cuCtxSynchronize(self):
        return 0

    def cuDeviceGetCount(self, count):
        count._obj.value = 1
        return 0


class Context(FakeDevice):
    major, minor = 8, 0

    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


class CopyV(FakeFunction):
    """A kernel that copies v to o."""

    bytes = 1 * 2 * 32 * 64 * 2

    def launch(self, shape, stream, pointers):
        v, o = (ctypes.c_uint64.from_address(pointers[index]).value for index in (2, 3))
        ctypes.memmove(o, v, self.bytes)
        return self.status


@pytest.fixture
def driver(monkeypatch):
    driver = Driver()
    monkeypatch.setattr(cuda_driver, "load", lambda: driver)
    monkeypatch.setattr(cuda_driver, "get_device", lambda ordinal: Context())
    monkeypatch.setattr(cuda_driver, "Function", CopyV)
    monkeypatch.setattr(cuda_driver, "Module", FakeModule)
    monkeypatch.setattr(CopyV, "status", 0)
    return driver


TABLE = np.float32([1, 2])


def make_inputs(shape=(1, 2, 32, 64)):
    generator = make_rng()
    return {name: generator.standard_normal(shape).astype(np.float16) for name in "qkv"}


def test_simulated(no_device):
    kernel = attn.compile(q="1x2x32x64xf16", causal=True, chip="native")
    assert kernel.chip == "sm_80"
    inputs = make_inputs()
    outputs = kernel.run(**inputs)
    assert sorted(outputs) == ["lse", "o"]
    np.testing.assert_array_equal(outputs["o"], kernel.simulate(**inputs)["o"])


@pytest.mark.parametrize("device", ["no_device", "driver"])
def test_all_inputs_are_needed(device, request, monkeypatch):
    """No array is made up, and none is ignored."""
    request.getfixturevalue(device)
    kernel = attn.compile(q="1x2x32x64xf16", score_mod=lambda s, b, h, i, j: s + TABLE[h])
    inputs = make_inputs()
    for name in inputs:
        some = {other: array for other, array in inputs.items() if other != name}
        with pytest.raises(
            attn.ArgumentError,
            match=f'tensor "{name}": missing; the kernel reads q, k, v, capture0',
        ):
            kernel.run(**some)
    for name in ("o", "lse", "bias"):
        with pytest.raises(
            attn.ArgumentError, match=f'tensor "{name}": expected one of q, k, v, capture0'
        ):
            kernel.run(**inputs, **{name: inputs["q"]})


def test_launched(driver):
    assert host_arrays.has_device()
    kernel = attn.compile(q="1x2x32x64xf16", chip="native", layout="bnhd")
    inputs = make_inputs()
    outputs = kernel.run(**inputs)
    np.testing.assert_array_equal(outputs["o"], inputs["v"])
    # Nobody wrote it.
    assert np.isnan(outputs["lse"]).all() and not driver.memory


def test_refused(driver, monkeypatch):
    kernel = attn.compile(q="1x2x32x64xf16")
    inputs = make_inputs()
    with pytest.raises(attn.ArgumentError, match='tensor "v": missing'):
        kernel.run(q=inputs["q"], k=inputs["k"])
    with pytest.raises(
        attn.ArgumentError, match=r"expected shape \[1, 2, 32, 64\], got \[1, 2, 16"
    ):
        kernel.run(**make_inputs((1, 2, 16, 64)))
    with pytest.raises(attn.ArgumentError, match="expected a static shape"):
        attn.compile(q="1x2x32x64xf16", dynamic=True).run(**inputs)
    monkeypatch.setattr(CopyV, "status", 700)
    monkeypatch.setattr(cuda_driver, "describe", lambda driver, status: f"error {status}")
    with pytest.raises(attn.DriverError, match="cuLaunchKernelEx failed: error 700"):
        kernel.run(**inputs)
    assert not driver.memory


def test_no_driver(monkeypatch):
    def refuse(name):
        raise OSError(f"{name}: cannot open shared object file")

    cuda_driver.load.cache_clear()
    monkeypatch.setattr(cuda_driver.ctypes, "CDLL", refuse)
    assert not host_arrays.has_device()


def test_shapes_before_copies(no_device):
    """An array that repeats one element may be larger than memory."""
    huge = np.broadcast_to(np.float16(0), (1 << 20, 1 << 20, 32, 64))
    kernel = attn.compile(q="1x2x32x64xf16")
    for call in (kernel.simulate, kernel.run):
        with pytest.raises(
            attn.SimulationError, match='input "q": dimension 0: expected 1, got 1048576'
        ):
            call(q=huge, k=huge, v=huge)
