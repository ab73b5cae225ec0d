"""Pages of sequences as lists with cumulative counts, made tables with a row for each
sequence; torch tensors on their device without a wait for it, numpy arrays in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import arrays
from ..errors import ArgumentError, ArgumentTypeError
from ..launch import device_tensors
from ..options import readers
from ..tensors import tensor_views

LOG2E = 1.4426950408889634


def get_module(value: Any) -> Any:
    """torch or numpy, by a tensor of theirs."""
    if device_tensors.is_torch(value):
        import torch

        return torch
    import numpy

    return numpy


def expect(name: str, expected: object, got: object) -> None:
    if got != expected:
        raise ArgumentError(f"{name}: expected {expected}, got {got}")


def refuse(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Arguments that are not covered have to be what they are by default."""
    for name, default in defaults.items():
        value = given[name]
        if value is not default and (_has_shape(value) or value != default):
            what = f"a tensor of {list(value.shape)}" if _has_shape(value) else repr(value)
            raise ArgumentError(
                f"{name}: expected {default!r}, the rest is not covered, got {what}"
            )


def _has_shape(value: Any) -> bool:
    return tensor_views.is_array(value)


def read_type(name: str, given: Any) -> str:
    """An element type as the compiler calls it."""
    return readers.get_dtype(name, given)


def check_list(name: str, given: Any) -> None:
    """A list of i32."""
    is_known = tensor_views.is_numpy(given) or device_tensors.is_torch(given)
    if not is_known or len(given.shape) != 1:
        got = list(given.shape) if is_known else type(given).__name__
        raise ArgumentTypeError(f"{name}: expected a tensor of rank 1, got {got}")
    dtype = read_type(name, given.dtype)
    if dtype != "int32":
        raise ArgumentError(f"{name}: expected elements of i32, got {dtype}; nothing is converted")


def check_tensors(names: tuple[str, str], given: Any) -> None:
    """A pair of tensors."""
    if len(given) != 2:
        raise ArgumentError(f"{names[0]}: expected a pair of tensors, got {len(given)}")
    for name, each in zip(names, given, strict=True):
        if not tensor_views.is_numpy(each) and not device_tensors.is_torch(each):
            raise ArgumentTypeError(f"{name}: expected a tensor, got {type(each).__name__}")


def copy(given: Any) -> Any:
    """A list in memory of its own; the caller may write to what is given."""
    return given.clone() if device_tensors.is_torch(given) else given.copy()


def to_host(given: Any) -> Any:
    """A numpy array; of a GPU's tensor a copy that waits for the device."""
    return given.cpu().numpy() if device_tensors.is_torch(given) else given


def move(given: Any, other: Any) -> Any:
    """A list where another tensor is."""
    if device_tensors.is_torch(given) and given.device != other.device:
        return given.to(other.device, non_blocking=True)
    return given


def count_most(indptr: Any) -> int:
    """Entries of the longest list."""
    counts = to_host(indptr)
    return int((counts[1:] - counts[:-1]).max(initial=0))


def round_up(count: int) -> int:
    """A power of two, so that few kernels serve all batches."""
    return 1 << max(count - 1, 0).bit_length()


def spread(indptr: Any, indices: Any, width: int) -> Any:
    """A table (sequences, width) of lists; -1 behind the end of each."""
    module = get_module(indices)
    on = {"device": indices.device} if module.__name__ == "torch" else {}
    columns = module.arange(width, dtype=module.int32, **on)
    if indices.shape[0] == 0:
        return module.full((indptr.shape[0] - 1, width), -1, dtype=module.int32, **on)
    at = indptr[:-1, None] + columns
    ids = indices[at.clip(0, indices.shape[0] - 1)]
    return module.where(
        columns < (indptr[1:] - indptr[:-1])[:, None], ids, module.full_like(ids, -1)
    )


def measure(indptr: Any, last_page_len: Any, page_size: int) -> Any:
    """Keys of each sequence; of one without pages 0, whatever its last page is said to
    hold."""
    pages = indptr[1:] - indptr[:-1]
    keys = ((pages - 1) * page_size + last_page_len).clip(0)
    return get_module(keys).where(pages > 0, keys, get_module(keys).zeros_like(keys))


class Pages:
    """Lengths and a table of the batch that was planned last, in memory of their own. With
    `is_fixed` they stay where they are, for CUDA graphs."""

    def __init__(self, is_fixed: bool) -> None:
        self._is_fixed = is_fixed
        self.lengths: Any = None
        self.table: Any = None

    def plan(self, indptr: Any, indices: Any, lengths: Any, width: int) -> None:
        table = spread(indptr, indices, width)
        if not self._is_fixed or self.table is None:
            self.lengths, self.table = lengths, table
            return
        self.lengths[...] = lengths
        self.table[...] = table


def join(names: tuple[str, str], first: Any, second: Any) -> Any | None:
    """Two tensors as one whose last dimension has the columns of both, where they lie
    so in memory; None where they do not."""
    _check_pair(names, first, second)
    columns = first.shape[-1]
    shape = (*first.shape[:-1], columns + second.shape[-1])
    if device_tensors.is_torch(first):
        step = first.element_size()
        if second.data_ptr() != first.data_ptr() + columns * step:
            return None
        return (
            first.as_strided(shape, first.stride()) if first.stride() == second.stride() else None
        )
    import numpy as np

    addresses = [each.__array_interface__["data"][0] for each in (first, second)]
    if addresses[1] != addresses[0] + columns * first.itemsize or first.strides != second.strides:
        return None
    return np.lib.stride_tricks.as_strided(first, shape, first.strides)


def concatenate(first: Any, second: Any, factor: float) -> Any:
    """One new tensor of the columns of both, those of the second one times `factor`, rounded
    once."""
    if device_tensors.is_torch(first):
        import torch

        return torch.cat((first, second if factor == 1 else second * factor), -1)
    import numpy as np

    parts = [arrays.to_bits(each) for each in (first, second)]
    if factor != 1:
        # What numpy has no type for are bits.
        is_raw = arrays.find_element(second.dtype) == "bf16"
        numbers = arrays.from_bf16(parts[1]) if is_raw else second.astype(np.float32)
        numbers = numbers * np.float32(factor)
        parts[1] = arrays.to_bits(
            arrays.to_bf16(numbers) if is_raw else numbers.astype(second.dtype)
        )
    return np.concatenate(parts, -1).view(first.dtype)


def name_element(each: Any) -> str:
    """The element type, whatever carries it."""
    found = None if device_tensors.is_torch(each) else arrays.find_element(each.dtype)
    return str(each.dtype) if found is None else found


def _check_pair(names: tuple[str, str], first: Any, second: Any) -> None:
    expect(
        f"{names[1]}: shape but for its columns", list(first.shape[:-1]), list(second.shape[:-1])
    )
    expect(f"{names[1]}: elements as {names[0]}", name_element(first), name_element(second))


def finish_lse(lse: Any, base: str) -> Any:
    """A natural LSE, in another base in place."""
    if base != "ln":
        lse *= LOG2E
    return lse


def write(targets: Mapping[str, Any], values: tuple[Any, Any]) -> tuple[Any, ...]:
    """Results of numpy in the caller's memory, by the names of their arguments; nothing is
    converted or repeated."""
    pairs = list(zip(targets.items(), values, strict=True))
    for (name, target), value in pairs:
        if target is not None and value is not None:
            if not tensor_views.is_numpy(target):
                raise ArgumentTypeError(
                    f"{name}: expected an array to write to, got {type(target).__name__}"
                )
            expect(f"{name}: shape", list(value.shape), list(target.shape))
            expect(f"{name}: elements of", name_element(value), name_element(target))
            if not target.flags.writeable:
                raise ArgumentError(f"{name}: expected an array that can be written to")
    written = []
    for (_, target), value in pairs:
        if target is not None and value is not None:
            arrays.to_bits(target)[...] = arrays.to_bits(value)
            value = target
        written.append(value)
    return tuple(written)
