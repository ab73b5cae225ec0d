"""Calls of attn.decode and its like with something missing, or with numbers at the end of what a
kernel takes."""

import copy
import pickle

import attn
import numpy as np
import pytest
from test_decode import (
    DIM,
    HEADS,
    KV_HEADS,
    PAGE,
    VALUES,
    attend,
    check,
    make_batch,
    make_latent,
    make_plan,
    refuse,
)

pytestmark = pytest.mark.usefixtures("without_gpu")


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
    plan = make_plan(2)
    plan.plan(np.zeros(0, np.int32), np.zeros((0, 8), np.int32))
    assert np.all(plan.run(q, k, v) == 0)
    o, lse = attn.cascade(q[:0], k, v, [attn.Level(table[:0], lengths[:0])], lse=True)
    assert o.shape == (0, HEADS, DIM) and lse.shape == (0, HEADS)
    # A batch without sequences needs no pages.
    none, nobody = k[:0], (table[:0], lengths[:0])
    o, lse = attn.decode(q[:0], none, none, *nobody, added=(none, none, *nobody), lse=True)
    assert o.shape == (0, HEADS, DIM) and lse.shape == (0, HEADS)
    o = attn.mla_decode(q[:0, :, :24], none[:, :, 0, :24], *nobody, value_dim=16, scale=0.1)
    assert o.shape == (0, HEADS, 16)


@pytest.mark.parametrize("pages", [None, 0])
def test_no_sequences_of_packed_queries(pages):
    q, k, v, table, lengths = make_batch([70, 3])
    pools, counts = (k[:pages], v[:pages]), np.zeros(1, np.int32)
    for rows in (0, 2):
        o, lse = attn.prefill(
            q[:rows], *pools, table[:0], lengths[:0], counts, max_seqlen_q=1, lse=True
        )
        assert o.shape == (rows, HEADS, DIM) and lse.shape == (rows, HEADS)
        assert np.isnan(o).all() and np.isnan(lse).all()
    level = attn.Level(table[:1], lengths[:1], np.int32([0, 0]))
    last = attn.Level(table[:0], lengths[:0])
    assert attn.cascade(q[:0], k, v, [level, last]).shape == (0, HEADS, DIM)


def test_rows_that_no_sequence_has():
    """They are NaN, not what was in memory; a bound that does not hold is an error."""
    q, k, v, table, lengths = make_batch([70, 3])
    counts = np.int32([0, 1, 1])
    o, lse = attn.prefill(q, k, v, table, lengths, counts, max_seqlen_q=1, lse=True)
    assert np.isnan(o[1]).all() and np.isnan(lse[1]).all() and not np.isnan(o[0]).any()
    refuse("max_seqlen_q: expected at least 2, the queries of sequence 1, got 1",
           attn.prefill, q, k, v, table, lengths, np.int32([0, 0, 2]), max_seqlen_q=1)  # fmt: skip


def test_ranks_of_states():
    q, k, v, table, lengths = make_batch([70, 3])
    lse = np.zeros(q.shape[:2], np.float32)
    for init, message in (
        ((q[:, :, None], lse), '"init_o": expected beside q a rank of 3, got 4'),
        ((q, lse[..., None]), '"init_lse": expected beside q a rank of 2, got 3'),
        ((q, None), "init: expected a pair, o and its LSE, got None among them"),
        ((q,), "init: expected a pair, o and its LSE, got 1 of them"),
        (q, "init: expected a pair, o and its LSE, got ndarray"),
        (
            ("x", lse),
            '"init_o": expected a torch tensor, __cuda_array_interface__ or DLPack, got str',
        ),
    ):
        refuse(message, attn.decode, q, k, v, table, lengths, init=init)


def test_names_of_latent_arguments():
    q, pool, table, lengths = make_latent([100, 2])
    options = {"value_dim": VALUES, "scale": 0.1}
    refuse(
        'tensor "kv_cache": expected a tensor, got None',
        attn.mla_decode,
        q,
        None,
        table,
        lengths,
        **options,
    )
    refuse(
        'tensor "kv_cache": expected head dimension as q',
        attn.mla_decode,
        q[..., :80],
        pool,
        table,
        lengths,
        **options,
    )
    refuse(
        'tensor "kv_cache": expected pages of 1 to 65536 keys, got 0',
        attn.mla_decode,
        q,
        pool[:, :0],
        table,
        lengths,
        **options,
    )


def test_sizes_of_pages():
    q, _, _, table, lengths = make_batch([70, 3])
    pool = np.zeros((2, 0, KV_HEADS, DIM), np.float16)
    message = "expected pages of 1 to 65536 keys, got 0"
    refuse(f'tensor "k_cache": {message}', attn.decode, q, pool, pool, table, lengths)
    large = np.zeros((1, 65537, KV_HEADS, 1), np.float16)
    large = np.broadcast_to(large, (1, 65537, KV_HEADS, DIM))
    message = "expected pages of 1 to 65536 keys, got 65537"
    refuse(f'tensor "k_cache": {message}', attn.decode, q, large, large, table, lengths)
    message = 'tensor "k_cache": expected at least 1 page, got 0'
    none = np.zeros((0, PAGE, KV_HEADS, DIM), np.float16)
    refuse(message, attn.decode, q, none, none, table, lengths)


def test_numbers_that_no_kernel_takes():
    """Long values are said in short."""
    batch = make_batch([70, 3])
    for option, message in (
        ({"run_keys": 30}, "run_keys: expected a multiple of 16 keys, got 30"),
        ({"scale": 0}, "scale: expected a number other than 0, got 0"),
        ({"scale": np.ones((20, 3))}, r"scale: expected a number, got ndarray of shape [20, 3]"),
        ({"out_scale": -1.0}, "out_scale: expected a number above 0, got -1.0"),
        ({"window": "x" * 100}, f"window: expected a sequence, got '{'x' * 56}..."),
        ({"out_type": "float8_e8m0fnu"}, "out_type: expected f16, bf16, f32 or floats of 8 bits, got f8E8M0FNU"),
    ):
        refuse(message, attn.decode, *batch, **option)
    q, _, _, table, lengths = batch
    pool = np.zeros((2, PAGE, DIM), np.float16)
    wrong = "value_dim: expected a head dimension that is a multiple of 8, got 3; pad to 8 with zeros"
    refuse(wrong, attn.mla_decode, q, pool, table, lengths, value_dim=3, scale=1.0)


def test_what_plans_are_run_with():
    q, k, v, table, lengths = make_batch([70, 3])
    plan = make_plan(2, sinks=True)
    plan.plan(lengths, table)
    sinks = np.zeros(HEADS, np.float32)
    for arguments, options, message in (
        ((None, k, v), {}, 'tensor "q": expected a tensor, got None'),
        ((q, None, v), {}, 'tensor "k_cache": expected a tensor, got None'),
        ((q, k), {}, 'tensor "v_cache": expected a pool of values'),
        ((q, k, v), {}, 'tensor "sinks": expected a tensor, as the plan was made'),
        ((q, k, v), {"sinks": sinks[1:]}, 'tensor "sinks": expected shape [8], got [7]'),
        (
            (q, k, v),
            {"sinks": sinks.astype(np.float16)},
            'tensor "sinks": expected elements of f32, got f16',
        ),
        ((q, k, v), {"sinks": sinks, "init": q}, "init: expected a pair"),
        ((q, k, v), {"sinks": sinks, "out": q}, "out: expected none with numpy arrays"),
    ):
        refuse(message, plan.run, *arguments, **options)
    refuse('tensor "kv_lengths": expected a tensor, got None', plan.plan, None, table)
    for call in (pickle.dumps, copy.copy, copy.deepcopy):
        refuse("DecodePlan: expected to stay in its process", call, plan)
    assert plan.run(q, k, v, sinks=sinks).shape == q.shape


def test_states_to_merge():
    o, lse = np.zeros((2, 3, 4, 8), np.float32), np.zeros((2, 3, 4), np.float32)
    refuse('tensor "partial_lse": expected a tensor, got None', attn.merge_states, o, None)
    refuse('tensor "partial_o": expected a tensor, got None', attn.merge_states, None, lse)
    refuse(
        'tensor "partial_lse": expected shape [2, 3, 4], got [2, 3]',
        attn.merge_states,
        o,
        lse[..., 0],
    )
    refuse(
        'tensor "partial_o": expected elements of f32, got f16',
        attn.merge_states,
        o.astype(np.float16),
        lse,
    )


def test_levels():
    """The last level is each sequence's own: its keys have positions."""
    q, k, v, table, lengths = make_batch([70, 3, 16, 16])
    refuse("level 0: expected an attn.Level, got tuple", attn.cascade, q, k, v, [(table, lengths)])
    refuse("level 0: expected the keys of each of the 4 sequences of q as the last level, got those of 2 groups",
           attn.cascade, q, k, v, [attn.Level(table[:2], lengths[:2], 2)])  # fmt: skip


def test_plans():
    shape = {
        "batch": 2,
        "heads": HEADS,
        "kv_heads": KV_HEADS,
        "dim": DIM,
        "page_size": PAGE,
        "max_pages": 8,
    }
    refuse(
        "row_bytes: expected none but for a latent plan", attn.DecodePlan, **shape, row_bytes=656
    )
    with pytest.raises(TypeError, match="device: expected an integer, got 'cuda'"):
        attn.DecodePlan(**shape, device="cuda")
