"""attn.compat.flashinfer on the simulator, against float64 with LSEs of base 2, and what
its wrappers refuse."""

import numpy as np
import pytest
from attn import arrays
from attn.compat.flashinfer import (
    BatchDecodeWithPagedKVCacheWrapper,
    BatchMLAPagedAttentionWrapper,
    BatchPrefillWithPagedKVCacheWrapper,
)
from test_decode import (
    DIM,
    HEADS,
    KV_HEADS,
    LATENT,
    MLA_HEADS,
    PAGE,
    PAGES,
    VALUES,
    attend,
    attend_latent,
    check,
    make_batch,
    make_latent,
    refuse,
)
from test_decode_narrow import from_e4m3, make_narrow

SHAPE = (HEADS, KV_HEADS, DIM, PAGE)
LENGTHS = [70, 0, 16, 33]

pytestmark = pytest.mark.usefixtures("without_gpu")


def to_lists(table, lengths, page_size=PAGE):
    """Pages as one list, where those of each sequence begin, and keys of the last ones."""
    pages = -(-lengths // page_size)
    indices = np.concatenate([row[:count] for row, count in zip(table, pages, strict=True)])
    indptr = np.concatenate([[0], np.cumsum(pages)]).astype(np.int32)
    last = np.where(lengths > 0, lengths - (pages - 1) * page_size, 0)
    return indptr, indices.astype(np.int32), last.astype(np.int32)


def to_base2(result):
    return result[0], result[1] * np.log2(np.e)


def make_decode(layout="NHD", *arguments, **options):
    return BatchDecodeWithPagedKVCacheWrapper(None, layout, *arguments, **options)


@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_decode(layout):
    """Both pools in one tensor, and what else attn.decode takes."""
    q, k, v, table, lengths = make_batch(LENGTHS)
    pools = [k, v] if layout == "NHD" else [each.swapaxes(1, 2) for each in (k, v)]
    sinks = np.linspace(-1, 2, HEADS, dtype=np.float32)
    wrapper = make_decode(layout, backend="fa2")
    wrapper.plan(*to_lists(table, lengths), *SHAPE, window_left=40, logits_soft_cap=5.0)
    got = wrapper.run_return_lse(q, np.stack(pools, 1), sinks=sinks, window_left=40)
    check(got, to_base2(attend(q, k, v, table, lengths, left=40, softcap=5.0, sinks=sinks)))


def test_other_pages():
    """Pages of no power of two, of keys and values and of latent rows."""
    page_size = 48
    lengths = [page_size + 5, 0, 7]
    q, k, v, table, counts = make_batch(lengths, page_size=page_size)
    wrapper = make_decode()
    wrapper.plan(*to_lists(table, counts, page_size), HEADS, KV_HEADS, DIM, page_size)
    check(wrapper.run_return_lse(q, (k, v)), to_base2(attend(q, k, v, table, counts)))
    q, pool, table, counts = make_latent(lengths, page_size=page_size)
    wrapper = BatchMLAPagedAttentionWrapper(None)
    indptr, indices, _ = to_lists(table, counts, page_size)
    sizes = (MLA_HEADS, VALUES, LATENT - VALUES, page_size, True, 0.125, "float16", "float16")
    wrapper.plan(np.arange(4, dtype=np.int32), indptr, indices, counts, *sizes)
    parts = q[..., :VALUES], q[..., VALUES:], pool[..., :VALUES], pool[..., VALUES:]
    got = wrapper.run(*parts, return_lse=True)
    check(got, to_base2(attend_latent(q, pool, table, counts, 0.125)))


def test_decode_scales_and_outputs():
    """A pair of pools, factors of q and k in the scale, that of v behind the kernel."""
    q, k, v, table, lengths = make_batch(LENGTHS)
    wrapper = make_decode()
    wrapper.plan(*to_lists(table, lengths), *SHAPE, sm_scale=0.25, disable_split_kv=True)
    out, lse = np.zeros_like(q), np.zeros(q.shape[:2], np.float32)
    got = wrapper.run(q, (k, v), q_scale=0.5, k_scale=2.0, v_scale=0.5, out=out, lse=lse, return_lse=True)
    want, log = to_base2(attend(q * (0.25 * DIM**0.5), k, v, table, lengths))
    check((out, lse), (want * 0.5, log))
    assert got[0] is out and got[1] is lse


def test_narrow_pools():
    """What units of 8-bit pools stand for, as numbers."""
    q, k, v, table, lengths = make_narrow([70, 0, 33])
    wrapper = make_decode()
    wrapper.plan(*to_lists(table, lengths), *SHAPE, kv_data_type="float8_e4m3fn")
    wide = [from_e4m3(pool) for pool in (k, v)]
    got = wrapper.run_return_lse(q, (k, v), k_scale=0.5, q_scale=0.5)
    check(got, to_base2(attend(q * 0.5, wide[0] * 0.5, wide[1], table, lengths)))
    check([wrapper.run(q, (k, v), v_scale=0.25)], [attend(q, wide[0], wide[1] / 4, table, lengths)[0]])


def test_decode_of_several_queries():
    q, k, v, table, lengths = make_batch([70, 16, 33], queries=2)
    wrapper = make_decode()
    wrapper.plan(*to_lists(table, lengths), *SHAPE, q_len_per_req=2)
    rows = q.swapaxes(1, 2).reshape(6, HEADS, DIM)
    o, lse = wrapper.run(rows, (k, v), return_lse=True, q_len_per_req=2)
    got = o.reshape(3, 2, HEADS, DIM).swapaxes(1, 2), lse.reshape(3, 2, HEADS).swapaxes(1, 2)
    check(got, to_base2(attend(q, k, v, table, lengths)))


def test_fixed_buffers():
    """Two batches in the bounds of a graph, the second one with padded sequences."""
    buffers = [np.zeros(5, np.int32), np.zeros(20, np.int32), np.zeros(4, np.int32)]
    wrapper = make_decode("NHD", True, False, *buffers, max_pages=6)
    assert wrapper.is_cuda_graph_enabled
    for seed, lengths in enumerate((LENGTHS, [5, 90, 0, 0])):
        q, k, v, table, counts = make_batch(lengths, seed=seed)
        wrapper.plan(*to_lists(table, counts), *SHAPE)
        kept = wrapper._pages.table
        assert seed == 0 or kept is first
        first = kept
        check(wrapper.run_return_lse(q, (k, v)), to_base2(attend(q, k, v, table, counts)))
    lists = to_lists(*make_batch([100, 1, 1, 1])[3:])
    refuse("indptr: expected at most 6 pages of a sequence, got 7", wrapper.plan, *lists, *SHAPE)
    refuse("indptr: sequences of the graph: expected 4, got 3", wrapper.plan, lists[0][:4], lists[1], lists[2][:3], *SHAPE)
    refuse("paged_kv_indices_buffer: expected a tensor with use_cuda_graph, got None",
           make_decode, use_cuda_graph=True, paged_kv_indptr_buffer=buffers[0])  # fmt: skip


@pytest.mark.parametrize("base", ["log2", "ln"])
def test_prefill(base):
    """Sequences with different numbers of queries."""
    counts = [3, 0, 1, 20]
    _, k, v, table, lengths = make_batch([70, 5, 16, 33])
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    q = np.random.default_rng(3).standard_normal((ends[-1], HEADS, DIM)).astype(np.float16)
    wrapper = BatchPrefillWithPagedKVCacheWrapper(None)
    wrapper.plan(ends, *to_lists(table, lengths), *SHAPE, causal=True)
    o, lse = wrapper.run(q, (k, v), return_lse=True, lse_base=base)
    for row, (first, last) in enumerate(zip(ends[:-1], ends[1:], strict=True)):
        if first < last:
            rows = q[first:last].swapaxes(0, 1)[None]
            want = attend(rows, k, v, table[row : row + 1], lengths[row : row + 1])
            want = to_base2(want) if base == "log2" else want
            check((o[first:last].swapaxes(0, 1)[None], lse[first:last].T[None]), want)


def test_narrow_prefill():
    """Pools of 8 bits, what their units stand for as numbers."""
    ends = np.int32([0, 20, 20, 27])
    k, v, table, lengths = make_narrow([70, 0, 33])[1:]
    q = np.random.default_rng(3).standard_normal((27, HEADS, DIM)).astype(np.float16)
    wrapper = BatchPrefillWithPagedKVCacheWrapper(None)
    wrapper.plan(ends, *to_lists(table, lengths), *SHAPE, causal=True, kv_data_type="float8_e4m3fn")
    o = wrapper.run(q, (k, v), k_scale=0.5, v_scale=0.25)
    wide = [from_e4m3(pool) for pool in (k, v)]
    for row, (first, last) in enumerate(zip(ends[:-1], ends[1:], strict=True)):
        if first < last:
            rows = q[first:last].swapaxes(0, 1)[None]
            one = slice(row, row + 1)
            want = attend(rows, wide[0] / 2, wide[1] / 4, table[one], lengths[one])[0]
            check([o[first:last].swapaxes(0, 1)[None]], [want])


@pytest.mark.parametrize("queries", [1, 2])
def test_mla(queries):
    """Both parts of a row in one tensor, and queries in two."""
    q, pool, table, lengths = make_latent([100, 2, 17], queries)
    rows = q if queries == 1 else q.swapaxes(1, 2).reshape(6, MLA_HEADS, LATENT)
    indptr, indices, _ = to_lists(table, lengths)
    wrapper = BatchMLAPagedAttentionWrapper(None)
    counts = np.arange(4, dtype=np.int32) * queries
    wrapper.plan(counts, indptr, indices, lengths, MLA_HEADS, VALUES, LATENT - VALUES, PAGE, True,
                 0.125, np.float16, np.float16)  # fmt: skip
    parts = rows[..., :VALUES].copy(), rows[..., VALUES:].copy()
    o, lse = wrapper.run(*parts, pool[..., :VALUES], pool[..., VALUES:], return_lse=True)
    want, log = to_base2(attend_latent(q, pool, table, lengths, 0.125))
    if queries > 1:
        want, log = (each.swapaxes(1, 2) for each in (want, log))
    check((o, lse), (want.reshape(o.shape), log.reshape(lse.shape)))
    same = wrapper.run(query=rows, kv_cache=pool, return_lse=True, return_lse_base_on_e=True)
    check(same, (want.reshape(o.shape), log.reshape(lse.shape) / np.log2(np.e)))
    apart = wrapper.run(*parts, pool[..., :VALUES].copy(), pool[..., VALUES:].copy(), return_lse=True)
    check(apart, (want.reshape(o.shape), log.reshape(lse.shape)))
    half = wrapper.run(query=rows, kv_cache=(pool[..., :VALUES].copy(), pool[..., VALUES:]))
    check([half], [want.reshape(o.shape)])


def test_what_is_not_covered():
    q, k, v, table, lengths = make_batch(LENGTHS)
    lists = to_lists(table, lengths)
    wrapper = make_decode()
    refuse("expected plan() before run()", wrapper.run, q, (k, v))
    for name, value in (("pos_encoding_mode", "ALIBI"), ("rope_theta", 1e4), ("seq_lens", lengths),
                        ("fixed_split_size", 64), ("window_right", 3)):  # fmt: skip
        refuse(f"{name}: expected", wrapper.plan, *lists, *SHAPE, **{name: value})
    refuse("o_data_type: expected f16, got f32", wrapper.plan, *lists, *SHAPE, o_data_type="float32")
    refuse("indices: expected elements of i32, got int64; nothing is converted",
           wrapper.plan, lists[0], lists[1].astype(np.int64), lists[2], *SHAPE)  # fmt: skip
    refuse("last_page_len: expected a tensor of rank 1, got int", wrapper.plan, *lists[:2], 3, *SHAPE)
    wrapper.plan(*lists, *SHAPE)
    refuse("window_left: as planned: expected -1, got 5", wrapper.run, q, (k, v), window_left=5)
    refuse("kv_cache_sf: expected None", wrapper.run, q, (k, v), kv_cache_sf=k)
    refuse("args: expected ()", wrapper.run, q, (k, v), 3)
    refuse("q: queries: expected 4, got 3", wrapper.run, q[:3], (k, v))
    refuse("paged_kv_cache: a page of: expected [16, 2, 64], got [8, 2, 64]",
           wrapper.run, q, (k[:, :8], v[:, :8]))  # fmt: skip
    refuse("paged_kv_cache: expected a pair of tensors, got 1", wrapper.run, q, (k,))
    refuse("paged_kv_cache: expected a pair of tensors or one of rank 5", wrapper.run, q, k)
    refuse("k_scale: expected a number, got a tensor of [2]", wrapper.run, q, (k, v), k_scale=lengths[:2])
    prefill = BatchPrefillWithPagedKVCacheWrapper(None)
    ends = np.int32([0, 1, 2, 3, 4])
    refuse("custom_mask: expected None, the rest is not covered, got a tensor of [3]",
           prefill.plan, ends, *lists, *SHAPE, custom_mask=np.ones(3, bool))  # fmt: skip
    refuse("kv_data_type: expected f16 as q_data_type or a type of 8 bits, got bf16",
           prefill.plan, ends, *lists, *SHAPE, kv_data_type="bfloat16")  # fmt: skip
    refuse("qo_indptr: expected at most 1 queries of a sequence, got 2",
           prefill.plan, np.int32([0, 1, 3, 4, 5]), *lists, *SHAPE, max_token_per_sequence=1)  # fmt: skip
    prefill.plan(ends, *lists, *SHAPE)
    refuse('lse_base: expected "log2" or "ln", got 10', prefill.run, q, (k, v), lse_base=10)
    latent = BatchMLAPagedAttentionWrapper(None)
    shape = (MLA_HEADS, VALUES, LATENT - VALUES, PAGE, True, 0.125, "float16", "float16")
    refuse("qo_indptr: expected the same number of queries of each sequence, got 1 to 2",
           latent.plan, np.int32([0, 1, 3, 4, 5]), *lists[:2], lengths, *shape)  # fmt: skip
    refuse("metadata: expected None", latent.plan, metadata=3)
    refuse("sm_scale: expected a value, got None", latent.plan, ends, *lists[:2], lengths, *shape[:5])


def test_prefill_in_fixed_buffers():
    """What the first plan says bounds later ones; lists are copied where they stay."""
    sizes = (5, 5, 20, 4)
    buffers = [np.zeros(size, np.int32) for size in sizes]
    wrapper = BatchPrefillWithPagedKVCacheWrapper(None, "NHD", True, *buffers)
    bounds = {"max_token_per_sequence": 2, "max_sequence_kv": 96, "causal": True}
    for seed, lengths in enumerate((LENGTHS, [5, 90, 0, 0])):
        q, k, v, table, counts = make_batch(lengths, seed=seed)
        ends = np.concatenate([[0], np.cumsum(counts > 0)]).astype(np.int32)
        wrapper.plan(ends, *to_lists(table, counts), *SHAPE, **bounds)
        assert wrapper._pages.table.shape == (4, 6) and wrapper._most_queries == 2
        o = wrapper.run(np.ascontiguousarray(q[counts > 0]), (k, v))
        check([o], [attend(q, k, v, table, counts)[0][counts > 0]])
    lists = to_lists(*make_batch([60, 1, 1, 1])[3:])
    refuse("qo_indptr: expected at most 2 queries of a sequence, got 3",
           wrapper.plan, np.int32([0, 3, 4, 5, 6]), *lists, *SHAPE)  # fmt: skip


def test_keys_of_each_batch():
    """What FlashInfer takes of each batch bounds a graph by the first plan alone."""
    buffers = [np.zeros(size, np.int32) for size in (5, 5, 20, 4)]
    wrapper = BatchPrefillWithPagedKVCacheWrapper(None, "NHD", True, *buffers)
    ends = np.int32([0, 1, 2, 3, 4])
    q, k, v, table, lengths = make_batch([60, 1, 16, 33])
    lists = to_lists(table, lengths)
    for most in (96, 64, None, 80, 96):
        wrapper.plan(ends, *lists, *SHAPE, max_token_per_sequence=2, max_sequence_kv=most)
        assert wrapper._pages.table.shape == (4, 6)
    check([wrapper.run(q, (k, v))], [attend(q, k, v, table, lengths)[0]])
    refuse("max_sequence_kv: expected at most 96, keys of the pages of the first plan, got 97",
           wrapper.plan, ends, *lists, *SHAPE, max_sequence_kv=97)  # fmt: skip
    refuse("max_token_per_sequence: expected at most 2, that of the first plan, got 3",
           wrapper.plan, ends, *lists, *SHAPE, max_token_per_sequence=3)  # fmt: skip


def test_queries_of_a_graph():
    buffers = [np.zeros(size, np.int32) for size in (5, 20, 4)]
    wrapper = make_decode("NHD", True, False, *buffers)
    lists = to_lists(*make_batch(LENGTHS)[3:])
    wrapper.plan(*lists, *SHAPE, q_len_per_req=2)
    refuse("q_len_per_req: queries of a sequence of the graph: expected 2, got 1", wrapper.plan, *lists, *SHAPE)


def test_types_of_a_plan():
    """`data_type` stands for what is None alone, as in FlashInfer."""
    lists = to_lists(*make_batch(LENGTHS)[3:])
    wrapper = make_decode()
    for given, types in (
        ({"q_data_type": "bfloat16", "data_type": "float8_e4m3fn"}, ("bf16", "f8E4M3FN")),
        ({"data_type": "float16"}, ("f16", "f16")),
        ({"q_data_type": None, "data_type": "bfloat16"}, ("bf16", "bf16")),
        ({"q_data_type": "bfloat16", "kv_data_type": "bfloat16", "data_type": "float16"}, ("bf16", "bf16")),
    ):
        wrapper.plan(*lists, *SHAPE, **given)
        assert wrapper._types == types
    refuse("kv_data_type: expected f16 as q_data_type or a type of 8 bits, got bf16",
           wrapper.plan, *lists, *SHAPE, data_type="bfloat16")  # fmt: skip
    refuse("q_data_type: expected an element type, got None", wrapper.plan, *lists, *SHAPE, q_data_type=None)


def test_plan_that_fails():
    """It leaves the batch in front of it, its settings as well as its pages."""
    q, k, v, table, lengths = make_batch(LENGTHS)
    lists = to_lists(table, lengths)
    want = attend(q, k, v, table, lengths)[0]
    wrapper = make_decode()
    wrapper.plan(*lists, *SHAPE)
    refuse("last_page_len: sequences, one less than of indptr: expected 4, got 3",
           wrapper.plan, *lists[:2], lists[2][:3], *SHAPE, window_left=3, sm_scale=9.0)  # fmt: skip
    check([wrapper.run(q, (k, v))], [want])
    prefill = BatchPrefillWithPagedKVCacheWrapper(None)
    ends = np.int32([0, 1, 2, 3, 4])
    prefill.plan(ends, *lists, *SHAPE)
    refuse("paged_kv_last_page_len: sequences, one less", prefill.plan, ends * 2, *lists[:2], lists[2][:3],
           *SHAPE, window_left=3)  # fmt: skip
    check([prefill.run(q, (k, v))], [want])


def test_soft_cap_and_splits():
    """FlashInfer's negative soft cap is none; prefill never splits keys."""
    q, k, v, table, lengths = make_batch(LENGTHS)
    wrapper = BatchPrefillWithPagedKVCacheWrapper(None)
    wrapper.plan(np.int32([0, 1, 2, 3, 4]), *to_lists(table, lengths), *SHAPE, logits_soft_cap=-1.0,
                 disable_split_kv=True)  # fmt: skip
    wrapper.reset_workspace_buffer(None, None)
    check([wrapper.run(q, (k, v))], [attend(q, k, v, table, lengths)[0]])


def test_outputs_of_the_caller():
    """Numpy would convert and repeat; an LSE that is not asked for would stay as it is."""
    q, k, v, table, lengths = make_batch(LENGTHS)
    lists = to_lists(table, lengths)
    wrapper, prefill = make_decode(), BatchPrefillWithPagedKVCacheWrapper(None)
    wrapper.plan(*lists, *SHAPE)
    prefill.plan(np.int32([0, 1, 2, 3, 4]), *lists, *SHAPE)
    lse = np.zeros(q.shape[:2], np.float32)
    for each in (wrapper, prefill):
        refuse("lse: expected None without return_lse", each.run, q, (k, v), lse=lse)
        refuse("out: shape: expected [4, 8, 64], got [2, 4, 8, 64]", each.run, q, (k, v), out=np.stack([q, q]))
        refuse("out: elements of: expected f16, got f32", each.run, q, (k, v), out=q.astype(np.float32))
        out = np.zeros_like(q)
        refuse("lse: elements of: expected f32, got f16",
               each.run, q, (k, v), out=out, lse=lse.astype(np.float16), return_lse=True)  # fmt: skip
        assert not out.any()


#: Columns of latent rows of 8 bits, and those of their values.
NARROW_LATENT, NARROW_VALUES = 192, 128


def make_narrow_latent(lengths, queries=1):
    """q and a latent pool of e4m3, NaN where no sequence has keys, and its values."""
    q, pool, table, counts = make_latent(lengths, queries)
    rng = np.random.default_rng(3)
    q = rng.standard_normal((*q.shape[:-1], NARROW_LATENT)).astype(np.float16)
    shape = (*pool.shape[:2], NARROW_LATENT)
    bits = (rng.integers(0x20, 0x48, shape) | rng.integers(0, 2, shape) << 7).astype(np.uint8)
    bits = np.where(np.isnan(pool[..., :1]), np.uint8(127), bits)
    return q, bits, from_e4m3(bits), table, counts


def plan_narrow_latent(wrapper, queries, table, lengths, types=("float16", "float8_e4m3fn"), **options):
    indptr, indices, _ = to_lists(table, lengths)
    counts = np.arange(len(lengths) + 1, dtype=np.int32) * queries
    shape = (MLA_HEADS, NARROW_VALUES, NARROW_LATENT - NARROW_VALUES, PAGE, True, 0.125)
    wrapper.plan(counts, indptr, indices, lengths, *shape, *types, **options)


@pytest.mark.parametrize(("queries", "rotated"), [(1, 0.5), (1, 0.3), (2, 0.125)])
def test_mla_of_8_bits(queries, rotated):
    """Rows of 8 bits, both parts in one tensor, with a number for each part."""
    q, pool, wide, table, lengths = make_narrow_latent([100, 2, 17], queries)
    wrapper = BatchMLAPagedAttentionWrapper(None)
    plan_narrow_latent(wrapper, queries, table, lengths)
    units = np.repeat([0.5, rotated], [NARROW_VALUES, NARROW_LATENT - NARROW_VALUES])
    keys = (wide * units)[:, :, None]
    scaled = q * (0.125 * NARROW_LATENT**0.5)
    want, log = to_base2(attend(scaled, keys, keys[..., :NARROW_VALUES], table, lengths))
    rows = q
    if queries > 1:
        rows, want, log = (each.swapaxes(1, 2) for each in (q, want, log))
        rows = rows.reshape(-1, MLA_HEADS, NARROW_LATENT)
    scales = {"ckv_scale": 0.5, "kpe_scale": rotated, "return_lse": True}
    got = wrapper.run(query=rows, kv_cache=pool, **scales)
    check(got, (want.reshape(got[0].shape), log.reshape(got[1].shape)))
    parts = [(each[..., :NARROW_VALUES], each[..., NARROW_VALUES:]) for each in (rows, pool)]
    same = wrapper.run(*(each.copy() for each in parts[0]), *parts[1], **scales)
    for one, other in zip(got, same, strict=True):
        np.testing.assert_array_equal(one, other)


def test_how_mla_of_8_bits_is_called():
    q, pool, _, table, lengths = make_narrow_latent([100, 2, 17])
    batch = (BatchMLAPagedAttentionWrapper(None), 1, table, lengths)
    for message, types in (
        ("q_data_type: expected f16 or bf16, got f8E4M3FN", ("float8_e4m3fn", "float8_e4m3fn")),
        ("kv_data_type: expected f16 as q_data_type or a type of 8 bits, got bf16", ("float16", "bfloat16")),
    ):
        refuse(message, plan_narrow_latent, *batch, types)
    refuse("scale_mode: expected default with a kv_data_type of f16, got kv-per-tensor",
           plan_narrow_latent, *batch, ("float16", "float16"), scale_mode="kv-per-tensor")  # fmt: skip
    plan_narrow_latent(*batch, scale_mode="kv-per-tensor")
    run, call = {"query": q, "kv_cache": pool, "ckv_scale": 0.5}, batch[0].run
    refuse("kpe_scale: expected a number with a kv_data_type of f8E4M3FN, got None", call, **run)
    refuse("kpe_scale: expected a finite number above 0, got 0", call, **run, kpe_scale=0)
    refuse("ckv_scale_arr: expected None, the rest is not covered", call, **run, kpe_scale=1, ckv_scale_arr=q)
    run["kv_cache"] = pool[..., :NARROW_VALUES].copy(), pool[..., NARROW_VALUES:].copy()
    refuse("kpe_cache: expected its columns behind those of ckv_cache in memory with a kv_data_type of 8 bits",
           call, **run, kpe_scale=1)  # fmt: skip
    plan_narrow_latent(*batch, ("float16", "float16"))
    refuse("ckv_scale: expected None with a kv_data_type of f16, got 0.5", call, **run)


def make_latent_plan():
    q, pool, table, lengths = make_latent([100, 2, 17])
    indptr, indices, _ = to_lists(table, lengths)
    shape = (MLA_HEADS, VALUES, LATENT - VALUES, PAGE, True, 0.125)
    lists = (np.arange(4, dtype=np.int32), indptr, indices, lengths)
    return q, pool, table, lists, (*shape, "float16", "float16")


def test_how_mla_is_called():
    """What the plan says of `run` is compared with the call."""
    q, pool, table, lists, shape = make_latent_plan()
    wrapper = BatchMLAPagedAttentionWrapper(None)
    for name, value in (("lse_mode", "base10"), ("query_layout", "wide"), ("kv_cache_layout", "wide")):
        refuse(f"{name}: expected one of ", wrapper.plan, *lists, *shape, **{name: value})
    run = {"query": q, "kv_cache": pool}
    wrapper.plan(*lists, *shape, lse_mode="base2", use_sinks=True)
    refuse("return_lse: lse_mode as planned: expected base2, got none", wrapper.run, **run)
    refuse("return_lse: lse_mode as planned: expected base2, got basee",
           wrapper.run, **run, return_lse=True, return_lse_base_on_e=True)  # fmt: skip
    refuse("sinks: expected a tensor as planned with use_sinks, got None", wrapper.run, **run, return_lse=True)
    wrapper.plan(*lists, *shape, query_layout="packed", kv_cache_layout="packed")
    refuse("lse: expected None without return_lse", wrapper.run, **run, lse=np.zeros(q.shape[:2], np.float32))
    refuse("return_lse_base_on_e: expected False without return_lse, got True",
           wrapper.run, **run, return_lse_base_on_e=True)  # fmt: skip
    parts = q[..., :VALUES], q[..., VALUES:]
    check([wrapper.run(*parts, kv_cache=pool)], [attend_latent(q, pool, table, lists[3], 0.125)[0]])
    refuse("q_pe: expected its columns behind those of q_nope in memory, as planned by a query_layout of packed",
           wrapper.run, *[part.copy() for part in parts], kv_cache=pool)  # fmt: skip


@pytest.mark.parametrize("apart", [False, True])
def test_mla_output_of_8_bits(apart):
    """`o_scale` is what a unit of the output stands for, as in FlashInfer."""
    q, pool, table, lists, shape = make_latent_plan()
    want = attend_latent(q, pool, table, lists[3], 0.125)[0]
    wrapper = BatchMLAPagedAttentionWrapper(None)
    wrapper.plan(*lists, *shape, output_dtype="float8_e4m3fn", output_scale="per-tensor")
    parts = (q[..., :VALUES], q[..., VALUES:]), (pool[..., :VALUES], pool[..., VALUES:])
    if apart:
        parts = [tuple(each.copy() for each in pair) for pair in parts]
    out = np.zeros(want.shape, np.uint8)
    got = wrapper.run(query=parts[0], kv_cache=parts[1], out=out, o_scale=1 / 32)
    assert got is out
    np.testing.assert_allclose(from_e4m3(out) / 32, want, rtol=0.07, atol=4e-3)


def test_how_outputs_of_8_bits_are_asked_for():
    q, pool, _, lists, shape = make_latent_plan()
    wrapper = BatchMLAPagedAttentionWrapper(None)
    refuse("output_dtype: expected a type of 8 bits with output_scale, got f16",
           wrapper.plan, *lists, *shape, output_scale="per-tensor")  # fmt: skip
    refuse("output_dtype: expected f16, got f8E4M3FN",
           wrapper.plan, *lists, *shape, output_dtype="float8_e4m3fn")  # fmt: skip
    refuse("output_scale: expected one of none, per-tensor, got 'rows'",
           wrapper.plan, *lists, *shape, output_scale="rows")  # fmt: skip
    run = {"query": q, "kv_cache": pool}
    wrapper.plan(*lists, *shape)
    refuse("o_scale: expected none as planned by output_scale, got 0.5", wrapper.run, **run, o_scale=0.5)
    wrapper.plan(*lists, *shape, output_dtype="float8_e4m3fn", output_scale="per-tensor")
    refuse("o_scale: expected a number as planned by output_scale, got None", wrapper.run, **run)
    refuse("out: expected a tensor of 8 bits with o_scale, got None", wrapper.run, **run, o_scale=0.5)
    out = np.zeros((*q.shape[:2], VALUES), np.uint8)
    refuse("o_scale: expected a finite number above 0, got 0", wrapper.run, **run, out=out, o_scale=0)
    refuse("out: elements of: expected f8E4M3FN, got f16",
           wrapper.run, **run, out=out.astype(np.float16), o_scale=0.5)  # fmt: skip


def test_arguments_that_are_no_tensors():
    q, pool, _, lists, shape = make_latent_plan()
    wrapper = BatchMLAPagedAttentionWrapper(None)
    refuse("kv_indptr: expected a tensor of rank 1, got NoneType", wrapper.plan, lists[0], None, *lists[2:], *shape)
    refuse("q_data_type: expected a value, got None", wrapper.plan, *lists, *shape[:6], None, None)
    wrapper.plan(*lists, *shape)
    refuse("q_pe: expected a tensor, got NoneType", wrapper.run, q[..., :VALUES], None, kv_cache=pool)
    refuse("kpe_cache: expected a tensor, got NoneType", wrapper.run, query=q, ckv_cache=pool[..., :VALUES])
    refuse("q_nope: expected a pair of tensors, got 1", wrapper.run, query=(q,), kv_cache=pool)
    prefill = BatchPrefillWithPagedKVCacheWrapper(None)
    refuse("paged_kv_indptr: expected a tensor of rank 1, got list",
           prefill.plan, lists[0], [0, 1, 2, 3], *lists[2:], *SHAPE)  # fmt: skip


def test_lists_that_change():
    """A caller who writes to its lengths behind the plan does not change the batch."""
    q, pool, table, lists, shape = make_latent_plan()
    wrapper = BatchMLAPagedAttentionWrapper(None)
    want = attend_latent(q, pool, table, lists[3], 0.125)[0]
    wrapper.plan(*lists, *shape)
    lists[3][:] = 1
    check([wrapper.run(query=q, kv_cache=pool)], [want])
    q, k, v, table, lengths = make_batch(LENGTHS)
    prefill, ends = BatchPrefillWithPagedKVCacheWrapper(None), np.int32([0, 1, 2, 3, 4])
    prefill.plan(ends, *to_lists(table, lengths), *SHAPE)
    ends[1:] = 4
    check([prefill.run(q, (k, v))], [attend(q, k, v, table, lengths)[0]])


def make_long(dim, *heads):
    """A pool of so many columns, whose pages one sequence has four times: keys enough for runs."""
    rng = np.random.default_rng(8)
    pool = rng.standard_normal((PAGES, PAGE, *heads, dim)).astype(np.float16)
    table = np.tile(rng.permutation(PAGES), 4)[None].astype(np.int32)
    return pool, table, np.array([table.size * PAGE - 3], np.int32)


def check_partials(run, want):
    """Of this project's own: runs' results in bf16."""
    wide, narrow = (run(partials) for partials in ("f32", "bf16"))
    assert (wide != narrow).any()
    np.testing.assert_allclose(narrow, want, atol=1e-2)
    refuse("partials: expected auto, f32, f16 or bf16, got 'f64'", run, "f64")


def test_partials():
    q = make_batch([1])[0]
    k, table, lengths = make_long(DIM, KV_HEADS)
    v = k[::-1].copy()

    def run(partials):
        wrapper = make_decode(partials=partials)
        wrapper.plan(*to_lists(table, lengths), *SHAPE)
        return wrapper.run(q, (k, v))

    check_partials(run, attend(q, k, v, table, lengths)[0])


def test_mla_partials():
    q = make_latent([1])[0]
    pool, table, lengths = make_long(LATENT)
    indptr, indices, _ = to_lists(table, lengths)

    def run(partials):
        wrapper = BatchMLAPagedAttentionWrapper(None, partials=partials)
        wrapper.plan(np.arange(2, dtype=np.int32), indptr, indices, lengths, MLA_HEADS, VALUES,
                     LATENT - VALUES, PAGE, True, 0.125, np.float16, np.float16)  # fmt: skip
        return wrapper.run(q[..., :VALUES], q[..., VALUES:], pool[..., :VALUES], pool[..., VALUES:])

    check_partials(run, attend_latent(q, pool, table, lengths, 0.125)[0])


@pytest.mark.parametrize("factor", [0.5, 2, np.float32(0.5), np.full(1, 0.5, np.float32)])
def test_factor_of_values_in_bf16(factor):
    """Bits are not multiplied, whatever the factor is."""
    q, k, v, table, lengths = make_batch([70, 3], dtype=np.float32)
    q, k, v = (arrays.to_bf16(each) for each in (q, k, v))
    want = attend(*(arrays.from_bf16(each) for each in (q, k, v)), table, lengths)[0] * factor
    wrapper = make_decode()
    wrapper.plan(*to_lists(table, lengths), *SHAPE, q_data_type="bfloat16")
    got = wrapper.run(q, (k, v), v_scale=factor)
    np.testing.assert_allclose(arrays.from_bf16(got), want, atol=2e-2)
    wrapper = BatchPrefillWithPagedKVCacheWrapper(None)
    ends = np.arange(3, dtype=np.int32)
    wrapper.plan(ends, *to_lists(table, lengths), *SHAPE, causal=True, q_data_type="bfloat16")
    got = wrapper.run(q, (k, v), v_scale=factor)
    np.testing.assert_allclose(arrays.from_bf16(got), want, atol=2e-2)


def test_bools_of_numpy():
    q, k, v, table, lengths = make_batch([70, 33], queries=2)
    wrapper = make_decode()
    rows = q.swapaxes(1, 2).reshape(4, HEADS, DIM)
    for causal in (False, True):
        wrapper.plan(*to_lists(table, lengths), *SHAPE, q_len_per_req=2, is_causal=np.bool_(causal))
        got = wrapper.run(rows, (k, v)).reshape(2, 2, HEADS, DIM).swapaxes(1, 2)
        check([got], attend(q, k, v, table, lengths, causal=causal)[:1])


def test_numbers_that_are_none():
    """Numbers of a wrong kind are errors that name them."""
    q, k, v, table, lengths = make_batch([70, 33])
    lists = to_lists(table, lengths)
    wrapper = make_decode()
    for name, value, kind, message in (
        ("window_left", None, TypeError, "window_left: expected an integer, got None"),
        ("logits_soft_cap", float("nan"), ValueError, "logits_soft_cap: expected a finite number"),
        ("logits_soft_cap", "a", TypeError, "logits_soft_cap: expected a number, got 'a'"),
        ("is_causal", "no", TypeError, "is_causal: expected True or False, got 'no'"),
    ):
        with pytest.raises(kind, match=message):
            wrapper.plan(*lists, *SHAPE, **{name: value})
    wrapper.plan(*lists, *SHAPE)
    with pytest.raises(ValueError, match="q_scale: expected a finite number, got nan"):
        wrapper.run(q, (k, v), q_scale=float("nan"))
    refuse("v_scale: expected a number, got a tensor of [2]",
           wrapper.run, q, (k, v), v_scale=np.ones(2, np.float32))  # fmt: skip
    refuse("paged_kv_cache: expected a pair of tensors or one of rank 5 with a second dimension of 2, got NoneType",
           wrapper.run, q, None)  # fmt: skip
    wrapper = BatchPrefillWithPagedKVCacheWrapper(None)
    with pytest.raises(TypeError, match="max_token_per_sequence: expected an integer, got 'a'"):
        wrapper.plan(np.arange(3, dtype=np.int32), *lists, *SHAPE, max_token_per_sequence="a")
