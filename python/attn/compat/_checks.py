"""What `plan` of the wrappers is given, looked at before the batch that was planned last is
forgotten. Lists in host memory are looked at always, those of a GPU where `plan` waits for it
anyway, or for debugging (ATTN_DEBUG_CHECKS)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ArgumentError, ArgumentTypeError
from ..launch import device_tensors
from ..options import kernel_sizes, readers
from ..tensors import batch_lists, tensor_views
from . import _lists


def read_sizes(given: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, int]:
    """Numbers of at least 1."""
    return {name: readers.to_integer(name, given[name], 1, 2**31 - 1) for name in names}


def check_dims(dims: Mapping[str, int], types: tuple[str, ...]) -> None:
    """Head dimensions that rows of all of these types may have."""
    for name, dim in dims.items():
        for dtype in types:
            kernel_sizes.check_dim(name, dim, dtype)


def read_scale(name: str, scale: Any) -> float | None:
    """A factor of scores other than 0; None is that of the head dimension."""
    if scale is None:
        return None
    return readers.to_factor(name, scale)


def _read_window(name: str, left: Any) -> tuple[int, None] | None:
    """Keys to the left that a query sees; below 0 all."""
    number = readers.to_integer(name, left, -(2**31), 2**31 - 1)
    return None if number < 0 else (number, None)


def _read_cap(name: str, cap: Any) -> float | None:
    """A cap of scores; from 0 down none."""
    number = 0.0 if cap is None else readers.to_float(name, cap)
    return number if number > 0 else None


#: Arguments that are options of a problem, as the calls of this package have these.
OPTIONS: dict[str, tuple[str, Callable[[str, Any], Any]]] = {
    "causal": ("causal", readers.to_bool),
    "window_left": ("window", _read_window),
    "logits_soft_cap": ("softcap", _read_cap),
    "sm_scale": ("scale", read_scale),
}


def read_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a problem among what `plan` was given."""
    found = [(name, *OPTIONS[name]) for name in OPTIONS if name in given]
    return {option: read(name, given[name]) for name, option, read in found}


def is_near(given: Any) -> bool:
    """Whether a list lies in host memory."""
    return not device_tensors.is_torch(given) or bool(given.device.type == "cpu")


def check_entries(name: str, indptr: Any) -> None:
    if indptr.shape[0] == 0:
        raise ArgumentError(f"{name}: expected one entry more than sequences, got none")


def check_indptr(name: str, indptr: Any, is_packed: bool = False) -> Any:
    """Counts as numpy's array: from 0 on if rows are `is_packed`, and never decreasing."""
    check_entries(name, indptr)
    host = _lists.to_host(indptr)
    first = int(host[0])
    if first < 0 or (is_packed and first):
        raise ArgumentError(f"{name}: expected to begin with 0, got {first}")
    steps = host[1:] - host[:-1]
    if (steps < 0).any():
        at = int((steps < 0).argmax())
        raise ArgumentError(
            f"{name}: expected counts that do not decrease, got {host[at + 1]} behind {host[at]} "
            f"at entry {at + 1}"
        )
    return host


def check_pages(
    counts: tuple[str, Any],
    ids: tuple[str, Any],
    ends: tuple[str, Any],
    page_size: int,
    are_lengths: bool,
    waits: bool,
) -> int | None:
    """Lists of a batch by the names of their arguments; `ends` has keys of the last pages, or
    of all. Returns the greatest id, or None where nobody looked."""

    def looks(given: Any) -> bool:
        return is_near(given) or batch_lists.looks_at(given)

    if not waits and not looks(counts[1]):
        return None
    host = check_indptr(*counts)
    last = int(host[-1])
    if last > ids[1].shape[0]:
        raise ArgumentError(
            f"{ids[0]}: expected at least {last} pages, the last entry of {counts[0]}, got "
            f"{ids[1].shape[0]}"
        )
    if waits or looks(ends[1]):
        keys, pages = _lists.to_host(ends[1]), host[1:] - host[:-1]
        most = pages * page_size if are_lengths else (pages > 0) * page_size
        # Whatever the last page of none is said to hold.
        wrong = (
            (keys < 0) | (keys > most)
            if are_lengths
            else (pages > 0) & ((keys < 1) | (keys > page_size))
        )
        if wrong.any():
            at = int(wrong.argmax())
            raise ArgumentError(
                f"{ends[0]}: expected {0 if are_lengths else 1} to {most[at]} keys of sequence "
                f"{at}, "
                f"got {keys[at]}"
            )
    if not looks(ids[1]):
        return None
    used = _lists.to_host(ids[1])[int(host[0]) : last]
    if len(used) and used.min() < 0:
        raise ArgumentError(f"{ids[0]}: expected ids of at least 0, got {used.min()}")
    return int(used.max(initial=-1))


def check_ids(name: str, greatest: int | None, pages: int) -> None:
    """The pool of a launch has all pages of the batch."""
    if greatest is not None and greatest >= pages:
        raise ArgumentError(
            f"{name}: expected ids of the {pages} pages of the pool, got {greatest}"
        )


def check_tensor(name: str, given: Any, like: Any = None) -> None:
    """A tensor of torch or numpy, of the library that `like` is of."""
    kinds = (tensor_views.is_numpy(given), device_tensors.is_torch(given))
    if not any(kinds) or (
        like is not None and kinds != (tensor_views.is_numpy(like), device_tensors.is_torch(like))
    ):
        wanted = "a torch tensor or a numpy array" if like is None else "a tensor of q's library"
        raise ArgumentTypeError(f"{name}: expected {wanted}, got {type(given).__name__}")
