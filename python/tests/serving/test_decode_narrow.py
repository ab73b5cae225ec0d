"""attn.decode and attn.DecodePlan with 8-bit pools on the simulator, and what they refuse."""

import attn
import numpy as np
import pytest
from test_decode import DIM, HEADS, KV_HEADS, PAGE, attend, check, make_batch

pytestmark = pytest.mark.usefixtures("without_gpu")


def from_e4m3(bits):
    """The values of e4m3 bits; 0x7f is NaN."""
    exponent, mantissa = (bits >> 3) & 15, (bits & 7).astype(np.float32)
    normal = np.ldexp(1 + mantissa / 8, exponent.astype(np.int32) - 7)
    values = np.where(exponent == 0, np.ldexp(mantissa / 8, -6), normal)
    values = np.where(bits & 127 == 127, np.nan, values)
    return np.where(bits >> 7, -values, values).astype(np.float32)


def make_narrow(lengths, seed=0):
    """Pools of e4m3 whose unused keys are NaN, and what their units stand for."""
    q, k, v, table, counts = make_batch(lengths, seed=seed)
    rng = np.random.default_rng(seed + 2)
    pools = []
    for pool in (k, v):
        bits = (rng.integers(0x20, 0x48, pool.shape) | rng.integers(0, 2, pool.shape) << 7).astype(
            np.uint8
        )
        pools.append(np.where(np.isnan(pool), np.uint8(127), bits))
    return q, *pools, table, counts


@pytest.mark.parametrize("shape", [(), (1,), (KV_HEADS,), (3, KV_HEADS)])
def test_narrow_pools(shape):
    """8-bit pools, and what their units stand for in each form."""
    q, k, v, table, lengths = make_narrow([70, 0, 33])
    scales = [
        np.full(shape, 0.25, np.float32)
        * np.arange(1, np.prod(shape) + 1).reshape(shape).astype(np.float32)
        for _ in "kv"
    ]
    spread = [np.broadcast_to(each, (3, KV_HEADS)) for each in scales]
    wide = [from_e4m3(pool) for pool in (k, v)]
    got = attn.decode(q, k, v, table, lengths, k_scale=scales[0], v_scale=scales[1], lse=True)
    for row in range(3):
        factors = [each[row][:, None] for each in spread]
        pools = [pool * factor for pool, factor in zip(wide, factors, strict=True)]
        one = slice(row, row + 1)
        want = attend(q[one], *pools, table[one], lengths[one])
        check([each[one] for each in got], want)


def test_narrow_plan():
    """A plan of 8-bit pools, with and without scales."""
    size = {"batch": 2, "heads": HEADS, "kv_heads": KV_HEADS, "dim": DIM, "page_size": PAGE}
    options = {"max_pages": 8, "dtype": "float16", "kv_dtype": "float8_e4m3fn", "kv_splits": 2}
    q, k, v, table, lengths = make_narrow([40, 128])
    wide = [from_e4m3(pool) for pool in (k, v)]
    plan = attn.DecodePlan(**size, **options)
    plan.plan(lengths, table)
    check([plan.run(q, k, v)], attend(q, *wide, table, lengths)[:1])
    half = np.full(1, 0.5, np.float32)
    with pytest.raises(attn.ArgumentError, match='"k_scale": expected none, as the plan'):
        plan.run(q, k, v, k_scale=half, v_scale=half)
    scaled = attn.DecodePlan(**size, **options, scales="tensor")
    scaled.plan(lengths, table)
    want = attend(q, *(each / 2 for each in wide), table, lengths)[:1]
    check([scaled.run(q, k, v, k_scale=half, v_scale=half)], want)
    with pytest.raises(attn.ArgumentError, match='"k_scale": expected a tensor, as the plan'):
        scaled.run(q, k, v)
    with pytest.raises(
        attn.ArgumentError, match="scales: expected one of tensor, head, batch, rows, got 'row'"
    ):
        attn.DecodePlan(**size, **options, scales="row")


def test_narrow_refused():
    q, k, v, table, lengths = make_narrow([40, 9])
    one = np.ones(1, np.float32)
    with pytest.raises(attn.ArgumentError, match='"k_scale": expected k_scale and v_scale or none'):
        attn.decode(q, k, v, table, lengths, k_scale=one)
    with pytest.raises(attn.ArgumentError, match='"v_scale": expected elements of f32, got f16'):
        attn.decode(q, k, v, table, lengths, k_scale=one, v_scale=one.astype(np.float16))
    with pytest.raises(
        attn.ArgumentError,
        match=r'"v_scale": expected one number, 2 of key heads or 2 x 2 .*, got \[3\]',
    ):
        attn.decode(q, k, v, table, lengths, k_scale=one, v_scale=np.ones(3, np.float32))
    with pytest.raises(
        attn.ArgumentError, match='"v_cache": expected elements as k_cache, f8E4M3FN, got f16'
    ):
        attn.decode(q, k, v.astype(np.float16), table, lengths)
    wide = make_batch([40, 9])
    with pytest.raises(attn.ArgumentError, match='"k_scale": expected none beside pools of f16'):
        attn.decode(*wide, k_scale=one, v_scale=one)
