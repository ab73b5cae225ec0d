"""attn.decode, attn.mla_decode, attn.DecodePlan and attn.merge_states on the simulator, and what they
refuse; the driver of the launch tests is a stand-in."""

import ctypes
import sys
import types

import attn
import numpy as np
import pytest
from attn import arrays
from attn.launch import cuda_driver, host_arrays
from attn.serving import decode_launch, decode_problem
from attn.record import TensorView

HEADS, KV_HEADS, DIM, PAGE, PAGES = 8, 2, 64, 16, 40

pytestmark = pytest.mark.usefixtures("without_gpu")


def make_batch(lengths, queries=1, layout="nhd", seed=0, dtype=np.float16, page_size=PAGE):
    """q of rank 3 or 4, both pools, a table of permuted pages, and lengths; what no
    sequence owns is NaN, and ids behind a length are none of the pool's."""
    rng = np.random.default_rng(seed)
    batch, width = len(lengths), 8
    shape = (PAGES, page_size, KV_HEADS, DIM)
    pools = [np.full(shape, np.nan, np.float32) for _ in "kv"]
    table = np.full((batch, width), PAGES + 7, np.int32)
    free = list(rng.permutation(PAGES))
    for row, length in enumerate(lengths):
        for entry in range(-(-length // page_size)):
            table[row, entry] = page = free.pop()
            rows = min(page_size, length - entry * page_size)
            for pool in pools:
                pool[page, :rows] = rng.standard_normal((rows, KV_HEADS, DIM))
    q = rng.standard_normal((batch, HEADS, queries, DIM)).astype(dtype)
    k, v = (pool.astype(dtype) for pool in pools)
    if layout == "hnd":
        k, v = (np.ascontiguousarray(pool.swapaxes(1, 2)) for pool in (k, v))
    return q[:, :, 0] if queries == 1 else q, k, v, table, np.array(lengths, np.int32)


def attend(q, k, v, table, lengths, *, left=-1, softcap=None, sinks=None, causal=True):
    """float64, for pools in the order nhd."""
    rows = q[:, :, None] if q.ndim == 3 else q
    batch, heads, queries, dim = rows.shape
    o = np.zeros((batch, heads, queries, v.shape[3]))
    lse = np.full(o.shape[:3], -np.inf)
    for b, length in enumerate(lengths):
        ids = table[b, : -(-length // k.shape[1])]
        keys, values = (pool[ids].reshape(-1, *pool.shape[2:])[:length] for pool in (k, v))
        at = np.arange(queries)[:, None] + length - queries
        seen = np.ones((queries, length), bool)
        if causal:
            seen &= np.arange(length) <= at
        if left >= 0:
            seen &= np.arange(length) >= at - left
        for h in range(heads):
            g = h // (heads // k.shape[2])
            scores = rows[b, h].astype(float) @ keys[:, g].astype(float).T * dim**-0.5
            scores = scores if softcap is None else softcap * np.tanh(scores / softcap)
            scores = np.where(seen, scores, -np.inf)
            if sinks is not None:
                scores = np.column_stack([scores, np.full(queries, sinks[h])])
            with np.errstate(divide="ignore"):
                lse[b, h] = np.log(np.exp(scores).sum(-1))
            if length:
                weights = np.exp(scores[:, :length] - np.where(np.isinf(lse[b, h]), 0, lse[b, h])[:, None])
                o[b, h] = weights @ values[:, g].astype(float)
    return (o[:, :, 0], lse[:, :, 0]) if q.ndim == 3 else (o, lse)


def check(result, expected):
    for got, want in zip(result, expected, strict=True):
        assert got.shape == want.shape
        np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
        finite = np.isfinite(want)
        np.testing.assert_allclose(got[finite], want[finite], atol=4e-3)


@pytest.mark.parametrize("layout", ["nhd", "hnd"])
def test_decode(layout):
    batch = make_batch([100, 0, 17, 128], layout=layout)
    plain = make_batch([100, 0, 17, 128])
    check(attn.decode(*batch, layout=layout, lse=True), attend(*plain))
    check([attn.decode(*batch, layout=layout)], attend(*plain)[:1])


def test_options():
    """Several queries, a window, a soft cap, sinks and runs of keys."""
    batch = make_batch([70, 3, 128], queries=3)
    sinks = np.linspace(-1, 2, HEADS, dtype=np.float32)
    expected = attend(*batch, left=40, softcap=5.0, sinks=sinks)
    options = {"window": (40, None), "softcap": 5.0, "sinks": sinks, "lse": True}
    check(attn.decode(*batch, **options), expected)
    check(attn.decode(*batch, kv_splits=3, **options), expected)
    check(attn.decode(*batch, causal=False, lse=True), attend(*batch, causal=False))


def test_halves_of_one_tensor():
    """Keys and values of a page side by side, and rows of a larger table."""
    q, k, v, table, lengths = make_batch([33, 64])
    both = np.stack([k, v], axis=1)
    wide = np.concatenate([table, np.full_like(table, -3)], axis=1)
    got = attn.decode(q, both[:, 0], both[:, 1], wide[:, : table.shape[1]], lengths, lse=True)
    check(got, attend(q, k, v, table, lengths))


def test_bf16():
    q, k, v, table, lengths = make_batch([40, 9], dtype=np.float32)
    narrow = [arrays.to_bf16(each) for each in (q, k, v)]
    wide = [arrays.from_bf16(each) for each in narrow]
    got = attn.decode(*narrow, table, lengths)
    want = attend(*wide, table, lengths)[0]
    np.testing.assert_allclose(arrays.from_bf16(got), want, atol=2e-2)


def test_plan():
    """One kernel for other lengths, smaller batches and narrower tables."""
    plan = make_plan(max_pages=10, lse=True, kv_splits=2)
    assert plan.splits == 2 and plan.workspace_bytes == 2 * 3 * HEADS * (DIM + 1) * 4
    assert "3 sequences" in repr(plan) and "attn_combine" in plan.kernel.name
    for seed, lengths in enumerate(([100, 0, 17], [1, 128], [64])):
        q, k, v, table, counts = make_batch(lengths, seed=seed)
        padded = np.concatenate([q, np.zeros((3 - len(lengths), HEADS, DIM), q.dtype)])
        plan.plan(counts, table)
        o, lse = plan.run(padded, k, v)
        check((o[: len(lengths)], lse[: len(lengths)]), attend(q, k, v, table, counts))
        assert not o[len(lengths) :].any() and np.isinf(lse[len(lengths) :]).all()


LATENT, VALUES, MLA_HEADS = 96, 64, 16


def make_plan(batch=3, **options):
    """A plan for batches of `make_batch`."""
    sizes = {"heads": HEADS, "kv_heads": KV_HEADS, "dim": DIM, "page_size": PAGE, "max_pages": 8}
    return attn.DecodePlan(**{"batch": batch, **sizes, "dtype": "float16", **options})


def make_latent_plan(batch=3, **options):
    """A plan for batches of `make_latent`."""
    sizes = {"heads": MLA_HEADS, "kv_heads": None, "dim": LATENT, "value_dim": VALUES}
    return make_plan(batch, **{**sizes, "latent": True, "scale": 0.125, **options})


def make_latent(lengths, queries=1, seed=0, page_size=PAGE):
    """q and a pool of latent rows, NaN where no sequence has keys."""
    q, _, _, table, counts = make_batch(lengths, queries, seed=seed, page_size=page_size)
    rng = np.random.default_rng(seed + 1)
    pool = np.full((PAGES, page_size, LATENT), np.nan, np.float16)
    for row, length in enumerate(lengths):
        for entry in range(-(-length // page_size)):
            rows = min(page_size, length - entry * page_size)
            pool[table[row, entry], :rows] = rng.standard_normal((rows, LATENT))
    shape = (len(lengths), MLA_HEADS, *(() if queries == 1 else (queries,)), LATENT)
    return rng.standard_normal(shape).astype(np.float16), pool, table, counts


def attend_latent(q, pool, table, lengths, scale):
    """float64; `attend` divides by the root of the columns."""
    keys = pool[:, :, None]
    return attend(q * (scale * LATENT**0.5), keys, keys[..., :VALUES], table, lengths)


@pytest.mark.parametrize("queries", [1, 2])
def test_mla(queries):
    batch = make_latent([100, 0, 17], queries)
    options = {"value_dim": VALUES, "scale": 0.125}
    want = attend_latent(*batch, 0.125)
    check(attn.mla_decode(*batch, **options, lse=True), want)
    q, pool, table, lengths = batch
    one_head = attn.mla_decode(q, pool[:, :, None], table, lengths, **options, kv_splits=2)
    check([one_head], want[:1])


def test_mla_plan():
    """A plan of the latent form; its launch has no tensor of values."""
    plan = make_latent_plan(max_pages=10, lse=True, kv_splits=1)
    assert "v" not in [each["name"] for each in plan.kernel.launch["tensors"]]
    for seed, lengths in enumerate(([100, 0, 17], [1, 128])):
        q, pool, table, counts = make_latent(lengths, seed=seed)
        count = len(lengths)
        padded = np.concatenate([q, np.zeros((3 - count, *q.shape[1:]), q.dtype)])
        plan.plan(counts, table)
        o, lse = plan.run(padded, pool)
        check((o[:count], lse[:count]), attend_latent(q, pool, table, counts, 0.125))
        assert not o[count:].any()
    refuse("v_cache\": expected none, as the plan was made", plan.run, padded, pool, pool)


def test_mla_refused():
    q, pool, table, lengths = batch = make_latent([20, 9])
    options = {"value_dim": VALUES, "scale": 0.125}
    refuse("value_dim: expected at most the 96 columns of a key, got 112",
           attn.mla_decode, *batch, **options | {"value_dim": 112})  # fmt: skip
    refuse("kv_cache\": expected shape (pages, keys, dim) or (pages, keys, 1, dim), got [40, 16, 2, 48]",
           attn.mla_decode, q, pool.reshape(PAGES, PAGE, 2, 48), table, lengths, **options)  # fmt: skip
    refuse("kv_cache\": expected head dimension as q, 96, got 80",
           attn.mla_decode, q, pool[..., :80], table, lengths, **options)  # fmt: skip
    with pytest.raises(ValueError, match="value_dim: expected an integer from 1"):
        attn.mla_decode(*batch, **options | {"value_dim": 0})
    shape = {"batch": 1, "heads": 16, "dim": 96, "page_size": 16, "max_pages": 2}
    refuse("expected value_dim and one key head of the latent form, got None and None",
           attn.DecodePlan, **shape, latent=True)  # fmt: skip
    refuse("expected value_dim and one key head of the latent form, got 64 and 2",
           attn.DecodePlan, **shape, latent=True, value_dim=64, kv_heads=2)  # fmt: skip
    plan = attn.DecodePlan(**shape, kv_heads=1)
    plan.plan(lengths[:1], table[:1, :2])
    refuse("v_cache\": expected a pool of values, as the plan was made", plan.run, q[:1], pool[:, :, None])


def test_parts_of_a_cache():
    """Plans over parts of the keys, in f32, merge to the whole."""
    q, k, v, table, lengths = make_batch([100, 30])
    plan = make_plan(2, out_type="float32", lse=True)
    states = []
    for first in (0, 2):
        plan.plan(np.clip(lengths - first * PAGE, 0, 2 * PAGE if first == 0 else None).astype(np.int32),
                  table[:, first:])  # fmt: skip
        states.append(plan.run(q, k, v))
    parts = [np.stack(each) for each in zip(*states, strict=True)]
    assert parts[0].dtype == np.float32
    check(attn.merge_states(*parts), attend(q, k, v, table, lengths))


def test_the_planner_splits_long_keys():
    """Of one sequence of many keys, by the bound alone."""
    options = {"heads": 8, "kv_heads": 2, "dim": 64, "page_size": 16, "dtype": "float16"}
    assert attn.DecodePlan(batch=1, max_pages=4096, **options).splits > 1
    assert attn.DecodePlan(batch=1, max_pages=4096, kv_splits=1, **options).splits == 1


@pytest.mark.parametrize("rank", [4, 5])
@pytest.mark.parametrize("dtype", [None, "float16"])
def test_merge_states(rank, dtype):
    rng = np.random.default_rng(3)
    shape = (3, 5, 4, 2)[:rank - 1]
    o = rng.standard_normal((*shape, 32)).astype(np.float32)
    lse = rng.standard_normal(shape).astype(np.float32)
    lse[0, 0] = -np.inf
    lse[:, 1] = -np.inf
    got, got_lse = attn.merge_states(o, lse, dtype=dtype)
    assert got.dtype == (dtype or "float32")
    with np.errstate(invalid="ignore", divide="ignore"):
        want_lse = np.log(np.exp(lse.astype(float)).sum(0))
        want = (np.exp(lse.astype(float) - want_lse)[..., None] * o).sum(0)
    want[1] = 0
    np.testing.assert_allclose(got_lse, want_lse, atol=1e-5)
    np.testing.assert_allclose(got, want, atol=2e-3)


def test_merge_states_special():
    """docs/spec.md, "Infinite and NaN logits"."""
    inf, nan = np.inf, np.nan
    lse = np.array([[-inf, 1, -inf, inf, inf, nan, 1], [-inf, -inf, inf, -inf, inf, 0, -300]], "f4")
    o = np.stack([np.full((7, 1, 8), 2), np.full((7, 1, 8), 5)]).astype("f4")
    o[np.isneginf(lse)] = nan
    o[1, 6, 0, 0] = nan
    got, got_lse = attn.merge_states(o, lse[..., None])
    np.testing.assert_allclose(got_lse[:, 0], [-inf, 1, inf, inf, nan, nan, 1])
    np.testing.assert_allclose(got[:, 0, 1], [0, 2, 5, 2, nan, nan, 2])
    # A weight that is too small to count hides no NaN.
    np.testing.assert_array_equal(np.isnan(got[:, 0, 0]), [0, 0, 0, 0, 1, 1, 1])


def refuse(message, call, *arguments, **options):
    with pytest.raises(attn.ArgumentError) as error:
        call(*arguments, **options)
    assert message in str(error.value)


def test_refused():
    q, k, v, table, lengths = batch = make_batch([20, 9])
    refuse("kv_lengths\": expected elements of i32, got i64; nothing is converted",
           attn.decode, q, k, v, table, lengths.astype(np.int64))  # fmt: skip
    refuse("page_table\": expected elements of i32", attn.decode, q, k, v, table.astype(np.int64), lengths)
    refuse("page_table\": expected a row for each of the 2 sequences of kv_lengths, got 1",
           attn.decode, q, k, v, table[:1], lengths)  # fmt: skip
    refuse("kv_lengths\": expected a length for each sequence of q, 2, got 1",
           attn.decode, q, k, v, table[:1], lengths[:1])  # fmt: skip
    refuse("kv_lengths\": expected shape (sequences), got [2, 1]",
           attn.decode, q, k, v, table, lengths[:, None])  # fmt: skip
    refuse("page_table\": expected an innermost stride of 1",
           attn.decode, q, k, v, np.asfortranarray(table), lengths)  # fmt: skip
    refuse("k_cache\": expected elements as q, f16, got f32",
           attn.decode, q, k.astype(np.float32), v, table, lengths)  # fmt: skip
    refuse("v_cache\": expected pages, heads and keys of a page as k_cache, [40, 2, 16], got [39, 2, 16]",
           attn.decode, q, k, v[1:], table, lengths)  # fmt: skip
    refuse("k_cache\": expected head dimension as q, 64, got 32",
           attn.decode, q, k[..., :32], v, table, lengths)  # fmt: skip
    refuse("k_cache\": expected shape (pages, keys, heads, dim), got [40, 16, 128]",
           attn.decode, q, k.reshape(40, 16, 128), v, table, lengths)  # fmt: skip
    refuse("q\": expected shape (batch, heads, dim) or", attn.decode, q[0], k, v, table, lengths)
    refuse("q\": expected a multiple of the 2 key heads, got 7 heads",
           attn.decode, q[:, :7], k, v, table, lengths)  # fmt: skip
    refuse("q\": expected one of f16, bf16, got f32",
           attn.decode, *[each.astype(np.float32) for each in (q, k, v)], table, lengths)  # fmt: skip
    refuse("sinks\": expected shape [8], got [4]", attn.decode, *batch, sinks=np.zeros(4, np.float32))
    refuse("layout: expected \"nhd\" or \"hnd\", got 'bnhd'", attn.decode, *batch, layout="bnhd")
    refuse("out: expected none with numpy arrays", attn.decode, *batch, out=q)
    refuse("no kernel takes elements of complex64", attn.decode, q.astype(np.complex64), *batch[1:])
    with pytest.raises(ValueError, match="kv_splits: expected an integer from 0"):
        attn.decode(*batch, kv_splits=-1)
    with pytest.raises(ValueError, match="window: expected"):
        attn.decode(*batch, window=(3,))


def test_plan_refuses():
    q, k, v, table, lengths = make_batch([20, 9])
    plan = make_plan(2)
    refuse("DecodePlan: expected plan(kv_lengths, page_table) before run", plan.run, q, k, v)
    three = np.concatenate([lengths, lengths[:1]]), np.concatenate([table, table[:1]])
    refuse("kv_lengths\": expected at most 2 sequences, for which the plan was made, got 3",
           plan.plan, *three)  # fmt: skip
    refuse("page_table\": expected at most 8 pages of a sequence",
           plan.plan, lengths, np.zeros((2, 9), np.int32))  # fmt: skip
    refuse("kv_lengths\": expected elements of i32", plan.plan, lengths.astype(np.int64), table)
    plan.plan(lengths, table)
    refuse("q\": expected (batch, heads, queries, dim) [2, 8, 1, 64], for which the plan was made, got",
           plan.run, q[:1], k, v)  # fmt: skip
    refuse("k_cache\": expected elements of f16, got f32", plan.run, q, k.astype(np.float32), v)
    refuse("v_cache\": expected pages as k_cache, 40, got 39", plan.run, q, k, v[1:])
    refuse("k_cache\": expected (heads, keys, dim) of a page", plan.run, q, k[:, :8], v)
    refuse("sinks\": expected none, as the plan was made",
           plan.run, q, k, v, sinks=np.zeros(HEADS, np.float32))  # fmt: skip


def test_merge_refuses():
    o, lse = np.zeros((2, 3, 4, 8), np.float32), np.zeros((2, 3, 4), np.float32)
    refuse("partial_lse\": expected shape", attn.merge_states, o, lse[:1])
    refuse("partial_o\": expected shape (states", attn.merge_states, o[0], lse[0])
    refuse("partial_o\": expected elements of f32", attn.merge_states, o.astype(np.float16), lse)
    refuse("dtype: expected one of f16, bf16, f32, got i32", attn.merge_states, o, lse, dtype="i32")
    refuse("out: expected none with numpy arrays", attn.merge_states, o, lse, out=o)


class Tensor:
    """A tensor of a GPU."""

    def __init__(self, address, shape, dtype="<f2", strides=None):
        width = int(dtype[2:])
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": dtype,
            "data": (address, False),
            "strides": None if strides is None else tuple(width * each for each in strides),
        }


class Driver:
    """What a plan asks of the driver, in order."""

    def __init__(self):
        self.calls = []
        self.capturing = False

    def _add(self, *call):
        self.calls.append(call)
        return 0

    def cuMemAlloc_v2(self, address, size):
        address._obj.value = 0x10000 * (1 + len(self.calls))
        return self._add("allocate", size)

    def cuMemFree_v2(self, address):
        return 0

    def cuMemsetD8_v2(self, address, value, size):
        return self._add("clear", address, value, size)

    def cuCtxSynchronize(self):
        return self._add("wait")

    def cuMemsetD32Async(self, address, value, count, stream):
        return self._add("fill", address, value, count, stream)

    def cuMemcpyDtoDAsync_v2(self, target, source, size, stream):
        return self._add("copy", target, source, size, stream)

    def cuMemcpy2DAsync_v2(self, copy, stream):
        c = copy._obj
        return self._add("rows", c.target, c.source, c.targetPitch, c.sourcePitch, c.width, c.height)

    def cuStreamIsCapturing(self, stream, capturing):
        capturing._obj.value = int(self.capturing)
        return 0


class Device:
    major, minor, shared_bytes, multiprocessors = 8, 0, 166000, 108

    def __enter__(self):
        return None

    def __exit__(self, *_):
        return None

    def is_current(self):
        return True


class Function:
    launches = []
    parameters = []

    def __init__(self, image, name, shared_bytes):
        self.name = name

    def launch(self, shape, stream, pointers):
        Function.launches.append((self.name, tuple(shape.config.grid), stream))
        Function.parameters = [ctypes.c_uint64.from_address(each).value for each in pointers]
        return 0


@pytest.fixture
def driver(monkeypatch):
    fake = Driver()
    Function.launches = []
    monkeypatch.setattr(cuda_driver, "load", lambda: fake)
    monkeypatch.setattr(cuda_driver, "get_device", lambda ordinal: Device())
    monkeypatch.setattr(cuda_driver, "Function", Function)
    monkeypatch.setattr(cuda_driver, "Module", lambda image, what: None)
    monkeypatch.setattr(host_arrays, "has_device", lambda: True)
    monkeypatch.setattr(decode_problem, "_loaded", {})
    monkeypatch.setattr(decode_launch, "_runners", {})
    return fake


def make_tensors(pages=100):
    lengths = Tensor(0x100, (2,), "<i4")
    table = Tensor(0x200, (2, 5), "<i4", (9, 1))
    pool = Tensor(0x1000, (pages, PAGE, KV_HEADS, DIM))
    return lengths, table, Tensor(0x2000, (3, HEADS, DIM)), pool, Tensor(0x3000, (3, HEADS, DIM))


def test_plan_on_a_gpu(driver):
    """`plan` copies, `run` launches on the plan's own memory, and allocates nothing."""
    plan = make_plan(kv_splits=2, device=0)
    rows = 2 * 3 * HEADS
    sizes = [call[1] for call in driver.calls]
    assert sizes == [3 * 4, 3 * 8 * 4, rows * DIM * 4, rows * 4]
    room, place = 0x10000, 0x20000
    driver.calls.clear()
    lengths, table, q, pool, o = make_tensors()
    plan.plan(lengths, table, stream=7)
    assert driver.calls == [
        ("fill", room + 8, 0, 1, 7),
        ("fill", place, 0xFFFFFFFF, 24, 7),
        ("copy", room, 0x100, 8, 7),
        ("rows", place, 0x200, 32, 36, 20, 2),
    ]
    driver.calls.clear()
    assert plan.run(q, pool, pool, out=o, stream=7) is o
    assert not driver.calls
    assert [name for name, _, _ in Function.launches] == ["attn_fwd", "attn_combine"]
    refuse("DecodePlan: expected the stream of plan(), 0x7, got 0x8; partial results lie in the plan",
           plan.run, q, pool, pool, out=o, stream=8)  # fmt: skip
    driver.capturing = True
    plan.run(q, pool, pool, out=o, stream=8)
    assert len(Function.launches) == 4
    refuse("out\": expected a tensor to write to", plan.run, q, pool, pool, stream=7)
    wide = Tensor(0x1000, (100, PAGE, KV_HEADS, DIM), "<f2", (2 * 2048, 128, 64, 1))
    refuse("k_cache\": expected strides [2048, 64, 128, 1] of (page, head, key, dim), for which the "
           "plan was made, got [4096, 64, 128, 1]", plan.run, q, wide, pool, out=o, stream=7)  # fmt: skip
    array = np.zeros((2,), np.int32)
    refuse("kv_lengths\": expected it on device 0, got host memory", plan.plan, array, table)
    refuse("q\": expected it on device 0 as the plan, got host memory",
           plan.run, np.zeros((3, HEADS, DIM), np.float16), pool, pool, out=o)  # fmt: skip


def test_plan_whose_last_cta_merges(driver):
    """Few rows of few runs: one launch, whose counters are cleared once, as each launch
    leaves zeros."""
    plan = attn.DecodePlan(
        batch=2, heads=4, kv_heads=1, dim=64, page_size=PAGE, max_pages=64,
        dtype="float16", kv_splits=4, device=0,
    )  # fmt: skip
    rows = 4 * 2 * 4
    sizes = [call[1] for call in driver.calls if call[0] == "allocate"]
    assert sizes[2:] == [rows * 64 * 4, rows * 4, 2 * 4]
    assert driver.calls[5:] == [("clear", 0x10000 * 5, 0, 2 * 4), ("wait",)]
    assert plan.splits == 4 and plan.workspace_bytes == sum(sizes[2:])
    lengths, table = Tensor(0x100, (2,), "<i4"), Tensor(0x200, (2, 64), "<i4")
    q, o = (Tensor(address, (2, 4, 64)) for address in (0x2000, 0x3000))
    pool = Tensor(0x1000, (100, PAGE, 1, 64))
    plan.plan(lengths, table, stream=7)
    driver.calls.clear()
    for _ in range(2):
        plan.run(q, pool, pool, out=o, stream=7)
    assert not driver.calls
    assert [name for name, _, _ in Function.launches] == 2 * ["attn_fwd"]
    refuse("partial results lie in the plan", plan.run, q, pool, pool, out=o, stream=8)


def test_plan_without_runs(driver):
    """Nothing is shared by streams but the lengths and the table."""
    plan = make_plan(kv_splits=1, page_stride=2 * 2048, device=0)
    lengths, table, q, _, o = make_tensors()
    pool = Tensor(0x1000, (100, PAGE, KV_HEADS, DIM), "<f2", (2 * 2048, 128, 64, 1))
    plan.plan(lengths, table, stream=7)
    plan.run(q, pool, pool, out=o, stream=8)
    assert [name for name, _, _ in Function.launches] == ["attn_fwd"]


class TorchTensor:
    """What is asked of a torch tensor."""

    is_cuda = True

    def __init__(self, address, *shape, dtype="torch.float16"):
        self.address, self.shape, self.dtype = address, shape, dtype

    def stride(self):
        return tuple(int(np.prod(self.shape[axis + 1 :])) for axis in range(len(self.shape)))

    def data_ptr(self):
        return self.address

    def get_device(self):
        return 0


def test_known_tensors(driver, monkeypatch):
    """A later run on tensors of the same shapes looks nothing up but addresses."""
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=TorchTensor))
    plan = make_plan(lse=True, kv_splits=1, device=0)
    plan.plan(*make_tensors()[:2], stream=7)
    room, place = 0x10000, 0x20000
    for first in (0x100000, 0x900000):
        q, k, v, o, lse = (first + 0x10000 * n for n in range(5))
        rows, pool = (3, HEADS, DIM), (100, PAGE, KV_HEADS, DIM)
        out, log = TorchTensor(o, *rows), TorchTensor(lse, *rows[:2], dtype="torch.float32")
        got = plan.run(
            TorchTensor(q, *rows), TorchTensor(k, *pool), TorchTensor(v, *pool),
            out=out, lse=log, stream=7,
        )  # fmt: skip
        assert got == (out, log)
        assert Function.parameters[:7] == [q, k, v, o, lse, place, room]
    assert len(plan._known) == 1
    with pytest.raises(attn.ArgumentError, match="q\": expected elements of f16, got bf16"):
        other = TorchTensor(0, *rows, dtype="torch.bfloat16")
        plan.run(other, TorchTensor(k, *pool), TorchTensor(v, *pool), out=out, lse=log, stream=7)


def test_decode_on_a_gpu(driver):
    """Arrays of a library without outputs of its own."""
    lengths, table, q, pool, o = make_tensors()
    two = Tensor(0x2000, (2, HEADS, DIM)), Tensor(0x3000, (2, HEADS, DIM))
    attn.decode(two[0], pool, pool, table, lengths, out=two[1], stream=3)
    assert Function.launches[0][0] == "attn_fwd" and Function.launches[0][2] == 3
    refuse("out\": expected a tensor to write to", attn.decode, two[0], pool, pool, table, lengths)
    refuse("out\": expected shape [2, 8, 1, 64], got [3, 8, 1, 64]",
           attn.decode, two[0], pool, pool, table, lengths, out=o)  # fmt: skip
    refuse("k_cache\": expected it on device 0 as q, got host memory",
           attn.decode, two[0], np.zeros((9, PAGE, KV_HEADS, DIM), np.float16), pool, table, lengths,
           out=two[1])  # fmt: skip


def test_merge_on_a_gpu(driver):
    o, lse = Tensor(0x100, (3, 5, 4, 32), "<f4"), Tensor(0x200, (3, 5, 4), "<f4")
    out = Tensor(0x300, (5, 4, 32)), Tensor(0x400, (5, 4), "<f4")
    attn.merge_states(o, lse, out=out[0], lse=out[1])
    assert Function.launches[0][0] == "attn_combine"
    refuse("lse\": expected a tensor to write to", attn.merge_states, o, lse, out=out[0])
    refuse("out\": expected shape [5, 4, 32], got [4, 5, 32]",
           attn.merge_states, o, lse, out=Tensor(0x300, (4, 5, 32)), lse=out[1])  # fmt: skip
    turned = Tensor(0x300, (5, 4, 32), "<f2", (32, 160, 1))
    refuse("out\": expected a dense tensor, got strides [32, 160, 1]",
           attn.merge_states, o, lse, out=turned, lse=out[1])  # fmt: skip


def test_a_problem_is_what_its_text_says():
    """Open pools, strides and options."""
    view = TensorView("f16", (2, 8, 3, 64), (1536, 64, 512, 1), 0, 0)
    pool = TensorView("f16", (40, 2, 16, 64), (4096, 1024, 64, 1), 0, 0)
    table = TensorView("i32", (2, 5), (9, 1), 0, 0)
    settings = decode_launch.Settings.read(
        layout="hnd", window=(7, None), softcap=3.0, scale=0.5, kv_splits=2
    )
    problem = decode_launch.make_problem({"q": view, "k": pool, "v": pool, "page_table": table}, settings, False)
    text = decode_problem.write_decode(problem)
    assert "%k: memref<?x2x16x64xf16, strided<[4096, 1024, 64, 1]>>" in text
    assert "%page_table: memref<2x5xi32, strided<[9, 1]>>" in text
    assert "left = 7, right = 0, align = bottom_right" in text and "kv_splits = 2" in text
