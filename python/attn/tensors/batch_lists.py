"""Lists and tables of a batch: what they are, and what they hold."""

from __future__ import annotations

import os
from typing import Any

from ..errors import ArgumentError
from ..record import TensorView
from . import tensor_views


def checks_all() -> bool:
    """Whether ATTN_DEBUG_CHECKS asks for checks that wait for the device."""
    return os.environ.get("ATTN_DEBUG_CHECKS", "") not in ("", "0")


def looks_at(tensor: Any) -> bool:
    """Whether the contents of a tensor are checked: in host memory always, on a device for
    debugging, since it waits and cannot be captured in a CUDA graph."""
    if tensor_views.is_numpy(tensor):
        return True
    return checks_all() and hasattr(tensor, "tolist")


def check_counts(name: str, counts: Any, rows: int, most: int | None = None) -> None:
    """Raises ArgumentError unless places where sequences begin, and the last one ends, do not
    decrease and lie within `rows`. With `most`, which bounds the queries of a sequence, they
    begin with 0: kernels leave other rows as they are."""
    first = 0
    for sequence, begin in enumerate(counts.tolist()):
        high = 0 if most is not None and not sequence else rows
        if not first <= begin <= high:
            what = f"sequence {sequence - 1} to end" if sequence else "sequence 0 to begin"
            raise ArgumentError(
                f'tensor "{name}": expected {what} at {first} to {high} of {rows} rows, got {begin}'
            )
        if most is not None and begin - first > most:
            raise ArgumentError(
                f"max_seqlen_q: expected at least {begin - first}, the queries of sequence "
                f"{sequence - 1}, got {most}"
            )
        first = begin


#: The arguments of a call for the lengths of its sequences and for their table.
NAMES = ("kv_lengths", "page_table")


def check_batch(
    kv_lengths: Any,
    page_table: Any,
    page_size: int,
    pages: int,
    selected: bool,
    names: tuple[str, str] = NAMES,
) -> None:
    """With ATTN_DEBUG_CHECKS=1 raises ArgumentError for a length that the table does not
    hold and for an id that the pool does not have, at the sequence and position; where keys
    are `selected` ids below 0 are those of no keys, and others that the pool does not have
    are errors here, and hidden keys without these checks. Waits for the device, so that it cannot be
    captured in a CUDA graph."""
    if not checks_all():
        return
    held = page_table.shape[1] * page_size
    rows = page_table.tolist()
    for sequence, length in enumerate(kv_lengths.tolist()):
        if not 0 <= length <= held:
            raise ArgumentError(
                f'tensor "{names[0]}": sequence {sequence}: expected 0 to {held} keys, which its '
                f"row of the table holds, got {length}"
            )
        for position, page in enumerate(rows[sequence][: -(-length // page_size)]):
            if page >= pages or (page < 0 and not selected):
                raise ArgumentError(
                    f'tensor "{names[1]}": sequence {sequence}, position {position}: expected '
                    f"one of the {pages} pages of the pool, got {page}"
                )


def check_lengths(
    lengths: TensorView, table: TensorView, device: int | None, names: tuple[str, str] = NAMES
) -> None:
    tensor_views.check_integers(names[0], lengths, 1, device)
    tensor_views.check_integers(names[1], table, 2, lengths.device)
    if table.shape[0] != lengths.shape[0]:
        raise ArgumentError(
            f'tensor "{names[1]}": expected a row for each of the {lengths.shape[0]} sequences '
            f"of {names[0]}, got {table.shape[0]}"
        )
