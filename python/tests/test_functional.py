"""attn.attention without a GPU: tensors and driver are stand-ins."""

import sys
import types

import attn
import pytest
from attn import _driver, functional
from test_runtime import FakeDevice, FakeFunction


class Tensor:
    """As much of a torch tensor as attention() looks at."""

    __module__ = "torch"
    is_cuda, device = True, "cuda:0"

    def __init__(self, shape, strides=None, dtype="torch.float16"):
        self.shape, self.dtype = tuple(shape), dtype
        if strides is None:
            strides = [1] * len(shape)
            for axis in range(len(shape) - 1, 0, -1):
                strides[axis - 1] = strides[axis] * shape[axis]
        self._strides = tuple(strides)

    def stride(self):
        return self._strides

    def data_ptr(self):
        return id(self)

    def get_device(self):
        return 0

    def new_empty(self, shape, dtype=None):
        return Tensor(shape, dtype=dtype or self.dtype)

    def transpose(self, a, b):
        shape, strides = list(self.shape), list(self._strides)
        shape[a], shape[b] = shape[b], shape[a]
        strides[a], strides[b] = strides[b], strides[a]
        return Tensor(shape, strides, self.dtype)


@pytest.fixture(autouse=True)
def driver(monkeypatch):
    torch = types.SimpleNamespace(
        float32="torch.float32",
        bfloat16="torch.bfloat16",
        _C=types.SimpleNamespace(_cuda_getCurrentRawStream=lambda ordinal: 55),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(_driver, "get_device", lambda ordinal: FakeDevice())
    monkeypatch.setattr(_driver, "Function", FakeFunction)
    monkeypatch.setattr(FakeDevice, "major", 8)
    functional._loaded.clear()


def test_dense():
    q, k = Tensor((2, 4, 64, 64)), Tensor((2, 2, 32, 64))
    o, lse = attn.attention(q, k, k, causal=True, lse=True)
    assert o.shape == q.shape and lse.shape == (2, 4, 64) and lse.dtype == "torch.float32"
    (kernel,) = functional._loaded.values()
    assert kernel.launch_record["problem"]["mask"]["kind"] == "causal"
    assert kernel.launch_record["target"]["chip"] == "sm_80"
    (launch,) = kernel._functions[0].launches
    assert launch[4] == 55
    attn.attention(q, k, k, causal=True, lse=True)
    assert len(functional._loaded) == 1 and len(kernel._functions[0].launches) == 2


def test_sequence_major_and_strided():
    q = Tensor((2, 64, 4, 64)).transpose(1, 2)
    o = attn.attention(q, q, q)
    assert o.stride() == q.stride()
    (kernel,) = functional._loaded.values()
    assert kernel.launch_record["tensors"][0]["strides"] == list(q.stride())
    padded = Tensor((2, 4, 64, 64), (4 * 64 * 80, 64 * 80, 80, 1))
    attn.attention(padded, padded, padded)
    dynamic = list(functional._loaded.values())[1]
    assert dynamic.launch_record["tensors"][0]["shape"] == [-1, 4, -1, 64]
    longer = Tensor((3, 4, 99, 64), (4 * 99 * 80, 99 * 80, 80, 1))
    attn.attention(longer, longer, longer)
    assert len(functional._loaded) == 2


@pytest.mark.parametrize(
    "q, k, v, message",
    [
        ((4, 64, 64), (1, 4, 64, 64), (1, 4, 64, 64), 'tensor "q": expected shape'),
        ((1, 4, 64, 64), (1, 4, 64, 32), (1, 4, 64, 64), 'tensor "k": expected head dimension 64'),
        ((1, 4, 64, 64), (2, 4, 64, 64), (1, 4, 64, 64), 'tensor "k": expected batch size 1'),
        ((1, 4, 64, 64), (1, 4, 64, 64), (1, 4, 32, 64), 'tensor "v": expected heads and keys'),
    ],
)
def test_wrong_shapes(q, k, v, message):
    with pytest.raises(attn.ArgumentError, match=message):
        attn.attention(Tensor(q), Tensor(k), Tensor(v))


def test_refused():
    q = Tensor((1, 4, 64, 64))
    with pytest.raises(attn.ArgumentError, match='tensor "k": .* alike, got bf16'):
        attn.attention(q, Tensor((1, 4, 64, 64), dtype="torch.bfloat16"), q)
    with pytest.raises(attn.ArgumentError, match='tensor "q": expected a torch tensor, got int'):
        attn.attention(3, q, q)
    with pytest.raises(attn.ArgumentError, match="expected an innermost stride of 1, got 64"):
        attn.attention(Tensor((1, 4, 64, 64)).transpose(2, 3), q, q)
    with pytest.raises(attn.CompileError, match="multiple of the number of key heads, got 4 and 3"):
        attn.attention(q, Tensor((1, 3, 64, 64)), Tensor((1, 3, 64, 64)))


def test_device_without_target(monkeypatch):
    monkeypatch.setattr(FakeDevice, "major", 7)
    q = Tensor((1, 4, 64, 64))
    with pytest.raises(attn.DriverError, match="no target for compute capability 7.0"):
        attn.attention(q, q, q)
