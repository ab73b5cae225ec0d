"""Products of matrices in Triton's language: types, descriptors, persistence, scales."""

import numpy as np
import triton
import triton.language as tl
from harness import Array, Case, Descriptor, empty, from_bf16, from_fp8, random, to_bf16, to_fp8


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
           PRECISION: tl.constexpr, SUM: tl.constexpr, TRANSPOSED: tl.constexpr):
    pid = tl.program_id(0)
    m_blocks, n_blocks = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * n_blocks) * GROUP
    size = tl.minimum(m_blocks - first, GROUP)
    m = (first + pid % (GROUP * n_blocks) % size) * BM + tl.arange(0, BM)
    n = (pid % (GROUP * n_blocks) // size) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    sum = tl.zeros((BM, BN), dtype=SUM)
    for start in range(0, K, BK):
        inside = start + k < K
        x = tl.load(a + m[:, None] * K + (start + k)[None, :], mask=(m[:, None] < M) & inside[None, :], other=0.0)
        if TRANSPOSED:
            y = tl.load(b + n[:, None] * K + (start + k)[None, :], mask=(n[:, None] < N) & inside[None, :],
                        other=0.0).T
        else:
            y = tl.load(b + (start + k)[:, None] * N + n[None, :], mask=inside[:, None] & (n[None, :] < N),
                        other=0.0)
        sum = tl.dot(x, y, sum, input_precision=PRECISION, out_dtype=SUM)
    tl.store(c + m[:, None] * N + n[None, :], sum.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def matmul_maps(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr,
                SPECIAL: tl.constexpr):
    blocks = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * blocks
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), warp_specialize=SPECIAL, flatten=not SPECIAL):
        m, n = tile // blocks * BM, tile % blocks * BN
        sum = tl.zeros((BM, BN), dtype=tl.float32)
        for k in tl.range(0, K, BK, num_stages=STAGES):
            sum = tl.dot(a.load([m, k]), b.load([n, k]).T, sum)
        c.store([m, n], sum.to(tl.float16))


@triton.jit
def matmul_special(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    sum = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=True):
        sum = tl.dot(a.load([m, k]), b.load([n, k]).T, sum)
    c.store([m, n], sum.to(tl.float16))


@triton.jit
def matmul_device_maps(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    x = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    y = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    z = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    sum = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        sum = tl.dot(x.load([m, k]), y.load([k, n]), sum)
    z.store([m, n], sum.to(tl.float16))


@triton.jit
def grouped(base, offsets, sizes, GROUPS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tile, passed = tl.program_id(0), 0
    for g in range(GROUPS):
        M, N, K = tl.load(sizes + 3 * g), tl.load(sizes + 3 * g + 1), tl.load(sizes + 3 * g + 2)
        blocks = tl.cdiv(N, BN)
        tiles = tl.cdiv(M, BM) * blocks
        while tile < passed + tiles:
            a = tl.load(offsets + 3 * g)
            b = tl.load(offsets + 3 * g + 1)
            c = tl.load(offsets + 3 * g + 2)
            m = (tile - passed) // blocks * BM + tl.arange(0, BM)
            n = (tile - passed) % blocks * BN + tl.arange(0, BN)
            sum = tl.zeros((BM, BN), dtype=tl.float32)
            for start in range(0, K, BK):
                k = start + tl.arange(0, BK)
                x = tl.load(base + a + m[:, None] * K + k[None, :], mask=m[:, None] < M, other=0.0)
                y = tl.load(base + b + k[:, None] * N + n[None, :], mask=n[None, :] < N, other=0.0)
                sum = tl.dot(x, y, sum)
            tl.store(base + c + m[:, None] * N + n[None, :], sum.to(tl.float16),
                     mask=(m[:, None] < M) & (n[None, :] < N))
            tile += tl.num_programs(0)
        passed += tiles


@triton.jit
def split_k(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.program_id(2) * BK + tl.arange(0, BK)
    sum = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK * SPLIT):
        x = tl.load(a + m[:, None] * K + (start + k)[None, :])
        y = tl.load(b + (start + k)[:, None] * N + n[None, :])
        sum = tl.dot(x, y, sum)
    tl.atomic_add(c + m[:, None] * N + n[None, :], sum, sem="relaxed")


@triton.jit
def batched(a, b, c, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, m, n, k = tl.arange(0, B), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + i[:, None, None] * M * K + m[None, :, None] * K + k[None, None, :])
    y = tl.load(b + i[:, None, None] * K * N + k[None, :, None] * N + n[None, None, :])
    tl.store(c + i[:, None, None] * M * N + m[None, :, None] * N + n[None, None, :], tl.dot(x, y))


@triton.jit
def dequantised(a, b, scale, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """b holds two 4-bit numbers in a byte, along K; a scale for each column and 32 of K."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    sum = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k, packed = start + tl.arange(0, BK), start // 2 + tl.arange(0, BK // 2)
        x = tl.load(a + m[:, None] * K + k[None, :])
        q = tl.load(b + n[:, None] * (K // 2) + packed[None, :])
        low, high = (q & 15).to(tl.int8) - 8, (q >> 4).to(tl.int8) - 8
        y = tl.reshape(tl.join(low, high), (BN, BK)).to(tl.float16)
        s = tl.load(scale + n[:, None] * (K // 32) + (k // 32)[None, :])
        sum = tl.dot(x, (y * s).T, sum)
    tl.store(c + m[:, None] * N + n[None, :], sum)


@triton.jit
def scaled(a, sa, b, sb, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           TYPE_A: tl.constexpr, TYPE_B: tl.constexpr, PACK_A: tl.constexpr, PACK_B: tl.constexpr,
           VEC: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    sum = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ka = start // PACK_A + tl.arange(0, BK // PACK_A)
        kb = start // PACK_B + tl.arange(0, BK // PACK_B)
        ks = start // VEC + tl.arange(0, BK // VEC)
        x = tl.load(a + m[:, None] * (K // PACK_A) + ka[None, :])
        y = tl.load(b + n[:, None] * (K // PACK_B) + kb[None, :])
        u = tl.load(sa + m[:, None] * (K // VEC) + ks[None, :])
        v = tl.load(sb + n[:, None] * (K // VEC) + ks[None, :])
        sum = tl.dot_scaled(x, u, TYPE_A, y.T, v, TYPE_B, sum)
    tl.store(c + m[:, None] * N + n[None, :], sum)


@triton.jit
def fused_mlp(x, w1, w2, o, D: tl.constexpr, H: tl.constexpr, BM: tl.constexpr, BH: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    v = tl.load(x + m[:, None] * D + d[None, :])
    sum = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(0, H, BH):
        h = start + tl.arange(0, BH)
        s = tl.dot(v, tl.load(w1 + d[:, None] * H + h[None, :]))
        s = s * tl.sigmoid(s)
        sum = tl.dot(s.to(v.dtype), tl.load(w2 + h[:, None] * D + d[None, :]), sum)
    tl.store(o + m[:, None] * D + d[None, :], sum)


@triton.jit
def descriptor_copies(x, o, p, BM: tl.constexpr, BN: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    v = x.load([m - 8, n + 8])
    o.store([m, n], v)
    p.atomic_add([m, n], v)


@triton.jit
def descriptor_rows(x, index, o, p, K: tl.constexpr, C: tl.constexpr):
    rows = tl.load(index + tl.arange(0, K))
    v = x.gather(rows, 0)
    tl.store(o + tl.arange(0, K)[:, None] * C + tl.arange(0, C)[None, :], v)
    p.scatter(v, rows, 0)


FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def _types(cases: list[Case]) -> None:
    r = random("matmul")
    m, n, k = 70, 96, 80
    a, b = r.normal(size=(m, k)), r.normal(size=(k, n))
    blocks = {"BM": 64, "BN": 32, "BK": 32, "GROUP": 2, "PRECISION": None, "SUM": tl.float32, "TRANSPOSED": False}

    def add(name, x, y, z, ref, tolerance, chips=(80, 90, 100), warps=4, **constants):
        constants = {**blocks, **constants}
        tiles = -(-m // constants["BM"]) * -(-n // constants["BN"])
        cases.append(
            Case(f"matmul_{name}", matmul, [x, y, z, m, n, k], constants, (tiles,), {2: ref}, tolerance,
                 chips, warps)
        )  # fmt: skip

    f32 = np.float32
    x, y = a.astype(np.float16), b.astype(np.float16)
    ref = x.astype(np.float64) @ y.astype(np.float64)
    add("fp16", x, y, empty((m, n), np.float16), ref, 1e-3)
    add("fp16_wide", x, y, empty((m, n), f32), ref, 1e-6, BM=128, BN=128, BK=64, warps=8)
    add("fp16_small", x, y, empty((m, n), f32), ref, 1e-6, BM=16, BN=16, BK=16, warps=1)
    add("fp16_sum", x, y, empty((m, n), np.float16), ref, 4e-3, SUM=tl.float16)
    add("fp16_transposed", x, y.T.copy(), empty((m, n), f32), ref, 1e-6, TRANSPOSED=True, BM=64, BN=64, BK=64)
    x, y = Array(to_bf16(a), "bf16"), Array(to_bf16(b), "bf16")
    ref = from_bf16(x.data) @ from_bf16(y.data)
    add("bf16", x, y, Array(empty((m, n), np.uint16), "bf16"), ref, 8e-3)
    add("bf16_64", x, y, empty((m, n), f32), ref, 1e-6, BN=64, BK=64)
    x, y = a.astype(f32), b.astype(f32)
    for precision, tolerance in (("tf32", 2e-3), ("tf32x3", 1e-5), ("ieee", 1e-6), ("bf16x3", 1e-4), ("bf16x6", 1e-5)):
        add(precision, x, y, empty((m, n), f32), x.astype(np.float64) @ y, tolerance, PRECISION=precision)
    add("fp64", a, b, empty((m, n), np.float64), a @ b, 1e-14, SUM=tl.float64, BM=32, BN=32, BK=16)
    x, y = r.integers(-128, 128, (m, k), dtype=np.int8), r.integers(-128, 128, (k, n), dtype=np.int8)
    whole = x.astype(np.int32) @ y.astype(np.int32)
    add("int8", x, y, empty((m, n), np.int32), whole, 0.0, SUM=tl.int32)
    for kind, chips in (("fp8e4nv", (90, 100)), ("fp8e5", (80, 90, 100))):
        x, y = to_fp8(a, kind), to_fp8(b, kind)
        ref = from_fp8(x, kind) @ from_fp8(y, kind)
        add(kind, Array(x, kind), Array(y, kind), empty((m, n), f32), ref, 1e-3, chips)
        # What wgmma and tcgen05 take: 64 along K.
        add(f"{kind}_transposed", Array(x, kind), Array(y.T.copy(), kind), empty((m, n), f32), ref, 1e-3, chips,
            TRANSPOSED=True, BN=64, BK=64)


def _maps(cases: list[Case]) -> None:
    r = random("maps")
    m, n, k = 128, 192, 160
    a, b = r.normal(size=(m, k)).astype(np.float16), r.normal(size=(n, k)).astype(np.float16)
    ref = a.astype(np.float64) @ b.T.astype(np.float64)
    for name, bm, bn, bk, stages, special, warps, ctas in (
        ("plain", 64, 64, 64, 3, False, 4, 1), ("wide", 128, 128, 64, 2, False, 8, 1),
        ("narrow", 64, 32, 32, 4, False, 4, 1), ("special", 128, 64, 64, 3, True, 4, 1),
    ):  # fmt: skip
        args = [Descriptor(a, [bm, bk]), Descriptor(b, [bn, bk]),
                Descriptor(empty((m, n), np.float16), [bm, bn]), m, n, k]  # fmt: skip
        cases.append(
            Case(f"matmul_maps_{name}", matmul_maps, args,
                 {"BM": bm, "BN": bn, "BK": bk, "STAGES": stages, "SPECIAL": special}, (2,), {2: ref}, 1e-3,
                 (80, 90, 100) if not special else (100,), warps, ctas)
        )  # fmt: skip
    for warps in (4, 8):
        args = [Descriptor(a, [128, 64]), Descriptor(b, [64, 64]), Descriptor(empty((m, n), np.float16), [128, 64]), k]
        cases.append(
            Case(f"matmul_special_{warps}", matmul_special, args, {"BM": 128, "BN": 64, "BK": 64}, (1, 3),
                 {2: ref}, 1e-3, (90, 100) if warps == 8 else (100,), warps, options={"num_stages": 3})
        )  # fmt: skip
    args = [a, b.T.copy(), empty((m, n), np.float16), m, n, k]
    cases.append(
        Case("matmul_device_maps", matmul_device_maps, args, {"BM": 64, "BN": 64, "BK": 32}, (2, 3), {2: ref},
             1e-3)
    )  # fmt: skip
    args = [Descriptor(a, [128, 64]), Descriptor(b, [128, 64]), Descriptor(empty((m, n), np.float16), [128, 128]), m, n, k]
    cases.append(
        Case("matmul_maps_two_ctas", matmul_maps, args,
             {"BM": 128, "BN": 128, "BK": 64, "STAGES": 3, "SPECIAL": False}, (1,), {2: ref}, 1e-3, (90, 100), ctas=2)
    )  # fmt: skip
    x = r.normal(size=(40, 72)).astype(np.float32)
    expected = np.zeros((40, 72))
    for i in range(0, 40, 16):
        for j in range(0, 72, 32):
            rows, columns = np.arange(i - 8, i + 8), np.arange(j + 8, j + 40)
            inside = (rows[:, None] >= 0) & (rows[:, None] < 40) & (columns[None, :] < 72)
            box = np.where(inside, x[rows[:, None] % 40, columns[None, :] % 72], 0)
            expected[i : i + 16, j : j + 32] = box[: 40 - i, : 72 - j]
    args = [Descriptor(x, [16, 32]), Descriptor(empty((40, 72), np.float32), [16, 32]),
            Descriptor(np.ones((40, 72), np.float32), [16, 32])]  # fmt: skip
    cases.append(
        Case("descriptor_copies", descriptor_copies, args, {"BM": 16, "BN": 32}, (3, 3),
             {1: expected, 2: expected + 1}, 1e-7)
    )  # fmt: skip
    x, rows = r.normal(size=(64, 64)).astype(np.float16), r.permutation(64)[:32].astype(np.int32)
    scattered = np.zeros((64, 64))
    scattered[rows] = x[rows]
    args = [Descriptor(x, [1, 64]), rows, empty((32, 64), np.float16), Descriptor(np.zeros((64, 64), np.float16), [1, 64])]
    cases.append(
        Case("descriptor_rows", descriptor_rows, args, {"K": 32, "C": 64}, (1,), {2: x[rows], 3: scattered}, 0.0,
             (100,))
    )  # fmt: skip


def _forms(cases: list[Case]) -> None:
    r = random("forms")
    f32 = np.float32
    sizes = np.array([[64, 32, 32], [40, 70, 64], [96, 64, 32]], np.int32)
    memory, offsets, refs = [], [], []
    start = 0
    for m, n, k in sizes:
        a, b = r.normal(size=(m, k)).astype(np.float16), r.normal(size=(k, n)).astype(np.float16)
        for part in (a, b, np.zeros((m, n), np.float16)):
            offsets.append(start)
            start += -(-part.size // 8) * 8
            memory.append(part)
        refs.append(a.astype(np.float64) @ b.astype(np.float64))
    block = np.zeros(start, np.float16)
    expected = np.zeros(start)
    for i, part in enumerate(memory):
        block[offsets[i] : offsets[i] + part.size] = part.ravel()
        whole = refs[i // 3] if i % 3 == 2 else part
        expected[offsets[i] : offsets[i] + part.size] = np.asarray(whole, np.float64).ravel()
    cases.append(
        Case("grouped", grouped, [block, np.array(offsets), sizes], {"GROUPS": 3, "BM": 32, "BN": 32, "BK": 32}, (4,), {0: expected}, 1e-3)
    )  # fmt: skip
    a, b = r.normal(size=(64, 256)).astype(np.float16), r.normal(size=(256, 64)).astype(np.float16)
    ref = a.astype(np.float64) @ b.astype(np.float64)
    cases.append(
        Case("split_k", split_k, [a, b, np.zeros((64, 64), f32), 64, 64, 256],
             {"BM": 32, "BN": 32, "BK": 32, "SPLIT": 4}, (2, 2, 4), {2: ref}, 1e-6)
    )  # fmt: skip
    a, b = r.normal(size=(4, 32, 32)).astype(np.float16), r.normal(size=(4, 32, 16)).astype(np.float16)
    cases.append(
        Case("batched", batched, [a, b, empty((4, 32, 16), f32)], {"B": 4, "M": 32, "N": 16, "K": 32}, (1,),
             {2: a.astype(np.float64) @ b.astype(np.float64)}, 1e-6)
    )  # fmt: skip
    m, n, k = 64, 64, 128
    a, q = r.normal(size=(m, k)).astype(np.float16), r.integers(0, 256, (n, k // 2)).astype(np.uint8)
    scale = r.uniform(0.1, 1, (n, k // 32)).astype(np.float16)
    values = np.stack([(q & 15), (q >> 4)], axis=2).reshape(n, k).astype(np.float64) - 8
    weights = (values.astype(np.float16) * scale.repeat(32, axis=1)).astype(np.float64)
    cases.append(
        Case("dequantised", dequantised, [a, q, scale, empty((m, n), f32), m, n, k],
             {"BM": 32, "BN": 32, "BK": 64}, (2, 2), {3: a.astype(np.float64) @ weights.T}, 1e-3)
    )  # fmt: skip
    x = r.normal(size=(64, 64)).astype(np.float16)
    w1, w2 = (r.normal(size=s).astype(np.float16) * np.float16(0.2) for s in ((64, 128), (128, 64)))
    h = x.astype(np.float64) @ w1.astype(np.float64)
    h = (h / (1 + np.exp(-h))).astype(np.float16).astype(np.float64)
    cases.append(
        Case("fused_mlp", fused_mlp, [x, w1, w2, empty((64, 64), f32)], {"D": 64, "H": 128, "BM": 64, "BH": 64},
             (1,), {3: h @ w2.astype(np.float64)}, 1e-3)
    )  # fmt: skip
    m, n, k = 128, 64, 256
    for ta, tb, vec in (("e4m3", "e4m3", 32), ("e5m2", "e4m3", 32), ("e2m1", "e2m1", 32), ("e4m3", "e2m1", 32), ("e2m1", "e2m1", 16)):
        values, raws, scales, factors = [], [], [], []
        for kind, rows in ((ta, m), (tb, n)):
            if kind == "e2m1":
                codes = r.integers(0, 16, (rows, k))
                raws.append((codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8))
                values.append(FP4[codes])
            else:
                name = {"e4m3": "fp8e4nv", "e5m2": "fp8e5"}[kind]
                raw = to_fp8(r.normal(size=(rows, k)), name)
                raws.append(Array(raw, name))
                values.append(from_fp8(raw, name))
            if vec == 16:
                raw = to_fp8(r.uniform(0.3, 3, (rows, k // vec)), "fp8e4nv")
                scales.append(Array(raw, "fp8e4nv"))
                factors.append(from_fp8(raw, "fp8e4nv").repeat(vec, axis=1))
            else:
                raw = r.integers(124, 131, (rows, k // vec)).astype(np.uint8)
                scales.append(raw)
                factors.append((2.0 ** (raw.astype(np.float64) - 127)).repeat(vec, axis=1))
        ref = (values[0] * factors[0]) @ (values[1] * factors[1]).T
        constants = {"BM": 128, "BN": 64, "BK": 128, "TYPE_A": ta, "TYPE_B": tb,
                     "PACK_A": 2 if ta == "e2m1" else 1, "PACK_B": 2 if tb == "e2m1" else 1, "VEC": vec}  # fmt: skip
        args = [raws[0], scales[0], raws[1], scales[1], empty((m, n), f32), m, n, k]
        chips = (100,) if vec == 16 else (80, 90, 100) if "e4m3" not in (ta, tb) else (90, 100)
        cases.append(Case(f"scaled_{ta}_{tb}_{vec}", scaled, args, constants, (1, 1), {4: ref}, 1e-2, chips))


def cases() -> list[Case]:
    result: list[Case] = []
    _types(result)
    _maps(result)
    _forms(result)
    return result
