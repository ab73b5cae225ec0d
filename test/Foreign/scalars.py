"""Elementwise arithmetic, conversions, shapes, atomics and random numbers, in Triton's language."""

import numpy as np
import triton
import triton.language as tl
from harness import Array, Case, empty, from_bf16, from_fp8, random, to_bf16, to_fp8
from triton.language.extra import libdevice


@triton.jit
def integers(x, y, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside, other=0)
    b = tl.load(y + at, mask=inside, other=1)
    c = tl.where(b == 0, 7, b)
    tl.store(o + at, a + b * 3 - (a ^ b), mask=inside)
    tl.store(o + n + at, a // c, mask=inside)
    tl.store(o + 2 * n + at, a % c, mask=inside)
    tl.store(o + 3 * n + at, (a << (b & 7)) | (a >> 3), mask=inside)
    tl.store(o + 4 * n + at, tl.minimum(a, b) & tl.maximum(a, ~b), mask=inside)
    tl.store(o + 5 * n + at, tl.abs(a), mask=inside)


@triton.jit
def wide_integers(x, y, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside, other=1)
    b = tl.load(y + at, mask=inside, other=1)
    tl.store(o + at, a * b + (a >> 5), mask=inside)
    tl.store(o + n + at, a // (b | 1), mask=inside)
    tl.store(o + 2 * n + at, tl.umulhi(a, b), mask=inside)
    tl.store(o + 3 * n + at, tl.where(a > b, a, b), mask=inside)


@triton.jit
def narrow_integers(x, y, o, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(o + at, (a + b).to(tl.int8) ^ (a * 3).to(tl.int8))


@triton.jit
def functions(x, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    p = tl.abs(v) + 0.5
    tl.store(o + at, tl.exp(v))
    tl.store(o + n + at, tl.log(p) + tl.log2(p))
    tl.store(o + 2 * n + at, tl.sin(v) * tl.cos(v))
    tl.store(o + 3 * n + at, tl.sqrt(p) + tl.rsqrt(p) + tl.sqrt_rn(p))
    tl.store(o + 4 * n + at, tl.erf(v) + tl.floor(v) - tl.ceil(v * 1.7))
    tl.store(o + 5 * n + at, tl.fdiv(v, p) + tl.div_rn(v, p) + tl.sigmoid(v))
    tl.store(o + 6 * n + at, tl.fma(v, p, 2.0) + tl.exp2(v) + tl.clamp(v, -0.5, 0.25))


@triton.jit
def library_functions(x, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(o + at, libdevice.tanh(v))
    tl.store(o + n + at, libdevice.pow(tl.abs(v) + 0.1, 1.5))
    tl.store(o + 2 * n + at, libdevice.atan2(v, 0.3 + v * v))
    tl.store(o + 3 * n + at, libdevice.lgamma(tl.abs(v) + 1.0))
    tl.store(o + 4 * n + at, libdevice.log1p(tl.abs(v)) + libdevice.expm1(v))
    tl.store(o + 5 * n + at, libdevice.rint(v * 3) + libdevice.trunc(v * 5))
    tl.store(o + 6 * n + at, libdevice.sinh(v) + libdevice.acos(v * 0.2))
    tl.store(o + 7 * n + at, libdevice.fmod(v * 9, 2.5) + libdevice.cbrt(v))


@triton.jit
def doubles(x, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(o + at, tl.exp(v) + v * v)
    tl.store(o + n + at, tl.sqrt(tl.abs(v)) / (1.5 + tl.abs(v)))
    tl.store(o + 2 * n + at, tl.sin(v) + tl.floor(v))


@triton.jit
def convert(x, f16, bf16, e4, e5, i8, back, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(f16 + at, v.to(tl.float16))
    tl.store(bf16 + at, v.to(tl.bfloat16))
    tl.store(e4 + at, v.to(tl.float8e4nv))
    tl.store(e5 + at, v.to(tl.float8e5))
    tl.store(i8 + at, v.to(tl.int8))
    narrow = v.to(tl.float8e5).to(tl.float16).to(tl.float32)
    tl.store(back + at, narrow + v.to(tl.bfloat16).to(tl.float32) + v.to(tl.int32).to(tl.float32))


@triton.jit
def convert_old(x, f16, bf16, e5, i8, back, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(f16 + at, v.to(tl.float16))
    tl.store(bf16 + at, v.to(tl.bfloat16))
    tl.store(e5 + at, v.to(tl.float8e5))
    tl.store(i8 + at, v.to(tl.int8))
    tl.store(back + at, v.to(tl.float16, fp_downcast_rounding="rtz").to(tl.float32))


@triton.jit
def narrow_floats(x, y, o, p, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(o + at, a * b + tl.maximum(a, b) - tl.where(a < b, a, -b))
    tl.store(p + at, (a > b) & (a + b > 0))


@triton.jit
def shapes(x, o, p, q, R: tl.constexpr, C: tl.constexpr):
    rows, columns = tl.arange(0, R), tl.arange(0, C)
    v = tl.load(x + rows[:, None] * C + columns[None, :])
    tl.store(o + columns[:, None] * R + rows[None, :], tl.trans(v))
    low, high = tl.split(tl.reshape(v, (R, C // 2, 2)))
    both = tl.interleave(high, low) + tl.permute(tl.reshape(v, (C, R)), (1, 0))
    tl.store(p + rows[:, None] * C + columns[None, :], both)
    joined = tl.join(v, tl.flip(v, dim=1))
    tl.store(q + tl.arange(0, R * C * 2), tl.ravel(joined))


@triton.jit
def add_pair(a, b):
    return a + b, a - b


@triton.jit
def cube(x):
    return x * x * x


@triton.jit(noinline=True)
def called(i, scale):
    return cube(i) % 11 - scale


@triton.jit
def control(x, o, n, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    for step in range(STEPS):
        if step % 2 == 0:
            v = v * 0.5 + 1.0
        else:
            a, b = add_pair(v, 0.25)
            v = tl.where(a > b, a, b)
    i = pid
    while i < n:
        v = v * 0.125 + called(i, pid)
        i += 2
    if pid > 1:
        v += 3.0
    tl.store(o + at, v)


@triton.jit
def assembly(x, y, o, p, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    s = tl.inline_asm_elementwise(
        "shf.l.wrap.b32 $0, $1, $2, 9;", "=r,r,r", [a, b], dtype=tl.int32, is_pure=True, pack=1
    )
    lo, hi = tl.inline_asm_elementwise(
        "{ .reg .b32 t; xor.b32 t, $2, $3; popc.b32 $0, t; brev.b32 $1, t; }",
        "=r,=r,r,r", [a, b], dtype=(tl.int32, tl.int32), is_pure=True, pack=1,
    )
    tl.store(o + at, s)
    tl.store(p + at, lo ^ hi)


@triton.jit
def atomics(x, f, h, i, u, olds, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0)
    slot = v & 7
    inside = at < n
    tl.atomic_add(f + slot, (v & 31).to(tl.float32), mask=inside)
    tl.atomic_add(h + slot, (v & 3).to(tl.float16), mask=inside)
    tl.atomic_add(i + slot, v, mask=inside)
    tl.atomic_max(i + 8 + slot, v, mask=inside, sem="relaxed")
    tl.atomic_min(i + 16 + slot, v, mask=inside, scope="sys")
    tl.atomic_and(i + 24 + slot, v | 255, mask=inside)
    tl.atomic_or(i + 32 + slot, v & 0xFF0, mask=inside)
    tl.atomic_xor(i + 40 + slot, v, mask=inside, sem="acquire")
    tl.atomic_add(u + slot, v.to(tl.int64) * 65537, mask=inside)
    tl.store(olds + at, tl.atomic_xchg(olds + n + at, v, mask=inside), mask=inside)


@triton.jit
def locked_sum(lock, count, total, x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * BLOCK + at)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    seen = tl.load(count)
    if seen == 0:
        tl.atomic_xchg(count, 1)
    else:
        v += tl.load(total + at)
    tl.store(total + at, v)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def random_numbers(o, r, m, seed, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b, c, d = tl.randint4x(seed, at)
    tl.store(o + at, a ^ b ^ c ^ d)
    tl.store(r + at, tl.rand(seed, at))
    tl.store(m + at, tl.randn(seed, at))


@triton.jit
def policies(x, o, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, cache_modifier=".ca")
    v += tl.load(x + at, eviction_policy="evict_first")
    v += tl.load(x + at, volatile=True)
    tl.store(o + at, v, cache_modifier=".cs")


def philox(seed: int, counters: np.ndarray) -> list[np.ndarray]:
    """Ten rounds of Philox 4x32."""
    mask = np.uint64(0xFFFFFFFF)
    c = [counters.astype(np.uint64)] + [np.zeros(len(counters), np.uint64)] * 3
    k0, k1 = np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> np.uint64(32)) ^ c[1] ^ k0, b & mask, (a >> np.uint64(32)) ^ c[3] ^ k1, a & mask]
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & mask, (k1 + np.uint64(0xBB67AE85)) & mask
    return [each.astype(np.uint32) for each in c]


def uniform(x: np.ndarray) -> np.ndarray:
    v = x.view(np.int32).astype(np.int64)
    return np.where(v < 0, -v - 1, v) * 4.6566127342e-10


def _integers(cases: list[Case]) -> None:
    r = random("integers")
    for dtype, kernel in ((np.int32, integers), (np.uint32, integers)):
        x = r.integers(0, 2**32, 1000, dtype=np.uint32).view(dtype)
        y = r.integers(0, 2**32, 1000, dtype=np.uint32).view(dtype) >> dtype(9)
        with np.errstate(all="ignore"):
            c = np.where(y == 0, dtype(7), y)
            quotient = x // c
            if dtype is np.int32:
                quotient = np.trunc(x.astype(np.float64) / c).astype(np.int32)
            rest = x - quotient * c
            rows = [x + y * dtype(3) - (x ^ y), quotient, rest,
                    (x << (y & dtype(7))) | (x >> dtype(3)),
                    np.minimum(x, y) & np.maximum(x, ~y), np.abs(x)]  # fmt: skip
        cases.append(
            Case(f"integers_{np.dtype(dtype).name}", kernel, [x, y, empty((6, 1000), dtype), 1000],
                 {"BLOCK": 256}, (4,), {2: np.stack(rows)})
        )  # fmt: skip
    x = r.integers(0, 2**63, 512, dtype=np.uint64) * np.uint64(2)
    y = r.integers(0, 2**40, 512, dtype=np.uint64)
    high = [(int(a) * int(b)) >> 64 for a, b in zip(x, y)]
    with np.errstate(over="ignore"):
        rows = [x * y + (x >> np.uint64(5)), x // (y | np.uint64(1)),
                np.array(high, np.uint64), np.maximum(x, y)]  # fmt: skip
    cases.append(
        Case("integers_uint64", wide_integers, [x, y, empty((4, 512), np.uint64), 512],
             {"BLOCK": 128}, (4,), {2: np.stack(rows)})
    )  # fmt: skip
    x, y = (r.integers(-128, 128, 512, dtype=np.int8) for _ in range(2))
    with np.errstate(over="ignore"):
        expected = (x + y) ^ (x * np.int8(3))
    cases.append(
        Case("integers_int8", narrow_integers, [x, y, empty(512, np.int8)], {"BLOCK": 256}, (2,),
             {2: expected.astype(np.int8)}, warps=2)
    )  # fmt: skip


def _floats(cases: list[Case]) -> None:
    import math

    r = random("floats")
    x = r.normal(size=512).astype(np.float32)
    v = x.astype(np.float64)
    p = np.abs(v) + 0.5
    erf = np.vectorize(math.erf)
    rows = [
        np.exp(v), np.log(p) + np.log2(p), np.sin(v) * np.cos(v), 2 * np.sqrt(p) + p**-0.5,
        erf(v) + np.floor(v) - np.ceil((x * np.float32(1.7)).astype(np.float64)),
        2 * v / p + 1 / (1 + np.exp(-v)), v * p + 2 + 2.0**v + np.clip(v, -0.5, 0.25),
    ]  # fmt: skip
    cases.append(
        Case("functions", functions, [x, empty((7, 512), np.float32), 512], {"BLOCK": 128}, (4,),
             {1: np.stack(rows)}, 1e-6)
    )  # fmt: skip
    gamma = np.vectorize(math.lgamma)
    rows = [
        np.tanh(v), (np.abs(v) + 0.1) ** 1.5, np.arctan2(v, 0.3 + v * v), gamma(np.abs(v) + 1),
        np.log1p(np.abs(v)) + np.expm1(v), np.rint(v * 3) + np.trunc(v * 5),
        np.sinh(v) + np.arccos(v * 0.2), np.fmod(v * 9, 2.5) + np.cbrt(v),
    ]  # fmt: skip
    cases.append(
        Case("library_functions", library_functions, [x, empty((8, 512), np.float32), 512],
             {"BLOCK": 128}, (4,), {1: np.stack(rows)}, 1e-5)
    )  # fmt: skip
    d = r.normal(size=256)
    rows = [np.exp(d) + d * d, np.sqrt(np.abs(d)) / (1.5 + np.abs(d)), np.sin(d) + np.floor(d)]
    cases.append(
        Case("doubles", doubles, [d, empty((3, 256), np.float64), 256], {"BLOCK": 128}, (2,),
             {1: np.stack(rows)}, 1e-14)
    )  # fmt: skip
    x = (r.normal(size=512) * 20).astype(np.float32)
    e4, e5 = to_fp8(x, "fp8e4nv"), to_fp8(x, "fp8e5")
    half = x.astype(np.float16)
    bf16 = from_bf16(to_bf16(x))
    whole = np.trunc(x).astype(np.int8)
    results = [Array(empty(512, np.uint16), "bf16"), Array(empty(512, np.uint8), "fp8e4nv"),
               Array(empty(512, np.uint8), "fp8e5")]  # fmt: skip
    back = from_fp8(e5, "fp8e5") + bf16 + np.trunc(x)
    cases.append(
        Case("convert", convert,
             [x, empty(512, np.float16), *results, empty(512, np.int8), empty(512, np.float32)],
             {"BLOCK": 256}, (2,),
             {1: half, 2: bf16, 3: from_fp8(e4, "fp8e4nv"), 4: from_fp8(e5, "fp8e5"), 5: whole,
              6: back}, 1e-7, chips=(90, 100))
    )  # fmt: skip
    towards = np.where(np.abs(half.astype(np.float32)) > np.abs(x), np.nextafter(half, np.float16(0)), half)
    cases.append(
        Case("convert_old", convert_old,
             [x, empty(512, np.float16), results[0], results[2], empty(512, np.int8),
              empty(512, np.float32)],
             {"BLOCK": 256}, (2,),
             {1: half, 2: bf16, 3: from_fp8(e5, "fp8e5"), 4: whole, 5: towards.astype(np.float64)}, 1e-7)
    )  # fmt: skip
    for kind in ("fp16", "bf16"):
        a, b = (r.normal(size=512).astype(np.float32) for _ in range(2))
        if kind == "bf16":
            args = [Array(to_bf16(a), kind), Array(to_bf16(b), kind), Array(empty(512, np.uint16), kind)]
            a, b = (from_bf16(each.data) for each in args[:2])
        else:
            args = [a.astype(np.float16), b.astype(np.float16), empty(512, np.float16)]
            a, b = (each.astype(np.float64) for each in args[:2])
        expected = a * b + np.maximum(a, b) - np.where(a < b, a, -b)
        cases.append(
            Case(f"narrow_floats_{kind}", narrow_floats, [*args, empty(512, np.bool_)],
                 {"BLOCK": 256}, (2,), {2: expected}, 1e-3 if kind == "fp16" else 8e-3)
        )  # fmt: skip


def _others(cases: list[Case]) -> None:
    r = random("others")
    v = r.integers(0, 1000, (32, 64), dtype=np.int32)
    low, high = v[:, 0::2], v[:, 1::2]
    both = np.stack([high, low], axis=2).reshape(32, 64) + v.reshape(64, 32).T
    joined = np.stack([v, v[:, ::-1]], axis=2).ravel()
    cases.append(
        Case("shapes", shapes, [v, empty((64, 32), np.int32), empty((32, 64), np.int32),
                                empty(32 * 64 * 2, np.int32)],
             {"R": 32, "C": 64}, (1,), {1: v.T.copy(), 2: both, 3: joined})
    )  # fmt: skip
    x = r.normal(size=512).astype(np.float32)
    parts = []
    for pid in range(4):
        v = x[pid * 128 : (pid + 1) * 128].astype(np.float64)
        for step in range(5):
            v = v * 0.5 + 1 if step % 2 == 0 else np.maximum(v + 0.25, v - 0.25)
        for i in range(pid, 6, 2):
            v = v * 0.125 + i**3 % 11 - pid
        parts.append(v + (3 if pid > 1 else 0))
    cases.append(
        Case("control", control, [x, empty(512, np.float32), 6], {"STEPS": 5, "BLOCK": 128}, (4,),
             {1: np.concatenate(parts)}, 1e-5)
    )  # fmt: skip
    x, y = (r.integers(0, 2**32, 256, dtype=np.uint32) for _ in range(2))
    t = x ^ y
    population = np.array([int(each).bit_count() for each in t], np.uint32)
    reverse = np.array([int(f"{int(each):032b}"[::-1], 2) for each in t], np.uint32)
    funnel = (y << np.uint32(9)) | (x >> np.uint32(23))
    cases.append(
        Case("assembly", assembly,
             [x.view(np.int32), y.view(np.int32), empty(256, np.int32), empty(256, np.int32)],
             {"BLOCK": 128}, (2,),
             {2: funnel.view(np.int32), 3: (population ^ reverse).view(np.int32)})
    )  # fmt: skip
    x = r.integers(0, 4096, 500, dtype=np.int32)
    slot = x & 7
    f, h, u = np.zeros(8, np.float32), np.zeros(8, np.float16), np.zeros(8, np.int64)
    i = np.zeros(48, np.int32)
    i[16:24], i[24:32] = 10**6, -1
    olds = np.zeros(1000, np.int32)
    expected = [f.copy(), h.copy(), i.copy(), u.copy()]
    for value, s in zip(x, slot):
        expected[0][s] += value & 31
        expected[1][s] += value & 3
        e = expected[2]
        e[s] += value
        e[8 + s], e[16 + s] = max(e[8 + s], value), min(e[16 + s], value)
        e[24 + s] &= value | 255
        e[32 + s] |= value & 0xFF0
        e[40 + s] ^= value
        expected[3][s] += int(value) * 65537
    after = np.concatenate([np.zeros(500, np.int32), x])
    cases.append(
        Case("atomics", atomics, [x, f, h, i, u, olds, 500], {"BLOCK": 128}, (4,),
             {1: expected[0], 2: expected[1], 3: expected[2], 4: expected[3], 5: after}, 1e-7)
    )  # fmt: skip
    x = r.integers(0, 100, (6, 64), dtype=np.int32).astype(np.float32)
    cases.append(
        Case("locked_sum", locked_sum,
             [np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(64, np.float32), x],
             {"BLOCK": 64}, (6,), {2: x.sum(axis=0)}, 1e-7, warps=2)
    )  # fmt: skip
    words = philox(1234567, np.arange(512))
    u1, u2 = (np.maximum(1e-7, uniform(each)) for each in words[:2])
    normal = np.sqrt(-2 * np.log(u1)) * np.cos(2 * np.pi * u2)
    cases.append(
        Case("random_numbers", random_numbers,
             [empty(512, np.int32), empty(512, np.float32), empty(512, np.float32), 1234567, 512],
             {"BLOCK": 128}, (4,),
             {0: (words[0] ^ words[1] ^ words[2] ^ words[3]).view(np.int32), 1: uniform(words[0]),
              2: normal}, 1e-5)
    )  # fmt: skip
    x = r.normal(size=512).astype(np.float32)
    cases.append(
        Case("policies", policies, [x, empty(512, np.float32)], {"BLOCK": 256}, (2,),
             {1: 3 * x.astype(np.float64)}, 1e-6)
    )  # fmt: skip


def cases() -> list[Case]:
    result: list[Case] = []
    _integers(result)
    _floats(result)
    _others(result)
    return result
