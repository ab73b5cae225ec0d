"""Lengths and ids that are out of bounds: zeros, or, with ATTN_DEBUG_CHECKS, errors."""

import attn
import numpy as np
import pytest
from attn.launch import host_arrays
from test_decode import PAGE, PAGES, make_batch, refuse


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("table", (1, 1), -1, "page_table\": sequence 1, position 1: expected one of the 40 pages of the pool, got -1"),
        ("table", (0, 0), PAGES, "page_table\": sequence 0, position 0: expected one of the 40 pages of the pool, got 40"),
        ("lengths", 1, 8 * PAGE + 1, "kv_lengths\": sequence 1: expected 0 to 128 keys, which its row of the table holds, got 129"),
        ("lengths", 0, -3, "kv_lengths\": sequence 0: expected 0 to 128 keys, which its row of the table holds, got -3"),
    ],
)  # fmt: skip
def test_out_of_bounds(monkeypatch, name, place, value, message):
    monkeypatch.setattr(host_arrays, "has_device", lambda: False)
    q, k, v, table, lengths = make_batch([20, 30])
    k, v = np.nan_to_num(k), np.nan_to_num(v)
    # A length that is only clamped finds pages of zeros behind its own.
    attn.decode(q, k, v, table, lengths)
    {"table": table, "lengths": lengths}[name][place] = value
    assert np.isfinite(attn.decode(q, k, v, table, lengths)).all()
    monkeypatch.setenv("ATTN_DEBUG_CHECKS", "1")
    refuse(message, attn.decode, q, k, v, table, lengths)
    counts = np.int32([0, 1, 2])
    refuse(message, attn.prefill, q, k, v, table, lengths, counts, max_seqlen_q=1)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (
            [1, 1, 2],
            'tensor "cu_seqlens_q": expected sequence 0 to begin at 0 to 0 of 2 rows, got 1',
        ),
        ([0, 2, 2], "max_seqlen_q: expected at least 2, the queries of sequence 0, got 1"),
        ([0, 1, 0], 'tensor "cu_seqlens_q": expected sequence 1 to end at 1 to 2 of 2 rows, got 0'),
        ([0, 1, 3], 'tensor "cu_seqlens_q": expected sequence 1 to end at 1 to 2 of 2 rows, got 3'),
        (
            [-1, 1, 2],
            'tensor "cu_seqlens_q": expected sequence 0 to begin at 0 to 0 of 2 rows, got -1',
        ),
    ],
)
def test_counts_out_of_bounds(monkeypatch, counts, message):
    """Those of the host are looked at without being asked for it."""
    monkeypatch.setattr(host_arrays, "has_device", lambda: False)
    refuse(message, attn.prefill, *make_batch([20, 30]), np.int32(counts), max_seqlen_q=1)


def test_ids_of_selected_keys(monkeypatch):
    """An id that the pool does not have hides its keys. One below 0 is how no key is named,
    and one beyond the pool is reported."""
    monkeypatch.setattr(host_arrays, "has_device", lambda: False)
    q, k, v, table, lengths = make_batch([20, 30])
    table[0, 1], table[1, 0] = -1, -7
    want = attn.decode(q, k, v, table, lengths, selected=True)
    monkeypatch.setenv("ATTN_DEBUG_CHECKS", "1")
    np.testing.assert_array_equal(attn.decode(q, k, v, table, lengths, selected=True), want)
    refuse("position 1: expected one of the 40 pages", attn.decode, q, k, v, table, lengths)
    table[1, 0] = PAGES
    beyond = "sequence 1, position 0: expected one of the 40 pages of the pool, got 40"
    refuse(beyond, attn.decode, q, k, v, table, lengths, selected=True)
    # Places behind a sequence's length count for nothing.
    table[1, 0], table[1, -1] = -7, PAGES
    np.testing.assert_array_equal(attn.decode(q, k, v, table, lengths, selected=True), want)
    added, known = (k, v, np.full_like(table, PAGES + 1), lengths), np.zeros_like(table)
    refuse("added_table\": sequence 0, position 0", attn.decode, q, k, v, known, lengths, added=added)
    monkeypatch.delenv("ATTN_DEBUG_CHECKS")
    table[1, 0] = PAGES
    np.testing.assert_array_equal(attn.decode(q, k, v, table, lengths, selected=True), want)
