"""Keys beside those of a table (`added`) on the simulator, and what calls refuse of them."""

import attn
import numpy as np
import pytest
from test_decode import DIM, HEADS, KV_HEADS, attend, check, make_batch, refuse

pytestmark = pytest.mark.usefixtures("without_gpu")


def make_list(lengths, page=1, seed=5, width=24):
    """Pools, a table of which some entries are outside of them, and lengths."""
    rng = np.random.default_rng(seed)
    pools = [rng.standard_normal((60, page, KV_HEADS, DIM)).astype(np.float16) for _ in "kv"]
    table = np.stack([rng.permutation(60)[:width] for _ in lengths]).astype(np.int32)
    table[:, ::5] = -1
    return *pools, table, np.array(lengths, np.int32)


def attend_added(q, added):
    """What the added keys alone give, in float64."""
    k, v, table, lengths = added
    rows = q[:, :, None] if q.ndim == 3 else q
    o, lse = np.zeros(rows.shape), np.full(rows.shape[:3], -np.inf)
    for b, length in enumerate(lengths):
        places = np.arange(length)
        pages = table[b, places // k.shape[1]]
        there = (pages >= 0) & (pages < k.shape[0])
        keys, values = (pool[pages[there], places[there] % k.shape[1]].astype(float) for pool in (k, v))
        if not there.any():
            continue
        for h in range(HEADS):
            g = h // (HEADS // KV_HEADS)
            scores = rows[b, h].astype(float) @ keys[:, g].T * DIM**-0.5
            lse[b, h] = np.log(np.exp(scores).sum(-1))
            o[b, h] = np.exp(scores - lse[b, h][:, None]) @ values[:, g]
    return (o[:, :, 0], lse[:, :, 0]) if q.ndim == 3 else (o, lse)


def join(first, second):
    """Both sets of keys, in float64."""
    total = np.logaddexp(first[1], second[1])
    parts = [np.exp(lse - np.where(np.isinf(total), 0, total))[..., None] * o for o, lse in (first, second)]
    return sum(parts), total


@pytest.mark.parametrize(
    ("queries", "page", "options"),
    [
        (1, 1, {}),
        (1, 1, {"window": (20, 0)}),
        (3, 4, {"window": (9, 0), "kv_splits": 3}),
        (3, 1, {"kv_splits": 1}),
    ],
)
def test_decode(queries, page, options):
    batch = make_batch([100, 0, 17] if queries == 1 else [100, 3, 17], queries)
    added = make_list([20, 9, 0], page)
    want = join(attend(*batch, left=options.get("window", (-1,))[0]), attend_added(batch[0], added))
    check(attn.decode(*batch, added=added, lse=True, **options), want)


def test_sinks_and_state():
    """Both belong to all keys together."""
    batch, added = make_batch([50, 17]), make_list([20, 9])
    sinks = np.linspace(-1, 2, HEADS, dtype=np.float32)
    want = join(attend(*batch, sinks=sinks), attend_added(batch[0], added))
    check(attn.decode(*batch, added=added, sinks=sinks, lse=True), want)
    q = batch[0]
    init = (q.astype(np.float32), np.ones(q.shape[:2], np.float32))
    expected = join(want, (q.astype(float), np.ones(q.shape[:2])))
    check(attn.decode(*batch, added=added, sinks=sinks, init=init, lse=True), expected)


def test_mla_decode():
    """Values are columns of the added keys, too."""
    rng = np.random.default_rng(3)
    q, pool, other = (
        rng.standard_normal(shape).astype(np.float16)
        for shape in ((2, 16, 192), (12, 16, 192), (40, 1, 192))
    )
    table = np.array([[3, 5, 0, 1], [7, 2, 8, 9]], np.int32)
    lengths = np.array([60, 33], np.int32)
    ids = np.array([[4, -1, 9, 30], [11, 12, 40, 0]], np.int32)
    added = (other, ids, np.array([4, 3], np.int32))
    got = attn.mla_decode(
        q, pool, table, lengths, value_dim=128, scale=0.1, window=(24, 0), added=added, lse=True
    )
    for b in range(2):
        own = pool[table[b]].reshape(-1, 192)[: lengths[b]][-25:]
        listed = [i for i in ids[b][: added[2][b]] if 0 <= i < 40]
        keys = np.concatenate([own, other[listed, 0]]).astype(float)
        scores = q[b].astype(float) @ keys.T * 0.1
        lse = np.log(np.exp(scores).sum(-1))
        check([each[b] for each in got], (np.exp(scores - lse[:, None]) @ keys[:, :128], lse))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a[:3], "expected pools of keys and values, a table and lengths, got 3"),
        (lambda a: (a[0], None, *a[2:]), "expected tensors, got None among them"),
        (lambda a: (a[0].astype(np.float32), *a[1:]), "elements as the other keys, f16, got f32"),
        (lambda a: (a[0][:, :, :1], *a[1:]), "as many key heads as the other keys, 2, got 1"),
        (lambda a: (*a[:2], a[2][:1], a[3]), "expected a row for each of the 2 sequences"),
        (lambda a: (*a[:3], a[3].astype(np.int64)), 'tensor "added_lengths": expected'),
        (
            lambda a: (*a[:2], a[2][:, :0], 0 * a[3]),
            'tensor "added_table": expected at least 1 column, got 0',
        ),
    ],
)
def test_refusals(change, message):
    batch, added = make_batch([50, 17]), make_list([20, 9])
    refuse(message, lambda: attn.decode(*batch, added=change(added)))


@pytest.mark.parametrize("option", ["selected", "run_keys", "expected_keys"])
def test_refused_options(option):
    batch, added = make_batch([50, 17]), make_list([20, 9])
    value = {"selected": True, "run_keys": 64, "expected_keys": [50]}[option]
    refuse(f"added: expected none beside {option}", lambda: attn.decode(*batch, added=added, **{option: value}))


def test_refused_copies():
    """By the name that callers have."""
    batch, added = make_batch([50, 17]), make_list([20, 9])
    with pytest.raises(attn.ArgumentError, match="^pad: expected none beside added$"):
        attn.decode(*batch, added=added, pad=True)
