"""What is on the device, looked at before a launch: for debugging, since it waits."""

from __future__ import annotations

import os
from typing import Any

from .errors import ArgumentError


def _is_on() -> bool:
    return os.environ.get("ATTN_DEBUG_CHECKS", "") not in ("", "0")


def check_counts(cu_seqlens: Any, rows: int, most: int) -> None:
    """The same for where the queries of sequences begin: from 0, not decreasing, within `rows`,
    and no more than `most` of each."""
    if not _is_on():
        return
    first = 0
    for sequence, begin in enumerate(cu_seqlens.tolist()):
        low, high = (first, min(rows, first + most)) if sequence else (0, 0)
        if not low <= begin <= high:
            what = f"sequence {sequence - 1} to end" if sequence else "sequence 0 to begin"
            raise ArgumentError(
                f'tensor "cu_seqlens_q": expected {what} at {low} to {high}, with at most {most} of '
                f"{rows} queries, got {begin}"
            )
        first = begin


def check_batch(kv_lengths: Any, page_table: Any, page_size: int, pages: int) -> None:
    """With ATTN_DEBUG_CHECKS=1 raises ArgumentError for a length that the table does not
    hold and for an id that the pool does not have, at the sequence and position. Waits
    for the device, so that it cannot be captured in a CUDA graph."""
    if not _is_on():
        return
    held = page_table.shape[1] * page_size
    rows = page_table.tolist()
    for sequence, length in enumerate(kv_lengths.tolist()):
        if not 0 <= length <= held:
            raise ArgumentError(
                f'tensor "kv_lengths": sequence {sequence}: expected 0 to {held} keys, which its '
                f"row of the table holds, got {length}"
            )
        for position in range(-(-length // page_size)):
            page = rows[sequence][position]
            if not 0 <= page < pages:
                raise ArgumentError(
                    f'tensor "page_table": sequence {sequence}, position {position}: expected '
                    f"one of the {pages} pages of the pool, got {page}"
                )
