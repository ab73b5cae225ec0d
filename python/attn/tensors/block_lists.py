"""Lists of blocks of keys: which blocks queries have, and which of these are full."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ArgumentError
from ..launch.tensor_map import TensorView
from ..options import readers
from . import tensor_views

#: The operands, in the order of the call.
NAMES = ("block_counts", "block_indices")


def to_size(size: Any) -> tuple[int, int] | None:
    """The queries and keys of a block, for one number as many of both."""
    if size is None:
        return None
    pair = (size, size) if isinstance(size, int) else tuple(readers.to_list("block_size", size))
    if len(pair) != 2:
        raise ArgumentError(f"block_size: expected (queries, keys) of a block, got {readers.show(size)}")
    rows, keys = (readers.to_integer("block_size", each, 1, 2**31 - 1) for each in pair)
    return rows, keys


def check_lists(views: Mapping[str, TensorView], size: tuple[int, int] | None) -> None:
    """Refuses lists that are not those of the queries and keys of `views`."""
    given = [name for name in NAMES if name in views]
    if size is None and not given:
        return
    if size is None or len(given) != len(NAMES):
        raise ArgumentError(
            "expected all of block_counts, block_indices and block_size, or none, got "
            f"{' and '.join([*given, *(('block_size',) if size else ())])}"
        )
    if "cu_seqlens_q" in views:
        raise ArgumentError("block_counts: expected no lists of blocks with cu_seqlens, got some")
    (batch, heads, queries, _), keys = views["q"].shape, views["k"].shape[2]
    if keys % size[1]:
        raise ArgumentError(
            f"block_size: expected blocks of keys that divide the {keys} keys, got {size[1]}"
        )
    lists = (batch, heads, -(-queries // size[0]))
    for name, last in (("block_counts", 2), ("block_indices", keys // size[1])):
        view = views[name]
        if view.dtype != "i32":
            raise ArgumentError(f'tensor "{name}": expected elements of i32, got {view.dtype}')
        if tuple(view.shape) != (*lists, last):
            raise ArgumentError(
                f'tensor "{name}": expected shape {[*lists, last]} for blocks of {size[0]} queries '
                f"and {size[1]} keys, got {list(view.shape)}"
            )
        if not tensor_views.is_dense(view):
            raise ArgumentError(
                f'tensor "{name}": expected one without gaps, got strides {list(view.strides)}'
            )
