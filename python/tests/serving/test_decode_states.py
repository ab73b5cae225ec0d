"""Rows that are not divided, and values that are keys, on the simulator."""

import attn
import numpy as np
import pytest
from attn.serving import decode_launch
from test_decode import VALUES, attend, check, make_latent, refuse

pytestmark = pytest.mark.usefixtures("without_gpu")


def test_values_are_keys():
    """Latent heads without rotated columns."""
    q, pool, table, lengths = make_latent([100, 0, 17])
    q, pool = (np.ascontiguousarray(each[..., :VALUES]) for each in (q, pool))
    keys = pool[:, :, None]
    want = attend(q * (0.125 * VALUES**0.5), keys, keys, table, lengths)
    options = {"value_dim": VALUES, "scale": 0.125, "lse": True}
    check(attn.mla_decode(q, pool, table, lengths, **options), want)
    check(attn.mla_decode(q, pool, table, lengths, **options, run_keys=64), want)


def test_the_chip_of_host_arrays(monkeypatch):
    """The environment names it, for serving calls as for others."""
    assert decode_launch.get_chip_of(-1, is_narrow=True) == "sm_89"
    monkeypatch.setenv("ATTN_CHIP", "sm_90a")
    assert decode_launch.get_chip_of(-1, is_narrow=True) == "sm_90a"
    q, pool, table, lengths = make_latent([20, 3])
    q, pool = (np.ascontiguousarray(each[..., :VALUES]) for each in (q, pool))
    keys = pool[:, :, None]
    want = attend(q * (0.125 * VALUES**0.5), keys, keys, table, lengths)
    check(attn.mla_decode(q, pool, table, lengths, value_dim=VALUES, scale=0.125, lse=True), want)


def test_row_states():
    """Rows that are not divided, of halves of the keys, merge to the whole."""
    rng = np.random.default_rng(9)
    q, k, v = (rng.standard_normal((1, 2, n, 64)).astype(np.float16) for n in (5, 70, 70))
    parts = []
    for keys in (slice(0, 40), slice(40, 70), slice(0, 0)):
        own = [np.ascontiguousarray(each[:, :, keys]) for each in (k, v)]
        kernel = attn.compile(
            q=(1, 2, 5, 64), dtype="float16", kv_len=own[0].shape[2], row_state=True
        )
        results = kernel.simulate(q=q, k=own[0], v=own[1]).outputs
        parts.append((results["o"], results["lse"]))
    assert (parts[2][1][..., 0] == -np.inf).all() and not parts[2][1][..., 1].any()
    o, lse = attn.merge_states(*(np.stack(each) for each in zip(*parts, strict=True)))
    scores = np.einsum("bhnd,bhkd->bhnk", q.astype(float), k.astype(float)) / 8
    maxima = scores[..., :40].max(-1)
    np.testing.assert_allclose(parts[0][1][..., 0], maxima, atol=1e-5)
    sums = np.exp(scores[..., :40] - maxima[..., None]).sum(-1)
    np.testing.assert_allclose(parts[0][1][..., 1], sums, rtol=1e-4)
    weights = np.exp(scores)
    want = weights @ v.astype(float) / weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(o, want, atol=2e-3)
    np.testing.assert_allclose(lse, np.log(weights.sum(-1)), atol=1e-3)


@pytest.mark.parametrize(
    "change,message",
    [
        (lambda o, rows: (o.astype(np.float16), rows), "expected elements of f32, got float16"),
        (lambda o, rows: (o.view(np.uint32).astype(np.uint16), rows), "of f32, got uint16"),
        (lambda o, rows: (o, rows.astype(np.float64)), "of f32, got float64"),
        (lambda o, rows: (o[:1], rows), "shape [1, 1, 2, 4, 2], got [2, 1, 2, 4, 2]"),
        (lambda o, rows: (o.tolist(), rows), "got list"),
        (lambda o, rows: (memoryview(o), rows), "both of numpy or both of torch"),
        (lambda o, rows: (o, memoryview(rows)), "got builtins.memoryview"),
        (lambda o, rows: (o, np.float32(1)), 'tensor "partial_lse"'),
        (lambda o, rows: (np.float32(1), np.float32(1)), 'tensor "partial_'),
    ],
)
def test_refused_rows(change, message):
    """Before anything is divided, whatever they are."""
    o, rows = np.ones((2, 1, 2, 4, 64), np.float32), np.ones((2, 1, 2, 4, 2), np.float32)
    refuse(message, attn.merge_states, *change(o, rows))
