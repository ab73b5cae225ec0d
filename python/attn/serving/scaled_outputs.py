"""Outputs of `attn.decode`, `attn.mla_decode` and `attn.prefill` that have scales of their
columns, which are outputs too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import ArgumentError
from ..options import readers
from ..record import TensorView
from ..tensors import tensor_views
from .decode_problem import PAIRED, count_output_columns
from .pool_rows import NARROW_TYPES
from .query_rows import check_out_type

#: The type that callers state for bytes of two results each.
_PAIRS = "f4E2M1FN"


class Scaled(NamedTuple):
    """Outputs that a call makes, or those of the caller."""

    #: Element type of an o that is made; None where it is the caller's, or like q.
    out_type: str | None
    #: Columns of an o that is made that share a scale; None without scales.
    group: int | None
    #: The caller's tensor of scales.
    scales: Any

    @property
    def has_scales(self) -> bool:
        return self.group is not None or self.scales is not None


#: An o like q, without scales.
PLAIN = Scaled(None, None, None)


def read(out: Any, out_type: Any, out_group: Any, out_scales: Any, out_scale: Any) -> Scaled:
    """What a call says of its outputs. An o of 8 bits is e4m3 where nothing says otherwise.
    Raises ArgumentError for what contradicts."""
    if out is not None:
        for name, each in (("out_type", out_type), ("out_group", out_group)):
            if each is not None:
                raise ArgumentError(f"{name}: expected none beside out, whose own it is")
        return Scaled(None, None, out_scales)
    if out_scales is not None:
        raise tensor_views.make_output_error(out, out_scales)
    if out_type is None:
        is_narrow = out_scale is not None or out_group is not None
        return Scaled("f8E4M3FN" if is_narrow else None, _read_group(out_group), None)
    kind = readers.get_dtype("out_type", out_type)
    if kind != _PAIRS:
        check_out_type(kind, "out_type")
    return Scaled(PAIRED if kind == _PAIRS else kind, _read_group(out_group), None)


def _read_group(out_group: Any) -> int | None:
    return None if out_group is None else readers.to_integer("out_group", out_group, 1, 2**31 - 1)


def get_scales_type(out_type: str) -> str:
    return "f8E4M3FN" if out_type == PAIRED else "f32"


def count_groups(value_dim: int, group: int) -> int:
    """How many scales a row has."""
    groups, rest = divmod(value_dim, group)
    if rest:
        raise ArgumentError(f"out_group: expected a divisor of {value_dim} columns, got {group}")
    return groups


def make_views(
    views: Mapping[str, TensorView], value_dim: int, out_type: str, group: int
) -> dict[str, TensorView]:
    """Views of an o and its scales that a call makes, in the order of q's rows."""
    q = views["q"]
    _batch, heads, queries, _dim = q.shape
    is_major = heads > 1 and queries > 1 and q.strides[1] < q.strides[2]

    def view(dtype: str, columns: int) -> TensorView:
        inner = (columns, heads * columns) if is_major else (queries * columns, columns)
        strides = (heads * queries * columns, *inner, 1)
        return TensorView(dtype, (*q.shape[:3], columns), strides, 0, q.device)

    if out_type not in (PAIRED, *NARROW_TYPES):
        raise ArgumentError(f"out_group: expected none with an output of {out_type}")
    groups = count_groups(value_dim, group)
    return {
        "o": view(out_type, count_output_columns(out_type, value_dim)),
        "o_scales": view(get_scales_type(out_type), groups),
    }
