"""attn.prefill and attn.append_kv on the simulator and on arrays, and what they refuse."""

import attn
import numpy as np
import pytest
from test_decode import DIM, HEADS, KV_HEADS, PAGE, PAGES, attend, check, make_batch, refuse
from test_decode_narrow import from_e4m3, make_narrow

pytestmark = pytest.mark.usefixtures("without_gpu")


def pack(queries, seed=0, spare=0):
    """Queries of all sequences, and where each begins."""
    counts = np.cumsum([0, *queries]).astype(np.int32)
    rng = np.random.default_rng(seed + 100)
    q = rng.standard_normal((counts[-1] + spare, HEADS, DIM)).astype(np.float16)
    return q, counts


def attend_packed(q, counts, k, v, table, lengths, **options):
    """float64 of each sequence by itself."""
    o = np.zeros((counts[-1], HEADS, DIM))
    lse = np.zeros((counts[-1], HEADS))
    for b, (first, end) in enumerate(zip(counts[:-1], counts[1:], strict=True)):
        one = q[first:end].swapaxes(0, 1)[None]
        each, log = attend(one, k, v, table[b : b + 1], lengths[b : b + 1], **options)
        o[first:end], lse[first:end] = each[0].swapaxes(0, 1), log[0].T
    return o, lse


@pytest.mark.parametrize("layout", ["nhd", "hnd"])
def test_prefill(layout):
    """Chunks of several sizes, none among them, and rows behind the last one."""
    lengths, queries = [100, 0, 17, 128], [33, 0, 17, 1]
    q, counts = pack(queries, spare=3)
    batch = make_batch(lengths, layout=layout)[1:]
    plain = make_batch(lengths)[1:]
    o, lse = attn.prefill(q, *batch, counts, max_seqlen_q=33, layout=layout, lse=True)
    check((o[:51], lse[:51]), attend_packed(q, counts, *plain))
    assert o.shape == q.shape
    [got] = [attn.prefill(q, *batch, counts, max_seqlen_q=40, layout=layout)]
    np.testing.assert_array_equal(got[:51], o[:51])


def test_options():
    q, counts = pack([5, 20])
    batch = make_batch([70, 33])[1:]
    sinks = np.linspace(-1, 2, HEADS, dtype=np.float32)
    got = attn.prefill(
        q, *batch, counts, max_seqlen_q=20, window=(9, None), softcap=5.0, sinks=sinks, lse=True
    )
    check(got, attend_packed(q, counts, *batch, left=9, softcap=5.0, sinks=sinks))


@pytest.mark.parametrize("shape", [(1,), (3, KV_HEADS)])
def test_narrow_pools(shape):
    """Pools of 8 bits, and what their units stand for: of all, and of each sequence's heads."""
    lengths, queries = [100, 17, 40], [33, 17, 2]
    q, counts = pack(queries)
    k, v, table, sizes = make_narrow(lengths)[1:]
    count = np.prod(shape)
    k_scale, v_scale = (
        np.linspace(0.2, top, count, dtype=np.float32).reshape(shape) for top in (0.2, 3)
    )
    got = attn.prefill(
        q, k, v, table, sizes, counts, max_seqlen_q=33, k_scale=k_scale, v_scale=v_scale, lse=True
    )
    wide = [from_e4m3(pool) for pool in (k, v)]
    scales = [np.broadcast_to(each, (3, KV_HEADS)) for each in (k_scale, v_scale)]
    for b, (first, end) in enumerate(zip(counts[:-1], counts[1:], strict=True)):
        pools = [pool * each[b][:, None] for pool, each in zip(wide, scales, strict=True)]
        ends = np.int32([0, end - first])
        want = attend_packed(q[first:end], ends, *pools, table[b : b + 1], sizes[b : b + 1])
        check([each[first:end] for each in got], want)


def test_scaled_rows():
    """Pools of 8 bits with a number for each row."""
    q, counts = pack([20, 17])
    k, v, table, sizes = make_narrow([60, 17])[1:]
    rng = np.random.default_rng(8)
    scales = [rng.uniform(0.5, 2, (*k.shape[:3], 1)).astype(np.float32) for _ in "kv"]
    got = attn.prefill(
        q,
        k,
        v,
        table,
        sizes,
        counts,
        max_seqlen_q=20,
        k_scales=scales[0],
        v_scales=scales[1],
        lse=True,
    )
    wide = [from_e4m3(pool) * each for pool, each in zip((k, v), scales, strict=True)]
    check(got, attend_packed(q, counts, *wide, table, sizes))


def test_append_and_prefill():
    """Chunks that were appended are what the queries see."""
    k_cache, v_cache, table, lengths = make_batch([60, 33], seed=4)[1:]
    whole = k_cache.copy(), v_cache.copy()
    q, counts = pack([20, 7])
    rows = []
    for b, count in enumerate((20, 7)):
        for place in range(lengths[b] - count, lengths[b]):
            page, row = table[b, place // PAGE], place % PAGE
            rows.append((whole[0][page, row], whole[1][page, row]))
            k_cache[page, row] = v_cache[page, row] = np.nan
    k, v = (np.stack(each) for each in zip(*rows, strict=True))
    attn.append_kv(k, v, k_cache, v_cache, table, lengths, counts)
    np.testing.assert_array_equal(k_cache, whole[0])
    np.testing.assert_array_equal(v_cache, whole[1])
    got = attn.prefill(q, k_cache, v_cache, table, lengths, counts, max_seqlen_q=20, lse=True)
    check(got, attend_packed(q, counts, *whole, table, lengths))


def test_append_no_sequence():
    """Rows of no sequence have no place: nothing is written, and no page has to be there."""
    rows, pool = np.ones((2, 1, 64), np.float16), np.zeros((3, 16, 1, 64), np.float16)
    table, lengths, counts = (np.zeros(shape, np.int32) for shape in ((0, 4), 0, 1))
    for given in (rows, pool), (rows[:0], pool[:0]):
        attn.append_kv(given[0], given[0], given[1], given[1], table, lengths, counts)
    assert not pool.any()


def test_append_one_each():
    """A key of each sequence, whose length counts it; those without a place are dropped."""
    k_cache = np.zeros((PAGES, KV_HEADS, PAGE, DIM), np.float16)
    v_cache = np.zeros_like(k_cache)
    table = np.int32([[3, 9], [1, 2], [-1, 5], [PAGES, 0], [7, 8]])
    lengths = np.int32([17, 0, 1, 16, 33])
    k = np.arange(1, 6, dtype=np.float16)[:, None, None] * np.ones((5, KV_HEADS, DIM), np.float16)
    attn.append_kv(k, -k, k_cache, v_cache, table, lengths, layout="hnd")
    assert (k_cache[9, :, 0] == 1).all() and (v_cache[9, :, 0] == -1).all()
    assert np.count_nonzero(k_cache) == KV_HEADS * DIM


def test_refused():
    q, counts = pack([5, 20])
    k, v, table, lengths = make_batch([70, 33])[1:]
    refuse("q\": expected shape (queries, heads, dim), got [25, 8, 1, 64]",
           attn.prefill, q[:, :, None], k, v, table, lengths, counts, max_seqlen_q=20)  # fmt: skip
    refuse("cu_seqlens_q\": expected one more than sequences, 3, got 2",
           attn.prefill, q, k, v, table, lengths, counts[:2], max_seqlen_q=20)  # fmt: skip
    refuse("cu_seqlens_q\": expected elements of i32, got i64; nothing is converted",
           attn.prefill, q, k, v, table, lengths, counts.astype(np.int64), max_seqlen_q=20)  # fmt: skip
    refuse("cu_seqlens_q\": expected shape (sequences + 1), got [1, 3]",
           attn.prefill, q, k, v, table, lengths, counts[None], max_seqlen_q=20)  # fmt: skip
    one = np.ones(3, np.float32)
    refuse("k_scale\": expected one number, 2 of key heads or 2 x 2 of sequences and key heads, got [3]",
           attn.prefill, q, *make_narrow([70, 33])[1:], counts, max_seqlen_q=20, k_scale=one, v_scale=one)  # fmt: skip
    with pytest.raises(ValueError, match="max_seqlen_q: expected an integer from 1 to"):
        attn.prefill(q, k, v, table, lengths, counts, max_seqlen_q=0)
    rows = k[:2, 0]
    refuse("k\": expected shape [2, 2, 64], got [1, 2, 64]",
           attn.append_kv, rows[:1], rows, k, v, table, lengths)  # fmt: skip
    refuse("k\": expected shape (keys, key heads, dim), got [2, 2, 64, 1]",
           attn.append_kv, rows[..., None], rows, k, v, table, lengths, counts)  # fmt: skip
    refuse("v\": expected shape [2, 2, 64], got [1, 2, 64]",
           attn.append_kv, rows, rows[:1], k, v, table, lengths)  # fmt: skip
    refuse("v_cache\": expected elements as its rows, f16, got f32",
           attn.append_kv, rows, rows, k, v.astype(np.float32), table, lengths)  # fmt: skip
    refuse("v_cache\": expected pages, heads and keys of a page as k_cache,",
           attn.append_kv, rows, rows, k, v[1:], table, lengths)  # fmt: skip
    refuse("k_cache\": expected at least one page, got none",
           attn.append_kv, rows, rows, k[:0], v[:0], table, lengths)  # fmt: skip
