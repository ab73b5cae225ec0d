"""The kernels that an H200 and the simulator run on the same inputs.

`cases()` makes them; check.py runs them on the simulator and compares with what
record.py got from the GPU. Inputs come from a generator that is the same
everywhere.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))

import attn  # noqa: E402
from attn.sim import TensorMap, empty  # noqa: E402

#: Ulps of float32 sums.
EPSILON = 2.0**-23


@dataclasses.dataclass
class Case:
    """One launch. `compare` maps the index of an argument that holds a result to
    how its bits may differ from the GPU's:

    "exact"             not at all
    ("sum", t, dtype)   by t * 2^-23 * M and one ulp of dtype at M, M being the
                        largest result: t terms were summed in another order
    ("ulp", n)          by n ulps of float32, or 2^-21 around zero
    ("relative", x)     by x * M
    ("absolute", x)     by x
    """

    name: str
    ptx: str
    kernel: str
    grid: tuple
    block: int
    args: list
    compare: dict
    cluster: int = 1
    shared: int = 0


class Random:
    """splitmix64 of a counter."""

    def __init__(self, seed):
        self.state = np.uint64(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "little"))

    def words(self, *shape):
        count = int(np.prod(shape))
        with np.errstate(over="ignore"):
            z = self.state + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(
                0x9E3779B97F4A7C15
            )
            self.state = z[-1]
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (z ^ (z >> np.uint64(31))).reshape(shape)

    def i32(self, *shape):
        return (self.words(*shape) >> np.uint64(32)).astype(np.uint32).view(np.int32)

    def u8(self, *shape):
        return (self.words(*shape) >> np.uint64(56)).astype(np.uint8)

    def i64(self, *shape):
        return self.words(*shape).view(np.int64)

    def f64(self, *shape, scale=1.0):
        """Uniform between -scale and scale."""
        whole = (self.words(*shape) >> np.uint64(11)).astype(np.float64)
        return (whole * 2.0**-52 - 1) * scale

    def f32(self, *shape, scale=1.0):
        return self.f64(*shape, scale=scale).astype(np.float32)

    def f16(self, *shape, scale=1.0):
        return self.f32(*shape, scale=scale).astype(np.float16)

    def bf16(self, *shape, scale=1.0):
        return attn.arrays.to_bf16(self.f32(*shape, scale=scale))

    def tf32(self, *shape):
        return (self.f32(*shape).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)

    def e4m3(self, *shape):
        """Without NaN and the largest exponents."""
        return self.u8(*shape) & np.uint8(0xBF)

    def e5m2(self, *shape):
        return self.u8(*shape) & np.uint8(0xBF)

    def mixed32(self, n):
        """Floats of all magnitudes, special values, infinities and NaN."""
        values = self.i32(n).view(np.float32).copy()
        values[::2] = self.f32(values[::2].size, scale=100)
        special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -1e-45, 0.5, 2.5, -3.5]
        values[: len(special) * 4 : 4] = special
        return np.where(np.isnan(values), np.float32(np.nan), values)

    def mixed16(self, n):
        values = (self.i32(n) & 0xFFFF).astype(np.uint16).view(np.float16).copy()
        values[::2] = self.f16(values[::2].size, scale=8)
        return np.where(np.isnan(values), np.float16(np.nan), values)


def _matrix(r, kind, count):
    """`count` registers of operands."""
    if kind == "s32":
        return (r.i32(count) >> 8).astype(np.int32)
    if kind == "int":
        return r.i32(count)
    if kind == "f32":
        return r.f32(count)
    if kind == "tf32":
        return r.tf32(count)
    if kind in ("e4m3", "e5m2", "int8"):
        return getattr(r, "u8" if kind == "int8" else kind)(count * 4)
    return getattr(r, kind)(count * 2)


def _scalar(cases):
    n = 512

    def add(kernel, arguments, results, dtype, compare="exact"):
        args = [*arguments, empty((results, n), dtype), np.int32(n)]
        index = len(arguments)
        cases.append(Case(kernel, "scalar", kernel, (4,), 128, args, {index: compare}))

    r = Random("scalar")
    add("integer32", [r.i32(n), r.i32(n), r.i32(n)], 52, np.int32)
    add("integer64", [r.i64(n), r.i64(n)], 23, np.int64)
    add("float32", [r.mixed32(n) for _ in range(3)], 37, np.float32)
    doubles = []
    for _ in range(3):
        values = r.f64(n, scale=1000)
        values[:8] = [0.0, -0.0, np.inf, -np.inf, 1.0, 0.5, 2.5, 1e-310]
        doubles.append(values)
    add("float64", doubles, 16, np.float64)
    add("half2_arithmetic", [r.mixed16(2 * n) for _ in range(3)], 18, np.uint32)
    bfloats = [(r.mixed32(2 * n).view(np.uint32) >> 16).astype(np.uint16) for _ in range(3)]
    bfloats = [np.where((b & 0x7FFF) > 0x7F80, np.uint16(0x7FFF), b) for b in bfloats]
    add("bfloat2_arithmetic", bfloats, 9, np.uint32)
    add("convert", [r.mixed32(n), r.i32(n)], 32, np.uint32)
    special = r.f32(n, scale=8)
    special[::3] *= np.float32(2.0**-20)
    add("special_functions", [special], 8, np.float32, ("ulp", 3))
    add("special_functions_absolute", [r.f32(n, scale=3)], 5, np.float32, ("absolute", 2**-10))
    memory = [r.u8(16 * n), empty((n, 4), np.int32), empty(16 * n, np.uint8), np.int32(n)]
    memory[2] = np.zeros(16 * n, np.uint8)
    cases.append(
        Case("narrow_memory", "scalar", "narrow_memory", (4,), 128, memory, {1: "exact", 2: "exact"})
    )


def _cooperative(cases):
    r = Random("cooperative")

    def add(kernel, grid, block, args, compare, name=None, shared=0):
        cases.append(
            Case(name or kernel, "cooperative", kernel, grid, block, args, compare, shared=shared)
        )

    n = 512
    x = r.i32(n)
    add("shuffles", (4,), 128, [x, empty((12, n), np.int32), np.int32(n)], {1: "exact"})
    add("votes", (4,), 128, [x, empty((16, n), np.int32), np.int32(n)], {1: "exact"})
    add("block_reduce", (4,), 128, [r.i32(4 * 2048), empty(4, np.int64)], {1: "exact"})
    add("block_scan", (2,), 256, [r.f32(n), empty(n, np.float32)], {1: "exact"})
    add("bitonic_sort", (2,), 256, [r.i32(n), empty(n, np.int32)], {1: "exact"})
    add(
        "histogram", (4,), 256, [r.u8(5000), np.zeros(256, np.uint32), np.int32(5000)], {1: "exact"}
    )
    atomics = [
        r.i32(n), r.i32(80) >> 4, np.zeros(8, np.float32), np.zeros(16, np.float16),
        r.i64(16) >> 20,
    ]
    atomics[1][48:64] = 3
    add("global_atomics", (4,), 128, atomics, {index: "exact" for index in range(1, 5)})
    image = r.f32(96, 64)
    for pad in (0, 1):
        add(
            "transpose", (2, 3), 256, [image, empty((64, 96), np.float32), np.int32(pad)],
            {1: "exact"}, f"transpose_pad{pad}", 32 * (32 + pad) * 4,
        )
    add("shared_strides", (2,), 128, [r.i32(4096), empty(256, np.int32)], {1: "exact"})
    add("async_stencil", (1,), 128, [r.f32(2048), empty(2048, np.float32), np.int32(2048)], {1: "exact"})
    add("named_barriers", (2,), 128, [r.i32(2 * 6 * 64), empty(2 * 6 * 64, np.int32)], {1: "exact"})
    for threads in (96, 128):
        add("barrier_exit", (2,), threads, [empty(2, np.int32), np.int32(96)], {0: "exact"}, f"barrier_exit_{threads}")
    add("mbarrier_async", (2,), 128, [r.i32(2 * 4 * 256), empty(2 * 4 * 128, np.int32)], {1: "exact"})
    add("control_flow", (4,), 128, [r.i32(n), empty((5, n), np.int32), np.int32(n)], {1: "exact"})
    add(
        "sgemm", (4, 4), 256, [r.f32(64, 64), r.f32(64, 64), empty((64, 64), np.float32), np.int32(64)],
        {2: "exact"},
    )
    add(
        "softmax", (4,), 128, [r.f32(16, 100, scale=6), empty((16, 100), np.float32), np.int32(100)],
        {1: ("sum", 16, "float32")},
    )
    add(
        "layer_norm", (4,), 256,
        [r.f16(4, 600, scale=3), r.f32(600), empty((4, 600), np.float32), np.int32(600)],
        {2: ("sum", 8, "float32")},
    )


def _mma(cases, file, kernel, operands, sizes, dtype, compare):
    """A kernel whose operands lie register by register, on two blocks."""
    r = Random(kernel)
    blocks, lanes = 2, 32
    args = [_matrix(r, kind, blocks * size * lanes) for kind, size in zip(operands, sizes)]
    count = blocks * sizes[2] * lanes
    args.append(empty(count * 4 // np.dtype(dtype).itemsize, dtype))
    cases.append(Case(kernel, file, kernel, (blocks,), 32, args, {3: compare}))


def _tensor(cases):
    r = Random("tensor")
    words = [r.i32(2 * 512), empty((2, 28, 32), np.uint32)]
    cases.append(Case("ldmatrix_all", "tensor", "ldmatrix_all", (2,), 32, words, {1: "exact"}))
    f32 = np.float32
    for kernel, operands, sizes, dtype, compare in (
        ("mma_f16_k16", ("f16", "f16", "f32"), (4, 2, 4), f32, ("sum", 16, "float32")),
        ("mma_f16_f16_k16", ("f16", "f16", "f16"), (4, 2, 2), np.float16, ("sum", 16, "float16")),
        ("mma_f16_k8", ("f16", "f16", "f32"), (2, 1, 4), f32, ("sum", 8, "float32")),
        ("mma_bf16_k16", ("bf16", "bf16", "f32"), (4, 2, 4), f32, ("sum", 16, "float32")),
        ("mma_bf16_k8", ("bf16", "bf16", "f32"), (2, 1, 4), f32, ("sum", 8, "float32")),
        ("mma_tf32_k8", ("tf32", "tf32", "f32"), (4, 2, 4), f32, ("sum", 8, "float32")),
        ("mma_tf32_k4", ("tf32", "tf32", "f32"), (2, 1, 4), f32, ("sum", 4, "float32")),
        ("mma_s8_k32", ("int8", "int8", "s32"), (4, 2, 4), np.int32, "exact"),
        ("mma_u8s8_sat_k32", ("int8", "int8", "int"), (4, 2, 4), np.int32, "exact"),
        ("mma_s8_k16", ("int8", "int8", "s32"), (2, 1, 4), np.int32, "exact"),
        ("mma_s4_k64", ("int8", "int8", "s32"), (4, 2, 4), np.int32, "exact"),
    ):
        _mma(cases, "tensor", kernel, operands, sizes, dtype, compare)
    doubles = [r.f64(64), r.f64(64), r.f64(128), empty(128, np.float64)]
    cases.append(Case("mma_f64", "tensor", "mma_f64", (2,), 32, doubles, {3: "exact"}))
    # Sums of small whole numbers are exact in every order: layouts to the bit.
    whole = [np.float16((r.i32(2 * count * 32 * 2) & 7) - 3) for count in (4, 2)]
    whole += [np.float32(r.i32(2 * 4 * 32) & 255), empty(2 * 4 * 32, f32)]
    cases.append(Case("mma_whole_numbers", "tensor", "mma_f16_k16", (2,), 32, whole, {3: "exact"}))
    for pad in (0, 16):
        args = [r.f16(128, 128), r.f16(64, 128), empty((128, 64), f32), np.int32(128), np.int32(pad)]
        cases.append(
            Case(
                f"gemm_mma_pad{pad}", "tensor", "gemm_mma", (2,), 128, args,
                {2: ("sum", 128, "float32")}, shared=4 * 64 * (64 + pad),
            )
        )


def _hopper(cases):
    r = Random("hopper")

    def add(kernel, grid, block, args, compare, name=None, **more):
        cases.append(Case(name or kernel, "hopper", kernel, grid, block, args, compare, **more))

    image = r.f16(40, 200)
    words = r.i32(40, 100)
    for swizzle, box, array in (
        (0, (24, 6), image), (32, (16, 8), image), (64, (16, 8), words), (128, (64, 8), image),
    ):
        count = box[0] * box[1] * array.dtype.itemsize // 4
        args = [TensorMap(array, box, swizzle=swizzle), empty((3, 5, count), np.uint32)]
        # Steps that leave the image on every side.
        args += [np.int32(count), np.int32(48), np.int32(16)]
        add("tma_load", (5, 3), 64, args, {1: "exact"}, f"tma_load_swizzle{swizzle}", shared=2048)
    volume, out, total = r.f32(4, 16, 32), empty((4, 16, 32), np.float32), np.zeros((4, 8, 16), np.float32)
    volume = np.float32(np.floor(volume * 64))
    maps = [TensorMap(each, (16, 8, 4)) for each in (volume, out, total)]
    add("tma_store", (2, 2), 64, maps, {1: "exact", 2: "exact"})
    bulk = [r.i32(2 * 6 * 256), empty(2 * 6 * 256, np.int32), np.zeros(256, np.int32)]
    add("bulk_copy", (2,), 128, bulk, {1: "exact", 2: "exact"})
    add("cluster_exchange", (8,), 128, [r.i32(1024), empty(1024, np.int32)], {1: "exact"}, cluster=4)
    ring = [r.i32(4 * 6 * 128), empty(4 * 6 * 128, np.int32)]
    add("cluster_ring", (4,), 128, ring, {1: "exact"}, cluster=2)
    rows = r.i32(32, 32)
    add(
        "multicast", (4,), 128, [TensorMap(rows, (32, 8), swizzle=128), empty(4 * 512, np.uint32)],
        {1: "exact"}, cluster=2,
    )
    add("stmatrix_all", (2,), 32, [r.i32(256), empty(2048, np.uint32)], {1: "exact"})
    floats = r.f32(256, scale=40)
    floats[::2] = r.mixed32(128)
    add("fp8_convert", (2,), 128, [floats, empty((7, 256), np.uint32), np.int32(256)], {1: "exact"})
    pairs = [r.bf16(512, scale=5), r.bf16(512, scale=5), empty((8, 256), np.uint32), np.int32(256)]
    add("bf16_sm90", (2,), 128, pairs, {2: "exact"})
    vectors = [
        r.i32(256), np.zeros(48 + 256, np.float32), np.zeros(16, np.float16), np.zeros(16, np.uint16),
    ]
    add("vector_atomics", (2,), 128, vectors, {1: "exact", 2: "exact", 3: "exact"})
    add("elect_and_wait", (2,), 128, [r.i32(256), empty(256, np.int32)], {1: "exact"})
    f32 = np.float32
    # wgmma keeps about 13 bits of a sum of fp8 products; mma.sync all of them.
    low = ("relative", 2.0**-12)
    _mma(cases, "hopper", "mma_e4m3", ("e4m3", "e4m3", "f32"), (4, 2, 4), f32, ("sum", 32, "float32"))
    _mma(cases, "hopper", "mma_e5m2_e4m3", ("e5m2", "e4m3", "f32"), (4, 2, 4), f32, ("sum", 32, "float32"))
    for kernel, kind, rows, registers, dtype, compare in (
        ("wgmma_f16", "f16", 64, 32, f32, ("sum", 16, "float32")),
        ("wgmma_bf16_negated", "bf16", 64, 32, f32, ("sum", 16, "float32")),
        ("wgmma_bf16_b_transposed", "bf16", 16, 32, f32, ("sum", 16, "float32")),
        ("wgmma_f16_both_transposed", "f16", 16, 32, f32, ("sum", 16, "float32")),
        ("wgmma_f16_f16", "f16", 32, 8, np.float16, ("sum", 16, "float16")),
        ("wgmma_tf32", "tf32", 64, 32, f32, ("sum", 8, "float32")),
        ("wgmma_e4m3", "e4m3", 64, 32, f32, low),
        ("wgmma_e5m2_e4m3", "e4m3", 16, 8, f32, low),
        ("wgmma_s8", "int8", 64, 32, np.int32, "exact"),
        ("wgmma_u8_s8", "int8", 16, 8, np.int32, "exact"),
    ):
        q = Random(kernel)
        accumulator = "s32" if dtype is np.int32 else "f16" if dtype is np.float16 else "f32"
        args = [_matrix(q, kind, 2 * 64 * 32), _matrix(q, kind, 2 * rows * 32)]
        args.append(_matrix(q, accumulator, 2 * registers * 128))
        args.append(empty(2 * registers * 128 * 4 // np.dtype(dtype).itemsize, dtype))
        add(kernel, (2,), 128, args, {3: compare})
    args = [r.f16(2 * 16 * 128 * 2), r.f16(2 * 64 * 64), empty(2 * 32 * 128, f32)]
    add("wgmma_from_registers", (2,), 128, args, {2: ("sum", 64, "float32")})
    a, b = r.f16(128, 320), r.f16(64, 320)
    maps = [TensorMap(each, (64, 64), swizzle=128) for each in (a, b)]
    add(
        "gemm_wgmma", (2, 1), 256, [*maps, empty((128, 64), f32), np.int32(5)],
        {2: ("sum", 320, "float32")}, shared=3 * 16384,
    )


def _ours(cases, names):
    """attn-compile's kernels: inputs of the launch record are random."""
    from attn.record import SizeExpr

    for name, dtype in names:
        r = Random(name)
        record = json.loads((HERE / "Inputs" / f"{name}.json").read_text())
        shapes = {tensor["name"]: tensor for tensor in record["tensors"]}
        grid = tuple(
            SizeExpr(text).evaluate(lambda tensor, _, axis: shapes[tensor]["shape"][axis])
            for text in record["grid"]
        )
        args, compare = [], {}
        for index, argument in enumerate(record["args"]):
            tensor = shapes[argument["tensor"]]
            shape, kind = tensor["shape"], tensor["dtype"]
            if tensor["access"] == "read":
                args.append(getattr(r, kind)(*shape, scale=3))
                continue
            args.append(empty(shape, {"f16": "float16", "bf16": "uint16", "f32": "float32"}[kind]))
            is_output = tensor["name"] == "o"
            compare[index] = ("sum", 64, dtype if is_output else "float32")
        cases.append(
            Case(name, name, record["kernel"], grid, record["block"][0], args, compare,
                 shared=record["shared_bytes"])
        )  # fmt: skip


def _triton(cases):
    def add(name, kernel, grid, args, compare, warps=4, shared=0):
        # Two pointers to scratch memory that these kernels do not use.
        args = [*args, np.uint64(0), np.uint64(0)]
        cases.append(Case(name, name, kernel, grid, warps * 32, args, compare, shared=shared))

    f32 = np.float32
    for chip in (80, 90):
        r = Random("triton")
        args = [r.f16(4, 300, scale=6), empty((4, 300), f32)]
        add(f"triton_softmax_{chip}", "row_softmax", (4,), args, {1: ("sum", 16, "float32")}, 4, 16)
        args = [r.bf16(4, 200, scale=3), r.f32(200), r.f32(200), empty((4, 200), np.uint16)]
        add(f"triton_norm_{chip}", "row_norm", (4,), args, {3: ("sum", 8, "bfloat16")}, 4, 16)
        args = [r.f16(2, 128, 32, scale=2) for _ in range(3)] + [empty((2, 128, 32), np.float16)]
        add(
            f"triton_attention_{chip}", "attention", (2, 2), [*args, f32(0.17677669)],
            {3: ("sum", 32, "float16")}, 4, 12288 if chip == 80 else 16384,
        )
    r = Random("triton80")
    x = r.i32(1000)
    add("triton_ops_80", "fused_ops", (4,), [x, r.i32(1000) >> 7, empty(1000, np.int32), np.int32(1000)], {2: "exact"})
    args = [r.i32(256) >> 8, empty(256, np.int32), empty(256, np.int32), np.zeros(16, np.int32)]
    add("triton_sort_80", "scan_and_sort", (2,), args, {1: "exact", 2: "exact", 3: "exact"}, 2, 512)
    args = [r.f16(128, 128), r.f16(128, 64), empty((128, 64), f32)]
    add("triton_matmul_80", "matmul", (2, 2), args, {2: ("sum", 128, "float32")}, 4, 12288)
    args = [r.f32(64, 64), r.f32(64, 32), empty((64, 32), f32)]
    add("triton_matmul_tf32_80", "matmul", (2, 1), args, {2: ("sum", 64, "float32")}, 4, 16384)
    args = [r.f16(128, 128), r.f16(128, 64), empty((128, 64), f32)]
    add("triton_matmul_90", "matmul", (2, 1), args, {2: ("sum", 128, "float32")}, 4, 49152)
    args = [r.e4m3(128, 128), r.e4m3(128, 32), empty((128, 32), f32)]
    add("triton_matmul_fp8_90", "matmul", (2, 1), args, {2: ("relative", 4 * 2.0**-12)}, 4, 14336)
    a, b = r.f16(128, 192), r.f16(64, 192)
    args = []
    for array in (a, b):
        rows, columns = array.shape
        args += [TensorMap(array, (64, 64), swizzle=128), np.int32(rows), np.int32(columns)]
        args += [np.int64(columns), np.int64(1)]
    args.append(empty((128, 64), f32))
    add("triton_matmul_maps_90", "matmul_maps", (2, 1), args, {10: ("sum", 192, "float32")}, 4, 49176)


def cases():
    """All of them, by name."""
    result = []
    for make in (_scalar, _cooperative, _tensor, _hopper, _triton):
        make(result)
    _ours(
        result,
        (
            ("attn_causal", "float16"), ("attn_bf16_gqa", "bfloat16"),
            ("attn_window_softcap", "float16"), ("attn_f32_out", "float16"),
            ("attn_sm90", "float16"), ("attn_sm90_sinks", "bfloat16"),
        ),
    )  # fmt: skip
    assert len({case.name for case in result}) == len(result)
    return result


def timings():
    """Launches that fill the device, for the cost model; results are not
    compared."""
    result = []
    r = Random("timings")
    f32 = np.float32

    def add(name, ptx, kernel, grid, block, args, shared=0):
        result.append(Case(f"time_{name}", ptx, kernel, grid, block, args, {}, shared=shared))

    def triton(name, grid, args, shared):
        args = [*args, np.uint64(0), np.uint64(0)]
        kernel = name.split("_")[1]
        add(name, name, kernel, grid, 128, args, shared)

    for pad in (0, 16):
        args = [r.f16(264 * 64, 512), r.f16(64, 512), empty((264 * 64, 64), f32)]
        args += [np.int32(512), np.int32(pad)]
        add(f"gemm_mma_pad{pad}", "tensor", "gemm_mma", (264,), 128, args, 4 * 64 * (64 + pad))
    for steps, grid in ((16, (132, 1)), (48, (66, 2))):
        a, b = r.f16(grid[0] * 64, steps * 64), r.f16(grid[1] * 64, steps * 64)
        maps = [TensorMap(each, (64, 64), swizzle=128) for each in (a, b)]
        args = [*maps, empty((grid[0] * 64, grid[1] * 64), f32), np.int32(steps)]
        add(f"gemm_wgmma_{steps}", "hopper", "gemm_wgmma", grid, 256, args, 3 * 16384)
    args = [r.f32(256, 256), r.f32(256, 256), empty((256, 256), f32), np.int32(256)]
    add("sgemm", "cooperative", "sgemm", (16, 16), 256, args)
    args = [r.f32(2112, 512, scale=6), empty((2112, 512), f32), np.int32(512)]
    add("softmax", "cooperative", "softmax", (528,), 128, args)
    args = [r.f16(528, 2048), r.f32(2048), empty((528, 2048), f32), np.int32(2048)]
    add("layer_norm", "cooperative", "layer_norm", (528,), 256, args)
    image = r.f32(768, 704)
    for pad in (0, 1):
        args = [image, empty((704, 768), f32), np.int32(pad)]
        add(f"transpose_pad{pad}", "cooperative", "transpose", (22, 24), 256, args, 32 * (32 + pad) * 4)
    args = [r.i32(4096), empty(264 * 128, np.int32)]
    add("shared_strides", "cooperative", "shared_strides", (264,), 128, args)
    n = 528 * 128
    args = [r.i32(n), empty((5, n), np.int32), np.int32(n)]
    add("control_flow", "cooperative", "control_flow", (528,), 128, args)
    args = [r.i32(n) for _ in range(3)] + [empty((52, n), np.int32), np.int32(n)]
    add("integer32", "scalar", "integer32", (528,), 128, args)
    args = [r.f32(n, scale=8), empty((8, n), f32), np.int32(n)]
    add("special_functions", "scalar", "special_functions", (528,), 128, args)
    args = [r.i32(264 * 6 * 256), empty(264 * 6 * 256, np.int32), np.zeros(256, np.int32)]
    add("bulk_copy", "hopper", "bulk_copy", (264,), 128, args)
    args = [r.f16(264 * 64, 128), r.f16(128, 64), empty((264 * 64, 64), f32)]
    triton("triton_matmul_80", (264, 2), args, 12288)
    triton("triton_matmul_90", (264, 1), args, 49152)
    args = [r.f16(132, 128, 32, scale=2) for _ in range(3)] + [empty((132, 128, 32), np.float16)]
    for chip, shared in ((80, 12288), (90, 16384)):
        triton(f"triton_attention_{chip}", (2, 132), [*args, f32(0.17677669)], shared)
    ours = []
    _ours(ours, (("attn_d64", ""), ("attn_d128", ""), ("attn_d64_causal", "")))
    for case in ours:
        case.name, case.compare = f"time_{case.name}", {}
    return result + ours


def read_ptx(case):
    return (HERE / "Inputs" / f"{case.ptx}.ptx").read_text()


def simulate(case, **options):
    """The case on the simulator."""
    return attn.sim.run(
        read_ptx(case),
        case.grid,
        case.args,
        block=case.block,
        cluster=case.cluster,
        shared=case.shared,
        kernel=case.kernel,
        **options,
    )
