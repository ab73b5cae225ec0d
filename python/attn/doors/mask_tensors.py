"""Masks that are tensors, as functions of the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ArgumentError


def _make_reader(tensor: Any, shared: Sequence[bool]) -> Callable[..., Any]:
    """Reads `tensor`, (batch, head, query, key), at a place; 0 where a dimension is shared."""
    no_batch, no_head, no_query, no_key = shared

    def read(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return tensor[
            0 if no_batch else b,
            0 if no_head else h,
            0 if no_query else q_idx,
            0 if no_key else kv_idx,
        ]

    return read


def make_mods(
    name: str, mask: Any, shape: Sequence[int]
) -> tuple[Callable[..., Any] | None, Callable[..., Any] | None]:
    """score_mod and mask_mod of a mask for scores of `shape` (batch, heads, queries, keys), to
    which it can be broadcast: bools say what is seen, numbers are added. Keys beyond `shape` are
    left out. Raises ArgumentError for a mask of another shape."""
    given = tuple(mask.shape)
    if len(given) > 4:
        raise ArgumentError(f'tensor "{name}": expected at most four dimensions, got {list(given)}')
    full = mask.reshape((1,) * (4 - len(given)) + given)
    keys = full.shape[3]
    for extent, wanted in zip(full.shape[:3], shape[:3], strict=True):
        if extent not in (1, wanted):
            raise ArgumentError(
                f'tensor "{name}": expected a shape that broadcasts to {list(shape)}, got '
                f"{list(given)}"
            )
    if keys not in (1, shape[3]) and keys < shape[3]:
        raise ArgumentError(
            f'tensor "{name}": expected a place for each of the {shape[3]} keys, got {keys}'
        )
    read = _make_reader(full, [extent == 1 for extent in full.shape])
    if str(full.dtype) in ("torch.bool", "bool"):
        return None, read
    return (lambda score, b, h, q_idx, kv_idx: score + read(b, h, q_idx, kv_idx)), None


def chain(first: Callable[..., Any], second: Callable[..., Any]) -> Callable[..., Any]:
    """The second score_mod of what the first one gives."""
    return lambda score, b, h, q_idx, kv_idx: second(
        first(score, b, h, q_idx, kv_idx), b, h, q_idx, kv_idx
    )


def read_blocks(
    table: Any, sizes: Sequence[int], function: Callable[..., Any]
) -> Callable[..., Any]:
    """A mask_mod of blocks, (batch, heads, rows, columns): those of 2 are seen, of those of 1 what
    `function` leaves. The sizes are the queries and keys of a block."""
    rows, columns = sizes
    read = _make_reader(table, [table.shape[0] == 1, table.shape[1] == 1, False, False])

    def see(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        block = read(b, h, q_idx // rows, kv_idx // columns)
        return (block == 2) | ((block == 1) & function(b, h, q_idx, kv_idx))

    return see


def see_used(used: Any, shifts: Any, left: int, right: int) -> Callable[..., Any]:
    """A mask_mod that sees the first `used` keys, i32 (batch), and of them, where these are not
    negative, at most `left` before and `right` behind the key of a query, which is `shifts`, i32
    (batch), keys after it."""

    def see(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        seen = kv_idx < used[b]
        if right >= 0:
            seen = seen & (kv_idx <= q_idx + shifts[b] + right)
        if left >= 0:
            seen = seen & (kv_idx >= q_idx + shifts[b] - left)
        return seen

    return see
