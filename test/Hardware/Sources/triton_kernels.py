"""Kernels in Triton's language, compiled for sm_80 and sm_90 by regenerate.py."""

import triton
import triton.language as tl


@triton.jit
def row_softmax(x, o, n: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(o + row * n + at, e / tl.sum(e, axis=0), mask=at < n)


@triton.jit
def row_norm(x, w, b, o, n: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + row * n + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / n
    d = tl.where(inside, v - mean, 0.0)
    scale = tl.rsqrt(tl.sum(d * d, axis=0) / n + 1e-5)
    y = d * scale * tl.load(w + at, mask=inside) + tl.load(b + at, mask=inside)
    tl.store(o + row * n + at, y.to(tl.bfloat16), mask=inside)


@triton.jit
def fused_ops(x, y, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n, other=0)
    b = tl.load(y + at, mask=at < n, other=1)
    q = tl.where(a > b, a * 3 - b, (a // (tl.abs(b) + 1)) ^ (b << 2))
    tl.store(o + at, tl.minimum(q, a % 97 + b), mask=at < n)


@triton.jit
def scan_and_sort(x, o, p, h, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + row)
    tl.store(o + row, tl.cumsum(v, axis=0))
    tl.store(p + row, tl.sort(v))
    bins = tl.histogram(v & 15, 16)
    tl.atomic_add(h + tl.arange(0, 16), bins)


@triton.jit
def matmul(a, b, c, K: tl.constexpr, N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
           BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    sum = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (step + k)[None, :])
        y = tl.load(b + (step + k)[:, None] * N + n[None, :])
        sum = tl.dot(x, y, sum)
    tl.store(c + m[:, None] * N + n[None, :], sum)


@triton.jit
def matmul_maps(a, b, c, K: tl.constexpr, N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                BK: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    sum = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, K, BK):
        sum = tl.dot(a.load([m, step]), b.load([n, step]).T, sum)
    rows = m + tl.arange(0, BM)
    columns = n + tl.arange(0, BN)
    tl.store(c + rows[:, None] * N + columns[None, :], sum)


@triton.jit
def attention(q, k, v, o, scale, N: tl.constexpr, D: tl.constexpr, BM: tl.constexpr,
              BN: tl.constexpr):
    head = tl.program_id(1) * N * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    x = tl.load(q + head + rows[:, None] * D + d[None, :])
    most = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    sum = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(0, N, BN):
        columns = start + tl.arange(0, BN)
        y = tl.load(k + head + columns[None, :] * D + d[:, None])
        s = tl.dot(x, y) * (scale * 1.4426950408889634)
        s = tl.where(rows[:, None] >= columns[None, :], s, -1e30)
        new = tl.maximum(most, tl.max(s, axis=1))
        p = tl.exp2(s - new[:, None])
        factor = tl.exp2(most - new)
        total = total * factor + tl.sum(p, axis=1)
        z = tl.load(v + head + columns[:, None] * D + d[None, :])
        sum = tl.dot(p.to(tl.float16), z, sum * factor[:, None])
        most = new
    tl.store(o + head + rows[:, None] * D + d[None, :], (sum / total[:, None]).to(tl.float16))
