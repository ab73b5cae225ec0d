"""Attention in Triton's language: forward, backward, split keys, pages, fp8."""

import numpy as np
import triton
import triton.language as tl
from harness import Array, Case, Descriptor, empty, from_bf16, from_fp8, random, to_bf16, to_fp8


@triton.jit
def inner(sum, total, most, q, k, v, head, start_m, scale, lo, hi, MASK: tl.constexpr, BM: tl.constexpr,
          BN: tl.constexpr, SPECIAL: tl.constexpr, TYPE: tl.constexpr):
    rows = start_m * BM + tl.arange(0, BM)
    for start in tl.range(lo, hi, BN, warp_specialize=SPECIAL):
        s = tl.dot(q, k.load([head + start, 0]).T)
        if MASK:
            s = tl.where(rows[:, None] >= (start + tl.arange(0, BN))[None, :], s * scale, -1e30)
        else:
            s = s * scale
        new = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        factor = tl.exp2(most - new)
        sum = sum * factor[:, None]
        total = total * factor + tl.sum(p, 1)
        sum = tl.dot(p.to(TYPE), v.load([head + start, 0]), sum)
        most = new
    return sum, total, most


@triton.jit
def forward(q, k, v, o, lse, scale, heads, N: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
            CAUSAL: tl.constexpr, SPECIAL: tl.constexpr, TYPE: tl.constexpr):
    """q, k, v, o are descriptors of (head * N, D)."""
    start_m, head = tl.program_id(0), tl.program_id(1) * N
    most = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    sum = tl.zeros((BM, D), tl.float32)
    x = q.load([head + start_m * BM, 0])
    middle = start_m * BM if CAUSAL else N
    sum, total, most = inner(sum, total, most, x, k, v, head, start_m, scale, 0, middle, False, BM, BN, SPECIAL,
                             TYPE)
    if CAUSAL:
        sum, total, most = inner(sum, total, most, x, k, v, head, start_m, scale, middle, middle + BM, True, BM, BN,
                                 SPECIAL, TYPE)
    rows = start_m * BM + tl.arange(0, BM)
    tl.store(lse + tl.program_id(1) * N + rows, most * 0.6931471805599453 + tl.log(total))
    o.store([head + start_m * BM, 0], (sum / total[:, None]).to(o.dtype))


@triton.jit
def delta_of(o, do, delta, N: tl.constexpr, D: tl.constexpr, BM: tl.constexpr):
    rows = tl.program_id(1) * N + tl.program_id(0) * BM + tl.arange(0, BM)
    at = rows[:, None] * D + tl.arange(0, D)[None, :]
    product = tl.load(o + at).to(tl.float32) * tl.load(do + at).to(tl.float32)
    tl.store(delta + rows, tl.sum(product, axis=1))


@triton.jit
def backward(q, k, v, do, lse, delta, dq, dk, dv, scale, N: tl.constexpr, D: tl.constexpr, BM: tl.constexpr,
             BN: tl.constexpr, CAUSAL: tl.constexpr):
    """dk and dv of a block of keys, dq of all queries by atomic sums."""
    head, start_n = tl.program_id(1) * N, tl.program_id(0) * BN
    d, keys = tl.arange(0, D), start_n + tl.arange(0, BN)
    key = tl.load(k + (head + keys)[:, None] * D + d[None, :])
    value = tl.load(v + (head + keys)[:, None] * D + d[None, :])
    sum_k = tl.zeros((BN, D), tl.float32)
    sum_v = tl.zeros((BN, D), tl.float32)
    first = start_n // BM * BM if CAUSAL else 0
    for start in range(first, N, BM):
        rows = start + tl.arange(0, BM)
        at = (head + rows)[:, None] * D + d[None, :]
        query, grad = tl.load(q + at), tl.load(do + at)
        s = tl.dot(query, key.T) * scale
        p = tl.exp(s - tl.load(lse + head + rows)[:, None])
        if CAUSAL:
            p = tl.where(rows[:, None] >= keys[None, :], p, 0.0)
        sum_v = tl.dot(p.to(query.dtype).T, grad, sum_v)
        dp = tl.dot(grad, value.T)
        ds = (p * (dp - tl.load(delta + head + rows)[:, None]) * scale).to(query.dtype)
        sum_k = tl.dot(ds.T, query, sum_k)
        tl.atomic_add(dq + at, tl.dot(ds, key), sem="relaxed")
    at = (head + keys)[:, None] * D + d[None, :]
    tl.store(dk + at, sum_k)
    tl.store(dv + at, sum_v)


@triton.jit
def decode_part(q, k, v, pages, part, stats, length, scale, D: tl.constexpr, PAGE: tl.constexpr, SPLIT: tl.constexpr,
                GROUP: tl.constexpr):
    """One query of GROUP heads against a share of the pages of its sequence."""
    batch, split = tl.program_id(0), tl.program_id(1)
    heads, d, slots = tl.arange(0, GROUP), tl.arange(0, D), tl.arange(0, PAGE)
    query = tl.load(q + (batch * GROUP + heads)[:, None] * D + d[None, :])
    many = tl.load(length + batch)
    most = tl.full((GROUP,), -float("inf"), tl.float32)
    total = tl.zeros((GROUP,), tl.float32)
    sum = tl.zeros((GROUP, D), tl.float32)
    blocks = tl.cdiv(many, PAGE)
    for block in range(split, blocks, SPLIT):
        page = tl.load(pages + batch * 8 + block)
        at = (page * PAGE + slots)[:, None] * D + d[None, :]
        s = tl.dot(query, tl.load(k + at).T) * scale
        s = tl.where((block * PAGE + slots < many)[None, :], s, -float("inf"))
        new = tl.maximum(most, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        factor = tl.exp(most - new)
        total = total * factor + tl.sum(p, axis=1)
        sum = tl.dot(p.to(query.dtype), tl.load(v + at), sum * factor[:, None])
        most = new
    row = (batch * SPLIT + split) * GROUP + heads
    tl.store(part + row[:, None] * D + d[None, :], sum)
    tl.store(stats + row * 2, most)
    tl.store(stats + row * 2 + 1, total)


@triton.jit
def decode_merge(part, stats, o, D: tl.constexpr, SPLIT: tl.constexpr, GROUP: tl.constexpr):
    batch, head = tl.program_id(0), tl.program_id(1)
    splits, d = tl.arange(0, SPLIT), tl.arange(0, D)
    row = (batch * SPLIT + splits) * GROUP + head
    most, total = tl.load(stats + row * 2), tl.load(stats + row * 2 + 1)
    factor = tl.where(total > 0, tl.exp(most - tl.max(most, axis=0)), 0.0)
    sum = tl.sum(tl.load(part + row[:, None] * D + d[None, :]) * factor[:, None], axis=0)
    tl.store(o + (batch * GROUP + head) * D + d, sum / tl.sum(total * factor, axis=0))


@triton.jit
def linear_attention(q, k, v, decay, o, N: tl.constexpr, D: tl.constexpr, B: tl.constexpr):
    """A state of (D, D) that is carried from chunk to chunk."""
    head = tl.program_id(0) * N * D
    d, rows = tl.arange(0, D), tl.arange(0, B)
    rate = tl.load(decay + tl.program_id(0))
    state = tl.zeros((D, D), tl.float32)
    steps = tl.exp((rows + 1) * rate)
    mask = tl.where(rows[:, None] >= rows[None, :], tl.exp((rows[:, None] - rows[None, :]) * rate), 0.0)
    for start in range(0, N, B):
        at = head + (start + rows)[:, None] * D + d[None, :]
        x, y, z = tl.load(q + at), tl.load(k + at), tl.load(v + at)
        s = tl.dot(x, y.T) * mask
        out = tl.dot(s.to(x.dtype), z) + tl.dot(x, state.to(x.dtype)) * steps[:, None]
        tl.store(o + at, out)
        late = tl.exp((B - 1 - rows) * rate)
        state = state * tl.exp(B * rate) + tl.dot((y * late[:, None].to(y.dtype)).T, z)


def reference(q, k, v, scale, causal):
    s = np.einsum("hnd,hmd->hnm", q, k) * scale
    if causal:
        s = np.where(np.tri(s.shape[1], dtype=bool), s, -np.inf)
    most = s.max(-1, keepdims=True)
    p = np.exp(s - most)
    total = p.sum(-1, keepdims=True)
    return p / total @ v, (np.log(total) + most)[..., 0], p / total


def _forward(cases: list[Case]) -> None:
    r = random("attention")
    for name, kind, n, d, bm, bn, causal, special, warps, chips in (
        ("fp16_d64", "fp16", 128, 64, 64, 64, False, False, 4, (80, 90, 100)),
        ("fp16_d64_causal", "fp16", 192, 64, 64, 32, True, False, 4, (80, 90, 100)),
        ("bf16_d128_causal", "bf16", 256, 128, 128, 64, True, False, 8, (80, 90, 100)),
        ("fp8_d64", "fp8e5", 128, 64, 128, 64, False, False, 4, (90, 100)),
        ("fp16_d64_special", "fp16", 256, 64, 128, 64, False, True, 4, (100,)),
        ("fp16_d128_special", "fp16", 256, 128, 128, 128, False, True, 8, (100,)),
        ("bf16_d128_special_causal", "bf16", 256, 128, 128, 64, True, True, 4, (100,)),
        ("fp16_d16", "fp16", 64, 16, 32, 32, True, False, 2, (80, 90, 100)),
    ):
        heads = 2
        arrays, values = [], []
        for _ in range(3):
            x = r.normal(size=(heads, n, d))
            if kind == "bf16":
                arrays.append(Array(to_bf16(x), kind))
                values.append(from_bf16(arrays[-1].data))
            elif kind == "fp8e5":
                arrays.append(Array(to_fp8(x, kind), kind))
                values.append(from_fp8(arrays[-1].data, kind))
            else:
                arrays.append(x.astype(np.float16))
                values.append(arrays[-1].astype(np.float64))
        out = Array(empty((heads * n, d), np.uint16), "bf16") if kind == "bf16" else empty((heads * n, d), np.float16)
        scale = d**-0.5
        o, lse, _ = reference(*values, scale, causal)
        flat = []
        for each in arrays:
            data = (each.data if isinstance(each, Array) else each).reshape(heads * n, d)
            flat.append(Array(data, kind) if isinstance(each, Array) else data)
        args = [Descriptor(flat[0], [bm, d]), Descriptor(flat[1], [bn, d]), Descriptor(flat[2], [bn, d]),
                Descriptor(out, [bm, d]), empty((heads, n), np.float32), float(scale * 1.4426950408889634), heads]  # fmt: skip
        constants = {"N": n, "D": d, "BM": bm, "BN": bn, "CAUSAL": causal, "SPECIAL": special,
                     "TYPE": {"bf16": tl.bfloat16, "fp16": tl.float16, "fp8e5": tl.float8e5}[kind]}  # fmt: skip
        tolerance = {"bf16": 4e-3, "fp16": 1e-3, "fp8e5": 6e-2}[kind]
        cases.append(
            Case(f"attention_{name}", forward, args, constants, (n // bm, heads),
                 {3: o.reshape(heads * n, d), 4: lse}, tolerance, chips, warps)
        )  # fmt: skip


def _others(cases: list[Case]) -> None:
    r = random("backward")
    heads, n, d = 2, 128, 64
    q, k, v, do = (r.normal(size=(heads, n, d)).astype(np.float16) for _ in range(4))
    for causal in (False, True):
        scale = d**-0.5
        w = [each.astype(np.float64) for each in (q, k, v, do)]
        o, lse, p = reference(*w[:3], scale, causal)
        delta = (o * w[3]).sum(-1)
        ds = p * (w[3] @ w[2].transpose(0, 2, 1) - delta[..., None]) * scale
        f32 = np.float32
        args = [q, k, v, do, lse.astype(f32), delta.astype(f32), np.zeros((heads, n, d), f32),
                empty((heads, n, d), f32), empty((heads, n, d), f32), float(scale)]  # fmt: skip
        expected = {6: ds @ w[1], 7: ds.transpose(0, 2, 1) @ w[0], 8: p.transpose(0, 2, 1) @ w[3]}
        cases.append(
            Case(f"attention_backward{'_causal' * causal}", backward, args,
                 {"N": n, "D": d, "BM": 32 if causal else 64, "BN": 64, "CAUSAL": causal}, (n // 64, heads), expected,
                 2e-3, findings={90: {"race"}} if causal else {})
        )  # fmt: skip
    half = o.astype(np.float16)
    cases.append(
        Case("attention_delta", delta_of, [half, do, empty((heads, n), np.float32)], {"N": n, "D": d, "BM": 64},
             (2, heads), {2: (half.astype(np.float64) * w[3]).sum(-1)}, 1e-5)
    )  # fmt: skip
    batch, group, page, split, d = 2, 16, 32, 2, 64
    lengths = np.array([100, 37], np.int32)
    pages = r.permutation(8)[:8].reshape(2, 4)
    table = np.zeros((2, 8), np.int32)
    table[:, :4] = pages
    q = r.normal(size=(batch, group, d)).astype(np.float16)
    k, v = (r.normal(size=(8, page, d)).astype(np.float16) for _ in range(2))
    part, stats = np.zeros((batch, split, group, d)), np.zeros((batch, split, group, 2))
    out = np.zeros((batch, group, d))
    for b in range(batch):
        keys, values = (x[pages[b]].reshape(-1, d)[: lengths[b]].astype(np.float64) for x in (k, v))
        s = q[b].astype(np.float64) @ keys.T * 0.125
        out[b] = np.exp(s - s.max(1, keepdims=True)) @ values / np.exp(s - s.max(1, keepdims=True)).sum(1, keepdims=True)
        for i in range(split):
            mine = [t for t in range(lengths[b]) if t // page % split == i]
            most = s[:, mine].max(1)
            p = np.exp(s[:, mine] - most[:, None])
            part[b, i], stats[b, i] = p @ values[mine], np.stack([most, p.sum(1)], axis=1)
    cases.append(
        Case("attention_decode_part", decode_part,
             [q, k, v, table, empty(part.shape, np.float32), empty(stats.shape, np.float32), lengths, 0.125],
             {"D": d, "PAGE": page, "SPLIT": split, "GROUP": group}, (batch, split), {4: part, 5: stats}, 1e-3)
    )  # fmt: skip
    cases.append(
        Case("attention_decode_merge", decode_merge,
             [part.astype(np.float32), stats.astype(np.float32), empty(out.shape, np.float32)],
             {"D": d, "SPLIT": split, "GROUP": group}, (batch, group), {2: out}, 1e-5, warps=2)
    )  # fmt: skip
    heads, n, d, b = 2, 128, 32, 32
    q, k, v = (r.normal(size=(heads, n, d)).astype(np.float16) * np.float16(0.3) for _ in range(3))
    decay = np.array([-0.02, -0.1], np.float32)
    w = [each.astype(np.float64) for each in (q, k, v)]
    t = np.arange(n)
    weight = np.where(t[:, None] >= t[None, :], np.exp((t[:, None] - t[None, :]) * decay[:, None, None].astype(np.float64)), 0)
    expected = (w[0] @ w[1].transpose(0, 2, 1) * weight) @ w[2]
    cases.append(
        Case("linear_attention", linear_attention, [q, k, v, decay, empty((heads, n, d), np.float32)],
             {"N": n, "D": d, "B": b}, (heads,), {4: expected}, 3e-3)
    )  # fmt: skip


def cases() -> list[Case]:
    result: list[Case] = []
    _forward(result)
    _others(result)
    return result
