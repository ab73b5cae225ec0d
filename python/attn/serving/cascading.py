"""`attn.cascade`: keys that groups of sequences share, read once for each group."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .. import arrays
from ..errors import ArgumentError, ArgumentTypeError
from ..launch import device_tensors
from ..options import argument_names, readers
from ..record import TensorView
from ..tensors import batch_lists, tensor_views
from . import decode_calls
from .settings import Settings


class Level(NamedTuple):
    """Keys that groups of a batch's sequences share.

    `page_table`, i32 (groups, pages), and `kv_lengths`, i32 (groups), are those of
    `attn.decode`, with groups in the place of sequences. The sequences of a group are
    neighbours in the batch: `sequences` of them in each group, or, as a tensor, i32
    (groups + 1), where each group begins and the last one ends.
    """

    page_table: Any
    kv_lengths: Any
    sequences: Any = 1


def attend_levels(
    tensors: Mapping[str, Any], options: Mapping[str, Any], init: tuple[Any, Any] | None, lse: Any
) -> Any:
    """attn.cascade: its tensors, with the levels among them, and options by name."""
    q, k_cache, v_cache, levels, sinks = (
        tensors[name] for name in ("q", "k_cache", "v_cache", "levels", "sinks")
    )
    for name, each in (("q", q), ("k_cache", k_cache), ("v_cache", v_cache)):
        if not tensor_views.is_numpy(each) and not device_tensors.is_torch(each):
            raise ArgumentTypeError(
                f'tensor "{name}": expected a torch tensor or a numpy array, got '
                f"{type(each).__name__}"
            )
    if len(q.shape) not in (3, 4):
        raise ArgumentError(
            'tensor "q": expected shape (batch, heads, dim) or (batch, heads, queries, dim), got '
            f"{list(q.shape)}"
        )
    if len(v_cache.shape) != 4:
        raise ArgumentError(
            f'tensor "v_cache": expected a pool of rank 4, got shape {list(v_cache.shape)}'
        )
    lse = readers.to_bool("lse", lse)
    levels = _check_levels(levels, q.shape[0])
    init_state = _read_state(q, v_cache, init)
    rows = q[:, :, None] if len(q.shape) == 3 else q
    batch, heads, queries, _ = rows.shape
    # The heads of a query side by side: groups are then neighbours in memory.
    rows = rows.swapaxes(1, 2)
    results: list[tuple[Any, Any]] = []
    states = _make_states(q, (len(levels), batch, queries, heads, v_cache.shape[-1]))
    for number, level in enumerate(levels):
        is_last = number == len(levels) - 1
        one = None if states is None else (states[0][number], states[1][number])
        if one is not None and not _is_even(level):
            # What no group has, of which only the device knows, has no keys in this level.
            one[0].zero_()
            one[1].fill_(float("-inf"))
        pools = {"k_cache": k_cache, "v_cache": v_cache, "sinks": sinks if is_last else None}
        pools |= init_state if is_last else decode_calls.name_state(None)
        with _name_level(number):
            results.append(_attend(rows, pools, level, {**options, "causal": is_last}, one))
    if states is None:
        import numpy as np

        states = np.stack([each[0] for each in results]), np.stack([each[1] for each in results])
    flat = [each.reshape(len(levels), batch * queries, *each.shape[3:]) for each in states]
    # uint16 is no name of a type.
    element = q.dtype if device_tensors.is_torch(q) else tensor_views.view("q", q).dtype
    o, log = decode_calls.merge_states(*flat, dtype=element)
    if tensor_views.is_numpy(q):
        o = arrays.carry(o, q.dtype)
    o = o.reshape(batch, queries, *o.shape[1:]).swapaxes(1, 2)
    log = log.reshape(batch, queries, heads).swapaxes(1, 2)
    if len(q.shape) == 3:
        o, log = o[:, :, 0], log[:, :, 0]
    return (o, log) if lse else o


def _describe(name: str, value: Any) -> TensorView:
    """A tensor of torch, wherever it lies, or numpy."""
    return (
        device_tensors.describe(name, value)
        if device_tensors.is_torch(value)
        else tensor_views.view(name, value)
    )


def _is_even(level: Level) -> bool:
    """Whether all groups of a level have as many sequences."""
    return not tensor_views.is_array(level.sequences) or not len(level.sequences.shape)


def _check_levels(levels: Any, batch: int) -> list[Level]:
    """The levels of a batch, whose groups have each of its sequences once: what lies on a
    device is looked at for debugging only."""
    if isinstance(levels, Level) or not isinstance(levels, Sequence):
        raise ArgumentTypeError(
            f"levels: expected a list of attn.Level, got {type(levels).__name__}"
        )
    if not levels:
        raise ArgumentError("levels: expected at least one, got none")
    for number, level in enumerate(levels):
        if not isinstance(level, Level):
            raise ArgumentTypeError(
                f"level {number}: expected an attn.Level, got {type(level).__name__}"
            )
        with _name_level(number):
            lengths = _describe("kv_lengths", level.kv_lengths)
            table = _describe("page_table", level.page_table)
            batch_lists.check_lengths(lengths, table, None)
            groups = lengths.shape[0]
            if number == len(levels) - 1 and groups != batch:
                raise ArgumentError(
                    f"expected the keys of each of the {batch} sequences of q as the last level, "
                    f"got those of {groups} groups"
                )
            if not _is_even(level):
                _check_groups(level.sequences, lengths, batch)
                continue
            count = readers.to_integer("sequences", level.sequences, 1, 2**31 - 1)
            if groups * count != batch:
                raise ArgumentError(
                    f"expected groups of the {batch} sequences of q, got {groups} of {count}"
                )
    return list(levels)


def _check_groups(sequences: Any, lengths: TensorView, batch: int) -> None:
    """Groups of different sizes cover the batch."""
    tensor_views.check_counts("sequences", _describe("sequences", sequences), lengths)
    if not batch_lists.looks_at(sequences):
        return
    batch_lists.check_counts("sequences", sequences, batch, batch)
    end = int(sequences[-1])
    if end != batch:
        raise ArgumentError(
            f'tensor "sequences": expected the last group to end at {batch}, the sequences of q, '
            f"got {end}"
        )


@contextlib.contextmanager
def _name_level(number: int) -> Iterator[None]:
    """Says of an error which level it is about, and what of it."""
    try:
        with argument_names.rename({"cu_seqlens_q": "sequences"}):
            yield
    except ArgumentError as error:
        error.args = (f"level {number}: {error}", *error.args[1:])
        raise


def _read_state(q: Any, v_cache: Any, init: tuple[Any, Any] | None) -> dict[str, Any]:
    """A state to go on from in the order (batch, queries, heads) and, of o, dim."""
    state = decode_calls.name_state(init)
    for name, shape in (("init_o", (*q.shape[:-1], v_cache.shape[-1])), ("init_lse", q.shape[:-1])):
        each = state[name]
        if each is None:
            continue
        _describe(name, each)
        if tuple(each.shape) != tuple(shape):
            raise ArgumentError(
                f'tensor "{name}": expected shape {list(shape)}, got {list(each.shape)}'
            )
        each = each[:, :, None] if len(q.shape) == 3 else each
        state[name] = each.swapaxes(1, 2)
    return state


def _make_states(q: Any, shape: tuple[int, ...]) -> tuple[Any, Any] | None:
    """Memory for the results of all levels; None for numpy, whose results are new."""
    if not device_tensors.is_torch(q):
        return None
    import torch

    return tuple(
        torch.empty(each, dtype=torch.float32, device=q.device) for each in (shape, shape[:-1])
    )


def _attend(
    rows: Any,
    pools: dict[str, Any],
    level: Level,
    options: dict[str, Any],
    state: tuple[Any, Any] | None,
) -> tuple[Any, Any]:
    """One pass: o and its LSE in f32, (batch, queries, heads, dim) and without dim.
    `rows` is q in that order."""
    batch, queries, heads, dim = rows.shape
    tensors = {"q": rows, **pools, "page_table": level.page_table, "kv_lengths": level.kv_lengths}
    is_even = _is_even(level)
    if is_even:
        groups, count = level.kv_lengths.shape[0], int(level.sequences)
        shape = (groups, count * queries, heads)
        tensors["q"] = rows.reshape(*shape, dim).swapaxes(1, 2)
    else:
        counts = level.sequences if queries == 1 else level.sequences * queries
        shape = (batch * queries, heads)
        tensors |= {"q": rows.reshape(*shape, dim), "cu_seqlens_q": counts}
        options = options | {"max_seqlen_q": max(batch * queries, 1)}
    for name in ("init_o", "init_lse"):
        if pools[name] is not None:
            each = pools[name].reshape(*shape, *pools[name].shape[3:])
            tensors[name] = each.swapaxes(1, 2) if is_even else each
    if is_even:
        tensors |= {"k_scale": None, "v_scale": None}
    settings = Settings.read(**options, out_type="f32")
    if state is None:
        o, lse = decode_calls.run(tensors, [], settings, decode_calls.Results(True, None, None))
        if is_even:
            o, lse = o.swapaxes(1, 2), lse.swapaxes(1, 2)
        return o.reshape(batch, queries, heads, o.shape[-1]), lse.reshape(batch, queries, heads)
    o, lse = (part.view(*shape, *part.shape[3:]) for part in state)
    if is_even:
        o, lse = o.swapaxes(1, 2), lse.swapaxes(1, 2)
    decode_calls.run(tensors, [], settings, decode_calls.Results(lse, o, None))
    return state
