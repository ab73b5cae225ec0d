"""Launch records: expressions, checks, parameter bytes. No compiler needed."""

import copy
import struct

import attn
import pytest
from attn import bundle, record
from attn.launch.tensor_map import make_map
from attn.record import Binder, Proof, TensorView

RECORD = {
    "version": 1,
    "kernel": "attn_fwd",
    "target": {"chip": "sm_80", "ptx": 80},
    "grid": ["ceildiv(q.dim2, 128)", "q.dim1 * q.dim0", "1"],
    "block": [128, 1, 1],
    "cluster": [1, 1, 1],
    "shared_bytes": 98304,
    "tensors": [
        {
            "name": name,
            "dtype": "f16",
            "shape": [-1, 8, -1, 64],
            "strides": [-1, -1, 64, 1],
            "access": access,
        }
        for name, access in (("q", "read"), ("k", "read"), ("o", "write"))
    ],
    "args": [
        {"kind": "pointer", "tensor": "q"},
        {"kind": "size", "tensor": "q", "dim": 2, "type": "i32"},
        {"kind": "stride", "tensor": "q", "dim": 1, "type": "i64"},
        {"kind": "scalar", "name": "scale", "type": "f32", "value": 0.5},
        {"kind": "scalar", "name": "n", "type": "i32", "value": 7},
        {
            "kind": "tensor_map",
            "tensor": "k",
            "rank": 4,
            "box": [64, 128, 1, 1],
            "swizzle": "128B",
            "element": "f16",
        },
        {"kind": "workspace", "index": 0},
        {"kind": "pointer", "tensor": "o"},
    ],
    "workspace": [{"bytes": "q.dim0 * 4096", "zeroed": True}],
    "problem": {},
}


def make_view(batch=2, rows=300, heads=8, dtype="f16"):
    return TensorView(dtype, (batch, heads, rows, 64), (heads * rows * 64, rows * 64, 64, 1))


def make_views(**changes):
    return {"q": make_view(), "k": make_view(rows=40), "o": make_view(), **changes}


def test_resolve():
    binder = Binder(RECORD)
    assert binder.steps[0].offsets == [0, 8, 16, 24, 28, 64, 192, 200]
    assert binder.steps[0].parameter_bytes == 208
    assert binder.steps[0].pointers == [("q", 0), ("o", 200)] and binder.workspaces[0].zeroed
    assert binder.restored == []
    launch = binder.resolve(make_views())
    (step,) = launch.steps
    assert step.grid == (3, 16, 1) and launch.workspace_bytes == (8192,)
    assert struct.unpack_from("<Qi4xqfi", step.parameters) == (0, 300, 300 * 64, 0.5, 7)
    (map,) = step.tensor_maps
    assert (map.offset, map.tensor, map.swizzle) == (64, "k", "128B")
    assert map.dims == (64, 40, 8, 2) and map.box == (64, 128, 1, 1)
    assert map.strides == (128, 40 * 128, 8 * 40 * 128)
    changed = binder.resolve(make_views(), {"scale": 2, "n": -1})
    assert struct.unpack_from("<fi", changed.steps[0].parameters, 24) == (2.0, -1)


def make_mapped(view, box):
    record = copy.deepcopy(RECORD)
    record["args"][5] |= {"view": view, "rank": len(box), "box": box, "pitch": 64}
    record["tensors"][1]["strides"] = [-1, -1, -1, -1]
    return Binder(record)


def test_views_of_tensor_maps():
    binder = make_mapped("transposed", [64, 64, 1, 1])
    keys = TensorView("f16", (2, 8, 40, 64), (8 * 64 * 48, 64 * 48, 1, 48))
    (map,) = binder.resolve(make_views(k=keys)).steps[0].tensor_maps
    assert map.dims == (40, 64, 8, 2) and map.strides == (96, 64 * 96, 8 * 64 * 96)
    narrow = keys._replace(strides=(8 * 64 * 40, 64 * 40, 1, 41))
    with pytest.raises(attn.ArgumentError, match="multiple of 16 bytes below .*, got 82 bytes"):
        binder.resolve(make_views(k=narrow))
    with pytest.raises(attn.ArgumentError, match="an innermost stride of 1, got 64"):
        binder.resolve(make_views())
    binder = make_mapped("quads", [64, 2, 32, 1, 1])
    (map,) = binder.resolve(make_views()).steps[0].tensor_maps
    assert map.dims == (64, 4, 10, 8, 2) and map.box == (64, 2, 32, 1, 1)
    assert map.strides == (128, 512, 40 * 128, 8 * 40 * 128)
    with pytest.raises(attn.ArgumentError, match="rows of a multiple of 4, got 41"):
        binder.resolve(make_views(k=make_view(rows=41)))
    binder = make_mapped("packed", [64, 64, 1, 1])
    with pytest.raises(attn.ArgumentError, match="one batch of packed sequences, got 2"):
        binder.resolve(make_views())
    one = {name: make_view(batch=1) for name in ("q", "o")}
    (map,) = binder.resolve(make_views(k=make_view(1, 40), **one)).steps[0].tensor_maps
    assert map.dims == (64, 40, 8, 41) and map.strides == (128, 40 * 128, 128)
    assert map.before == 40 * 128
    binder = make_mapped("packed_by_row", [64, 4, 16, 1])
    (map,) = binder.resolve(make_views(k=make_view(1, 40), **one)).steps[0].tensor_maps
    assert map.dims == (64, 8, 40, 41) and map.strides == (40 * 128, 128, 128)
    assert map.before == 40 * 128
    binder = make_mapped("by_row", [64, 4, 16, 1])
    (map,) = binder.resolve(make_views()).steps[0].tensor_maps
    assert map.dims == (64, 8, 40, 2) and map.strides == (40 * 128, 128, 8 * 40 * 128)
    assert map.before == 0


def test_map_of_rows():
    record = copy.deepcopy(RECORD)
    record["args"][5] |= {"view": "rows", "rank": 2, "box": [64, 1], "pitch": 64}
    record["tensors"][1]["strides"] = [-1, -1, -1, -1]
    binder = Binder(record)
    (map,) = binder.resolve(make_views()).steps[0].tensor_maps
    assert map.dims == (64, 2 * 8 * 40) and map.strides == (128,) and map.box == (64, 1)
    apart = TensorView("f16", (2, 8, 40, 64), (8 * 64 * 41, 64 * 40, 64, 1))
    (map,) = binder.resolve(make_views(k=apart)).steps[0].tensor_maps
    assert map.dims == (64, 8 * 41 + 8 * 40)
    with pytest.raises(attn.ArgumentError, match="strides of a multiple of 64 .*, got 72"):
        binder.resolve(make_views(k=apart._replace(strides=(8 * 64 * 41, 64 * 40, 72, 1))))
    with pytest.raises(attn.ArgumentError, match="fewer than 2.31 rows"):
        binder.resolve(make_views(k=apart._replace(strides=(2**37, 64 * 40, 64, 1))))


@pytest.mark.parametrize("view, rank", [("whole", 4), ("packed", 4), ("rows", 2)])
def test_map_of_no_rows(view, rank):
    """Of a tensor without elements kernels load nothing; pages that a pool without any does not
    have hold zeros, which they load."""
    binder = make_mapped(view, [64, 128, 1, 1][:rank])
    (map,) = binder.resolve(make_views(k=make_view(rows=0))).steps[0].tensor_maps
    assert map.dims == (1,) * rank and map.strides == (16,) * (rank - 1) and map.before == 0
    pages = "extents from 1" if view == "whole" else ""
    with pytest.raises(attn.ArgumentError, match=f'"k": its tensor map expects {pages}.* got 0'):
        make_map("attn_fwd", binder.steps[0].args[5], 0, make_view(batch=0), True)
    nothing = make_view(batch=0)
    (same,) = binder.resolve(make_views(q=nothing, k=nothing, o=nothing)).steps[0].tensor_maps
    assert same == map


def test_alignment_of_contiguous_rows():
    record = copy.deepcopy(RECORD)
    record["tensors"][1] |= {"shape": [2, 8, 40, 64], "strides": [24576, 3072, 1, 48]}
    assert Binder(record).alignments["k"] == 16


def test_stride_of_extent_one_is_free():
    view = TensorView("f16", (1, 8, 1, 64), (5, 64, 3, 1))
    binder = Binder(RECORD)
    views = {"q": view, "o": view, "k": make_view(batch=1)}
    assert binder.resolve(views).steps[0].grid == (1, 8, 1)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"q": make_view(dtype="bf16")}, 'tensor "q": expected dtype f16, got bf16'),
        ({"q": make_view(heads=4)}, r"expected shape \[\?, 8, \?, 64\], got \[2, 4, 300, 64\]"),
        ({"q": TensorView("f16", (2, 8), (8, 1))}, 'tensor "q": expected rank 4, got 2'),
        (
            {"k": TensorView("f16", (2, 8, 40, 64), (1, 2, 65, 1))},
            r'tensor "k": expected strides \[\?, \?, 64, 1\], got \[1, 2, 65, 1\]',
        ),
        ({"x": make_view()}, 'tensor "x": the launch record has no tensor of this name'),
        (
            {"o": make_view(rows=299)},
            'tensor "o": dimension 2: expected 300 as in .* of q, got 299',
        ),
        ({"k": make_view(batch=3)}, 'tensor "k": dimension 0: expected 2'),
        (
            {"k": TensorView("f16", (2, 8, 40, 64), (8 * 40 * 64, 2567, 64, 1))},
            "its tensor map expects strides of a multiple of 16 bytes",
        ),
        (
            {"q": make_view(batch=9000), "o": make_view(batch=9000), "k": make_view(batch=9000)},
            "grid",
        ),
    ],
)
def test_wrong_tensors(changes, message):
    with pytest.raises(attn.ArgumentError, match=message):
        Binder(RECORD).resolve(make_views(**changes))


def test_missing_tensor_and_scalars():
    binder = Binder(RECORD)
    with pytest.raises(attn.ArgumentError, match='tensor "k": missing'):
        binder.resolve({"q": make_view(), "o": make_view()})
    with pytest.raises(attn.ArgumentError, match='scalar "y": the launch record has no scalar'):
        binder.resolve(make_views(), {"y": 1})
    with pytest.raises(attn.ArgumentError, match='scalar "n": expected an integer, got 1.5'):
        binder.resolve(make_views(), {"n": 1.5})
    with pytest.raises(attn.ArgumentError, match='scalar "n": expected a value that fits i32'):
        binder.resolve(make_views(), {"n": 2**31})
    record = copy.deepcopy(RECORD)
    del record["args"][3]["value"]
    with pytest.raises(attn.ArgumentError, match='scalar "scale": missing value'):
        Binder(record).resolve(make_views())


@pytest.mark.parametrize(
    "path, value, message",
    [
        (["version"], 3, "version: expected 1 to 2, got 3"),
        (["version"], 0, "version: expected 1 to 2, got 0"),
        (["kernel"], 3, "kernel: expected str, got int"),
        (["grid"], [None], "grid: expected 1 to 3 integers or expressions"),
        (["block"], [1, 2, 3, 4], "block: expected 1 to 3 integers"),
        (["block"], [0, 1, 1], "expected block and cluster of at least 1"),
        (["target"], {}, "target.chip: missing"),
        (["tensors", 0, "dtype"], "f17", r"tensors\[0\].dtype: unknown 'f17'"),
        (["tensors", 1, "name"], "q", "expected one 'q', got two"),
        (["tensors", 0, "strides"], [1], "strides: expected 4 integers"),
        (["args", 0, "kind"], "x", r"args\[0\].kind: unknown 'x'"),
        (["args", 0, "tensor"], "z", r"args\[0\].tensor: there is no tensor 'z'"),
        (["args", 1, "dim"], 4, r"args\[1\].dim: no such size"),
        (["args", 3, "type"], "f17", r"args\[3\].type: unknown 'f17'"),
        (["args", 5, "element"], "f17", r"args\[5\].element: unknown type"),
        (["args", 5, "view"], "x", r"args\[5\].view: unknown 'x'"),
        (["args", 5, "view"], "quads", r"args\[5\].box: expected 5 integers"),
        (["args", 5, "view"], "rows", r"args\[5\].box: expected 2 integers"),
        (["args", 6, "index"], 1, r"args\[6\].index: there is no such workspace"),
        (["workspace", 0], {}, r"workspace\[0\].bytes: missing"),
    ],
)
def test_bad_records(path, value, message):
    record = copy.deepcopy(RECORD)
    place = record
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(attn.RecordError, match=message):
        Binder(record)


def make_step(kernel, access, **fields):
    """A step of SEQUENCE on its workspace."""
    return {
        "kernel": kernel,
        "grid": ["q.dim0", "sms", "1"],
        "block": [32, 1, 1],
        "cluster": [1, 1, 1],
        "shared_bytes": 0,
        "args": [
            {"kind": "pointer", "tensor": "q"},
            {"kind": "workspace", "index": 0, "access": access},
            {"kind": "expression", "value": "q.dim2 * sms", "type": "i64"},
        ],
        **fields,
    }


SEQUENCE = {
    "version": 2,
    "target": {"chip": "sm_80", "ptx": 80},
    "tensors": RECORD["tensors"][:1],
    "workspaces": [{"name": "part", "bytes": "q.dim0 * sms * 4", "zeroed": False}],
    "steps": [
        make_step("write", "write"),
        make_step("read", "read", cooperative=True, programmatic=True),
    ],
}


def test_steps():
    binder = Binder(SEQUENCE)
    assert binder.kernel == "write, read" and binder.uses_device
    assert [step.programmatic for step in binder.steps] == [False, True]
    assert [step.cooperative for step in binder.steps] == [False, True]
    launch = binder.resolve({"q": make_view()}, multiprocessors=10)
    assert launch.workspace_bytes == (80,)
    for step, resolved in zip(binder.steps, launch.steps, strict=True):
        assert resolved.grid == (2, 10, 1)
        assert step.workspaces == [(0, 8)]
        assert struct.unpack_from("<QQq", resolved.parameters) == (0, 0, 3000)
    with pytest.raises(attn.RecordError, match='no value for "sms"'):
        binder.resolve({"q": make_view()})


@pytest.mark.parametrize(
    "path, value, message",
    [
        (["steps"], [], "steps: expected at least one step, got none"),
        (["steps", 1, "kernel"], 3, r"steps\[1\].kernel: expected str, got int"),
        (["steps", 1, "cooperative"], 1, r"steps\[1\].cooperative: expected bool, got int"),
        (["steps", 1, "args", 1, "index"], 1, r"steps\[1\].args\[1\].index: there is no such"),
        (
            ["steps", 1, "args", 0, "tensor"],
            "z",
            r"steps\[1\].args\[0\].tensor: there is no tensor",
        ),
        (["steps", 1, "args", 1, "access"], "x", r"steps\[1\].args\[1\].access: unknown 'x'"),
        (["steps", 1, "args", 2, "type"], "f32", r"steps\[1\].args\[2\].type: unknown 'f32'"),
        (
            ["steps", 0, "args", 1, "access"],
            "read",
            "kernel write reads workspace 0, which no step",
        ),
        (["workspaces", 0, "restored"], True, r"workspaces\[0\].restored: expected a workspace"),
    ],
)
def test_bad_sequences(path, value, message):
    record = copy.deepcopy(SEQUENCE)
    place = record
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(attn.RecordError, match=message):
        Binder(record)


@pytest.mark.parametrize("field", ["zeroed", "persistent"])
def test_filled_workspaces_may_be_read_first(field):
    record = copy.deepcopy(SEQUENCE)
    record["steps"][0]["args"][1]["access"] = "read"
    record["workspaces"][0][field] = True
    assert getattr(Binder(record).workspaces[0], field)


def test_proofs():
    assert record.read_proofs(RECORD) == {"attn_fwd": None}
    assert record.describe_proofs(RECORD) == "not checked"
    proof = {"verdict": "proved", "profile": "isa", "assumptions": ["A2", "A4"]}
    proved = {**RECORD, "proof": proof}
    Binder(proved)
    assert record.read_proofs(proved)["attn_fwd"] == Proof("proved", "isa", ("A2", "A4"))
    assert record.describe_proofs(proved) == "proved (isa, A2, A4)"
    bounded = {
        "kernel": "attn_combine",
        "proof": {
            "verdict": "bounded",
            "profile": "hw",
            "assumptions": [],
            "tiles": 3,
            "reason": "the limit of 9 steps",
        },
    }
    both = {"steps": [proved, bounded]}
    assert record.read_proofs(both)["attn_combine"].tiles == 3
    assert record.describe_proofs(both) == (
        "attn_fwd proved (isa, A2, A4); attn_combine bounded (hw): the limit of 9 steps"
    )
    with pytest.raises(attn.RecordError, match="proof.verdict: missing"):
        record.read_proofs({**RECORD, "proof": {}})
    with pytest.raises(attn.RecordError, match="proof: expected dict, got str"):
        record.read_proofs({**RECORD, "proof": "proved"})
    wrong = {**RECORD, "proof": {"verdict": "proved", "assumptions": [1]}}
    with pytest.raises(attn.RecordError, match=r"proof.assumptions: expected strings, got \[1\]"):
        record.read_proofs(wrong)


def test_bundle_shows_proofs():
    proof = {"verdict": "unchecked", "reason": "it depends on the value of argument 0"}
    images = [bundle.Image("ptx", "sm_80", b".version 8.0")]
    data = bundle.write({**RECORD, "proof": proof}, images)
    assert repr(bundle.parse(data)) == (
        "<attn.Bundle attn_fwd: ptx for sm_80; unchecked: it depends on the value of argument 0>"
    )


SHORT = {
    "version": 1,
    "kernel": "k",
    "target": {"chip": "sm_80", "ptx": 80},
    "grid": 3,
    "block": 128,
    "tensors": [
        {"name": "x", "dtype": "u8", "shape": [4, 6], "access": "read"},
        {"name": "y", "dtype": "i16", "shape": [-1, 6], "access": "update"},
    ],
    "args": [
        {"kind": "pointer", "tensor": "x"},
        {"kind": "pointer", "tensor": "y"},
        {"kind": "scalar", "name": "n", "type": "u16", "value": 65535},
    ],
}


def test_what_people_write():
    binder = Binder(SHORT)
    step = binder.steps[0]
    assert (step.block, step.cluster, step.shared_bytes) == ((128, 1, 1), (1, 1, 1), 0)
    assert binder.tensors["x"].strides == (6, 1)
    assert binder.tensors["y"].strides == (-1, -1)
    assert binder.written == {"y"} and not binder.workspaces
    views = {"x": TensorView("u8", (4, 6), (6, 1)), "y": TensorView("i16", (9, 6), (6, 1))}
    launch = binder.resolve(views)
    assert launch.steps[0].grid == (3, 1, 1)
    assert launch.steps[0].parameters == struct.pack("<QQH", 0, 0, 65535)
    for grid, expected in (([2, "y.dim0"], (2, 9, 1)), ("y.dim0 * 2", (18, 1, 1))):
        assert Binder({**SHORT, "grid": grid}).resolve(views).steps[0].grid == expected
    with pytest.raises(attn.ArgumentError, match='scalar "n": expected a value that fits u16'):
        binder.resolve(views, {"n": -1})


@pytest.mark.parametrize(
    "change, message",
    [
        ({"grid": [1, 2, 3, 4]}, "grid: expected 1 to 3 integers or expressions"),
        ({"grid": []}, "grid: expected 1 to 3 integers or expressions"),
        ({"grid": [True]}, "grid: expected 1 to 3 integers or expressions"),
        ({"block": "128"}, "block: expected 1 to 3 integers, got '128'"),
        ({"cluster": [1.5]}, "cluster: expected 1 to 3 integers"),
    ],
)
def test_wrong_extents(change, message):
    with pytest.raises(attn.RecordError, match=message):
        Binder({**SHORT, **change})


def test_wrong_access():
    tensor = {**SHORT["tensors"][0], "access": "modify"}
    with pytest.raises(attn.RecordError, match="expected one of read, write, update, got 'modify'"):
        Binder({**SHORT, "tensors": [tensor, SHORT["tensors"][1]]})
