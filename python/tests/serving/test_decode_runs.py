"""Runs of a fixed number of keys, and tables that select keys."""

import os

import attn
import numpy as np
import pytest
from attn import arrays
from attn.serving import decode_launch
from test_decode import (
    DIM, KV_HEADS, LATENT, PAGE, VALUES, attend, attend_latent, check, make_batch, make_latent,
    make_plan,
)  # fmt: skip

_RUN = {"run_keys": 256, "lse": True}

pytestmark = pytest.mark.usefixtures("without_gpu")


def _take(batch, rows):
    q, k, v, table, lengths = batch
    return q[rows], k, v, table[rows], lengths[rows]


def _share(batch, lengths):
    """Sequences of those lengths that share all pages."""
    table, _ = batch[-2:]
    table = np.repeat(table.reshape(1, -1), len(lengths), axis=0)
    return *batch[:-2], table, np.array(lengths, np.int32)


def test_equal_bits():
    """A sequence alone, among others, at other places, in a wider and a narrower table."""
    batch = _share(make_batch([128] * 5), [640, 0, 300, 129, 65])
    results = attn.decode(*batch, **_RUN)
    check(results, attend(*batch))
    for rows in ([0], [3], [4, 3, 2, 1, 0], [2, 0, 2, 0, 0, 0, 4]):
        for got, all_rows in zip(attn.decode(*_take(batch, rows), **_RUN), results, strict=True):
            np.testing.assert_array_equal(got.view(np.uint8), all_rows[rows].view(np.uint8))
    q, k, v, table, lengths = _take(batch, [2, 4])
    more = np.concatenate([table, np.full((2, 40), -1, np.int32)], axis=1)
    fewer = np.ascontiguousarray(table[:, :20])
    for other in (more, fewer):
        for got, all_rows in zip(
            attn.decode(q, k, v, other, lengths, **_RUN), results, strict=True
        ):
            np.testing.assert_array_equal(got, all_rows[[2, 4]])


def test_equal_bits_of_plan():
    plan = make_plan(max_pages=100, **_RUN)
    batch = _take(_share(make_batch([128] * 5), [640, 300, 129, 0, 0]), [0, 1, 2])
    q, k, v, table, lengths = batch
    plan.plan(lengths, table)
    for got, want in zip(plan.run(q, k, v), attn.decode(*batch, **_RUN), strict=True):
        np.testing.assert_array_equal(got, want)


def test_equal_bits_of_mla():
    batch = _share(make_latent([128] * 5), [640, 0, 300, 129, 65])
    options = {"value_dim": VALUES, "scale": 0.125, **_RUN}
    results = attn.mla_decode(*batch, **options)
    check(results, attend_latent(*batch, 0.125))
    q, pool, table, lengths = batch
    for row, pages in ((0, 40), (1, 1), (2, 20), (3, 40), (4, 5)):
        at = slice(row, row + 1)
        own = np.ascontiguousarray(table[at, :pages])
        alone = attn.mla_decode(q[at], pool, own, lengths[at], **options)
        for got, want in zip(alone, results, strict=True):
            np.testing.assert_array_equal(got, want[at])


def _give_prompt(call, q, pools, table, length, chunks, **options):
    """What the last queries of a sequence give in `chunks`, whose keys end with each."""
    parts, end = [], length - sum(chunks)
    first = 0
    for count in chunks:
        end += count
        rows = q[:, :, first : first + count]
        first += count
        counts = np.array([end], np.int32)
        o, lse = call(np.ascontiguousarray(rows), *pools, table, counts, lse=True, **options)
        parts.append((o, lse))
    return [np.concatenate([part[i] for part in parts], axis=2) for i in (0, 1)]


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("latent", [False, True])
def test_equal_bits_of_chunks(latent, chip, monkeypatch):
    """Prompts behind keys: in one chunk, in several, and token by token; a long one has a plan with
    more rows in a tile."""
    monkeypatch.setattr(decode_launch, "get_chip_of", lambda *_: chip)
    make = make_latent if latent else make_batch
    q, *pools, table, lengths = _share(make([128] * 5, queries=12), [600])
    q, call, options = q[:1], attn.decode, {}
    if latent:
        call, options = attn.mla_decode, {"value_dim": VALUES, "scale": 0.125}
    given = short = (q, pools, table, 600)
    whole = _give_prompt(call, *given, [12], **options, run_keys=128)
    want = attend_latent(q, *pools, table, lengths, 0.125) if latent else attend(q, *pools, table, lengths)
    check(whole, want)
    for chunks in ([5, 7], [1] * 12):
        parts = _give_prompt(call, *given, chunks, **options, run_keys=128)
        for got, want in zip(parts, whole, strict=True):
            np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))
    long = make([128], queries=72)
    q, *pools, table, lengths = long
    given = (q, pools, table, 128)
    whole = _give_prompt(call, *given, [72], **options, run_keys=64)
    last = _give_prompt(call, *given, [70, 2], **options, run_keys=64)
    for got, want in zip(last, whole, strict=True):
        np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))
    if not latent:
        # Runs that end elsewhere for other lengths sum keys in another order.
        one, two = (_give_prompt(call, *short, cut, kv_splits=3) for cut in ([12], [5, 7]))
        assert (one[0] != two[0]).any()


def test_expected_keys():
    """What is expected changes no result, and what cannot be is refused."""
    batch = make_batch([100, 0, 17])
    want = attn.decode(*batch, kv_splits=1)
    np.testing.assert_allclose(attn.decode(*batch, kv_splits=1, expected_keys=[40, 3]), want, atol=2e-3)
    with pytest.raises(ValueError, match="expected_keys: expected at least one number, got none"):
        attn.decode(*batch, expected_keys=[])
    with pytest.raises(ValueError, match="expected_keys: expected an integer from 0"):
        attn.decode(*batch, expected_keys=[-1])


def test_plans_for_expected_keys(monkeypatch):
    """A table that holds many keys has them cut, but not where few are expected."""
    monkeypatch.setattr(decode_launch, "get_chip_of", lambda *_: "sm_90a")
    sizes = {"batch": 4, "heads": 8, "kv_heads": 2, "dim": 64, "page_size": 16, "max_pages": 4096}
    plans = {
        keys: attn.DecodePlan(**sizes, dtype="float16", expected_keys=keys)
        for keys in (None, (40, 3), (60000,))
    }
    assert plans[None].splits > 1 and plans[60000,].splits > 1
    assert plans[40, 3].splits == 1
    said = "estimated for sequences of 3 to 40 keys, 22 on average"
    for keys, plan in plans.items():
        remarks = "".join(each.message for each in plan.kernel.remarks)
        assert (said in remarks) == (keys == (40, 3))


#: Random batches whose sequences are computed alone as well. Nightly runs take 100.
_BATCHES = int(os.environ.get("ATTN_RANDOM_BATCHES", "4"))


@pytest.mark.parametrize(("heads", "chip"), [(16, "sm_80"), (64, "sm_90a")])
def test_equal_bits_in_random_batches(heads, chip, monkeypatch):
    """With runs of fixed length a sequence of latent attention has the bits that it has alone."""
    monkeypatch.setattr(decode_launch, "get_chip_of", lambda *_: chip)
    rng = np.random.default_rng(heads)
    options = {"value_dim": VALUES, "scale": 0.125, "run_keys": 64, "lse": True}
    pool = rng.standard_normal((40, PAGE, LATENT)).astype(np.float16)
    q = rng.standard_normal((12, heads, LATENT)).astype(np.float16)
    lengths = rng.integers(0, 160, 12).astype(np.int32)
    table = np.stack([rng.permutation(40)[:10] for _ in lengths]).astype(np.int32)
    alone = [attn.mla_decode(q[[i]], pool, table[[i]], lengths[[i]], **options) for i in range(12)]
    for _ in range(_BATCHES):
        rows = rng.integers(0, 12, 4)
        results = attn.mla_decode(q[rows], pool, table[rows], lengths[rows], **options)
        for place, row in enumerate(rows):
            for got, want in zip(results, alone[row], strict=True):
                np.testing.assert_array_equal(got[place], want[0])


def test_equal_runs(monkeypatch):
    """A plan of latent attention on sm_90a deals all keys to CTAs; the same bits as the call."""
    monkeypatch.setattr(decode_launch, "get_chip_of", lambda *_: "sm_90a")
    lengths = [130, 0, 17, 64, 100, 1, 31, 140]
    rng = np.random.default_rng(5)
    table = rng.permutation(8 * 512).reshape(8, 512).astype(np.int32) % 40
    pool = rng.standard_normal((40, PAGE, LATENT)).astype(np.float16)
    q = rng.standard_normal((8, 64, LATENT)).astype(np.float16)
    batch = q, pool, table, np.array(lengths, np.int32)
    plan = attn.DecodePlan(
        batch=8, heads=64, dim=LATENT, value_dim=VALUES, latent=True, page_size=PAGE, max_pages=512,
        dtype="float16", scale=0.125, lse=True,
    )  # fmt: skip
    assert f"dealt_runs = {plan.splits}" in plan.kernel.plan and plan.splits > 8
    plan.plan(batch[3], table)
    results = plan.run(q, pool)
    check(results, attend_latent(*batch, 0.125))
    for got, want in zip(
        attn.mla_decode(*batch, value_dim=VALUES, scale=0.125, lse=True), results, strict=True
    ):
        np.testing.assert_array_equal(got, want)


def test_dealt_runs_of_tensor_memory(monkeypatch):
    """A plan on sm_100a deals runs by a kernel in front, which runs once for the lengths; the
    same bits as the call."""
    monkeypatch.setattr(decode_launch, "get_chip_of", lambda *_: "sm_100a")
    lengths = np.int32([130, 0, 17, 64, 100, 1, 31, 140])
    rng = np.random.default_rng(6)
    table = rng.permutation(8 * 512).reshape(8, 512).astype(np.int32) % 12
    k, v = rng.standard_normal((2, 12, PAGE, 1, 128)).astype(np.float16)
    q = rng.standard_normal((8, 64, 1, 128)).astype(np.float16)
    plan = attn.DecodePlan(
        batch=8, heads=64, kv_heads=1, dim=128, page_size=PAGE, max_pages=512, dtype="float16", lse=True
    )  # fmt: skip
    assert plan.kernel.plan.startswith("#attn.ws_tmem<") and "dealt_runs" in plan.kernel.plan
    plan.plan(lengths, table)
    results = plan.run(q, k, v)
    check(results, attend(q, k, v, table, lengths))
    for got, want in zip(attn.decode(q, k, v, table, lengths, lse=True), results, strict=True):
        np.testing.assert_array_equal(got, want)


def _select(table, lengths, rng):
    """A list of keys with places that are left out, in the middle too, and the keys alone."""
    gaps = np.full((len(table), 48), -1, np.int32)
    dense, counts = np.zeros((len(table), 2 * PAGE), np.int32), np.zeros(len(table), np.int32)
    for row, length in enumerate(lengths):
        keys = rng.choice(length, size=min(length, 30), replace=False)
        rows = table[row, keys // PAGE] * PAGE + keys % PAGE
        gaps[row, np.sort(rng.choice(48, size=len(rows), replace=False))] = rows
        dense[row, : len(rows)] = rows
        counts[row] = len(rows)
    return gaps, dense, counts


def _gather(pool, dense):
    """Those keys in pages of their own, with the table of these."""
    rows = pool.reshape(-1, *pool.shape[2:])[dense]
    return rows.reshape(-1, PAGE, *pool.shape[2:]), np.arange(2 * len(dense)).reshape(-1, 2)


def test_selected():
    q, k, v, table, lengths = make_batch([100, 0, 17])
    gaps, dense, counts = _select(table, lengths, np.random.default_rng(3))
    rows = [each.reshape(-1, 1, KV_HEADS, DIM) for each in (k, v)]
    places = np.full(3, 48, np.int32)
    got = attn.decode(q, *rows, gaps, places, selected=True, lse=True)
    (keys, own), (values, _) = (_gather(each, dense) for each in (k, v))
    check(got, attend(q, keys, values, own, counts))
    check(attn.decode(q, *rows, gaps, places, selected=True, run_keys=64, lse=True), got)


def test_selected_mla():
    q, pool, table, lengths = make_latent([100, 0, 17])
    gaps, dense, counts = _select(table, lengths, np.random.default_rng(4))
    rows = pool.reshape(-1, 1, pool.shape[-1])
    want = attend_latent(q, *_gather(pool, dense), counts, 0.125)
    got = attn.mla_decode(
        q, rows, gaps, np.full(3, 48, np.int32), value_dim=VALUES, scale=0.125,
        selected=True, lse=True,
    )  # fmt: skip
    check(got, want)


def test_bad_arguments():
    batch = make_batch([100, 17], queries=2)
    with pytest.raises(ValueError, match="run_keys: expected none beside kv_splits"):
        attn.decode(*batch, run_keys=64, kv_splits=2)
    with pytest.raises(ValueError, match="run_keys: expected an integer from 1"):
        attn.decode(*batch, run_keys=0)
    with pytest.raises(ValueError, match="partials: expected auto, f32, f16 or bf16, got 'f64'"):
        attn.decode(*batch, partials="f64")
    with pytest.raises(ValueError, match="selected: expected no window, and causal=False"):
        attn.decode(*batch, selected=True)
    with pytest.raises(ValueError, match="selected: expected no window"):
        attn.decode(*batch, selected=True, causal=False, window=(3, None))
    with pytest.raises(ValueError, match="run_keys: expected a multiple of 16 keys, got 7"):
        attn.decode(*batch, run_keys=7)


@pytest.mark.parametrize("cut", [{"kv_splits": 3}, {"run_keys": 64}])
def test_partials(cut):
    """Results of runs in bf16, of queries in f16: a mean of numbers that are rounded."""
    batch = make_batch([128, 0, 17])
    want = attend(*batch)
    wide = attn.decode(*batch, **cut, lse=True)
    narrow = attn.decode(*batch, **cut, partials="bf16", lse=True)
    np.testing.assert_array_equal(wide[1], narrow[1])
    assert (wide[0] != narrow[0]).any()
    np.testing.assert_allclose(narrow[0], want[0], atol=1e-2)
    halves = attn.decode(*batch, **cut, partials="f16", lse=True)
    np.testing.assert_array_equal(wide[1], halves[1])
    np.testing.assert_allclose(halves[0], want[0], atol=2e-3)


def test_partials_of_a_plan():
    """Half of the workspace, but for LSEs."""
    batch = make_latent([100, 0, 17])
    q, pool, table, lengths = batch
    options = {"value_dim": VALUES, "scale": 0.125}
    want = attend_latent(*batch, 0.125)[0]
    got = attn.mla_decode(*batch, **options, kv_splits=2, partials="bf16")
    np.testing.assert_allclose(got, want, atol=1e-2)
    plan = attn.DecodePlan(
        batch=3, heads=q.shape[1], dim=q.shape[2], latent=True, page_size=PAGE, max_pages=10,
        dtype="float16", kv_splits=2, partials="bf16", **options,
    )  # fmt: skip
    assert plan.workspace_bytes == 2 * 3 * q.shape[1] * (2 * VALUES + 4)
    plan.plan(lengths, table)
    np.testing.assert_array_equal(plan.run(q, pool), got)


def _lack(got, want):
    """What the cosine lacks of 1, and the share of numbers that differ."""
    got, want = (arrays.from_bf16(each).astype(float) for each in (got, want))
    cosine = (got * want).sum() / np.sqrt((got**2).sum() * (want**2).sum())
    return 1 - cosine, (got != want).mean()


@pytest.mark.parametrize("heads", [16, 64, 0])
def test_runs_round_alike(heads):
    """On a ramp of scores runs have other maxima; they round probabilities to bf16 alike, so that
    few results differ from those of one run. With maxima as they are 27 to 48 % did."""
    rng = np.random.default_rng(heads)
    dim, keys = (LATENT, 512) if heads else (64, 640)
    pages = keys // PAGE
    pools = [rng.standard_normal((pages, PAGE, 1, dim)).astype(np.float32) for _ in "kv"]
    pools[0].reshape(keys, dim)[:, -1] = np.linspace(-2, 2, keys)
    q = rng.standard_normal((1, heads or 8, dim)).astype(np.float32)
    q[..., -1] = 2
    table, lengths = np.arange(pages, dtype=np.int32)[None], np.array([keys], np.int32)
    if heads:
        q[..., :VALUES], pools = 0, pools[:1]
        call, options = attn.mla_decode, {"value_dim": VALUES, "scale": 0.25}
    else:
        call, options = attn.decode, {"scale": 0.125}
    batch = [arrays.to_bf16(each) for each in (q, *pools)]
    one, *others = (
        call(*batch, table, lengths, kv_splits=runs, partials="f32", **options)
        for runs in (1, 3, 7)
    )
    for each in others:
        lack, share = _lack(each, one)
        assert lack < 2e-6 and share < 0.15


@pytest.mark.parametrize("magnitude", [1e36, 2.0**60, 1.0, 2.0**-60, 1e-38])
@pytest.mark.parametrize(("heads", "chip", "groups"), [(16, "sm_80", 1), (64, "sm_90a", 2)])
def test_range_of_halves(heads, chip, groups, magnitude, monkeypatch):
    """Results of runs in f16 as good as those in f32, whatever the values: rows of bf16 differ in
    their last bit, and few of them, also beside rows of other magnitudes, and beside columns of
    others where these leave on their own."""
    monkeypatch.setattr(decode_launch, "get_chip_of", lambda *_: chip)
    rng = np.random.default_rng(heads)
    lengths, table = np.array([130, 77, 0], np.int32), rng.permutation(27).reshape(3, 9)
    pool = rng.uniform(-1, 1, (27, PAGE, 1, LATENT)).astype(np.float32)
    pool[table[0], ..., :VALUES] *= magnitude
    columns = VALUES // groups
    # Far enough to leave nothing in units of the others.
    pool[..., columns:VALUES] *= 2.0**-40 if magnitude > 1 else 1
    # Only the rotated columns give scores, the last ones of which are above the others.
    pool[table[:, 4:], ..., VALUES:] += 1
    q = np.zeros((3, heads, LATENT), np.float32)
    q[..., VALUES:] = rng.standard_normal((3, heads, LATENT - VALUES))
    batch = arrays.to_bf16(q), arrays.to_bf16(pool), table.astype(np.int32), lengths
    cut = {"value_dim": VALUES, "scale": 0.5, "kv_splits": 3, "lse": True}
    wide, halves = (attn.mla_decode(*batch, **cut, partials=each) for each in ("f32", "auto"))
    np.testing.assert_array_equal(wide[1], halves[1])
    got, want = (
        arrays.from_bf16(each[0]).astype(float).reshape(3, heads, groups, columns)
        for each in (halves, wide)
    )
    assert (np.abs(want[0, :, 0]).max(-1) > 0.05 * magnitude).all() and not got[2].any()
    # The last bit of the largest number of columns, or of one that is subnormal.
    bound = np.maximum(2.0**-7 * np.abs(want).max(-1, keepdims=True), 2.0**-133)
    assert (np.abs(got - want) <= bound).all()
    assert (got != want).mean() < 0.1
