"""Pages of any number of keys on the simulator."""

import attn
import numpy as np
import pytest
from test_decode import (
    DIM,
    HEADS,
    KV_HEADS,
    MLA_HEADS,
    VALUES,
    attend,
    attend_latent,
    check,
    make_batch,
    make_latent,
)

SIZES = [1, 3, 48, 512, 544]

pytestmark = pytest.mark.usefixtures("without_gpu")


def get_lengths(page):
    """Of sequences with a part of a page behind a whole one, without keys, and in one page."""
    return [page + min(page, 5), 0, min(page, 7)]


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("page", SIZES)
def test_decode(page, chip, monkeypatch):
    monkeypatch.setenv("ATTN_CHIP", chip)
    batch = make_batch(get_lengths(page), seed=page, page_size=page)
    check(attn.decode(*batch, lse=True), attend(*batch))


@pytest.mark.parametrize(
    "page, chip", [(3, "sm_80"), (48, "sm_90a"), (544, "sm_100a")]
)
def test_other_calls(page, chip, monkeypatch):
    """Packed queries, latent rows and a plan."""
    monkeypatch.setenv("ATTN_CHIP", chip)
    lengths = get_lengths(page)
    q, k, v, table, counts = make_batch(lengths, queries=2, seed=page, page_size=page)
    want = attend(q, k, v, table, counts)
    rows = q.swapaxes(1, 2).reshape(-1, HEADS, DIM)
    ends = np.arange(0, len(rows) + 1, 2, dtype=np.int32)
    o, lse = attn.prefill(rows, k, v, table, counts, ends, max_seqlen_q=2, causal=True, lse=True)
    check((o.reshape(3, 2, HEADS, DIM).swapaxes(1, 2), lse.reshape(3, 2, HEADS).swapaxes(1, 2)), want)
    plan = attn.DecodePlan(
        batch=3, heads=HEADS, kv_heads=KV_HEADS, dim=DIM, page_size=page, max_pages=8, queries=2,
        dtype="float16", lse=True,
    )  # fmt: skip
    plan.plan(counts, table)
    check(plan.run(q, k, v), want)
    latent = make_latent(lengths, seed=page, page_size=page)
    got = attn.mla_decode(*latent, value_dim=VALUES, scale=0.125, lse=True)
    assert latent[0].shape[1] == MLA_HEADS
    check(got, attend_latent(*latent, 0.125))
