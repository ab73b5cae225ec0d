"""Tensors with something for each row of pools: scales, and rotated columns of keys."""

from __future__ import annotations

from collections.abc import Mapping

from .errors import ArgumentError
from .record import TensorView

#: Element types of 8 bits.
NARROW_TYPES = ("f8E4M3FN", "f8E5M2")


def check_rows(name: str, rows: TensorView, k: TensorView, dtype: str) -> None:
    """Such a tensor is where the keys are, with a unit stride along its columns."""
    place = "host memory" if k.device < 0 else f"device {k.device}"
    for what, expected, got in (
        ("elements of", dtype, rows.dtype),
        ("pages, heads and keys of a page as k_cache,", list(k.shape[:3]), list(rows.shape[:3])),
        (f"it on {place} as k_cache, device", k.device, rows.device),
        ("an innermost stride of", 1, rows.strides[3] if rows.shape[3] > 1 else 1),
    ):
        if expected != got:
            raise ArgumentError(f'tensor "{name}": expected {what} {expected}, got {got}')


def find_scale_group(tensors: Mapping[str, TensorView]) -> int | None:
    """Columns of a row that share a scale; None without scales of rows."""
    scales = [name for name in ("k_scales", "v_scales") if name in tensors]
    if not scales:
        return None
    wanted = ["k_scales", "v_scales"] if "v" in tensors else ["k_scales"]
    if scales != wanted:
        raise ArgumentError(
            f'tensor "{scales[0]}": expected {" and ".join(wanted)}, or none, got '
            f'{" and ".join(scales)}'
        )
    k = tensors["k"]
    if k.dtype not in NARROW_TYPES:
        raise ArgumentError(f'tensor "k_scales": expected none beside pools of {k.dtype}')
    groups = []
    for name in scales:
        check_rows(name, tensors[name], k, "f32")
        columns, count = tensors[name[0]].shape[3], tensors[name].shape[3]
        if count < 1 or columns % count:
            raise ArgumentError(
                f'tensor "{name}": expected a number of columns that divides {columns}, got {count}'
            )
        groups.append(columns // count)
    if groups[0] != groups[-1]:
        raise ArgumentError(
            f'tensor "v_scales": expected a scale for each {groups[0]} columns as k_scales, got '
            f"one for each {groups[-1]}"
        )
    return groups[0]
