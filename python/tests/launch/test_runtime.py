"""Bundles and their launch without a GPU: the driver is a stand-in."""

import copy
import ctypes
import hashlib
import json
import pickle
import struct
import subprocess
import sys
import types

import attn
import pytest
from attn import bundle, runtime
from attn.launch import cuda_driver, device_tensors
from conftest import count_calls
from test_record import RECORD, make_view, make_views

IMAGES = (
    bundle.Image("cubin", "sm_80", b"cubin for 80"),
    bundle.Image("cubin", "sm_90", b"cubin for 90"),
    bundle.Image("ptx", "sm_80", b".version 8.0"),
)


def make_bytes(images=IMAGES, record=RECORD):
    return bundle.write(record, images)


def test_round_trip(tmp_path):
    path = tmp_path / "k.attn"
    path.write_bytes(make_bytes())
    read = bundle.read(path)
    assert read == bundle.Bundle(RECORD, IMAGES)
    assert runtime.load(path).name == runtime.load(make_bytes()).name == "attn_fwd"


def test_load_refuses():
    for source in (None, 3, bytearray(make_bytes())):
        with pytest.raises(attn.ArgumentTypeError, match="source: expected a path or bytes, got"):
            runtime.load(source)
    with pytest.raises(attn.BundleError, match="embedded null"):
        runtime.load("a\0b")


def test_stays_in_its_process():
    kernel = runtime.load(make_bytes())
    for call in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(
            attn.ArgumentTypeError, match="LoadedKernel: expected to stay in its process"
        ):
            call(kernel)


@pytest.mark.parametrize(
    "device, expected",
    [
        ((8, 0), ("cubin", "sm_80")),
        ((8, 9), ("cubin", "sm_80")),
        ((9, 0), ("cubin", "sm_90")),
        ((10, 0), ("ptx", "sm_80")),
        ((12, 1), ("ptx", "sm_80")),
    ],
)
def test_pick(device, expected):
    image = bundle.parse(make_bytes()).pick(*device)
    assert (image.kind, image.chip) == expected


def test_pick_refuses():
    images = (bundle.Image("cubin", "sm_90a", b""), bundle.Image("ptx", "sm_90a", b""))
    contents = bundle.parse(make_bytes(images))
    assert contents.pick(9, 0).kind == "cubin"
    with pytest.raises(
        attn.BundleError, match=r"runs on compute capability 10.0; it has cubin for"
    ):
        contents.pick(10, 0)
    family = bundle.Image("ptx", "sm_100f", b"")
    assert family.runs_on(10, 3) and not family.runs_on(12, 0)
    later = bundle.Image("ptx", "sm_90", b"")
    assert later.runs_on(12, 0) and not later.runs_on(8, 9)
    minor = bundle.Image("cubin", "sm_86", b"")
    assert minor.runs_on(8, 9) and not minor.runs_on(8, 0)


def test_every_truncation_is_an_error():
    whole = make_bytes()
    for length in range(len(whole)):
        with pytest.raises(attn.BundleError):
            bundle.parse(whole[:length])


def test_every_flipped_byte_is_an_error_or_padding():
    whole = make_bytes()
    header_end = 48 + struct.unpack_from("<I", whole, 12)[0]
    start = -(-header_end // 16) * 16
    used = set(range(header_end))
    for entry in json.loads(whole[48:header_end])["images"]:
        first = start + entry["offset"]
        used |= set(range(first, first + entry["bytes"]))
    for position in used:
        damaged = bytearray(whole)
        damaged[position] ^= 4
        with pytest.raises(attn.BundleError):
            bundle.parse(bytes(damaged))


@pytest.mark.parametrize(
    "data, message",
    [
        (b"", "truncated: expected at least 48 bytes, got 0"),
        (b"ATTN", "truncated"),
        (b"\x7fELF" + bytes(100), "this is no bundle"),
        (b"\x7fELF", "this is no bundle"),
        (bundle.MAGIC + struct.pack("<I", 2) + bytes(100), "version 1, got 2; a newer attn"),
    ],
)
def test_foreign_files(data, message):
    with pytest.raises(attn.BundleError, match=message):
        bundle.parse(data, "k.attn")


@pytest.mark.parametrize(
    "header, message",
    [
        (b"{", "a header without launch record and images"),
        (b"{}", "a header without launch record and images"),
        (b'{"launch": {}, "images": [{}]}', "an image without kind"),
        (
            b'{"launch":{},"images":[{"kind":"x","chip":"sm_80","offset":0,"bytes":0,"sha256":""}]}',
            "an unknown image",
        ),
        (
            b'{"launch":{},"images":[{"kind":"ptx","chip":"sm_80","offset":-1,"bytes":0,"sha256":""}]}',
            "an image at -1",
        ),
    ],
)
def test_bad_headers(header, message):
    data = bundle.MAGIC + struct.pack("<II", 1, len(header)) + hashlib.sha256(header).digest()
    with pytest.raises(attn.BundleError, match=message):
        bundle.parse(data + header)


def test_missing_file(tmp_path):
    with pytest.raises(attn.BundleError, match="No such file"):
        runtime.load(tmp_path / "absent.attn")


def test_unknown_record_version():
    with pytest.raises(attn.RecordError, match="version: expected 1 to 2, got 9"):
        runtime.load(make_bytes(record={**RECORD, "version": 9}))


class FakeDevice:
    """A device whose context is always current."""

    major, minor, shared_bytes = 9, 0, 200000

    def is_current(self):
        return True


class FakeModule:
    """Keeps the image that it is loaded from."""

    def __init__(self, image, what):
        self.image = image


class FakeFunction:
    """Keeps what it is launched with."""

    status = 0

    def __init__(self, module, name, shared_bytes):
        self.image, self.name, self.shared_bytes = module.image, name, shared_bytes
        self.launches = []

    def launch(self, shape, stream, pointers):
        config = shape.config
        grid, block, shared_bytes = tuple(config.grid), tuple(config.block), config.sharedBytes
        attributes = {a.id: tuple(a.value) for a in config.attributes[: config.numAttributes]}
        cluster = attributes.pop(4, (1, 1, 1))[:3]
        assert all(value[0] == 1 for value in attributes.values())
        values = [ctypes.string_at(pointer, 8) for pointer in pointers]
        self.launches.append((grid, block, cluster, shared_bytes, stream, values))
        return self.status


@pytest.fixture
def driver(monkeypatch):
    """A record without tensor map and workspace on a stand-in driver."""
    record = {**RECORD, "workspace": [], "args": RECORD["args"][:5] + RECORD["args"][7:]}
    monkeypatch.setattr(cuda_driver, "get_device", lambda ordinal: FakeDevice())
    monkeypatch.setattr(cuda_driver, "Function", FakeFunction)
    monkeypatch.setattr(cuda_driver, "Module", FakeModule)

    class Errors:
        @staticmethod
        def cuGetErrorName(status, name):
            name._obj.value = b"CUDA_ERROR_INVALID_VALUE"

        @staticmethod
        def cuGetErrorString(status, text):
            text._obj.value = b"invalid argument"

    monkeypatch.setattr(cuda_driver, "load", lambda: Errors)
    return runtime.load(make_bytes(record=record))


def place(views, addresses):
    return {
        name: attn.record.TensorView(view.dtype, view.shape, view.strides, address)
        for (name, view), address in zip(views.items(), addresses, strict=True)
    }


def test_launch(driver):
    driver(stream=77, **place(make_views(), (0x1000, 0x2000, 0x3000)))
    driver(stream=78, **place(make_views(), (0x4000, 0x5000, 0x6000)))
    function = driver._functions[0][0]
    assert function.image == b"cubin for 90" and function.shared_bytes == 98304
    (first, second) = function.launches
    assert first[:5] == ((3, 16, 1), (128, 1, 1), (1, 1, 1), 98304, 77)
    values = first[5]
    assert struct.unpack("<Q", values[0])[0] == 0x1000
    assert struct.unpack("<i", values[1][:4])[0] == 300
    assert struct.unpack("<q", values[2])[0] == 300 * 64
    assert struct.unpack("<f", values[3][:4])[0] == 0.5
    assert struct.unpack("<Q", values[5])[0] == 0x3000
    assert struct.unpack("<Q", second[5][0])[0] == 0x4000
    # The second call took the launch that the first one computed.
    assert len(driver._prepared) == 1


class FakeContext(FakeDevice):
    """A device whose context a thread has only inside of `with`."""

    inside = 0

    def is_current(self):
        return bool(self.inside)

    def __enter__(self):
        FakeContext.inside += 1

    def __exit__(self, *_):
        FakeContext.inside -= 1


def test_launch_without_context(driver, monkeypatch):
    """Fails once, and is repeated inside of the context."""
    driver(**make_views())
    function = driver._functions[0][0]
    monkeypatch.setattr(cuda_driver, "get_device", lambda ordinal: FakeContext())
    statuses = []

    def launch(*arguments):
        statuses.append(0 if FakeContext.inside else 201)
        return statuses[-1]

    monkeypatch.setattr(function, "launch", launch)
    driver(**make_views())
    assert statuses == [201, 0] and not FakeContext.inside
    monkeypatch.setattr(function, "launch", lambda *arguments: 400)
    with pytest.raises(attn.DriverError, match="cuLaunchKernelEx failed"):
        driver(**make_views())


def test_tensor_maps_and_workspaces(driver, monkeypatch):
    """Maps are encoded once for each address; workspaces come and go in the
    stream's order."""
    calls = []

    class Driver:
        @staticmethod
        def cuMemAllocAsync(address, size, stream):
            calls.append(("allocate", size, stream))
            address._obj.value = 0xABC00
            return 0

        @staticmethod
        def cuMemsetD8Async(address, value, size, stream):
            calls.append(("set", value, size, stream))
            return 0

        @staticmethod
        def cuMemFreeAsync(address, stream):
            calls.append(("free", address, stream))
            return 0

    def encode(parameter, view, address, kernel):
        calls.append(("encode", parameter.tensor, view.address))
        assert address % 64 == 0
        ctypes.memset(address, view.address >> 12, 128)

    monkeypatch.setattr(cuda_driver, "load", lambda: Driver)
    monkeypatch.setattr(cuda_driver, "encode_tensor_map", encode)
    mapped = runtime.load(make_bytes())
    index = next(i for i, arg in enumerate(RECORD["args"]) if arg["kind"] == "tensor_map")
    # Parameters that were filled once are kept, with all that is in them.
    for address in (0x2000, 0x3000, 0x2000):
        mapped(stream=5, **place(make_views(), (0x1000, address, 0x4000)))
        parameters = mapped._functions[0][0].launches[-1][5]
        assert parameters[index] == bytes([address >> 12] * 8)
    encoded = [call for call in calls if call[0] == "encode"]
    assert encoded == [("encode", "k", 0x2000), ("encode", "k", 0x3000)]
    # One of no rows has no address of its own.
    mapped(stream=5, **place(make_views(k=make_view(rows=0)), (0x1000, 0, 0x4000)))
    assert [call for call in calls if call[0] == "encode"][-1] == ("encode", "k", 0x4000)
    sizes = [call[1] for call in calls if call[0] == "allocate"]
    assert len(sizes) == 4 and calls[-1] == ("free", 0xABC00, 5)


def test_restored_workspaces_stay(driver, monkeypatch):
    """Each stream keeps what its kernels leave as they found it, unless launches
    may overlap: those of a graph, of a stream of unknown identity, and of the
    handle that each thread reads otherwise."""
    calls = []

    class Driver:
        capturing = 0

        @staticmethod
        def cuMemAllocAsync(address, size, stream):
            address._obj.value = 0x1000 * (1 + len(calls))
            calls.append(("allocate", stream))
            return 0

        @staticmethod
        def cuMemsetD8Async(address, value, size, stream):
            return 0

        @staticmethod
        def cuMemFreeAsync(address, stream):
            calls.append(("free", stream))
            return 0

        @staticmethod
        def cuStreamIsCapturing(stream, status):
            status._obj.value = Driver.capturing
            return 0

        @staticmethod
        def cuStreamGetId(stream, number):
            number._obj.value = 100 + stream
            return stream == 9

    record = {**RECORD, "args": [*RECORD["args"][:5], *RECORD["args"][6:]]}
    record["workspace"] = [{"bytes": "4", "zeroed": True, "restored": True}]
    monkeypatch.setattr(cuda_driver, "load", lambda: Driver)
    monkeypatch.setattr(runtime, "_kept", {})
    kernel = runtime.load(make_bytes(record=record))
    other = runtime.load(make_bytes(record=record))
    index = next(i for i, arg in enumerate(record["args"]) if arg["kind"] == "workspace")

    def launch(kernel, stream):
        kernel(stream=stream, **place(make_views(), (0x1000, 0x2000, 0x3000)))
        return struct.unpack("<Q", kernel._functions[0][0].launches[-1][5][index])[0]

    assert launch(kernel, 5) == launch(other, 5) == launch(kernel, 5) == 0x1000
    assert launch(kernel, 6) == 0x2000 and launch(kernel, 5) == 0x1000
    assert calls == [("allocate", 5), ("allocate", 6)]
    for stream in (2, 9):
        calls.clear()
        launch(kernel, stream)
        assert calls == [("allocate", stream), ("free", stream)]
    calls.clear()
    Driver.capturing = 1
    launch(kernel, 5)
    assert calls == [("allocate", 5), ("free", 5)]
    Driver.capturing = 0
    monkeypatch.setattr(runtime, "_KEPT_STREAMS", 2)
    calls.clear()
    launch(kernel, 7)
    assert calls == [("allocate", 7), ("free", 7)]
    # What others of the launch are, which hold anything, comes and goes.
    record["args"] = [*record["args"], {"kind": "workspace", "index": 1}]
    record["workspace"] = [{"bytes": "64", "zeroed": False}, *record["workspace"]]
    mixed = runtime.load(make_bytes(record=record))
    calls.clear()
    Driver.cuStreamGetId = staticmethod(lambda stream, number: 0)
    monkeypatch.setattr(runtime, "_KEPT_STREAMS", 8)
    monkeypatch.setattr(runtime, "_kept", {})
    launch(mixed, 5)
    launch(mixed, 5)
    assert calls == [("allocate", 5)] + 2 * [("allocate", 5), ("free", 5)]
    # Unless the caller has memory for them.
    prepared = mixed.prepare(make_views())
    calls.clear()
    prepared((0x1000, 0x2000, 0x3000), 5, scratch=0x7000)
    assert not calls and prepared.scratch_bytes == 256
    (where,) = [n for n, arg in enumerate(record["args"]) if arg.get("index") == 0]
    assert mixed._functions[0][0].launches[-1][5][where] == struct.pack("<Q", 0x7000)
    assert len(runtime._kept) == 1
    # Nothing is asked of a device whose kernels have run.
    with monkeypatch.context() as context:
        context.setattr(cuda_driver, "get_device", None)
        prepared((0x1000, 0x2000, 0x3000), 5, scratch=0x8000)
    assert mixed._functions[0][0].launches[-1][5][where] == struct.pack("<Q", 0x8000)
    del Driver.cuStreamGetId
    assert cuda_driver.find_stream(5) is None


def test_empty_launch(driver):
    views = make_views()
    empty = {
        name: attn.record.TensorView("f16", (0, *view.shape[1:]), view.strides)
        for name, view in views.items()
    }
    driver(**empty)
    assert not driver._functions


def test_failed_launch_names_kernel_and_launch(driver, monkeypatch):
    monkeypatch.setattr(FakeFunction, "status", 1)
    with pytest.raises(
        attn.DriverError,
        match=r"kernel attn_fwd: grid \(3, 16, 1\).*cuLaunchKernelEx failed: "
        "CUDA_ERROR_INVALID_VALUE: invalid argument",
    ):
        driver(**make_views())


def test_too_much_shared_memory(driver, monkeypatch):
    monkeypatch.setattr(FakeDevice, "shared_bytes", 49152)
    with pytest.raises(
        attn.DriverError, match="needs 98304 bytes of shared memory, device 0 has 49152"
    ):
        driver(**make_views())


def test_several_devices(driver):
    views = make_views()
    views["k"] = attn.record.TensorView("f16", views["k"].shape, views["k"].strides, 0, 1)
    with pytest.raises(attn.ArgumentError, match="expected one device, got q on 0, k on 1"):
        driver(**views)


class Array:
    """Something with __cuda_array_interface__."""

    def __init__(self, **changes):
        self.__cuda_array_interface__ = {
            "shape": (2, 8, 300, 64),
            "typestr": "<f2",
            "data": (4096, False),
            "strides": None,
            "version": 3,
            **changes,
        }


def test_cuda_array_interface():
    view = device_tensors.view("q", Array(), 3)
    assert view == attn.record.TensorView("f16", (2, 8, 300, 64), (153600, 19200, 64, 1), 4096, 3)
    strided = device_tensors.view("q", Array(strides=(2, 4, 6, 8)), 0)
    assert strided.strides == (1, 2, 3, 4)
    with pytest.raises(attn.ArgumentError, match='tensor "q": no kernel takes elements of <u2'):
        device_tensors.view("q", Array(typestr="<u2"), 0)
    with pytest.raises(attn.ArgumentError, match="expected strides of whole elements"):
        device_tensors.view("q", Array(strides=(1, 4, 6, 8)), 0)


def test_host_and_foreign_tensors():
    numpy = pytest.importorskip("numpy")
    with pytest.raises(
        attn.ArgumentError, match="expected a CUDA device, got DLPack device type 1"
    ):
        device_tensors.view("q", numpy.zeros((1, 2, 3, 4), numpy.float16), 0)
    with pytest.raises(attn.ArgumentError, match="expected a torch tensor, .* got int"):
        device_tensors.view("q", 3, 0)


def test_import_loads_neither_compiler_nor_numpy():
    script = "import attn.runtime, sys; print('numpy' in sys.modules, 'torch' in sys.modules)"
    environment = {"ATTN_LIBRARY": "/nonexistent", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]


def test_bundle_of_a_compiled_kernel(tmp_path):
    kernel = attn.compile(q="1x2x64x64xf16", dynamic=True)
    data = kernel.bundle(tmp_path / "k.attn", cubin=False)
    assert (tmp_path / "k.attn").read_bytes() == data
    loaded = runtime.load(data)
    assert loaded.name == kernel.name and loaded.launch_record == kernel.launch
    # The record's own expressions, on sizes that the launch decides.
    views = {}
    for tensor in kernel.launch["tensors"]:
        shape = [3, 2, 200, 64][: len(tensor["shape"])]
        strides = [2 * 200 * 64, 200 * 64, 64, 1] if len(shape) == 4 else [400, 200, 1]
        views[tensor["name"]] = attn.record.TensorView(
            tensor["dtype"], tuple(shape), tuple(strides)
        )
    launch = attn.record.Binder(kernel.launch).resolve(views)
    simulated = kernel.simulate(sizes={"q.dim0": 3, "q.dim2": 200, "k.dim2": 200}, verify=False)
    assert list(launch.steps[0].grid) == simulated.report["grid"]


class FakeTorchTensor:
    """As much of a torch tensor as a launch looks at."""

    is_cuda, device = True, "cuda:2"
    dtype, shape = "torch.bfloat16", [2, 3]

    def stride(self):
        return (3, 1)

    def data_ptr(self):
        return 512

    def get_device(self):
        return 2


def test_torch_tensors(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=FakeTorchTensor))
    view = device_tensors.view("q", FakeTorchTensor(), 0)
    assert view == attn.record.TensorView("bf16", (2, 3), (3, 1), 512, 2)
    on_host = FakeTorchTensor()
    on_host.is_cuda, on_host.device = False, "cpu"
    with pytest.raises(attn.ArgumentError, match='tensor "q": expected a CUDA device, got cpu'):
        device_tensors.view("q", on_host, 0)
    complex_tensor = FakeTorchTensor()
    complex_tensor.dtype = "torch.complex64"
    with pytest.raises(attn.ArgumentError, match="no kernel takes elements of torch.complex64"):
        device_tensors.view("q", complex_tensor, 0)
    # Classes that others derive are torch's tensors, too; types are none.
    derived = type("Derived", (FakeTorchTensor,), {"__module__": "library"})
    assert device_tensors.is_torch(derived()) and not device_tensors.is_torch(FakeTorchTensor)


def test_overhead_of_a_call(driver):
    """The host's work beside the driver's call."""
    views = place(make_views(), (0x1000, 0x2000, 0x3000))
    driver(**views)
    assert count_calls(lambda: driver(**views)) < 80


def test_no_torch():
    script = """
import sys
sys.modules["torch"] = None
import attn
try:
    import attn.torch_op
except attn.LibraryError as error:
    print(error)
try:
    attn.attention(1, 2, 3)
except attn.ArgumentError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = done.stdout.splitlines()
    assert first.startswith("the torch operator needs torch: ")
    assert (
        second == 'tensor "out": expected a tensor, got None; only torch tensors have outputs made'
    )


def test_attention_addresses_and_strides(driver):
    """Rows are read in pieces of 16 bytes."""
    kernel = attn.compile(q="1x2x64x64xf16", dynamic=True)
    loaded = runtime.load(kernel.bundle(cubin=False))
    shape, strides = (1, 2, 64, 64), (8192, 4096, 64, 1)
    views = {name: attn.record.TensorView("f16", shape, strides, 4096) for name in "qkvo"}
    views["lse"] = attn.record.TensorView("f32", shape[:3], (128, 64, 1), 4096)
    loaded(**views)
    for name, alignment in (("q", 16), ("o", 16), ("lse", 4)):
        moved = views[name]._replace(address=4096 + alignment // 2)
        with pytest.raises(
            attn.ArgumentError, match=f'"{name}": .* of {alignment} bytes, got 0x10'
        ):
            loaded(**{**views, name: moved})
    loaded(**{**views, "lse": views["lse"]._replace(address=4100)})
    crooked = views["k"]._replace(strides=(8192, 4100, 64, 1))
    with pytest.raises(attn.ArgumentError, match='"k": stride 1: expected a multiple of 16 bytes'):
        loaded(**{**views, "k": crooked})
    # What the record fixes to less needs less.
    narrow = attn.record.Binder(attn.compile(q="1x2x64x40xf16", layout="bnhd").launch)
    assert narrow.alignments["q"] == 16
    text = kernel.mlir("problem").replace("strided<[?, ?, ?, 1]>", "strided<[?, ?, 68, 1]>")
    assert attn.record.Binder(attn.compile(text).launch).alignments["q"] == 8
