"""Outputs of calls that are rounded to 8 or 4 bits, with scales of their columns, which are
outputs too, and the largest size of results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import ArgumentError
from ..options import readers
from ..record import TensorView
from ..tensors import nvfp4, tensor_views
from ..tensors.argument_checks import check_amax

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Elements of o that have two results of 4 bits each, and what callers state for them.
PAIRED = "i8"
_PAIRS = "f4E2M1FN"
#: Columns of results of 4 bits that share a scale.
PAIRED_GROUP = 16
_WIDE = ("f16", "bf16", "f32")
_NARROW = ("f8E4M3FN", "f8E5M2")
_POWER = "f8E8M0FNU"
#: Rows and columns of a tile of scales.
_TILE_ROWS, _TILE_COLUMNS = 128, 4
#: Outputs beside o and its LSE.
NAMES = ("o_scales", "amax")
#: Names of arguments that differ from the names of their outputs.
SHOWN = {"o": "out", "o_scales": "out_scales"}


class Asked(NamedTuple):
    """What a call says of its outputs."""

    #: Element type of an o that is made; None for that of the caller's, or the usual one.
    out_type: str | None = None
    #: Columns of o that share a scale; None where the scales say so, or without them.
    group: int | None = None
    #: Element type of scales that are made; None for the usual one.
    scale_type: str | None = None
    #: True if scales that are made lie in tiles of 128 rows and 4 columns.
    tiles: bool = False
    #: The caller's tensors.
    scales: Any = None
    amax: Any = None

    @property
    def makes(self) -> bool:
        """Whether o, and its scales, are made as it says."""
        return self.out_type is not None

    @property
    def has_scales(self) -> bool:
        return self.group is not None or self.scales is not None


PLAIN = Asked()


def read(
    out: Any,
    out_type: Any,
    out_group: Any,
    out_scale_type: Any,
    out_scale_tiles: Any,
    out_scales: Any,
    out_scale: Any,
    amax: Any,
) -> Asked:
    """What a call says of its outputs. An o of 8 bits is e4m3 where nothing says otherwise. Raises
    ArgumentError for what contradicts."""
    tiles = readers.to_bool("out_scale_tiles", out_scale_tiles)
    group = None
    if out_group is not None:
        group = readers.to_integer("out_group", out_group, 1, 2**31 - 1)
    kind = None if out_type is None else readers.get_dtype("out_type", out_type)
    scale_type = None
    if out_scale_type is not None:
        scale_type = readers.get_dtype("out_scale_type", out_scale_type)
    if out is not None:
        for name, each in (("out_type", kind), ("out_scale_type", scale_type)):
            if each is not None:
                raise ArgumentError(f"{name}: expected none beside out, whose own it is")
        if group is not None and out_scales is None:
            raise ArgumentError("out_group: expected out_scales beside out, got none")
        return Asked(None, group, None, False, out_scales, amax)
    if out_scales is not None:
        raise tensor_views.make_output_error(out, out_scales)
    if group is None and (scale_type is not None or tiles):
        name = "out_scale_tiles" if tiles else "out_scale_type"
        raise ArgumentError(f"{name}: expected out_group beside it")
    if kind is None and (group is not None or out_scale is not None):
        kind = "f8E4M3FN"
    return Asked(PAIRED if kind == _PAIRS else kind, group, scale_type, tiles, None, amax)


def check_type(name: str, kind: str) -> None:
    """Refuses an element type that no o has."""
    if kind not in (PAIRED, *_WIDE, *_NARROW):
        raise ArgumentError(
            f"{name}: expected f16, bf16, f32, floats of 8 bits or {_PAIRS}, got {kind}"
        )


def get_scale_type(asked: Asked) -> str:
    """The element type of scales that are made. Raises ArgumentError for one that these have
    not."""
    usual = "f8E4M3FN" if asked.out_type == PAIRED else "f32"
    kind = asked.scale_type or usual
    if kind not in ((usual,) if asked.out_type == PAIRED else (usual, _POWER)):
        wanted = usual if asked.out_type == PAIRED else f"{usual} or {_POWER}"
        raise ArgumentError(f"out_scale_type: expected {wanted}, got {kind}")
    if asked.tiles and kind == "f32":
        raise ArgumentError(f"out_scale_tiles: expected out_scale_type={_POWER} beside it, got f32")
    return kind


def count_groups(columns: int, group: int) -> int:
    # Not divmod, which torch does not trace.
    if columns % group or columns < group:
        raise ArgumentError(f"out_group: expected a divisor of {columns} columns, got {group}")
    return columns // group


def get_tiles(tokens: int, columns: int) -> tuple[int, int]:
    """The rows and columns of a matrix of scales in tiles."""
    return (
        -(-tokens // _TILE_ROWS) * _TILE_ROWS,
        -(-columns // _TILE_COLUMNS) * _TILE_COLUMNS,
    )


def find_written_tiles(o: Any, rows: int | None, group: int | None) -> NDArray[np.bool_]:
    """Returns where a matrix of scales in tiles has those of the caller's `o`, a tensor of torch,
    and no padding; of packed sequences only the first `rows` of o are some sequence's."""
    import numpy as np

    width = o.shape[-1] * (2 if o.dtype.itemsize == 1 and not o.is_floating_point() else 1)
    heads = o.shape[1]
    tokens = o.numel() // max(heads * o.shape[-1], 1)
    written = np.zeros((tokens, heads * count_groups(width, group or PAIRED_GROUP)), np.uint8)
    written[:rows] = 1
    mask: NDArray[np.bool_] = nvfp4.tile_scales(written) == 1
    return mask


def make_views(q: TensorView, columns: int, packed: bool, asked: Asked) -> dict[str, TensorView]:
    """Views of the o of `columns` results that a call makes, and of its scales, in the caller's
    shapes and the order of q's rows; `q` is (batch, heads, queries, dim), or packed (rows, heads,
    dim)."""
    kind = asked.out_type or ""
    is_paired = kind == PAIRED
    check_type("out_type", kind)
    if is_paired and asked.group != PAIRED_GROUP:
        got = "none" if asked.group is None else asked.group
        raise ArgumentError(f"out_group: expected {PAIRED_GROUP} with an output of {_PAIRS}, got {got}")
    if asked.group is not None and kind in _WIDE:
        raise ArgumentError(f"out_group: expected none with an output of {kind}")
    if is_paired and columns % PAIRED_GROUP:
        raise ArgumentError(f"out_group: expected a divisor of {columns} columns, got {PAIRED_GROUP}")
    is_major = not packed and q.shape[1] > 1 and q.shape[2] > 1 and q.strides[1] < q.strides[2]

    def view(dtype: str, inner: int) -> TensorView:
        shape = (*q.shape[:-1], inner)
        order = (3, 1, 2, 0) if is_major else tuple(reversed(range(len(shape))))
        strides, step = [0] * len(shape), 1
        for axis in order:
            strides[axis] = step
            step *= shape[axis]
        return TensorView(dtype, shape, tuple(strides), 0, q.device)

    made = {"o": view(kind, columns // 2 if is_paired else columns)}
    if asked.group is None:
        return made
    groups, scale_type = count_groups(columns, asked.group), get_scale_type(asked)
    if not asked.tiles:
        return made | {"o_scales": view(scale_type, groups)}
    heads = q.shape[1]
    tokens = q.shape[0] if packed else q.shape[0] * q.shape[2]
    rows, wide = get_tiles(tokens, heads * groups)
    return made | {"o_scales": TensorView(scale_type, (rows, wide), (wide, 1), 0, q.device)}


def find_flags(
    views: Mapping[str, TensorView], columns: int, group: int | None, out_scale: float | None
) -> dict[str, object]:
    """The options of a problem that outputs make; `views` has the o of `columns` results, and its
    scales and amax where they are, packed sequences as of a batch of 1. Raises ArgumentError for
    outputs that do not fit each other."""
    o, scales, amax = views["o"], views.get("o_scales"), views.get("amax")
    is_paired = o.dtype == PAIRED
    flags: dict[str, object] = {}
    if is_paired:
        flags["out_type"] = _PAIRS
    if amax is not None:
        check_amax(amax)
        flags["amax"] = True
    if scales is None:
        if is_paired:
            raise ArgumentError(
                f"out_group: expected {PAIRED_GROUP} with an output of {_PAIRS}, got none"
            )
        if (out_scale is not None) != (o.dtype in _NARROW):
            wanted = "none" if out_scale is not None else "one"
            raise ArgumentError(f"out_scale: expected {wanted} with an output of {o.dtype}")
        return flags
    if o.dtype not in (PAIRED, *_NARROW):
        raise ArgumentError(f"out_scales: expected none with an output of {o.dtype}")
    if out_scale is not None and not is_paired:
        raise ArgumentError("out_scale: expected none beside scales of the output")
    kinds = ("f8E4M3FN",) if is_paired else ("f32", _POWER)
    if scales.dtype not in kinds:
        raise ArgumentError(
            f'tensor "out_scales": expected elements of {" or ".join(kinds)}, got {scales.dtype}'
        )
    if len(scales.shape) == 2:
        group = PAIRED_GROUP if is_paired and group is None else group
        if group is None:
            raise ArgumentError("out_group: expected one beside scales in tiles, got none")
        groups = count_groups(columns, group)
        wanted = get_tiles(o.shape[0] * o.shape[2], o.shape[1] * groups)
        tensor_views.expect("out_scales", "shape", list(wanted), list(scales.shape))
        flags["out_scale_tiles"] = True
    else:
        rows = list(o.shape[:3])
        tensor_views.expect(
            "out_scales", "the shape of o but for its columns,", rows, list(scales.shape[:-1])
        )
        groups = scales.shape[-1]
        if groups < 1 or columns % groups:
            raise ArgumentError(
                f'tensor "out_scales": expected a number of columns that divides {columns}, got '
                f"{groups}"
            )
        found = columns // groups
        if group not in (None, found):
            raise ArgumentError(f"out_group: expected {found}, as out_scales have, got {group}")
        group = found
    if is_paired and group != PAIRED_GROUP:
        raise ArgumentError(f"out_group: expected {PAIRED_GROUP} with an output of {_PAIRS}, got {group}")
    flags["out_group"] = group
    if scales.dtype == _POWER:
        flags["out_scale_type"] = _POWER
    return flags
