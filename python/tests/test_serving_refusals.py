"""Calls of attn.decode and its like with something missing, or with numbers at the end of what a
kernel takes."""

import attn
import numpy as np
import pytest
from attn import _host
from test_decode import DIM, HEADS, KV_HEADS, PAGE, VALUES, attend, check, make_batch, make_latent, refuse


@pytest.fixture(autouse=True)
def without_gpu(monkeypatch):
    """Arrays go to the simulator, also where there is a GPU."""
    monkeypatch.setattr(_host, "has_device", lambda: False)


@pytest.mark.parametrize("name", ["k_cache", "page_table", "kv_lengths"])
def test_operands_that_are_missing(name):
    names = ("q", "k_cache", "v_cache", "page_table", "kv_lengths")
    tensors = dict(zip(names, make_batch([70, 3]), strict=True)) | {name: None}
    refuse(f'tensor "{name}": expected a tensor, got None', attn.decode, **tensors)


def test_numbers_that_are_missing():
    q, pool, table, lengths = make_latent([100, 2])
    refuse("scale: expected a number, got None",
           attn.mla_decode, q, pool, table, lengths, value_dim=VALUES, scale=None)  # fmt: skip
    refuse("value_dim: expected a number, got None",
           attn.mla_decode, q, pool, table, lengths, value_dim=None, scale=0.1)  # fmt: skip
    batch = make_batch([70, 3])
    counts = np.arange(3, dtype=np.int32)
    refuse("max_seqlen_q: expected a number, got None",
           attn.prefill, *batch, counts, max_seqlen_q=None)  # fmt: skip


def test_numbers_without_a_point():
    """Python prints small numbers without one, which MLIR wants."""
    q, k, v, table, lengths = make_batch([70, 3])
    got = attn.decode(q, k, v, table, lengths, scale=1e-5, softcap=1e20, lse=True)
    check(got, attend(q.astype(np.float64) * 1e-5 * DIM**0.5, k, v, table, lengths))
    got = attn.decode(q, k, v, table, lengths, out_scale=1e-05, kv_splits=2)
    assert np.all(got & 0x7F == 0)
    with pytest.raises(attn.CompileError, match="expected a finite 'scale' other than zero"):
        attn.decode(q, k, v, table, lengths, scale=1e300)


def test_no_sequences():
    batch = make_batch([70, 3])
    q, k, v, table, lengths = batch
    plan = attn.DecodePlan(
        batch=2, heads=HEADS, kv_heads=KV_HEADS, dim=DIM, page_size=PAGE, max_pages=8, dtype="float16"
    )
    plan.plan(np.zeros(0, np.int32), np.zeros((0, 8), np.int32))
    assert np.all(plan.run(q, k, v) == 0)
    o, lse = attn.cascade(q[:0], k, v, [attn.Level(table[:0], lengths[:0])], lse=True)
    assert o.shape == (0, HEADS, DIM) and lse.shape == (0, HEADS)


def test_levels():
    """The last level is each sequence's own: its keys have positions."""
    q, k, v, table, lengths = make_batch([70, 3, 16, 16])
    refuse("level 0: expected an attn.Level, got tuple", attn.cascade, q, k, v, [(table, lengths)])
    refuse("level 0: expected the keys of each of the 4 sequences of q as the last level, got those of 2 groups",
           attn.cascade, q, k, v, [attn.Level(table[:2], lengths[:2], 2)])  # fmt: skip


def test_plans():
    shape = {"batch": 2, "heads": HEADS, "kv_heads": KV_HEADS, "dim": DIM, "page_size": PAGE, "max_pages": 8}
    refuse("row_bytes: expected none but for a latent plan", attn.DecodePlan, **shape, row_bytes=656)
    with pytest.raises(TypeError, match="device: expected an integer, got 'cuda'"):
        attn.DecodePlan(**shape, device="cuda")
