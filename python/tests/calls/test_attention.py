"""attn.attention without a GPU: arrays and driver are stand-ins."""

import math
import re
import struct

import attn
import numpy as np
import pytest
from attn import functional, runtime
from attn.calls import attention_kernels, shared_kernels
from attn.launch import cuda_driver
from attn.kernel import get_chip
from conftest import count_calls
from test_runtime import FakeDevice, FakeFunction, FakeModule

ADDRESS = 1 << 20


class Array:
    """Memory of a GPU, as libraries like numpy describe it."""

    def __init__(self, shape, strides=None, dtype="float16", address=ADDRESS):
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        if strides is None:
            strides = [1] * len(shape)
            for axis in range(len(shape) - 1, 0, -1):
                strides[axis - 1] = strides[axis] * max(shape[axis], 1)
        self.strides = tuple(stride * self.dtype.itemsize for stride in strides)
        self.address = address

    def __dlpack__(self):
        raise AssertionError("the other interface comes first")

    @property
    def __cuda_array_interface__(self):
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": self.strides,
            "version": 3,
        }

    def transpose(self, *axes):
        steps = [self.strides[axis] // self.dtype.itemsize for axis in axes]
        return Array([self.shape[axis] for axis in axes], steps, self.dtype, self.address)


@pytest.fixture(autouse=True)
def driver(monkeypatch):
    monkeypatch.setattr(cuda_driver, "get_device", lambda ordinal: FakeDevice())
    monkeypatch.setattr(cuda_driver, "Function", FakeFunction)
    monkeypatch.setattr(cuda_driver, "Module", FakeModule)
    monkeypatch.setattr(FakeDevice, "major", 8)
    attention_kernels.clear()


@pytest.fixture
def hopper(monkeypatch):
    """A device with tensor maps and memory for workspaces, neither of which is there."""
    monkeypatch.setattr(FakeDevice, "major", 9)
    monkeypatch.setattr(cuda_driver, "encode_tensor_map", lambda *_: None)

    def run(launch, addresses, stream, scratch):
        launch._start(addresses, [ADDRESS] * 8, stream)

    monkeypatch.setattr(runtime.PreparedLaunch, "_run_with_memory", run)


def get_kernel(index=-1):
    return list(shared_kernels._loaded.values())[index]


def get_launches(index=-1):
    """The launches of a kernel: grid, block, cluster, shared bytes, stream,
    parameters."""
    return get_kernel(index)._functions[0][0].launches


def get_addresses(launch, count):
    return [struct.unpack("<Q", raw)[0] for raw in launch[5][:count]]


def test_dense():
    q, k = Array((2, 4, 64, 64)), Array((2, 2, 32, 64), address=2 * ADDRESS)
    o, lse = Array(q.shape, address=3 * ADDRESS), Array(q.shape[:3], dtype="float32")
    assert attn.attention(q, k, k, causal=True, out=o, lse=lse, stream=55) == (o, lse)
    record = get_kernel().launch_record
    assert record["problem"]["mask"] == {"kind": "causal", "align": "top_left"}
    assert record["target"]["chip"] == "sm_80"
    (launch,) = get_launches()
    assert launch[4] == 55
    assert get_addresses(launch, 5) == [factor * ADDRESS for factor in (1, 2, 2, 3, 1)]
    attn.attention(q, k, k, causal=True, out=o, lse=lse)
    assert len(shared_kernels._loaded) == 1 and len(get_launches()) == 2
    assert attn.attention(q, k, k, out=o) is o
    assert len(shared_kernels._loaded) == 2


def test_sequence_major_and_strided():
    q = Array((2, 64, 4, 64)).transpose(0, 2, 1, 3)
    attn.attention(q, q, q, out=q)
    assert get_kernel().launch_record["tensors"][0]["strides"] == [64 * 4 * 64, 64, 4 * 64, 1]
    padded = Array((2, 4, 64, 64), (4 * 64 * 80, 64 * 80, 80, 1))
    attn.attention(padded, padded, padded, out=padded)
    record = get_kernel().launch_record
    assert record["tensors"][0]["shape"] == [2, 4, 64, 64]
    assert all(record["tensors"][i]["strides"] == [-1, -1, -1, 1] for i in range(4))
    wider = Array((2, 4, 64, 64), (4 * 64 * 96, 64 * 96, 96, 1))
    attn.attention(wider, padded, wider, out=padded)
    assert len(shared_kernels._loaded) == 2
    # An output in another order takes the kernel for any strides too.
    attn.attention(Array((2, 4, 64, 64)), *[Array((2, 4, 64, 64))] * 2, out=q)
    assert len(shared_kernels._loaded) == 2
    # All other lengths have one kernel.
    for batch, length in ((3, 99), (1, 100), (2, 7)):
        longer = Array((batch, 4, length, 64), (4 * length * 80, length * 80, 80, 1))
        attn.attention(longer, longer, longer, out=longer)
        assert len(shared_kernels._loaded) == 3
    assert get_kernel().launch_record["tensors"][0]["shape"] == [-1, 4, -1, 64]


def test_slices_of_a_fused_tensor(monkeypatch):
    """They get the kernel that dense ones get."""
    monkeypatch.setattr(FakeDevice, "major", 9)
    monkeypatch.setattr(cuda_driver, "encode_tensor_map", lambda map, *_: maps.append(map))
    maps, heads, length, dim = [], 4, 256, 64
    row = 3 * heads * dim
    strides = (length * row, dim, row, 1)
    slices = [
        Array((2, heads, length, dim), strides, address=ADDRESS + 2 * i * heads * dim)
        for i in range(3)
    ]
    o = Array((2, length, heads, dim), address=9 * ADDRESS).transpose(0, 2, 1, 3)
    attn.attention(*slices, causal=True, out=o)
    (kernel,) = shared_kernels._loaded.values()
    assert [arg["kind"] for arg in kernel.launch_record["args"]].count("tensor_map") >= 3
    assert [map.strides for map in maps[:3]] == [(2 * row, 2 * dim, 2 * length * row)] * 3
    # Slices between rows that no map describes are refused at the call.
    crooked = Array((2, heads, length, dim), (length * (row + 4), dim, row + 4, 1))
    message = '"q": its tensor map expects strides of a multiple of 16 bytes .* got 1544'
    with pytest.raises(attn.ArgumentError, match=message):
        attn.attention(crooked, *slices[1:], causal=True, out=o)


def count_kernels(caplog, queries, lengths, **options):
    """Kernels that a cache of so many keys at each step needs, and those that were logged."""
    shared_kernels.clear()
    caplog.clear()
    for length in lengths:
        q = Array((1, 4, queries, 64))
        k = Array((1, 2, length, 64), (2 * 4096 * 64, 4096 * 64, 64, 1), address=2 * ADDRESS)
        attn.attention(q, k, k, out=q, **options)
    plans = [each for each in caplog.messages if "#attn." in each]
    assert len(plans) == len(shared_kernels._loaded)
    return plans


@pytest.mark.parametrize("queries", [1, 2])
def test_growing_keys_share_a_kernel(hopper, caplog, queries):
    caplog.set_level("DEBUG", "attn")
    lengths = [300, *range(301, 305), 1000, 2000, 2049, 4000]
    plans = count_kernels(caplog, queries, lengths, causal="bottom-right")
    assert len(plans) == queries
    shapes = [each["shape"] for each in get_kernel().launch_record["tensors"][:2]]
    if queries == 1:
        # Keys are cut into runs as for one query of known lengths.
        assert shapes == [[1, 4, 1, 64], [1, 2, -1, 64]]
        assert "combine" in plans[0]
    else:
        assert shapes == [[-1, 4, -1, 64], [-1, 2, -1, 64]]
        assert "ws_wgmma" in plans[1]


def test_no_keys_and_no_sequences(hopper):
    """They run with the kernels of any lengths."""
    q, counts = Array((64, 4, 64)), Array((3,), dtype="int32")
    packed = {"cu_seqlens_q": counts, "cu_seqlens_k": counts, "max_seqlen_q": 64}
    for keys in (64, 0):
        k = Array((keys, 4, 64))
        attn.attention(q, k, k, out=q, **packed)
    (kernel,) = shared_kernels._loaded.values()
    args = kernel.launch_record["args"]
    assert [arg["kind"] for arg in args].count("tensor_map") >= 3
    q = Array((1, 4, 64, 64))
    for keys in (64, 65, 0):
        k = Array((1, 4, keys, 64))
        attn.attention(q, k, k, out=q)
    assert len(shared_kernels._loaded) == 3
    assert get_kernel().launch_record["tensors"][1]["shape"] == [-1, 4, -1, 64]
    nothing = Array((0, 4, 64, 64))
    attn.attention(nothing, nothing, nothing, out=nothing)


def test_notes_say_what_refused_the_faster_schedules(hopper, monkeypatch, caplog):
    caplog.set_level("DEBUG", "attn")
    q = Array((1, 4, 64, 192))
    attn.attention(q, q, q, out=q)

    def list_plans():
        # Beside these the log tells of compilations and launches.
        return [text for text in caplog.messages if text.startswith("kernel for")]

    assert len(list_plans()) == 1 and "ws_wgmma" in caplog.text
    assert any(text.startswith("launched: attn_fwd on device 0") for text in caplog.messages)
    monkeypatch.setattr(FakeDevice, "major", 10)
    attention_kernels.clear()
    attn.attention(q, q, q, out=q)
    assert len(list_plans()) == 2 and "#attn.ws_tmem<tiles = 1" in list_plans()[1]
    assert not attn.compile(q="1x4x64x64xf16", chip="sm_100a", init_state=True).plan_notes
    kernel = attn.compile(q="1x4x64x64xf16", chip="sm_90a", init_state=True)
    (note,) = kernel.plan_notes
    assert re.fullmatch(
        r"'split_q' multiplies by mma.sync, at 0\.\d\d of the rate of sm_90a: schedule 'ws_wgmma' "
        r"does not support a state to go on from \('init'\)",
        note,
    )
    assert not attn.compile(q="1x4x64x64xf16", chip="sm_90a").plan_notes
    assert not attn.compile(q="1x4x64x64xf16", init_state=True).plan_notes


def test_expanded_tensors(hopper, caplog):
    """Heads that are one in memory are one key head; what repeats otherwise has no tensor map."""
    caplog.set_level("DEBUG", "attn")
    q = Array((2, 4, 64, 64))
    one = Array(q.shape, (64 * 64, 0, 64, 1))
    attn.attention(q, one, one, out=q)
    record = get_kernel().launch_record
    assert record["tensors"][1]["shape"] == [2, 1, 64, 64] and "#attn.ws_wgmma" in caplog.text
    shared = Array(q.shape, (0, 64 * 64, 64, 1))
    attn.attention(q, shared, shared, out=q)
    assert "by mma.sync, since elements of q, k or v repeat" in caplog.text


def test_transposed_values(monkeypatch):
    monkeypatch.setattr(FakeDevice, "major", 9)
    maps = []
    monkeypatch.setattr(cuda_driver, "encode_tensor_map", lambda map, *_: maps.append(map))
    q = attn.record.TensorView("f8E4M3FN", (2, 4, 64, 64), (16384, 4096, 64, 1), ADDRESS)
    v = q._replace(strides=(16384, 4096, 1, 64))
    o = q._replace(dtype="bf16")
    attn.attention(q, q, v, out=o)
    record = get_kernel().launch_record
    assert record["tensors"][2]["strides"] == [16384, 4096, 1, 64]
    views = {arg["tensor"]: arg.get("view") for arg in record["args"] if "box" in arg}
    assert views == {"q": None, "k": "quads", "v": "transposed"}
    assert [map.dims for map in maps] == [(64, 64, 4, 2), (64, 4, 16, 4, 2), (64, 64, 4, 2)]
    assert [map.strides[0] for map in maps] == [64, 64, 64]
    # Rows of keys are a multiple of 16 bytes in a kernel for fixed lengths.
    keys = q._replace(shape=(2, 4, 60, 64))
    keys = keys._replace(strides=(15360, 3840, 64, 1))
    attn.attention(q, keys, v._replace(shape=keys.shape), out=o)
    assert get_kernel().launch_record["tensors"][2]["shape"] == [2, 4, 60, 64]
    # Other strides are those of the launch.
    attn.attention(q, q, v._replace(strides=(20480, 5120, 1, 80)), out=o)
    assert get_kernel().launch_record["tensors"][2]["strides"] == [-1, -1, 1, -1]
    with pytest.raises(attn.ArgumentError, match='"k": expected an innermost stride of 1, got 64'):
        attn.attention(q, v, v, out=o)
    # 16-bit values need no other order of keys.
    wide = q._replace(dtype="f16")
    attn.attention(wide, wide, v._replace(dtype="f16"), out=wide)
    args = get_kernel().launch_record["args"]
    assert [arg.get("view") for arg in args if "box" in arg] == [None, None, "transposed"]


def test_options():
    q = Array((1, 4, 64, 64))
    options = {"window": (31, None, "bottom-right"), "softcap": 20.0, "scale": 0.5}
    attn.attention(q, q, q, out=q, sinks=Array((4,), dtype="float32"), **options)
    problem = get_kernel().launch_record["problem"]
    assert problem["mask"] == {"kind": "window", "align": "bottom_right", "left": 31, "right": -1}
    assert (problem["softcap"], problem["scale"], problem["sinks"]) == (20, 0.5, True)
    attn.attention(q, q, q, out=Array(q.shape, dtype="float32"), causal="bottom-right")
    record = get_kernel().launch_record
    assert record["tensors"][3]["dtype"] == "f32"
    assert record["problem"]["mask"]["align"] == "bottom_right"


def test_variable_lengths():
    q, k = Array((300, 4, 64)), Array((500, 2, 64), address=2 * ADDRESS)
    lengths = Array((4,), dtype="int32", address=3 * ADDRESS)
    lse = Array((4, 300), dtype="float32")
    options = {"cu_seqlens_q": lengths, "cu_seqlens_k": lengths, "causal": True}
    attn.attention(q, k, k, out=q, lse=lse, max_seqlen_q=120, **options)
    record = get_kernel().launch_record
    assert record["problem"]["varlen"] and record["problem"]["max_seqlen_q"] == 128
    launch = get_launches()[0]
    # Tiles of queries, heads and sequences, in the plan's order.
    (block,) = re.findall(r"ceildiv\(128, (\d+)\)", str(record["grid"]))
    assert math.prod(launch[0]) == 4 * 3 * -(-128 // int(block))
    assert get_addresses(launch, 7)[5:] == [3 * ADDRESS] * 2
    # Other lengths of the same bound: the same kernel.
    longer = Array((400, 4, 64))
    lse = Array((4, 400), dtype="float32")
    attn.attention(longer, k, k, out=longer, lse=lse, max_seqlen_q=128, **options)
    assert len(shared_kernels._loaded) == 1
    attn.attention(longer, k, k, out=longer, **options)
    assert get_kernel().launch_record["problem"]["max_seqlen_q"] == 448
    with pytest.raises(attn.ArgumentError, match='"cu_seqlens_k": expected one beside the other cu_seqlens, got none'):
        attn.attention(q, k, k, out=q, cu_seqlens_q=lengths)
    wide = {"cu_seqlens_q": Array((4,), dtype="int64"), "cu_seqlens_k": lengths}
    with pytest.raises(attn.ArgumentError, match='"cu_seqlens_q": expected elements of i32, got i64'):
        attn.attention(q, k, k, out=q, **wide)
    fewer = {"cu_seqlens_q": lengths, "cu_seqlens_k": Array((3,), dtype="int32")}
    with pytest.raises(attn.ArgumentError, match='"cu_seqlens_k": expected as many numbers as cu_seqlens_q, 4, got 3'):
        attn.attention(q, k, k, out=q, **fewer)
    with pytest.raises(attn.ArgumentError, match=r"expected shape \(rows, head, dim\), got"):
        attn.attention(Array((1, 4, 3, 64)), k, k, out=q, **options)


@pytest.mark.parametrize("length", [1, 16, 17, 100, 128, 129, 1000, 4096, 4097, 12345])
def test_bounds_are_rounded_up_by_little(length):
    rounded = attention_kernels.round_bound(length)
    assert length <= rounded <= max(length * 1.25, length + 15)
    assert rounded % 16 == 0 and attention_kernels.round_bound(rounded) == rounded


def test_modifications():
    slopes = Array((4,), dtype="float32", address=7 * ADDRESS)
    documents = Array((64,), dtype="uint8", address=8 * ADDRESS)

    def alibi(score, b, h, q_idx, kv_idx):
        return score + slopes[h] * (kv_idx - q_idx)

    def same_document(b, h, q_idx, kv_idx):
        return documents[q_idx] == documents[kv_idx]

    q = Array((1, 4, 64, 64))
    attn.attention(q, q, q, out=q, score_mod=alibi, mask_mod=same_document)
    record = get_kernel().launch_record
    assert record["problem"]["score_mod"] and record["problem"]["mask_mod"]
    assert [tensor["name"] for tensor in record["tensors"][4:]] == ["capture0", "capture1"]
    assert get_addresses(get_launches()[0], 6)[4:] == [7 * ADDRESS, 8 * ADDRESS]
    # Other tensors of the same shape: the same kernel, their addresses.
    slopes = Array((4,), dtype="float32", address=9 * ADDRESS)
    attn.attention(q, q, q, out=q, score_mod=alibi, mask_mod=same_document)
    assert len(shared_kernels._loaded) == 1
    assert get_addresses(get_launches()[1], 6)[4:] == [9 * ADDRESS, 8 * ADDRESS]
    # Another text: another kernel.
    attn.attention(q, q, q, out=q, mask_mod=lambda b, h, i, j: documents[i] >= documents[j])
    assert len(shared_kernels._loaded) == 2
    # One kernel for other lengths, with open shapes of what is read.
    for length in (64, 65):
        padded = Array((2, 4, length, 64), (4 * 64 * 80, 64 * 80, 80, 1))
        attn.attention(padded, padded, padded, out=padded, score_mod=alibi)
    assert get_kernel().launch_record["tensors"][4]["shape"] == [-1]


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
        attn.attention(Array(q), Array(k), Array(v), out=Array(q))


def test_wrong_outputs_and_sinks():
    q = Array((1, 4, 64, 64))
    for options, message in (
        ({"out": Array((1, 4, 32, 64))}, r'"out": expected shape \[1, 4, 64, 64\], got \[1, 4, 32, 64\]'),
        ({"out": Array((4, 64, 64))}, r'"out": expected rank 4, got shape \[4, 64, 64\]'),
        (
            {"out": Array(q.shape, dtype="int32")},
            '"out": expected f16, bf16, f32, floats of 8 bits or f4E2M1FN, got i32',
        ),
        ({"out": q.transpose(0, 1, 3, 2)}, '"out": expected an innermost stride of 1, got 64'),
        ({"out": q, "lse": Array((1, 4, 63), dtype="float32")}, '"lse": expected shape'),
        ({"out": q, "lse": Array((1, 4, 64))}, '"lse": expected elements of f32, got f16'),
        ({"out": q, "sinks": Array((4,))}, '"sinks": expected elements of f32, got f16'),
        ({"out": q, "sinks": Array((3,), dtype="float32")}, r'"sinks": expected shape \[4\], got \[3\]'),
        ({"out": q, "sinks": [0.0] * 4}, '"sinks": expected a torch tensor, .* got list'),
        ({"out": q, "cu_seqlens_q": (0, 64)}, '"cu_seqlens_q": expected a torch tensor, .* got tuple'),
        ({"out": q, "max_seqlen_q": 64}, "max_seqlen_q: expected none without cu_seqlens_q, got 64"),
        ({"out": q, "max_seqlen_q": 2**40}, "max_seqlen_q: expected an integer from 0 to 536870912"),
        ({"out": q, "scale": 0}, "scale: expected a number other than 0, got 0"),
        ({"out": q, "out_scale": -1.0}, "out_scale: expected a number above 0, got -1.0"),
        ({"out": q, "window": (3,)}, r"window: expected \(left, right\) or .* got 1 of them"),
        ({"out": q, "window": (3, 4, 5)}, "window: expected an alignment top-left or bottom-right, got 5"),
        ({"out": q, "window": (3, 4, np.zeros(2))}, "window: expected an alignment top-left or"),
        ({"out": q, "window": (3, -7)}, "window: expected an integer from -1 to"),
        ({}, 'tensor "out": expected a tensor, got None'),
        ({"out": q, "lse": True}, 'tensor "lse": expected a tensor, got None'),
    ):
        with pytest.raises(attn.ArgumentError, match=message) as error:
            attn.attention(q, q, q, **options)
        assert len(str(error.value)) < 200


def test_refused():
    q = Array((1, 4, 64, 64))
    with pytest.raises(attn.ArgumentError, match='tensor "k": .* alike, got f32'):
        attn.attention(q, Array((1, 4, 64, 64), dtype="float32"), q, out=q)
    with pytest.raises(attn.ArgumentError, match='tensor "q": expected a torch tensor, .* got int'):
        attn.attention(3, q, q, out=q)
    with pytest.raises(attn.ArgumentError, match='tensor "k": expected a CUDA device, got DLPack'):
        attn.attention(q, np.zeros((1, 4, 64, 64), np.float16), q, out=q)
    with pytest.raises(
        attn.ArgumentError,
        match=r"got a numpy ndarray; for arrays in host memory there is attn.compile\(...\).run\(q=q",
    ):
        attn.attention(*np.zeros((3, 1, 4, 64, 64), np.float16))
    with pytest.raises(attn.ArgumentError, match="expected an innermost stride of 1, got 64"):
        attn.attention(q.transpose(0, 1, 3, 2), q, q, out=q)
    with pytest.raises(attn.ArgumentError, match="expected a multiple of the 3 key heads, got 4 heads"):
        attn.attention(q, Array((1, 3, 64, 64)), Array((1, 3, 64, 64)), out=q)
    with pytest.raises(attn.CompileError, match="expected top-left or bottom-right, got 'middle'"):
        attn.attention(q, q, q, out=q, causal="middle")


def test_numbers_of_numpy():
    """They mean what Python's do."""
    q = np.zeros((1, 4, 64, 64), np.float16)
    calls = []
    with pytest.MonkeyPatch.context() as context:
        context.setattr(attention_kernels, "Call", lambda *operands: calls.append(operands))
        for causal, scale, lse, window in (
            (True, 0.5, True, (8, 0)),
            (np.True_, np.float32(0.5), np.True_, np.array([8, 0])),
        ):
            attn.prepare(q, q, q, chip="sm_80", causal=causal, scale=scale, lse=lse, window=window)
    assert calls[0][2] == calls[1][2] and calls[0][2].call[0] == "top-left"
    assert type(calls[1][2].call[3]) is float and calls[1][2].lse is True
    for option, error, message in (
        ({"causal": 3}, TypeError, "causal: expected True or False, got 3"),
        ({"scale": [1]}, TypeError, "scale: expected a number"),
        ({"softcap": np.float32("nan")}, ValueError, "softcap: expected a finite number"),
        ({"max_seqlen_q": 2.5}, TypeError, "max_seqlen_q: expected an integer"),
        ({"max_seqlen_q": -5}, attn.ArgumentError, "max_seqlen_q: expected an integer from 0 to"),
    ):
        with pytest.raises(error, match=message):
            attn.prepare(q, q, q, chip="sm_80", **option)


def test_devices():
    view = attn.record.TensorView("f16", (1, 4, 64, 64), (16384, 4096, 64, 1), ADDRESS)
    with pytest.raises(attn.ArgumentError, match='tensor "v": expected it on device 0 as q, got device 1'):
        attn.attention(view, view, view._replace(device=1), out=view)
    lengths = attn.record.TensorView("f32", (4,), (1,), ADDRESS, 1)
    with pytest.raises(attn.ArgumentError, match='tensor "sinks": expected it on device 0 as q, got device 1'):
        attn.attention(view, view, view, out=view, sinks=lengths)


def test_misaligned():
    q = Array((1, 4, 64, 64))
    moved = Array((1, 4, 64, 64), address=ADDRESS + 8)
    with pytest.raises(attn.ArgumentError, match='"k": .* a multiple of 16 bytes, got 0x100008'):
        attn.attention(q, moved, q, out=q)
    crooked = Array((1, 4, 64, 64), (4 * 64 * 68, 64 * 68, 68, 1))
    with pytest.raises(attn.ArgumentError, match='"v": stride 1: expected .* 16 bytes, got 10248'):
        attn.attention(q, q, Array((1, 4, 64, 64), (4 * 64 * 84, 64 * 80 + 4, 80, 1)), out=q)
    with pytest.raises(attn.ArgumentError, match='"q": stride 2: expected .* 16 bytes, got 136'):
        attn.attention(crooked, crooked, crooked, out=crooked)


def test_device_without_target(monkeypatch):
    monkeypatch.setattr(FakeDevice, "major", 7)
    q = Array((1, 4, 64, 64))
    with pytest.raises(
        attn.DriverError, match=r"no target for compute capability 7\.0: kernels need cp\.async"
    ):
        attn.attention(q, q, q, out=q)


@pytest.mark.parametrize(
    ("capability", "chip"),
    [((8, 9), "sm_89"), ((11, 0), "sm_110"), ((12, 0), "sm_120"), ((12, 1), "sm_121")],
)
def test_chips_with_a_row(capability, chip, recwarn):
    assert get_chip(*capability) == chip
    assert not recwarn.list


@pytest.mark.parametrize(
    ("capability", "chip"), [((8, 7), "sm_86"), ((10, 7), "sm_89"), ((13, 0), "sm_121")]
)
def test_chips_without_a_row(capability, chip):
    with pytest.warns(UserWarning, match=f"no target for .*: kernels are those of {chip}"):
        assert get_chip(*capability) == chip


def test_failed_launch(monkeypatch):
    q = Array((1, 4, 64, 64))
    monkeypatch.setattr(FakeFunction, "status", 1)

    def describe(driver, status):
        return "CUDA_ERROR_INVALID_VALUE"

    monkeypatch.setattr(cuda_driver, "describe", describe)
    monkeypatch.setattr(cuda_driver, "load", lambda: None)
    with pytest.raises(
        attn.DriverError, match=r"kernel attn_fwd: grid .*q \[1, 4, 64, 64\]"
    ) as caught:
        attn.attention(q, q, q, out=q)
    assert caught.value.launch_record == get_kernel().launch_record


def test_prepare(empty_cache, monkeypatch):
    slopes = np.ones(4, np.float32)
    q = np.empty((1, 4, 64, 64), np.float16)
    options = {"causal": True, "score_mod": lambda s, b, h, i, j: s + slopes[h] * (j - i)}
    attn.prepare(q, q, q, chip="sm_80", **options)
    attention_kernels.clear()
    attn.compiler.kernel_cache.clear_memory()

    def refuse(self, rung):
        raise AssertionError("compiled again")

    monkeypatch.setattr(attn.kernel._Request, "run", refuse)
    slopes = Array((4,), dtype="float32")
    device = Array(q.shape)
    attn.attention(device, device, device, out=device, **options)
    assert len(get_launches()) == 1


@pytest.mark.parametrize(("chip", "dim", "value_dim"), [("sm_80", 512, 256), ("sm_86", 1024, 1024)])
def test_wide_heads(empty_cache, monkeypatch, chip, dim, value_dim):
    monkeypatch.setattr(FakeDevice, "minor", int(chip[-1]))
    q, k = (np.empty((1, heads, 70, dim), np.float16) for heads in (4, 2))
    v, out = (np.empty((1, heads, 70, value_dim), np.float16) for heads in (2, 4))
    options = {"window": (40, 8), "softcap": 20.0}
    attn.prepare(q, k, v, chip=chip, lse=True, out=out, **options)
    lse = Array((1, 4, 70), dtype="float32")
    q, k, v, out = (Array(each.shape) for each in (q, k, v, out))
    attn.attention(q, k, v, out=out, lse=lse, **options)
    # The next one is for other lengths.
    assert len(get_launches(0)) == 1
    assert get_kernel(0).launch_record["target"]["chip"] == chip


def test_overhead_of_a_call():
    """The host's work beside the driver's call."""
    q = Array((1, 4, 64, 64))
    call = lambda: attn.attention(q, q, q, out=q, causal=True, stream=1)
    call()
    assert count_calls(call) < 250
