"""Masks that hosts give as functions: their parts, and the same for other places of queries and
keys."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Union

Function = Callable[..., Any]

#: Names within transformers.masking_utils.
_MODULE = "transformers.masking_utils"
_ALL_OF = "and_masks.<locals>.and_mask"
_WINDOW = "sliding_window_overlay.<locals>.inner_mask"


class Parts(NamedTuple):
    """A mask as the options that kernels have, and the functions that are left."""

    causal: bool = False
    #: Keys that a query sees at most, itself among them.
    window: int | None = None
    rest: tuple[Function, ...] = ()


def split(function: Function) -> Parts:
    """The parts of a mask of transformers. A function that is not known is left as it is: the
    compiler reads it."""
    if getattr(function, "__module__", None) != _MODULE:
        return Parts(rest=(function,))
    name = function.__qualname__
    if name == "causal_mask_function":
        return Parts(causal=True)
    if name == "bidirectional_mask_function":
        return Parts()
    captured = inspect.getclosurevars(function).nonlocals
    if name == _WINDOW and isinstance(captured.get("sliding_window"), int):
        return Parts(window=captured["sliding_window"])
    if name == _ALL_OF and isinstance(captured.get("mask_functions"), tuple):
        return _join([split(each) for each in captured["mask_functions"]])
    return Parts(rest=(function,))


def _join(parts: Sequence[Parts]) -> Parts:
    windows = [each.window for each in parts if each.window is not None]
    return Parts(
        any(each.causal for each in parts),
        min(windows, default=None),
        tuple(one for each in parts for one in each.rest),
    )


class Aligned(NamedTuple):
    """Options of `attn.attention` for a diagonal."""

    causal: Union[bool, str] = False
    window: tuple[int | None, int | None, str] | None = None


def align(parts: Parts, queries: int, keys: int, shift: int) -> Aligned | None:
    """The options for queries whose first one stands `shift` keys behind the first key; None
    where no option says it."""
    if not parts.causal and parts.window is None:
        return Aligned()
    causal, window = parts.causal, parts.window
    # All keys that there are, as for the one query of a step.
    if shift >= keys - 1:
        causal = False
    # One query keeps its window: a later one, of whose keys it hides some, has the same kernel.
    if window is not None and queries > 1 and shift + queries <= window:
        window = None
    if not causal and window is None:
        return Aligned()
    if shift == keys - queries:
        place = "bottom-right"
    elif shift == 0:
        place = "top-left"
    else:
        return None
    bounds = None if window is None else (window - 1, 0 if causal else None, place)
    return Aligned(place if causal and window is None else False, bounds)


def make_parts(parts: Parts) -> list[Function]:
    """The functions of all parts, for places that no option says."""
    functions = list(parts.rest)
    if parts.causal:
        functions.append(_see_earlier)
    if parts.window is not None:
        functions.append(make_window(parts.window))
    return functions


def _see_earlier(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return kv_idx <= q_idx


def make_window(size: int) -> Function:
    """Sees the last `size` keys, those behind the query, too."""
    return lambda b, h, q_idx, kv_idx: kv_idx > q_idx - size


def make_same(numbers: Any) -> Function:
    """Sees the keys whose sequence, of `numbers`, is the query's."""
    return lambda b, h, q_idx, kv_idx: numbers[q_idx] == numbers[kv_idx]


def join(
    functions: Sequence[Function], offsets: Any = None, padding: Any = None
) -> Function | None:
    """What all of the functions see, of queries and keys that begin at `offsets`, two integers of
    a tensor, or at 0 without; and what `padding`, bools (batch, keys), has, from the first key
    on. None where that is all."""
    if not functions and padding is None:
        return None

    def see(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        query = q_idx if offsets is None else q_idx + offsets[0]
        key = kv_idx if offsets is None else kv_idx + offsets[1]
        seen = None if padding is None else padding[b, kv_idx]
        for function in functions:
            each = function(b, h, query, key)
            seen = each if seen is None else seen & each
        return seen

    return see
