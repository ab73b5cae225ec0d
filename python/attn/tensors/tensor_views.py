"""Tensors of serving calls as views in the order of the kernels: what library they come from,
their element types, ranks, and where they lie."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import arrays
from ..errors import ArgumentError, ArgumentTypeError
from ..launch import device_tensors
from ..record import TensorView
from ..tracing import captured_reads

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Stands for host memory in the place of a device.
HOST = -1
#: What serving kernels read and write.
_ELEMENTS = ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2", "f8E8M0FNU", "i32", "i64")


def expect(name: str, what: str, expected: object, got: object) -> None:
    if expected != got:
        raise ArgumentError(f'tensor "{name}": expected {what} {expected}, got {got}')


def make_output_error(out: Any, lse: Any) -> ArgumentError:
    """What refuses one of two outputs where the caller gave the other one."""
    missing = "out" if out is None else "lse"
    return ArgumentError(
        f'tensor "{missing}": expected a tensor to write to, as the other output, got '
        f"{out if out is None else lse}"
    )


def is_numpy(value: Any) -> bool:
    """Whether `value` is an array or a number of numpy, without importing it. Subclasses of
    other modules have contents that an array does not show, such as a mask."""
    numpy = sys.modules.get("numpy")
    if numpy is None or type(value).__module__ != "numpy":
        return False
    return isinstance(value, (numpy.ndarray, numpy.generic))


def is_array(value: Any) -> bool:
    """Whether `value` is a tensor of torch, or an array or a number of numpy."""
    return is_numpy(value) or device_tensors.is_torch(value)


def _measure(value: NDArray[np.generic]) -> tuple[int, ...]:
    """Strides in elements. Arrays are copied on their way to a kernel: strides that no kernel
    has are those of the copy."""
    width = value.dtype.itemsize
    if all(step > 0 and step % width == 0 for step in value.strides):
        return tuple(step // width for step in value.strides)
    dense, step = [], 1
    for extent in reversed(value.shape):
        dense.insert(0, step)
        step *= max(extent, 1)
    return tuple(dense)


def _view_numpy(name: str, value: NDArray[np.generic]) -> TensorView:
    """An array in host memory as a view; bf16 is numpy's uint16, uint8 is e4m3."""
    dtype = arrays.find_element(value.dtype)
    if dtype not in _ELEMENTS:
        raise ArgumentError(f'tensor "{name}": no kernel takes elements of {value.dtype}')
    return TensorView(dtype, value.shape, _measure(value), 0, HOST)


def view(name: str, value: Any, is_captured: bool = False) -> TensorView:
    """Any tensor as a view; device -1 is host memory, of numpy only. Captured ones have
    other element types."""
    if value is None:
        raise ArgumentTypeError(f'tensor "{name}": expected a tensor, got None')
    if not is_numpy(value):
        return device_tensors.view(name, value, 0)
    if is_captured:
        spec = captured_reads.describe(value)
        # They are made dense on the way to a kernel.
        return TensorView(spec.element, spec.shape, spec.row_major().strides, 0, HOST)
    return _view_numpy(name, value)


def is_dense(view: TensorView, order: Sequence[int] | None = None, unit: int = 1) -> bool:
    """Returns whether elements have no gaps with the dimensions in this order (default: their
    own), but for rows, along the last one, of a multiple of `unit` elements."""
    expected = 1
    for axis in reversed(range(len(view.shape)) if order is None else order):
        if view.shape[axis] > 1 and view.strides[axis] != expected:
            return False
        expected *= max(view.shape[axis], 1)
        expected = -(-expected // unit) * unit
    return True


def check_integers(name: str, tensor: TensorView, rank: int, device: int | None) -> None:
    """Lengths and tables: i32, dense, where the rest is."""
    if tensor.dtype != "i32":
        raise ArgumentError(
            f'tensor "{name}": expected elements of i32, got {tensor.dtype}; nothing is converted'
        )
    if len(tensor.shape) != rank:
        one = "(sequences + 1)" if name.startswith("cu_seqlens") else "(sequences)"
        shape = one if rank == 1 else "(sequences, pages)"
        raise ArgumentError(f'tensor "{name}": expected shape {shape}, got {list(tensor.shape)}')
    # numpy's strides of no elements are 0.
    if tensor.shape[-1] > 1 and 0 not in tensor.shape and tensor.strides[-1] != 1:
        raise ArgumentError(
            f'tensor "{name}": expected an innermost stride of 1, got {tensor.strides[-1]}'
        )
    if device is not None and tensor.device != device:
        raise ArgumentError(
            f'tensor "{name}": expected it on {device_tensors.name_device(device)}, got '
            f"{device_tensors.name_device(tensor.device)}"
        )


def check_counts(name: str, counts: TensorView, lengths: TensorView) -> None:
    """Where the rows of each sequence begin, and the end of the last ones."""
    check_integers(name, counts, 1, lengths.device)
    expect(name, "one more than sequences,", lengths.shape[0] + 1, counts.shape[0])


def turn_pool(name: str, pool: TensorView, layout: str) -> TensorView:
    """A pool in the order (page, head, key, dim)."""
    if len(pool.shape) != 4:
        order = "pages, keys, heads, dim" if layout == "nhd" else "pages, heads, keys, dim"
        raise ArgumentError(f'tensor "{name}": expected shape ({order}), got {list(pool.shape)}')
    if layout == "hnd":
        return pool
    (p, n, h, d), (sp, sn, sh, sd) = pool.shape, pool.strides
    return pool._replace(shape=(p, h, n, d), strides=(sp, sh, sn, sd))


def turn_rows(name: str, rows: TensorView) -> TensorView:
    """q or o as (batch, head, query, dim); of rank 3 it has one query."""
    if len(rows.shape) == 3:
        (b, h, d), (sb, sh, sd) = rows.shape, rows.strides
        return rows._replace(shape=(b, h, 1, d), strides=(sb, sh, h * d, sd))
    if len(rows.shape) != 4:
        raise ArgumentError(
            f'tensor "{name}": expected shape (batch, heads, dim) or (batch, heads, queries, '
            f"dim), got {list(rows.shape)}"
        )
    return rows


def turn_lse(name: str, lse: TensorView) -> TensorView:
    """An LSE as (batch, head, query); of rank 2 it has one query."""
    if len(lse.shape) == 2:
        return lse._replace(shape=(*lse.shape, 1), strides=(*lse.strides, 1))
    if len(lse.shape) != 3:
        raise ArgumentError(
            f'tensor "{name}": expected shape (batch, heads) or (batch, heads, queries), got '
            f"{list(lse.shape)}"
        )
    return lse


def turn_packed(name: str, rows: TensorView) -> TensorView:
    """Queries or results of all sequences, or their LSE, as of a batch of 1 in the
    order (batch, head, query, dim)."""
    is_lse = name.endswith("lse")
    if len(rows.shape) != (2 if is_lse else 3):
        shape = "(queries, heads)" if is_lse else "(queries, heads, dim)"
        raise ArgumentError(f'tensor "{name}": expected shape {shape}, got {list(rows.shape)}')
    (n, h, *d), (sn, sh, *sd) = rows.shape, rows.strides
    return rows._replace(shape=(1, h, n, *d), strides=(n * sn, sh, sn, *sd))


def turn_latent(name: str, pool: TensorView) -> TensorView:
    """A pool of latent rows, (pages, keys, dim) or with one key head behind the
    keys, in the order (page, head, key, dim)."""
    shape, strides = pool.shape, pool.strides
    if len(shape) == 4 and shape[2] == 1:
        shape, strides = (*shape[:2], shape[3]), (*strides[:2], strides[3])
    if len(shape) != 3:
        raise ArgumentError(
            f'tensor "{name}": expected shape (pages, keys, dim) or (pages, keys, 1, dim), got '
            f"{list(pool.shape)}"
        )
    (p, n, d), (sp, sn, sd) = shape, strides
    return pool._replace(shape=(p, 1, n, d), strides=(sp, d, sn, sd))
