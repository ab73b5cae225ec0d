"""Reductions, scans, sorting and the normalisations made of them, in Triton's language."""

import numpy as np
import triton
import triton.language as tl
from harness import Array, Case, empty, from_bf16, random, to_bf16


@triton.jit
def reduce_all(x, o, i, R: tl.constexpr, C: tl.constexpr):
    rows, columns = tl.arange(0, R), tl.arange(0, C)
    v = tl.load(x + rows[:, None] * C + columns[None, :])
    tl.store(o + columns, tl.sum(v, axis=0))
    tl.store(o + C + columns, tl.max(v, axis=0))
    tl.store(o + 2 * C + rows, tl.min(v, axis=1))
    tl.store(o + 3 * C, tl.sum(v))
    tl.store(i + rows, tl.argmax(v, axis=1))
    tl.store(i + R + columns, tl.argmin(v, axis=0, tie_break_left=False))
    whole = v.to(tl.int32)
    tl.store(i + R + C + rows, tl.xor_sum(whole, axis=1))
    most, where = tl.max(v, axis=1, return_indices=True)
    tl.store(o + 3 * C + 1 + rows, most + where)


@triton.jit
def reduce_cube(x, o, p, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a, b, c = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C)
    v = tl.load(x + a[:, None, None] * B * C + b[None, :, None] * C + c[None, None, :])
    tl.store(o + a[:, None] * C + c[None, :], tl.sum(v, axis=1))
    tl.store(p + b, tl.max(tl.sum(v, axis=0), axis=1))


@triton.jit
def welford(mean_a, square_a, count_a, mean_b, square_b, count_b):
    count = count_a + count_b
    delta = mean_b - mean_a
    share = count_b / count
    return mean_a + delta * share, square_a + square_b + delta * delta * count_a * share, count


@triton.jit
def variance(x, m, s, C: tl.constexpr):
    at = tl.arange(0, C)
    v = tl.load(x + tl.program_id(0) * C + at)
    mean, square, count = tl.reduce((v, tl.zeros_like(v), tl.full((C,), 1.0, tl.float32)), 0, welford)
    tl.store(m + tl.program_id(0), mean)
    tl.store(s + tl.program_id(0), square / count)


@triton.jit
def linear_step(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def scans(x, g, o, p, q, R: tl.constexpr, C: tl.constexpr):
    rows, columns = tl.arange(0, R), tl.arange(0, C)
    at = rows[:, None] * C + columns[None, :]
    v, gate = tl.load(x + at), tl.load(g + at)
    tl.store(o + at, tl.cumsum(v, axis=1))
    tl.store(o + R * C + at, tl.cumsum(v, axis=0, reverse=True))
    tl.store(p + at, tl.cumprod(gate, axis=1))
    _, h = tl.associative_scan((gate, v), 1, linear_step)
    tl.store(q + at, h)


@triton.jit
def sorting(x, o, p, q, h, i, R: tl.constexpr, C: tl.constexpr):
    rows, columns = tl.arange(0, R), tl.arange(0, C)
    at = rows[:, None] * C + columns[None, :]
    v = tl.load(x + at)
    tl.store(o + at, tl.sort(v, dim=1))
    tl.store(p + at, tl.sort(v, dim=1, descending=True))
    best = tl.topk(v, 8, dim=1)
    tl.store(q + rows[:, None] * 8 + tl.arange(0, 8)[None, :], best)
    tl.store(h + tl.arange(0, 32), tl.histogram(tl.ravel(v) & 31, 32))
    index = (columns[None, :] * 7 + rows[:, None]) & (C - 1)
    tl.store(i + at, tl.gather(v, index, axis=1))


@triton.jit
def gather_rows(x, index, o, R: tl.constexpr, C: tl.constexpr, K: tl.constexpr):
    columns = tl.arange(0, C)
    v = tl.load(x + tl.arange(0, R)[:, None] * C + columns[None, :])
    at = tl.arange(0, K)[:, None] * C + columns[None, :]
    tl.store(o + at, tl.gather(v, tl.load(index + at), axis=0))


@triton.jit
def softmax(x, o, n, stride, BLOCK: tl.constexpr):
    for row in tl.range(tl.program_id(0), 6, tl.num_programs(0), num_stages=2):
        at = tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + at, mask=at < n, other=-float("inf")).to(tl.float32)
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(o + row * stride + at, e / tl.sum(e, axis=0), mask=at < n)


@triton.jit
def online_softmax(x, o, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * n
    at = tl.arange(0, BLOCK)
    most = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        v = tl.load(x + row + start + at, mask=start + at < n, other=-float("inf"))
        new = tl.maximum(most, v)
        total = total * tl.exp(tl.where(most == new, 0.0, most - new)) + tl.exp(
            tl.where(v == -float("inf"), -1e30, v - tl.where(new == -float("inf"), 0.0, new))
        )
        most = new
    top = tl.max(most, axis=0)
    sum = tl.sum(tl.where(most == -float("inf"), 0.0, total * tl.exp(most - top)), axis=0)
    for start in range(0, n, BLOCK):
        inside = start + at < n
        v = tl.load(x + row + start + at, mask=inside)
        tl.store(o + row + start + at, tl.exp(v - top) / sum, mask=inside)


@triton.jit
def layer_norm(x, w, b, o, means, scales, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + row * n + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / n
    d = tl.where(inside, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(d * d, axis=0) / n + 1e-5)
    tl.store(means + row, mean)
    tl.store(scales + row, scale)
    y = d * scale * tl.load(w + at, mask=inside) + tl.load(b + at, mask=inside)
    tl.store(o + row * n + at, y, mask=inside)


@triton.jit
def layer_norm_backward(x, dy, w, means, scales, dx, dw, db, locks, n, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + row * n + at, mask=inside, other=0.0).to(tl.float32)
    g = tl.load(dy + row * n + at, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(w + at, mask=inside, other=0.0)
    scale = tl.load(scales + row)
    hat = tl.where(inside, (v - tl.load(means + row)) * scale, 0.0)
    wg = weight * g
    one = tl.sum(hat * wg, axis=0) / n
    two = tl.sum(wg, axis=0) / n
    tl.store(dx + row * n + at, (wg - (hat * one + two)) * scale, mask=inside)
    group = row % GROUPS
    lock, seen = locks + group, locks + GROUPS + group
    part_w, part_b = g * hat, g
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(seen) == 0:
        tl.atomic_xchg(seen, 1)
    else:
        part_w += tl.load(dw + group * n + at, mask=inside)
        part_b += tl.load(db + group * n + at, mask=inside)
    tl.store(dw + group * n + at, part_w, mask=inside)
    tl.store(db + group * n + at, part_b, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def rms_norm_rope(x, w, cosine, sine, o, HEADS: tl.constexpr, D: tl.constexpr):
    token = tl.program_id(0)
    heads, half = tl.arange(0, HEADS), tl.arange(0, D // 2)
    base = token * HEADS * D + heads[:, None] * D
    a = tl.load(x + base + half[None, :]).to(tl.float32)
    b = tl.load(x + base + D // 2 + half[None, :]).to(tl.float32)
    scale = tl.rsqrt((tl.sum(a * a, axis=1) + tl.sum(b * b, axis=1)) / D + 1e-6)[:, None]
    a = a * scale * tl.load(w + half)[None, :]
    b = b * scale * tl.load(w + D // 2 + half)[None, :]
    c = tl.load(cosine + token * D // 2 + half)[None, :]
    s = tl.load(sine + token * D // 2 + half)[None, :]
    tl.store(o + base + half[None, :], (a * c - b * s).to(tl.bfloat16))
    tl.store(o + base + D // 2 + half[None, :], (b * c + a * s).to(tl.bfloat16))


@triton.jit
def cross_entropy(x, labels, loss, dx, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    most = tl.max(v, axis=0)
    lse = tl.log(tl.sum(tl.exp(v - most), axis=0)) + most
    label = tl.load(labels + row)
    tl.store(loss + row, lse - tl.load(x + row * n + label))
    grad = tl.exp(v - lse) - tl.where(at == label, 1.0, 0.0)
    tl.store(dx + row * n + at, grad, mask=at < n)


@triton.jit
def embedding_backward(index, dy, dw, D: tl.constexpr):
    token = tl.program_id(0)
    d = tl.arange(0, D)
    row = tl.load(index + token)
    tl.atomic_add(dw + row * D + d, tl.load(dy + token * D + d), sem="relaxed")


@triton.jit
def dropout(x, o, p, seed, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(o + at, tl.where(tl.rand(seed, at) > p, v / (1 - p), 0.0), mask=at < n)


def _plain(cases: list[Case]) -> None:
    r = random("reductions")
    f32, i32 = np.float32, np.int32
    for shape, warps in (((16, 64), 4), ((64, 32), 8), ((8, 256), 2)):
        x = r.permutation(shape[0] * shape[1]).reshape(shape).astype(f32)
        rows, columns = shape
        o = np.concatenate(
            [x.sum(0), x.max(0), x.min(1), np.full(columns - rows if columns > rows else 0, np.nan),
             [x.sum(dtype=np.float64)], x.max(1) + x.argmax(1)]
        )  # fmt: skip
        if columns < rows:
            continue
        out = np.full(3 * columns + 1 + rows, np.nan, f32)
        i = np.concatenate([x.argmax(1), x.argmin(0), np.bitwise_xor.reduce(x.astype(i32), axis=1)])
        cases.append(
            Case(f"reduce_all_{rows}x{columns}", reduce_all, [x, out, empty(2 * rows + columns, i32)],
                 {"R": rows, "C": columns}, (1,), {1: o, 2: i.astype(i32)}, 1e-6, warps=warps)
        )  # fmt: skip
    x = r.normal(size=(8, 16, 32)).astype(f32)
    v = x.astype(np.float64)
    cases.append(
        Case("reduce_cube", reduce_cube, [x, empty((8, 32), f32), empty(16, f32)],
             {"A": 8, "B": 16, "C": 32}, (1,), {1: v.sum(1), 2: v.sum(0).max(1)}, 1e-6)
    )  # fmt: skip
    x = r.normal(size=(4, 512)).astype(f32) + 3
    cases.append(
        Case("variance", variance, [x, empty(4, f32), empty(4, f32)], {"C": 512}, (4,),
             {1: x.mean(1, dtype=np.float64), 2: x.var(1, dtype=np.float64)}, 1e-5)
    )  # fmt: skip
    x, g = r.normal(size=(8, 64)).astype(f32), r.uniform(0.5, 1.1, (8, 64)).astype(f32)
    v, gate = x.astype(np.float64), g.astype(np.float64)
    h = np.zeros((8, 64))
    for t in range(64):
        h[:, t] = (h[:, t - 1] if t else 0) * gate[:, t] + v[:, t]
    both = np.stack([v.cumsum(1), v[::-1].cumsum(0)[::-1]])
    cases.append(
        Case("scans", scans, [x, g, empty((2, 8, 64), f32), empty((8, 64), f32), empty((8, 64), f32)],
             {"R": 8, "C": 64}, (1,), {2: both, 3: gate.cumprod(1), 4: h}, 1e-5)
    )  # fmt: skip
    x = r.integers(-(2**31), 2**31, (4, 128)).astype(i32)
    rows, columns = np.arange(4)[:, None], np.arange(128)[None, :]
    cases.append(
        Case("sorting", sorting,
             [x, empty((4, 128), i32), empty((4, 128), i32), empty((4, 8), i32), empty(32, i32),
              empty((4, 128), i32)],
             {"R": 4, "C": 128}, (1,),
             {1: np.sort(x, 1), 2: np.sort(x, 1)[:, ::-1], 3: np.sort(x, 1)[:, :-9:-1],
              4: np.bincount(x.ravel() & 31, minlength=32).astype(i32),
              5: x[rows, (columns * 7 + rows) & 127]}, warps=2)
    )  # fmt: skip
    x, index = r.normal(size=(16, 32)).astype(f32), r.integers(0, 16, (8, 32)).astype(i32)
    cases.append(
        Case("gather_rows", gather_rows, [x, index, empty((8, 32), f32)], {"R": 16, "C": 32, "K": 8},
             (1,), {2: np.take_along_axis(x, index.astype(np.int64), 0)}, 0.0)
    )  # fmt: skip


def _norms(cases: list[Case]) -> None:
    r = random("norms")
    f32 = np.float32

    def soft(v):
        e = np.exp(v - v.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    for dtype, n, block, warps in ((np.float16, 200, 256, 4), (f32, 1000, 1024, 8), (f32, 60, 64, 1)):
        x = (r.normal(size=(6, n)) * 3).astype(dtype)
        cases.append(
            Case(f"softmax_{np.dtype(dtype).name}_{n}", softmax, [x, empty((6, n), f32), n, n],
                 {"BLOCK": block}, (3,), {1: soft(x.astype(np.float64))}, 1e-6, warps=warps)
        )  # fmt: skip
    x = (r.normal(size=(3, 300)) * 4).astype(f32)
    cases.append(
        Case("online_softmax", online_softmax, [x, empty((3, 300), f32), 300], {"BLOCK": 128}, (3,),
             {1: soft(x.astype(np.float64))}, 1e-6)
    )  # fmt: skip
    rows, n = 6, 200
    x = (r.normal(size=(rows, n)) * 2 + 1).astype(np.float16)
    w, b = r.normal(size=n).astype(f32), r.normal(size=n).astype(f32)
    v = x.astype(np.float64)
    mean, scale = v.mean(1), 1 / np.sqrt(v.var(1) + 1e-5)
    hat = (v - mean[:, None]) * scale[:, None]
    cases.append(
        Case("layer_norm", layer_norm,
             [x, w, b, empty((rows, n), np.float16), empty(rows, f32), empty(rows, f32), n],
             {"BLOCK": 256}, (rows,), {3: hat * w + b, 4: mean, 5: scale}, 1e-3)
    )  # fmt: skip
    dy = r.normal(size=(rows, n)).astype(np.float16)
    g = dy.astype(np.float64)
    wg = g * w
    dx = (wg - hat * (hat * wg).mean(1, keepdims=True) - wg.mean(1, keepdims=True)) * scale[:, None]
    parts = [np.stack([each[k::2].sum(0) for k in range(2)]) for each in (g * hat, g)]
    cases.append(
        Case("layer_norm_backward", layer_norm_backward,
             [x, dy, w, mean.astype(f32), scale.astype(f32), empty((rows, n), f32),
              np.zeros((2, n), f32), np.zeros((2, n), f32), np.zeros(4, np.int32), n],
             {"GROUPS": 2, "BLOCK": 256}, (rows,), {5: dx, 6: parts[0], 7: parts[1]}, 1e-5)
    )  # fmt: skip
    tokens, heads, d = 3, 4, 64
    x = Array(to_bf16(r.normal(size=(tokens, heads, d))), "bf16")
    w = r.normal(size=d).astype(f32)
    angle = r.uniform(0, 6, (tokens, d // 2)).astype(f32)
    v = from_bf16(x.data)
    v = v / np.sqrt((v * v).mean(-1, keepdims=True) + 1e-6) * w
    c, s = np.cos(angle.astype(np.float64))[:, None], np.sin(angle.astype(np.float64))[:, None]
    low, high = v[..., : d // 2], v[..., d // 2 :]
    expected = np.concatenate([low * c - high * s, high * c + low * s], axis=-1)
    cases.append(
        Case("rms_norm_rope", rms_norm_rope,
             [x, w, np.cos(angle), np.sin(angle), Array(empty((tokens, heads, d), np.uint16), "bf16")],
             {"HEADS": heads, "D": d}, (tokens,), {4: expected}, 4e-3)
    )  # fmt: skip
    x, labels = (r.normal(size=(5, 100)) * 3).astype(f32), r.integers(0, 100, 5).astype(np.int32)
    p = soft(x.astype(np.float64))
    grad = p - np.eye(100)[labels]
    cases.append(
        Case("cross_entropy", cross_entropy, [x, labels, empty(5, f32), empty((5, 100), f32), 100],
             {"BLOCK": 128}, (5,), {2: -np.log(p[np.arange(5), labels]), 3: grad}, 1e-6)
    )  # fmt: skip
    index = r.integers(0, 4, 10).astype(np.int32)
    dy = r.integers(-8, 8, (10, 64)).astype(f32)
    dw = np.zeros((4, 64))
    np.add.at(dw, index, dy)
    cases.append(
        Case("embedding_backward", embedding_backward, [index, dy, np.zeros((4, 64), f32)], {"D": 64},
             (10,), {2: dw}, 0.0, warps=2)
    )  # fmt: skip
    from scalars import philox, uniform

    x = r.normal(size=500).astype(f32)
    keep = uniform(philox(42, np.arange(500))[0]) > 0.3
    cases.append(
        Case("dropout", dropout, [x, empty(500, f32), 0.3, 42, 500], {"BLOCK": 256}, (2,),
             {1: np.where(keep, x / np.float64(0.7), 0.0)}, 1e-6)
    )  # fmt: skip


def cases() -> list[Case]:
    result: list[Case] = []
    _plain(result)
    _norms(result)
    return result
