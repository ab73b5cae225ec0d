"""States to go on from (`init`) on the simulator: attn.decode and its like."""

import attn
import numpy as np
import pytest
from test_cascade import make_levels
from test_decode import HEADS, check, make_batch, refuse

pytestmark = pytest.mark.usefixtures("without_gpu")


def make_state(shape, dtype, seed=1):
    """A state of which some rows are absent, whatever their o is."""
    rng = np.random.default_rng(seed)
    o = rng.standard_normal(shape).astype(dtype)
    lse = (rng.standard_normal(shape[:-1]) + 3).astype(np.float32)
    absent = rng.random(shape[:-1]) < 0.3
    o[absent], lse[absent] = np.nan, -np.inf
    return o, lse


def merge(state, result):
    """What two parts of the keys give together, in float64."""
    pairs = [(o.astype(float), lse.astype(float)) for o, lse in (state, result)]
    total = np.logaddexp(pairs[0][1], pairs[1][1])
    o = np.zeros(pairs[1][0].shape)
    for part, lse in pairs:
        there = np.isfinite(lse)
        o[there] += np.exp(lse[there] - total[there])[:, None] * part[there]
    return o, total


@pytest.mark.parametrize(
    ("queries", "dtype", "splits"), [(1, np.float32, None), (3, np.float16, 3)]
)
def test_decode(queries, dtype, splits):
    """Sinks belong to one of the parts; a sequence without keys keeps its state."""
    batch = make_batch([100, 0, 17] if queries == 1 else [100, 3, 17], queries)
    sinks = np.linspace(-1, 2, HEADS, dtype=np.float32)
    state = make_state(batch[0].shape, dtype)
    options = {"sinks": sinks, "kv_splits": splits, "lse": True}
    want = merge(state, attn.decode(*batch, **options))
    check(attn.decode(*batch, init=state, **options), want)


def test_regions_and_runs():
    batch = make_batch([100, 17])
    state = make_state(batch[0].shape, np.float32)
    options = {"mask_mod": lambda b, h, q_idx, kv_idx: kv_idx % 3 != 1, "run_keys": 64, "lse": True}
    want = merge(state, attn.decode(*batch, **options))
    check(attn.decode(*batch, init=state, **options), want)


def test_mla_decode():
    rng = np.random.default_rng(2)
    q, pool = (rng.standard_normal(s).astype(np.float16) for s in ((2, 16, 96), (8, 16, 96)))
    table, lengths = np.arange(8, dtype=np.int32).reshape(2, 4), np.int32([50, 0])
    state = make_state((2, 16, 64), np.float32)
    options = {"value_dim": 64, "scale": 0.125, "lse": True}
    want = merge(state, attn.mla_decode(q, pool, table, lengths, **options))
    check(attn.mla_decode(q, pool, table, lengths, init=state, **options), want)


def test_prefill():
    q, k, v, table, lengths = make_batch([40, 17])
    rows = np.concatenate([q, q[:, ::-1]])
    state = make_state(rows.shape, np.float32)
    options = {"max_seqlen_q": 3, "lse": True}
    rest = (k, v, table, lengths, np.int32([0, 3, 4]))
    want = merge(state, attn.prefill(rows, *rest, **options))
    check(attn.prefill(rows, *rest, init=state, **options), want)


@pytest.mark.parametrize("is_packed", [False, True])
def test_cascade(is_packed):
    """The last level goes on from the state, whether its groups have one size or not."""
    k, v, parts = make_levels([[40], [20, 9]])
    (table, counts), (tables, own) = parts
    q = make_batch([1] * 2, 2)[0]
    sequences = np.int32([0, 1, 2]) if is_packed else 1
    levels = [attn.Level(table, counts, 2), attn.Level(tables, own, sequences)]
    state = make_state(q.shape, np.float32)
    want = merge(state, attn.cascade(q, k, v, levels, lse=True))
    check(attn.cascade(q, k, v, levels, init=state, lse=True), want)
    one = attn.cascade(q[:, :, 0], k, v, levels, init=(state[0][:, :, 0], state[1][:, :, 0]))
    want = merge([x[:, :, 0] for x in state], attn.cascade(q[:, :, 0], k, v, levels, lse=True))
    check([one], want[:1])


def test_refused():
    batch = make_batch([40, 17])
    o, lse = make_state(batch[0].shape, np.float32)
    for message, init in (
        ("init: expected a pair, o and its LSE", o),
        ("init: expected a pair, o and its LSE", (o, None)),
        ('tensor "init_o": expected shape', (o[:, :4], lse)),
        ('tensor "init_o": expected shape (batch, heads, dim)', (o[0], lse)),
        ('tensor "init_lse": expected shape', (o, lse[:1])),
        ('tensor "init_lse": expected shape (batch, heads) or', (o, lse[0])),
        ('tensor "init_lse": expected elements of f32', (o, lse.astype(np.float16))),
        ('tensor "init_o": expected f16, bf16 or f32, got i32', (np.zeros(o.shape, np.int32), lse)),
    ):
        refuse(message, attn.decode, *batch, init=init)
    level = attn.Level(*batch[3:])
    refuse(
        'tensor "init_lse": expected shape', attn.cascade, *batch[:3], [level], init=(o, lse[:1])
    )
