"""Tensors with something for each row of q beside it: rotated columns, a state to go on from,
and the scales of the output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..calls import attention_outputs
from ..errors import ArgumentError
from ..record import TensorView
from ..tensors.argument_checks import check_columns, check_device
from ..tensors.tensor_views import expect
from .decode_problem import PAIRED, count_output_columns
from .pool_rows import NARROW_TYPES

if TYPE_CHECKING:
    from .settings import Settings

#: Element types of q.
WIDE_TYPES = ("f16", "bf16")


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


def find_outputs(
    tensors: Mapping[str, TensorView],
    out_type: str,
    settings: Settings,
    value_dim: int,
    group: int | None,
) -> dict[str, Any]:
    """What outputs are to a problem, by its names: an o of `out_type` like q with `value_dim`
    results a row, and o_scales and amax where they are given. `group` is how many columns share a
    scale, where something says it. Raises ArgumentError for outputs that do not fit each other."""
    if out_type != PAIRED:
        check_out_type(out_type)
    columns = count_output_columns(out_type, value_dim)
    q = tensors["q"]
    views = {"o": q._replace(dtype=out_type, shape=(*q.shape[:3], columns))}
    views |= {name: tensors[name] for name in attention_outputs.NAMES if name in tensors}
    flags = attention_outputs.find_flags(views, value_dim, group, settings.out_scale)
    found = {"amax": "amax" in flags, "out_group": flags.get("out_group")}
    scales = tensors.get("o_scales")
    if scales is None:
        return found
    found["scales_type"] = scales.dtype
    if len(scales.shape) == 2:
        return found | {"scale_tiles": scales.shape}
    return found | {"o_scales_strides": scales.strides[:3]}


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
