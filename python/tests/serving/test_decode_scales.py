"""attn.decode and attn.mla_decode with scales of rows of 8-bit pools, and what they refuse."""

import attn
import numpy as np
import pytest
from attn.launch.shared_sizes import check_sizes
from attn.record import TensorView
from test_decode import DIM, HEADS, KV_HEADS, PAGE, attend, check
from test_decode_narrow import from_e4m3, make_narrow

pytestmark = pytest.mark.usefixtures("without_gpu")


def make_scales(pool, seed=0):
    """A number for each row; those of keys that nobody has are NaN."""
    scales = np.random.default_rng(seed).uniform(0.25, 2, (*pool.shape[:3], 1)).astype(np.float32)
    return np.where((pool == 127).all(axis=3, keepdims=True), np.float32("nan"), scales)


def test_scales_of_rows():
    q, k, v, table, lengths = make_narrow([70, 0, 33])
    k_scales, v_scales = make_scales(k, 1), make_scales(v, 2)
    got = attn.decode(q, k, v, table, lengths, k_scales=k_scales, v_scales=v_scales, lse=True)
    check(got, attend(q, from_e4m3(k) * k_scales, from_e4m3(v) * v_scales, table, lengths))


def test_latent_rows():
    """Rows of bytes: latent columns, their scales and rotated columns."""
    rng = np.random.default_rng(3)
    latent, rope, page, heads = 256, 64, 16, 16
    pages, lengths = 7, np.array([40, 0, 33], np.int32)
    rows = np.full((pages, page, latent + 4 * (latent // 128) + 2 * rope), 127, np.uint8)
    k = rows[..., :latent]
    scales = rows[..., latent : latent + 4 * (latent // 128)].view(np.float32)
    k_rope = rows[..., latent + 4 * (latent // 128) :].view(np.float16)
    table = np.array([[5, 1, 6], [-1, -1, -1], [0, 3, 2]], np.int32)
    k[...] = rng.integers(0x20, 0x48, k.shape) | rng.integers(0, 2, k.shape) << 7
    scales[...] = rng.uniform(0.25, 2, scales.shape)
    k_rope[...] = rng.standard_normal(k_rope.shape)
    rows[4] = 127
    q = rng.standard_normal((3, heads, latent + rope)).astype(np.float16)
    o, lse = attn.mla_decode(
        q, k, table, lengths, value_dim=latent, scale=0.05, k_scales=scales, k_rope=k_rope, lse=True
    )
    plan = attn.DecodePlan(
        batch=3, heads=heads, dim=latent + rope, value_dim=latent, page_size=page, max_pages=3,
        dtype="float16", kv_dtype="float8_e4m3fn", scales="rows", latent=True, scale=0.05,
        row_bytes=rows.shape[-1],
    )  # fmt: skip
    plan.plan(lengths, table)
    assert np.array_equal(plan.run(q, k, k_scales=scales, k_rope=k_rope), o)
    wide = from_e4m3(k) * np.repeat(scales, 128, axis=-1)
    for b, length in enumerate(lengths):
        if length == 0:
            assert np.all(o[b] == 0) and np.all(np.isneginf(lse[b]))
            continue
        keys = np.concatenate([wide[table[b]], k_rope[table[b]]], -1, dtype=np.float64)
        keys = keys.reshape(-1, latent + rope)[:length]
        scores = 0.05 * (q[b].astype(np.float64) @ keys.T)
        power = np.exp(scores - scores.max(-1, keepdims=True))
        want = power / power.sum(-1, keepdims=True) @ keys[:, :latent]
        assert np.abs(o[b] - want).max() <= 1e-2 * np.abs(want).max()
        assert np.allclose(lse[b], scores.max(-1) + np.log(power.sum(-1)), atol=1e-3)


def test_latent_rows_of_8_bits():
    """Latent and rotated columns in one tensor, whose units stand for one number."""
    rng = np.random.default_rng(4)
    latent, rope, page, heads = 256, 64, 16, 16
    lengths = np.array([40, 0, 33], np.int32)
    pool = np.full((7, page, latent + rope), 127, np.uint8)
    table = np.array([[5, 1, 6], [-1, -1, -1], [0, 3, 2]], np.int32)
    for b, length in enumerate(lengths):
        for place in range(length):
            shape = pool.shape[-1]
            row = rng.integers(0x20, 0x48, shape) | rng.integers(0, 2, shape) << 7
            pool[table[b, place // page], place % page] = row
    q = rng.standard_normal((3, heads, latent + rope)).astype(np.float16)
    unit = np.full(1, 0.5, np.float32)
    options = {"value_dim": latent, "scale": 0.05, "k_scale": unit, "lse": True}
    got = attn.mla_decode(q, pool, table, lengths, **options)
    plan = attn.DecodePlan(
        batch=3, heads=heads, dim=latent + rope, value_dim=latent, page_size=page, max_pages=3,
        dtype="float16", kv_dtype="float8_e4m3fn", scales="tensor", latent=True, scale=0.05,
    )  # fmt: skip
    plan.plan(lengths, table)
    assert np.array_equal(plan.run(q, pool, k_scale=unit, v_scale=unit), got[0])
    for b, length in enumerate(lengths):
        keys = from_e4m3(pool[table[b]]).reshape(-1, latent + rope)[:length] * 0.5
        if length == 0:
            assert np.all(got[0][b] == 0) and np.all(np.isneginf(got[1][b]))
            continue
        scores = 0.05 * (q[b].astype(np.float64) @ keys.T)
        power = np.exp(scores - scores.max(-1, keepdims=True))
        want = power / power.sum(-1, keepdims=True) @ keys[:, :latent]
        assert np.abs(got[0][b] - want).max() <= 1e-2 * np.abs(want).max()


def test_plan_with_scales_of_rows():
    size = {"batch": 3, "heads": HEADS, "kv_heads": KV_HEADS, "dim": DIM, "page_size": PAGE}
    options = {"max_pages": 8, "dtype": "float16", "kv_dtype": "float8_e4m3fn", "scales": "rows"}
    q, k, v, table, lengths = make_narrow([70, 0, 33])
    k_scales, v_scales = make_scales(k, 1), make_scales(v, 2)
    plan = attn.DecodePlan(**size, **options)
    plan.plan(lengths, table)
    got = plan.run(q, k, v, k_scales=k_scales, v_scales=v_scales)
    check([got], attend(q, from_e4m3(k) * k_scales, from_e4m3(v) * v_scales, table, lengths)[:1])
    with pytest.raises(
        attn.ArgumentError, match='"k_scales": expected a tensor, as the plan was made'
    ):
        plan.run(q, k, v)
    with pytest.raises(
        attn.ArgumentError,
        match='"v_scales": expected 1 columns, for which the plan was made, got 2',
    ):
        plan.run(q, k, v, k_scales=k_scales, v_scales=np.repeat(v_scales, 2, axis=3))
    with pytest.raises(attn.ArgumentError, match='"k_rope": expected none, as the plan was made'):
        plan.run(q, k, v, k_scales=k_scales, v_scales=v_scales, k_rope=k_scales.astype(np.float16))
    with pytest.raises(
        attn.ArgumentError, match="scales: expected a kv_dtype of 8 bits with rows, got f16"
    ):
        attn.DecodePlan(**size, **options | {"kv_dtype": None})
    with pytest.raises(attn.ArgumentError, match="row_bytes: expected none but for a latent plan"):
        attn.DecodePlan(**size, **options, row_bytes=656)


def test_scales_refused():
    q, k, v, table, lengths = make_narrow([40, 9])
    scales = make_scales(k)
    with pytest.raises(
        attn.ArgumentError,
        match='"k_scales": expected k_scales and v_scales, or none, got k_scales',
    ):
        attn.decode(q, k, v, table, lengths, k_scales=scales)
    with pytest.raises(attn.ArgumentError, match='"v_scales": expected elements of f32, got f16'):
        attn.decode(q, k, v, table, lengths, k_scales=scales, v_scales=scales.astype(np.float16))
    with pytest.raises(
        attn.ArgumentError, match='"k_scales": expected pages, heads and keys of a page as k_cache'
    ):
        attn.decode(q, k, v, table, lengths, k_scales=scales[1:], v_scales=scales)
    many = np.repeat(scales, 3, axis=3)
    with pytest.raises(
        attn.ArgumentError,
        match=f'"k_scales": expected a number of columns that divides {DIM}, got 3',
    ):
        attn.decode(q, k, v, table, lengths, k_scales=many, v_scales=many)
    with pytest.raises(attn.ArgumentError, match='"v_scales": expected a scale for each'):
        attn.decode(q, k, v, table, lengths, k_scales=scales, v_scales=np.repeat(scales, 2, axis=3))
    wide = np.zeros((*k.shape[:3], DIM), np.float16)
    with pytest.raises(attn.ArgumentError, match='"k_scales": expected none beside pools of f16'):
        attn.decode(q, wide, wide, table, lengths, k_scales=scales, v_scales=scales)
    assert KV_HEADS == k.shape[2]


@pytest.mark.parametrize("chip", ["sm_80", "sm_89"])
@pytest.mark.parametrize("kind", ["f8E4M3FN", "f8E5M2"])
def test_all_bytes(chip, kind):
    """One key has all weight: each 8-bit value comes out as it is, by integers on sm_80."""
    kernel = attn.compile(q="4x1x1x64xf16", kv_type=kind, kv_len=1, chip=chip, lse=False)
    v = np.arange(256, dtype=np.uint8).reshape(4, 1, 1, 64)
    got = kernel.run(q=np.ones((4, 1, 1, 64), np.float16), k=np.zeros_like(v), v=v)["o"]
    want = from_e4m3(v) if kind == "f8E4M3FN" else (v.astype(np.uint16) << 8).view(np.float16)
    assert np.array_equal(got.view(np.float16), want.astype(np.float16), equal_nan=True)


def test_sizes_of_rows():
    """What belongs to rows of pools has the sizes of these at a launch."""
    shapes = {
        "q": (3, 16, 1, 576), "o": (3, 16, 1, 512), "k": (9, 1, 64, 512), "k_scales": (9, 1, 64, 4),
        "k_rope": (9, 1, 64, 64), "page_table": (3, 2),
    }  # fmt: skip
    views = {n: TensorView("f16", s, (1,) * len(s), 0, 0) for n, s in shapes.items()}
    check_sizes("mla", views)
    views["k_rope"] = views["k_rope"]._replace(shape=(9, 1, 32, 64))
    with pytest.raises(
        attn.ArgumentError,
        match='"k_rope": dimension 2: expected 64 as in dimension 2 of k, got 32',
    ):
        check_sizes("mla", views)


@pytest.mark.parametrize(("of_keys", "of_values"), [((-4, -2), (-20, -18)), ((-30, -20), (-14, 6))])
def test_scales_of_many_magnitudes(of_keys, of_values):
    """Beside wgmma values are multiplied in f16 and keys' scores in f32: numbers below the normal
    ones of f16 lose no digits."""
    rng = np.random.default_rng(7)
    rows, keys, dim = 64, 192, 64
    kernel = attn.compile(q=f"1x1x{rows}x{dim}xf16", kv_type="f8E4M3FN", kv_len=keys, scale_group=dim,
                          chip="sm_90a", schedule="ws_wgmma", cache=False)  # fmt: skip
    q = rng.standard_normal((1, 1, rows, dim)).astype(np.float16)
    k, v = (rng.integers(0, 127, (1, 1, keys, dim)).astype(np.uint8) for _ in "kv")
    k_scales, v_scales = (
        np.exp2(rng.uniform(*powers, (1, 1, keys, 1))).astype(np.float32)
        for powers in (of_keys, of_values)
    )
    result = kernel.simulate(
        q=q, k=k, v=v, k_scales=k_scales, v_scales=v_scales, verify=False, progress=False
    )
    scores = (
        q.astype(np.float64)
        @ (from_e4m3(k) * k_scales.astype(np.float64)).swapaxes(2, 3)
        / dim**0.5
    )
    weights = np.exp(scores - scores.max(3, keepdims=True))
    wanted = weights / weights.sum(3, keepdims=True) @ (from_e4m3(v) * v_scales.astype(np.float64))
    lse = scores.max(3) + np.log(weights.sum(3))
    distance = np.linalg.norm(result["o"] - wanted, axis=3) / np.linalg.norm(wanted, axis=3)
    assert distance.max() < 1e-3 and np.abs(result["lse"] - lse).max() < 1e-4
