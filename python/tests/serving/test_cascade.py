"""attn.cascade on the simulator: prefixes that sequences share, in levels."""

import attn
import numpy as np
import pytest
from attn.serving import decode_launch, decode_problem, numpy_inputs
from attn.tensors import tensor_views
from test_decode import DIM, HEADS, KV_HEADS, PAGE, check, make_batch, refuse

pytestmark = pytest.mark.usefixtures("without_gpu")


def gather(k, v, level, group):
    """A group's keys and values."""
    length = level.kv_lengths[group]
    ids = level.page_table[group, : -(-length // PAGE)]
    return [pool[ids].reshape(-1, KV_HEADS, DIM)[:length].astype(float) for pool in (k, v)]


def attend(q, k, v, levels, members, softcap=None, sinks=None):
    """float64; `members` has the group of each sequence in each level."""
    rows = q[:, :, None] if q.ndim == 3 else q
    batch, heads, queries, _ = rows.shape
    o, lse = np.zeros(rows.shape), np.full(rows.shape[:3], -np.inf)
    for b in range(batch):
        parts = [gather(k, v, level, of[b]) for level, of in zip(levels, members, strict=True)]
        keys, values = (np.concatenate(each) for each in zip(*parts, strict=True))
        seen = np.arange(len(keys)) <= np.arange(queries)[:, None] + len(keys) - queries
        for h in range(heads):
            g = h // (heads // KV_HEADS)
            scores = rows[b, h].astype(float) @ keys[:, g].T * DIM**-0.5
            scores = scores if softcap is None else softcap * np.tanh(scores / softcap)
            weights = np.exp(np.where(seen, scores, -np.inf))
            total = weights.sum(-1) + (0 if sinks is None else np.exp(sinks[h]))
            if len(keys):
                lse[b, h], o[b, h] = np.log(total), weights @ values[:, g] / total[:, None]
    return (o[:, :, 0], lse[:, :, 0]) if q.ndim == 3 else (o, lse)


def make_levels(lengths, **options):
    """Pools with the keys of all levels, whose groups have these lengths."""
    flat = [length for each in lengths for length in each]
    _, k, v, table, counts = make_batch(flat, **options)
    ends = np.cumsum([len(each) for each in lengths])[:-1]
    return k, v, zip(np.split(table, ends), np.split(counts, ends), strict=True)


@pytest.mark.parametrize("queries", [1, 2])
def test_levels(queries):
    """A prompt of all, prompts of groups of different sizes, and own keys: none in the
    first sequence when it has one query."""
    own = [0 if queries == 1 else 2, 5, 33, 16, 2, 17]
    k, v, parts = make_levels([[77], [19, 48, 3], own], seed=5)
    (table, counts), (tables, some), (each, single) = parts
    q = make_batch([1] * 6, queries, seed=6)[0]
    levels = [attn.Level(table, counts, 6), attn.Level(tables, some, np.int32([0, 3, 3, 6])),
              attn.Level(each, single)]  # fmt: skip
    members = [[0] * 6, [0, 0, 0, 2, 2, 2], range(6)]
    sinks = np.linspace(-1, 2, HEADS, dtype=np.float32)
    got = attn.cascade(q, k, v, levels, softcap=5.0, sinks=sinks, lse=True)
    check(got, attend(q, k, v, levels, members, 5.0, sinks))
    assert got[0].dtype == q.dtype
    two = [levels[0]._replace(kv_lengths=np.int32([77, 60])[:1]), levels[2]]
    check([attn.cascade(q, k, v, two)], attend(q, k, v, two, members[::2])[:1])


def test_groups_of_one_size():
    """HND, a scale, and one level, which is attn.decode."""
    k, v, parts = make_levels([[40, 64], [20, 1, 9, 0]])
    levels = [attn.Level(*part, count) for part, count in zip(parts, (2, 1), strict=True)]
    q = make_batch([1] * 4)[0]
    turned = [np.ascontiguousarray(pool.swapaxes(1, 2)) for pool in (k, v)]
    got = attn.cascade(q, *turned, levels, layout="hnd", scale=DIM**-0.5, lse=True)
    check(got, attend(q, k, v, levels, [[0, 0, 1, 1], range(4)]))
    one = attn.cascade(q, k, v, levels[1:], lse=True)
    check(one, attn.decode(q, k, v, *levels[1][:2], lse=True))


@pytest.mark.parametrize("kv_splits", [1, 2])
def test_rows_of_a_pass(kv_splits):
    """o in f32 and its LSE lie with the heads of a query side by side, as passes on a GPU
    write them."""
    q, k, v, table, lengths = make_batch([70, 33], queries=3)
    turned = q.swapaxes(1, 2).copy().swapaxes(1, 2)
    settings = decode_launch.Settings.read(causal=False, kv_splits=kv_splits, out_type="f32")
    names = ("q", "k_cache", "v_cache", "page_table", "kv_lengths")
    tensors = dict(zip(names, (turned, k, v, table, lengths), strict=True))
    views = decode_launch.read_views(tensors, settings)
    problem = decode_launch.make_problem(views, settings, True)
    log = np.zeros((2, 3, HEADS), np.float32).swapaxes(1, 2)
    strides = decode_launch.get_lse_strides(tensor_views.view("lse", log))
    assert strides == (3 * HEADS, 1, HEADS) and problem.o_strides == (
        3 * HEADS * DIM,
        DIM,
        HEADS * DIM,
    )
    assert decode_launch.get_lse_strides(tensor_views.view("lse", log.copy("C"))) is None
    runner = decode_launch.get_runner(problem._replace(lse_strides=strides), -1)
    got = runner.run_numpy(numpy_inputs.arrange(tensors, settings))
    assert "strided<[24, 1, 8]>" in decode_problem.write_decode(runner.problem)
    want = attn.decode(q, k, v, table, lengths, causal=False, lse=True)
    check((got["o"], got["lse"]), [each.astype(float) for each in want])


def test_refused():
    k, v, parts = make_levels([[40], [20, 1, 9]])
    first, last = (attn.Level(*part) for part in parts)
    q = make_batch([1] * 3)[0]
    refuse("levels: expected at least one, got none", attn.cascade, q, k, v, [])
    refuse("level 0: expected groups of the 3 sequences of q, got 1 of 2",
           attn.cascade, q, k, v, [first._replace(sequences=2), last])  # fmt: skip
    refuse('tensor "q": expected a torch tensor or a numpy array, got list',
           attn.cascade, [q], k, v, [last])  # fmt: skip
    refuse('tensor "q": expected shape (batch, heads, dim) or', attn.cascade, q[0], k, v, [last])
    refuse("level 0: tensor \"sequences\": expected one more than sequences, 2, got 3",
           attn.cascade, q, k, v, [first._replace(sequences=np.int32([0, 1, 3])), last])  # fmt: skip
    with pytest.raises(ValueError, match="sequences: expected an integer from 1"):
        attn.cascade(q, k, v, [first._replace(sequences=0), last])
    for ends, message in (
        ([0, 2], "expected the last group to end at 3, the sequences of q, got 2"),
        ([1, 3], "expected sequence 0 to begin at 0 to 0 of 3 rows, got 1"),
        ([0, 4], "expected sequence 0 to end at 0 to 3 of 3 rows, got 4"),
    ):
        refuse(f'level 0: tensor "sequences": {message}',
               attn.cascade, q, k, v, [first._replace(sequences=np.int32(ends)), last])  # fmt: skip
    for name in ("page_table", "kv_lengths"):
        refuse(f'level 1: tensor "{name}": expected a tensor, got None',
               attn.cascade, q, k, v, [first._replace(sequences=3), last._replace(**{name: None})])  # fmt: skip
    refuse("levels: expected a list of attn.Level, got Level", attn.cascade, q, k, v, last)
    refuse(
        'tensor "v_cache": expected a torch tensor or a numpy array, got None',
        attn.cascade,
        q,
        k,
        None,
        [last],
    )
    refuse(
        'tensor "v_cache": expected a pool of rank 4, got shape', attn.cascade, q, k, v[0], [last]
    )
    refuse('tensor "init_o": expected shape [3, 8, 64], got [3, 64]',
           attn.cascade, q, k, v, [last], init=(q[:, 0], q[:, 0]))  # fmt: skip
