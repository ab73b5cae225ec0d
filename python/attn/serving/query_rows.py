"""Tensors with something for each row of q beside it: rotated columns, a state to go on from,
and the scales of the output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..errors import ArgumentError
from ..record import TensorView
from ..tensors.argument_checks import check_columns, check_device
from ..tensors.tensor_views import expect
from .decode_problem import PAIRED
from .pool_rows import NARROW_TYPES

if TYPE_CHECKING:
    from .settings import Settings

#: Element types of q.
WIDE_TYPES = ("f16", "bf16")
#: Columns of results of 4 bits that share a scale.
PAIRED_GROUP = 16


def check_rope_of_queries(q: TensorView, rope: TensorView, has_pool: bool) -> None:
    """Rotated columns of queries that are apart."""
    if not has_pool:
        raise ArgumentError('tensor "q_rope": expected none without k_rope')
    expect("q_rope", "elements as q,", q.dtype, rope.dtype)
    expect("q_rope", "the shape of q but for its columns,", list(q.shape[:3]), list(rope.shape[:3]))
    check_columns("q_rope", rope)
    check_device("q_rope", rope, q.device)


def check_out_type(out_type: str, name: str = 'tensor "out"') -> None:
    """Results of a call, which have 16 or 32 bits, or are 8-bit floats: of bytes only a plan is
    told that they are packed."""
    if out_type not in (*WIDE_TYPES, "f32", *NARROW_TYPES):
        raise ArgumentError(
            f"{name}: expected f16, bf16, f32 or floats of 8 bits, got {out_type}"
        )


def find_out_group(
    out_type: str, settings: Settings, scales: TensorView | None, shape: Sequence[int]
) -> int | None:
    """Columns of o, which has `shape`, that share a scale; None but for an o of 8 bits with
    such scales."""
    if out_type == PAIRED:
        return _find_paired_group(scales, shape)
    check_out_type(out_type)
    is_scaled = settings.out_scale is not None or scales is not None
    if is_scaled != (out_type in NARROW_TYPES):
        raise ArgumentError(
            f"out_scale: expected {'none' if is_scaled else 'one'} with an output of {out_type}"
        )
    if scales is None:
        return None
    if settings.out_scale is not None:
        raise ArgumentError("out_scale: expected none beside scales of the output")
    _check_scales(scales, "f32", shape)
    groups = scales.shape[3]
    if groups < 1 or shape[3] % groups:
        raise ArgumentError(
            f'tensor "out_scales": expected a number of columns that divides {shape[3]}, got '
            f"{groups}"
        )
    return shape[3] // groups


def _check_scales(scales: TensorView, dtype: str, shape: Sequence[int]) -> None:
    expect("out_scales", "elements of", dtype, scales.dtype)
    expect(
        "out_scales", "the shape of o but for its columns,", list(shape[:3]), list(scales.shape[:3])
    )


def _find_paired_group(scales: TensorView | None, shape: Sequence[int]) -> int:
    """The same of results of 4 bits, which have such scales always."""
    if scales is None:
        raise ArgumentError(
            f"out_group: expected {PAIRED_GROUP} with an output of f4E2M1FN, got none"
        )
    _check_scales(scales, "f8E4M3FN", shape)
    wanted = shape[3] // PAIRED_GROUP
    if shape[3] % PAIRED_GROUP or scales.shape[3] != wanted:
        raise ArgumentError(
            f"out_group: expected {PAIRED_GROUP} columns, of which {shape[3]} are a multiple, with "
            f"an output of f4E2M1FN, got {scales.shape[3]} groups"
        )
    return PAIRED_GROUP


def read_init(
    tensors: Mapping[str, TensorView], shape: Sequence[int]
) -> tuple[str, tuple[int, int, int], tuple[int, int, int]] | None:
    """A state to go on from, whose o has `shape`, as a problem has it."""
    o, lse = tensors.get("init_o"), tensors.get("init_lse")
    if o is None and lse is None:
        return None
    if o is None or lse is None:
        raise ArgumentError("init: expected o and its LSE, got one of them")
    expect("init_o", "shape", list(shape), list(o.shape))
    expect("init_lse", "shape", list(shape[:3]), list(lse.shape))
    expect("init_lse", "elements of", "f32", lse.dtype)
    if o.dtype not in (*WIDE_TYPES, "f32"):
        raise ArgumentError(f'tensor "init_o": expected f16, bf16 or f32, got {o.dtype}')
    check_columns("init_o", o)
    for name, each in (("init_o", o), ("init_lse", lse)):
        check_device(name, each, tensors["q"].device)
    return o.dtype, o.strides[:3], lse.strides[:3]
