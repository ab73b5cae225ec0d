"""attn.compat.flashinfer on torch tensors of the CPU, whose operators are references; plans of
graphs are stand-ins."""

import math

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from attn.compat import _lists, _mla, _paged  # noqa: E402
from attn.compat.flashinfer import (  # noqa: E402
    BatchDecodeWithPagedKVCacheWrapper,
    BatchMLAPagedAttentionWrapper,
    BatchPrefillWithPagedKVCacheWrapper,
)
from test_torch_serving import decode, decode_latent, make_batch, make_latent, on_cpu  # noqa: E402, F401

LOG2E = 1 / math.log(2)


def make_lists(table, lengths):
    """A wider list than the batch needs, as servers have it."""
    pages = -(-lengths // 16)
    indptr = torch.cat([torch.zeros(1, dtype=torch.int32), pages.cumsum(0).int()])
    indices = torch.cat([row[:n] for row, n in zip(table, pages.tolist(), strict=True)])
    last = torch.where(lengths > 0, lengths - (pages - 1) * 16, 0).int()
    return indptr, torch.cat([indices, indices.new_full((4,), 99)]), last


def test_lists():
    _, _, _, table, lengths = make_batch()
    indptr, indices, last = make_lists(table, lengths)
    got = _lists.spread(indptr, indices, 8)
    assert torch.equal(_lists.measure(indptr, last, 16), lengths) and got.dtype == torch.int32
    for row, length in enumerate(lengths.tolist()):
        count = -(-length // 16)
        assert torch.equal(got[row, :count], table[row, :count]) and (got[row, count:] == -1).all()
    assert (_lists.spread(indptr * 0, indices[:0], 2) == -1).all()


def test_joined():
    """Views side by side are one tensor without a copy."""
    pool = torch.randn(3, 4, 48)
    names = ("ckv_cache", "kpe_cache")
    both = _lists.join(names, pool[..., :32], pool[..., 32:])
    assert torch.equal(both, pool) and both.data_ptr() == pool.data_ptr()
    assert _lists.join(names, pool[..., :32].clone(), pool[..., 32:]) is None


@pytest.mark.parametrize("queries", [0, 3])
def test_decode(on_cpu, queries):  # noqa: F811
    q, k, v, table, lengths = make_batch(queries)
    rows = q if queries == 0 else q.transpose(1, 2).flatten(0, 1)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(torch.empty(8))
    wrapper.plan(*make_lists(table, lengths), 4, 2, 32, 16, q_len_per_req=max(queries, 1))
    out, lse = torch.empty_like(rows), torch.empty(rows.shape[:2])
    wrapper.run(rows, (k, v), out=out, lse=lse, return_lse=True)
    want, log = decode(q, k, v, table, lengths)
    if queries:
        want, log = (each.transpose(1, 2).flatten(0, 1) for each in (want, log))
    torch.testing.assert_close(out, want)
    torch.testing.assert_close(lse, log * LOG2E)
    torch.testing.assert_close(wrapper.run(rows, torch.stack([k, v], 1)), want)


def test_latent(on_cpu):  # noqa: F811
    q, pool, table, lengths = make_latent()
    indptr, indices, _ = make_lists(table, lengths)
    wrapper = BatchMLAPagedAttentionWrapper(torch.empty(8))
    counts = torch.arange(4, dtype=torch.int32)
    options = (4, 32, 16, 16, False, 0.25, torch.float16, torch.float16)
    wrapper.plan(counts, indptr, indices, lengths, *options)
    o, lse = wrapper.run(q[..., :32], q[..., 32:], pool[..., :32], pool[..., 32:], return_lse=True)
    want, log = decode_latent(q, pool, table, lengths, 32, 0.25)
    torch.testing.assert_close(o, want)
    torch.testing.assert_close(lse, log * LOG2E)


class _Plan:
    """In the place of attn.DecodePlan."""

    made = []

    def __init__(self, **options):
        self.options, self.plans, self.runs = options, [], []
        self.made.append(self)

    def plan(self, lengths, table):
        self.plans.append((lengths, table))

    def run(self, q, *pools, out, lse=None, **more):
        self.runs.append((q, more))
        out.fill_(7)
        if lse is not None:
            lse.fill_(1)


def test_graph(monkeypatch):
    """A plan for each form of a launch, told of each batch; its memory stays."""
    monkeypatch.setattr(_Plan, "made", [])
    monkeypatch.setattr(_paged, "DecodePlan", _Plan)
    q, k, v, table, lengths = make_batch()
    lists = make_lists(table, lengths)
    buffers = [torch.zeros(4, dtype=torch.int32), torch.zeros(30, dtype=torch.int32)]
    wrapper = BatchDecodeWithPagedKVCacheWrapper(
        torch.empty(8), "NHD", True, True, *buffers, torch.zeros(3, dtype=torch.int32)
    )
    wrapper.plan(*lists, 4, 2, 32, 16, q_data_type="float16")
    o, lse = wrapper.run(q, torch.stack([k, v], 1), return_lse=True)
    assert (o == 7).all() and torch.allclose(lse, torch.tensor(LOG2E, dtype=torch.float32))
    wrapper.run(q, (k, v))
    wrapper.plan(lists[0] * 0, *lists[1:], 4, 2, 32, 16)
    wrapper.run(q, (k, v))
    first, second = _Plan.made
    assert first.options["page_stride"] == 2 * k.stride(0) and first.options["lse"]
    assert second.options["max_pages"] == 30 and not second.options["lse"]
    (kept, _), (same, pages) = second.plans
    assert kept.data_ptr() == same.data_ptr() and (same == 0).all() and (pages == -1).all()
    with pytest.raises(ValueError, match="paged_kv_cache: strides of"):
        wrapper.run(q, (k.transpose(1, 2).contiguous().transpose(1, 2), v))


def make_latent_graph(monkeypatch):
    """q and a pool, lists to plan with, and a wrapper of graphs whose plans are kept."""
    monkeypatch.setattr(_Plan, "made", [])
    monkeypatch.setattr(_mla, "DecodePlan", _Plan)
    q, pool, table, lengths = make_latent()
    indptr, indices, _ = make_lists(table, lengths)
    lists = (torch.arange(4, dtype=torch.int32), indptr, indices, lengths)
    return q, pool, lists, BatchMLAPagedAttentionWrapper(torch.empty(8), True, *lists, max_pages=8)


def test_latent_graph(monkeypatch):
    q, pool, lists, wrapper = make_latent_graph(monkeypatch)
    options = (4, 32, 16, 16, False, 0.25, torch.float16, torch.float16)
    for _ in range(2):
        wrapper.plan(*lists, *options)
        assert (wrapper.run(query=q, kv_cache=pool) == 7).all()
    (plan,) = _Plan.made
    assert plan.options["latent"] and plan.options["max_pages"] == 8 and len(plan.plans) == 2
    wrapper.plan(*lists, *options[:6], torch.bfloat16, torch.bfloat16)
    wrapper.run(query=q.bfloat16(), kv_cache=pool.bfloat16())
    assert [each.options["dtype"] for each in _Plan.made] == ["f16", "bf16"]


def test_latent_graph_of_8_bits(monkeypatch):
    """Rotated columns whose unit is another one are the queries' business."""
    q, pool, lists, wrapper = make_latent_graph(monkeypatch)
    wrapper.plan(*lists, 4, 32, 16, 16, False, 0.25, torch.float16, torch.float8_e4m3fn)
    pool = pool.to(torch.float8_e4m3fn)
    parts = (q[..., :32].clone(), q[..., 32:].clone()), (pool[..., :32], pool[..., 32:])
    for rotated in (0.5, 0.125):
        o = wrapper.run(query=parts[0], kv_cache=parts[1], ckv_scale=0.5, kpe_scale=rotated)
        assert (o == 7).all() and o.dtype == torch.float16
    (plan,) = _Plan.made
    assert plan.options["kv_dtype"] == "f8E4M3FN" and plan.options["scales"] == "tensor"
    (first, scales), (second, _) = plan.runs
    assert (
        torch.equal(first, q)
        and scales["k_scale"] is scales["v_scale"]
        and scales["k_scale"] == 0.5
    )
    assert torch.equal(second, torch.cat([q[..., :32], q[..., 32:] / 4], -1))


def test_queries_that_are_not_looked_at():
    """Lists on a device, here that of no memory: a later bound above the first would lose
    rows."""
    _, _, _, table, lengths = make_batch()
    lists = make_lists(table, lengths)
    counts = torch.arange(4, dtype=torch.int32)
    sizes = (lists[0], torch.zeros(30, dtype=torch.int32), lists[2])
    wrapper = BatchPrefillWithPagedKVCacheWrapper(torch.empty(8), "NHD", True, counts, *sizes)
    wrapper.plan(counts, *lists, 4, 2, 32, 16, max_token_per_sequence=2)
    with pytest.raises(
        ValueError, match="max_token_per_sequence: expected at most 2, that of the first"
    ):
        wrapper.plan(counts.to("meta"), *lists, 4, 2, 32, 16, max_token_per_sequence=3)
    assert wrapper._most_queries == 2
