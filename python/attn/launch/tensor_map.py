"""Tensors of a launch, and tensor maps of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..arrays import CARRIERS
from ..errors import ArgumentError

#: As what tensor maps may describe their tensors: the least rank of a tensor in each view of a map,
#: and dimensions in addition; the view `rows` has two, whatever the tensor's rank is.
MAP_VIEWS = {
    "whole": (1, 0),
    "transposed": (2, 0),
    "quads": (2, 1),
    "packed": (3, 0),
    "bounded": (3, 1),
    "by_row": (3, 0),
    "packed_by_row": (3, 0),
    "rows": (2, 0),
}
#: Strides of maps are a multiple of it, in bytes.
_STRIDE_UNIT = 16


def get_map_rank(view: str, rank: int) -> int:
    """The rank of a map of a tensor of rank `rank`."""
    return 2 if view == "rows" else rank + MAP_VIEWS[view][1]


class TensorView(NamedTuple):
    """A tensor in device memory. Every launch makes some, so that it is cheap."""

    dtype: str
    #: Elements.
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    #: Of the first element.
    address: int = 0
    #: Ordinal of the CUDA device.
    device: int = 0


@dataclasses.dataclass(frozen=True)
class TensorMap:
    """A tensor map that the driver has to encode. Dimension 0 is the innermost."""

    offset: int
    tensor: str
    element: str
    swizzle: str
    dims: tuple[int, ...]
    #: Bytes, from dimension 1 on.
    strides: tuple[int, ...]
    box: tuple[int, ...]
    #: Bytes by which element 0 of all dimensions lies in front of the tensor.
    before: int = 0


def make_map(
    kernel: str, arg: Mapping[str, Any], offset: int, view: TensorView, has_results: bool
) -> TensorMap:
    """The map that a record's parameter at `offset` asks for, of a tensor; `has_results` says
    whether the launch fills any elements."""
    name, width = arg["tensor"], CARRIERS[arg["element"]][1]

    def fail(message: str) -> ArgumentError:
        return ArgumentError(f'kernel {kernel}: tensor "{name}": its tensor map expects {message}')

    # Kernels load nothing of a tensor without elements, unless it is a pool without pages: those
    # that a pool does not have hold zeros, which they load where there are results.
    if 0 in view.shape and (view.shape[0] or not has_results):
        rank = len(arg["box"])
        ones, steps = (1,) * rank, (_STRIDE_UNIT,) * (rank - 1)
        return TensorMap(offset, name, arg["element"], arg["swizzle"], ones, steps, tuple(arg["box"]))
    # The map's dimensions, the innermost first.
    shape, steps = list(reversed(view.shape)), list(reversed(view.strides))
    before = 0
    form = arg.get("view", "whole")
    if form == "transposed":
        shape[:2], steps[:2] = shape[1::-1], steps[1::-1]
    elif form == "quads":
        if shape[1] % 4:
            raise fail(f"rows of a multiple of 4, got {shape[1]}")
        shape[1:2] = [4, shape[1] // 4]
        steps[1:2] = [steps[1], 4 * steps[1]]
    elif form == "rows":
        # All dimensions but the columns as one, along which rows are a pitch apart.
        pitch, last = arg["pitch"], 0
        for extent, stride in zip(shape[1:], steps[1:], strict=True):
            if extent < 1:
                raise fail(f"extents of at least 1, got {extent}")
            if extent > 1 and (stride < 0 or stride % pitch):
                raise fail(f"strides of a multiple of {pitch} elements, got {stride}")
            last += (extent - 1) * (stride // pitch) if extent > 1 else 0
        if last >= 2**31 - 1:
            raise fail("fewer than 2^31 rows")
        shape[1:], steps[1:] = [last + 1], [pitch]
    elif form in ("packed", "packed_by_row", "bounded"):
        # The last row is always the last one of the map, so that nothing behind
        # it is inside.
        if form != "bounded" and shape[-1] != 1:
            raise fail(f"one batch of packed sequences, got {shape[-1]}")
        ends = slice(-1, -1 if form == "bounded" else None)
        shape[ends], steps[ends] = [shape[1] + 1], [steps[1]]
        before = shape[1] * steps[1] * width
    if form in ("by_row", "packed_by_row"):
        shape[1:3], steps[1:3] = shape[2:0:-1], steps[2:0:-1]
    # Limits of cuTensorMapEncodeTiled in the CUDA driver API.
    strides = []
    for extent, stride in zip(shape, steps, strict=True):
        if not 1 <= extent <= 2**32:
            raise fail(f"extents from 1 to 2^32, got {extent}")
        strides.append((_STRIDE_UNIT // width if extent == 1 else stride) * width)
    if shape[0] > 1 and steps[0] != 1:
        raise fail(f"an innermost stride of 1, got {steps[0]}")
    for stride in strides[1:]:
        if stride % _STRIDE_UNIT or not 0 <= stride < 2**40:
            raise fail(f"strides of a multiple of 16 bytes below 2^40, got {stride} bytes")
    return TensorMap(
        offset,
        name,
        arg["element"],
        arg["swizzle"],
        tuple(shape),
        tuple(strides[1:]),
        tuple(arg["box"]),
        before,
    )
