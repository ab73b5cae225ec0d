"""torch's operators for flash attention on packed sequences and on pages, with tensors in host memory
in the place of a GPU's: on the simulator, beside SDPA in float64."""

import logging

import attn
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from attn.doors import flash_operators  # noqa: E402
from torch.nn import functional  # noqa: E402

QUERIES, USED, SLOTS = (5, 12), (9, 17), (11, 24)
WINDOWS = {"all": (-1, -1), "causal": (-1, 0), "window": (6, 0), "both sides": (4, 2)}


def make_int(*values):
    return torch.tensor(values, dtype=torch.int32)


def count(lengths):
    return make_int(0, *lengths).cumsum(0).to(torch.int32)


def compute(q, k, v, window, scale=None):
    """One sequence, (rows, heads, dim), in float64."""
    shift = len(k) - len(q)
    ahead = torch.arange(len(k)) - torch.arange(len(q))[:, None] - shift
    left, right = (10**6 if side < 0 else side for side in window)
    q, k, v = (each.double().transpose(0, 1)[None] for each in (q, k, v))
    seen = (ahead <= right) & (ahead >= -left)
    o = functional.scaled_dot_product_attention(q, k, v, seen, scale=scale, enable_gqa=True)
    return o[0].transpose(0, 1)


def make_rows():
    q, k, v = (torch.randn(sum(QUERIES), 4, 32).half(), *torch.randn(2, sum(SLOTS), 2, 32).half())
    return q, k, v


def check_rows(o, q, keys, values, window):
    for rows, key, value in zip(torch.arange(len(q)).split(QUERIES), keys, values, strict=True):
        assert (o[rows] - compute(q[rows], key, value, window)).abs().max() < 5e-3


@pytest.mark.parametrize("window", WINDOWS)
def test_used_keys(window):
    """Slots that are longer than what is in them."""
    q, k, v = make_rows()
    left, right = WINDOWS[window]
    got = flash_operators.attend_rows(
        q, k, v, count(QUERIES), count(SLOTS), 12, 24, 0.0, window == "causal", False,
        window_size_left=left, window_size_right=right, seqused_k=make_int(*USED), num_splits=3,
    )  # fmt: skip
    keys, values = ([s[:n] for s, n in zip(each.split(SLOTS), USED, strict=True)] for each in (k, v))
    check_rows(got[0], q, keys, values, WINDOWS[window])
    assert got[1].shape == (4, len(q))


def test_used_keys_of_a_batch():
    q, k = torch.randn(2, 5, 4, 32).half(), torch.randn(2, 24, 2, 32).half()
    out = torch.empty_like(q)
    lse = flash_operators.attend_into(
        out, q, k, k, None, None, 5, 24, 0.0, True, False, seqused_k=make_int(*USED)
    )
    for o, queries, keys, used in zip(out, q, k, USED, strict=True):
        want = compute(queries, keys[:used], keys[:used], (-1, 0))
        assert (o - want).abs().max() < 5e-3
    assert lse.shape == (2, 4, 5)


@pytest.mark.parametrize("window", WINDOWS)
def test_pages(window):
    """Pages of 8 keys in any order, into a tensor that is given."""
    q, _, _ = make_rows()
    pools = torch.randn(2, 7, 8, 2, 32).half()
    table = make_int(4, 1, 0, 6, 2, 5).reshape(2, 3)
    left, right = WINDOWS[window]
    out = torch.empty_like(q)
    lse = flash_operators.attend_into(
        out, q, *pools, count(QUERIES), None, 12, 24, 0.0, window == "causal", False,
        window_size_left=left, window_size_right=right, seqused_k=make_int(*USED), block_table=table,
    )  # fmt: skip
    keys, values = (
        [pool[row.long()].flatten(0, 1)[:n] for row, n in zip(table, USED, strict=True)]
        for pool in pools
    )
    check_rows(out, q, keys, values, WINDOWS[window])
    assert lse.shape == (4, len(q)) and lse.is_contiguous()


def test_what_is_left_to_torch():
    q, k, v = make_rows()
    rest = (q, k, v, count(QUERIES), count(SLOTS), 12, 24, 0.0, True, False)
    for options, reason in (
        ({"num_splits": 1}, "num_splits=1 asks for the same bits in every batch"),
        ({"alibi_slopes": torch.ones(4)}, "alibi_slopes is given"),
        ({"block_table": make_int(0)}, "there is a block_table without seqused_k or cum_seq_q"),
    ):
        assert flash_operators.attend_rows(*rest, **options) == reason
        assert flash_operators.attend_into(torch.empty_like(q), *rest, **options) == reason


@pytest.mark.skipif(
    not hasattr(torch.ops.aten, "_flash_attention_forward_no_dropout_inplace"),
    reason="torch has no such operator",
)
def test_varlen_attn(caplog):
    """torch's own function for packed sequences reaches them, by both operators."""
    from torch.nn.attention import varlen

    def refuse(*_, **__):
        raise NotImplementedError("no kernel in host memory")

    q, k, v = make_rows()
    counts = (count(QUERIES), count(SLOTS), 12, 24)
    under = torch.library.Library("aten", "IMPL")
    for name in flash_operators.OPERATORS:
        under.impl(name, refuse, "CPU")
    overrides = flash_operators.Overrides("CPU")
    try:
        with caplog.at_level(logging.DEBUG, "attn"):
            o = varlen.varlen_attn(q, k, v, *counts, window_size=(-1, 0), enable_gqa=True)
            out = torch.empty_like(q)
            varlen.varlen_attn_out(
                out, q, k, v, *counts, seqused_k=make_int(*USED), enable_gqa=True
            )
            with pytest.raises(NotImplementedError, match="no kernel in host memory"):
                varlen.varlen_attn(q, k, v, *counts, num_splits=1, enable_gqa=True)
    finally:
        overrides.remove()
        under._destroy()
    assert "fallback: _flash_attention_forward is torch's, since num_splits=1" in caplog.text
    check_rows(o, q, k.split(SLOTS), v.split(SLOTS), (-1, 0))
    keys, values = ([s[:n] for s, n in zip(each.split(SLOTS), USED, strict=True)] for each in (k, v))
    check_rows(out, q, keys, values, (-1, -1))
