"""Launches of several kernels without a GPU: the driver is a stand-in."""

import ctypes
import struct

import attn
import numpy as np
import pytest
from attn import bundle, runtime
from attn.launch import cuda_driver
from test_record import RECORD, make_views


def make_sequence():
    """A record of two kernels that share a workspace, and one of their own."""
    size = {"kind": "expression", "value": "q.dim0 * sms", "type": "i32"}
    pointer = {"kind": "pointer", "tensor": "q"}
    steps = [
        {
            "kernel": kernel,
            "grid": ["q.dim0", "1", "1"],
            "block": [32, 1, 1],
            "cluster": [1, 1, 1],
            "shared_bytes": 64,
            "args": [{"kind": "workspace", "index": 0, "access": access}, pointer, size, kept],
            **flags,
        }
        for kernel, access, flags, kept in (
            ("first", "write", {}, {"kind": "workspace", "index": 1}),
            ("second", "read", {"cooperative": True, "programmatic": True}, pointer),
        )
    ]
    return {
        "version": 2,
        "target": RECORD["target"],
        "tensors": RECORD["tensors"][:1],
        "workspaces": [
            {"name": "part", "bytes": "q.dim0 * 8", "zeroed": False},
            {"bytes": "4", "zeroed": True, "persistent": True},
        ],
        "steps": steps,
    }


def test_steps(monkeypatch):
    """Steps are launched in order and share the workspaces of the call; what
    persists is allocated and zeroed once."""
    calls, flags = [], []

    class Driver:
        @staticmethod
        def cuMemAllocAsync(address, size, stream):
            address._obj.value = 0x1000 * (1 + len(calls))
            calls.append(("allocate", size))
            return 0

        @staticmethod
        def cuMemsetD8Async(address, value, size, stream):
            calls.append(("zero", size))
            return 0

        @staticmethod
        def cuMemFreeAsync(address, stream):
            calls.append(("free", address))
            return 0

        @staticmethod
        def cuModuleLoadData(module, image):
            calls.append(("load", len(image)))
            return 0

    class Device:
        major, minor, shared_bytes, multiprocessors = 9, 0, 200000, 10

        def is_current(self):
            return True

    class Function:
        def __init__(self, image, name, shared_bytes):
            self.name, self.launches = name, []

        def launch(self, shape, stream, pointers):
            config = shape.config
            ways = [config.attributes[n].id for n in range(config.numAttributes)]
            # Cooperative and programmatic launches.
            flags.append((self.name, tuple(way in ways for way in (2, 6)) if ways else ()))
            self.launches.append([ctypes.string_at(pointer, 8) for pointer in pointers])
            return 0

    monkeypatch.setattr(cuda_driver, "Function", Function)
    monkeypatch.setattr(cuda_driver, "load", lambda: Driver)
    monkeypatch.setattr(cuda_driver, "get_device", lambda ordinal: Device())
    image = bundle.Image("cubin", "sm_90", b"cubin for 90")
    kernel = runtime.load(bundle.write(make_sequence(), [image]))
    assert kernel.name == "first, second"
    views = {"q": make_views()["q"]._replace(address=0x100)}
    kernel(stream=5, **views)
    kernel(stream=5, **views)
    assert [name for name, _ in flags] == ["first", "second"] * 2
    assert [more for _, more in flags[:2]] == [(), (True, True)]
    # The image is loaded once for both.
    assert [call[0] for call in calls] == [
        *("load", "allocate", "allocate", "zero", "free"),
        *("allocate", "free"),
    ]
    first, second = (function.launches for function in kernel._functions[0])
    read = lambda launch, index: struct.unpack("<Q", launch[index])[0]  # noqa: E731
    assert read(first[0], 0) == read(second[0], 0) == 0x2000
    assert read(first[1], 0) == read(second[1], 0) != 0x2000
    assert read(first[0], 3) == read(first[1], 3) == 0x3000
    assert struct.unpack("<i", first[0][2][:4])[0] == 20


def test_too_many_tiles():
    """Tiles that CTAs deal among themselves have numbers of 32 bits."""
    record = make_sequence()
    del record["steps"][1]["cooperative"]
    record["steps"][1]["tiles"] = "q.dim0 * 107370905 * 10 + 12"
    binder = attn.record.Binder(record)
    views = {"q": make_views()["q"]}
    assert views["q"].shape[0] == 2
    binder.resolve(views, multiprocessors=10)
    record["steps"][1]["tiles"] = "q.dim0 * 107370905 * 10 + 14"
    with pytest.raises(
        attn.ArgumentError,
        match="kernel second: tiles: expected at most 2147418112, got 2147418114",
    ):
        attn.record.Binder(record).resolve(views, multiprocessors=10)


def test_split_keys():
    """The kernels of split keys run in order, from Python too, and merge to the
    whole."""
    kernel = attn.compile(q=(1, 4, 3, 64), dtype="float16", kv_heads=2, kv_len=200, kv_splits=3)
    assert kernel.name == "attn_fwd, attn_combine" and kernel.launch["version"] == 2
    simulated = kernel.simulate(corners=True)
    assert simulated.passed
    assert [step["kernel"] for step in simulated.report["steps"]] == ["attn_fwd", "attn_combine"]
    binder = attn.record.Binder(kernel.launch)
    assert list(binder.tensors) == ["q", "k", "v", "o", "lse"]
    read = bundle.parse(kernel.bundle(cubin=False))
    assert read.launch == kernel.launch
    random = np.random.default_rng(0)
    q, k, v = (
        random.standard_normal((1, heads, rows, 64)).astype(np.float16)
        for heads, rows in ((4, 3), (2, 200), (2, 200))
    )
    o = kernel.run(q=q, k=k, v=v)["o"]
    s = q.astype(float) @ k.repeat(2, 1).astype(float).swapaxes(2, 3) / 8
    p = np.exp(s)
    expected = p @ v.repeat(2, 1) / p.sum(-1, keepdims=True)
    assert np.abs(o - expected).max() < 2e-3
