"""score_mod, mask_mod and out_mod of attn.decode, attn.mla_decode, attn.prefill and
attn.DecodePlan on the simulator."""

import attn
import numpy as np
import pytest
from test_decode import (
    DIM, HEADS, KV_HEADS, MLA_HEADS, PAGE, VALUES, attend_latent, check, make_batch, make_latent,
    make_plan, refuse,
)  # fmt: skip
from test_decode_narrow import from_e4m3

pytestmark = pytest.mark.usefixtures("without_gpu")

#: What each query of a tree of drafts sees of the drafts: itself and those it follows.
TREE = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 0, 1]], np.int8)


def attend(batch, seen, slopes=None):
    """float64 of queries that see keys where `seen`(b, query, key)."""
    q, k, v, table, lengths = batch
    o, lse = np.zeros(q.shape), np.full(q.shape[:3], -np.inf)
    for b, length in enumerate(lengths):
        ids = table[b, : -(-length // PAGE)]
        keys, values = (
            pool[ids].reshape(-1, KV_HEADS, DIM)[:length].astype(float) for pool in (k, v)
        )
        for h in range(HEADS):
            g = h // (HEADS // KV_HEADS)
            scores = q[b, h].astype(float) @ keys[:, g].T * DIM**-0.5
            if slopes is not None:
                scores = scores + slopes[h] * np.arange(length)
            mask = np.array([[seen(b, i, j) for j in range(length)] for i in range(q.shape[2])])
            weights = np.exp(np.where(mask, scores, -np.inf))
            lse[b, h] = np.log(weights.sum(-1))
            o[b, h] = weights @ values[:, g] / weights.sum(-1, keepdims=True)
    return o, lse


def make_tree(lengths):
    """Drafts at the end of each sequence, which form another tree in each."""
    trees = np.stack([TREE, np.tril(np.ones((4, 4), np.int8))])

    def mask(b, h, q_idx, kv_idx):
        draft = kv_idx - (lengths[b] - 4)
        return (draft < 0) | (trees[b, q_idx, attn.mods.clip(draft, 0, 3)] != 0)

    def seen(b, i, j):
        draft = j - (lengths[b] - 4)
        return draft < 0 or trees[b, i, draft] != 0

    return mask, seen


@pytest.mark.parametrize("kv_splits", [1, 2])
def test_tree(kv_splits):
    """Drafts of a tree are verified at once; a score_mod reads a tensor beside."""
    batch = make_batch([70, 37], queries=4)
    mask, seen = make_tree(batch[4])
    slopes = np.linspace(0, 0.1, HEADS, dtype=np.float32)
    got = attn.decode(
        *batch, mask_mod=mask, score_mod=lambda score, b, h, q_idx, kv_idx: score + slopes[h] * kv_idx,
        kv_splits=kv_splits, lse=True,
    )  # fmt: skip
    # The drafts are no chain: what lies behind a query's own place is hidden by the tree.
    check(got, attend(batch, seen, slopes))


def test_tree_of_a_plan():
    """Trees and lengths are the plan's tensors, and change with each batch."""
    counts = np.zeros(2, np.int32)
    mask, seen = make_tree(counts)
    plan = make_plan(2, queries=4, lse=True, mask_mod=mask)
    for seed, lengths in enumerate(([70, 37], [4, 128])):
        batch = make_batch(lengths, queries=4, seed=seed)
        counts[:] = lengths
        plan.plan(batch[4], batch[3])
        check(plan.run(*batch[:3]), attend(batch, seen))


def test_prefill():
    q, k, v, table, lengths = make_batch([40, 17], queries=3)
    packed = np.concatenate([each.swapaxes(0, 1) for each in q])
    o, lse = attn.prefill(
        packed, k, v, table, lengths, np.int32([0, 3, 6]), max_seqlen_q=3, causal=False, lse=True,
        mask_mod=lambda b, h, q_idx, kv_idx: (kv_idx + q_idx + b) % 3 != 0,
    )  # fmt: skip
    want, want_lse = attend((q, k, v, table, lengths), lambda b, i, j: (i + j + b) % 3 != 0)
    order = [np.concatenate([each.swapaxes(0, 1) for each in part]) for part in (want, want_lse)]
    check((o, lse), order)


def test_latent():
    q, pool, table, lengths = make_latent([50, 17])
    hidden = np.zeros(64, bool)
    hidden[::3] = True
    got = attn.mla_decode(
        q, pool, table, lengths, value_dim=VALUES, scale=0.125,
        mask_mod=lambda b, h, q_idx, kv_idx: (kv_idx >= 64) | ~hidden[attn.mods.minimum(kv_idx, 63)],
    )  # fmt: skip
    # Keys that are left, side by side.
    table_left, pool_left = np.arange(8, dtype=np.int32).reshape(2, 4), np.zeros_like(pool)
    for b, length in enumerate(lengths):
        keys = pool[table[b, : -(-length // PAGE)]].reshape(-1, pool.shape[2])[:length]
        left = keys[[j for j in range(length) if j % 3]]
        pool_left[4 * b : 4 * b + 4].reshape(64, -1)[: len(left)] = left
    left = np.array([sum(j % 3 != 0 for j in range(n)) for n in lengths], np.int32)
    check([got], attend_latent(q, pool_left, table_left, left, 0.125)[:1])


#: Factors of results, one for each head.
GATE = np.linspace(0.5, 2, max(HEADS, MLA_HEADS), dtype=np.float32)


def change(result, b, h, q_idx, column):
    return result * GATE[h] + attn.mods.where(column % 2 == 0, 0.25, 0.0) * (b + 1 + q_idx)


def changed(o):
    """Of results (batch, heads, queries, columns)."""
    batch, heads, queries, columns = np.ogrid[tuple(slice(n) for n in o.shape)]
    return o * GATE[heads] + np.where(columns % 2 == 0, 0.25, 0) * (batch + 1 + queries)


@pytest.mark.parametrize("kv_splits", [1, 2])
def test_changed_results(kv_splits):
    """Also behind the merge of runs, and beside another region with a tensor of its own."""
    batch = make_batch([70, 37], queries=4)
    mask, seen = make_tree(batch[4])
    got = attn.decode(*batch, mask_mod=mask, out_mod=change, kv_splits=kv_splits, lse=True)
    want, want_lse = attend(batch, seen)
    check(got, (changed(want), want_lse))
    narrow = attn.decode(*batch, mask_mod=mask, out_mod=change, kv_splits=kv_splits, out_scale=16.0)
    np.testing.assert_allclose(from_e4m3(narrow) / 16, changed(want), rtol=0.07, atol=4e-3)


def test_changed_results_of_a_plan():
    """What out_mod reads changes between launches."""
    gates = np.ones(HEADS, np.float32)
    batch = make_batch([70, 37], queries=4)
    mask, seen = make_tree(batch[4])
    plan = make_plan(
        2, queries=4, mask_mod=mask, out_mod=lambda result, b, h, q_idx, column: result * gates[h],
    )
    plan.plan(batch[4], batch[3])
    want = attend(batch, seen)[0]
    for factor in (1, 3):
        gates[:] = factor
        check([plan.run(*batch[:3])], [want * factor])


def test_changed_results_of_prefill():
    q, k, v, table, lengths = make_batch([40, 17], queries=3)
    packed = np.concatenate([each.swapaxes(0, 1) for each in q])
    got = attn.prefill(
        packed, k, v, table, lengths, np.int32([0, 3, 6]), max_seqlen_q=3, causal=False, out_mod=change
    )
    want = changed(attend((q, k, v, table, lengths), lambda b, i, j: True)[0])
    check([got], [np.concatenate([each.swapaxes(0, 1) for each in want])])


def test_changed_latent_results():
    q, pool, table, lengths = make_latent([50, 17])
    got = attn.mla_decode(q, pool, table, lengths, value_dim=VALUES, scale=0.125, out_mod=change)
    want = attend_latent(q, pool, table, lengths, 0.125)[0]
    check([got], [changed(want[:, :, None])[:, :, 0]])


def test_refused():
    batch = make_batch([20, 9])
    with pytest.raises(attn.TraceError, match="expected mask_mod"):
        attn.decode(*batch, mask_mod=lambda q, k: q > k)
    with pytest.raises(attn.TraceError, match="expected out_mod"):
        attn.decode(*batch, out_mod=lambda result: result)
    refuse("a captured tensor: expected elements of", attn.decode, *batch,
           score_mod=lambda score, b, h, q_idx, kv_idx, each=np.zeros(3, complex): score + each[0])  # fmt: skip
