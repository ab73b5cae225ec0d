"""Results of 4 bits with scales of 8, as numbers."""

from __future__ import annotations

import sys
from typing import Any

from ..errors import ArgumentError
from ..launch import device_tensors
from . import fp8

#: Columns that share a scale.
GROUP = 16
#: Rows and columns of a tile of scales, and rows that are neighbours in it.
_ROWS, _COLUMNS, _NEAR = 128, 4, 32
#: Magnitudes by the lower three bits of f4E2M1FN.
_SIZES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def _pad(extent: int, size: int) -> int:
    return -(-extent // size) * size


def tile_scales(scales: Any) -> Any:
    """Scales in tiles of 128 rows and 4 columns, the layout 128x4 that block-scaled products of
    tensor cores read.

    `scales` are (..., columns), numpy's or torch's, with an element of one byte for each 16
    columns of a row; the dimensions before the last one are rows, one behind the other. Returns
    (rows, columns), both padded with zeros to whole tiles: the tiles of 128 rows one behind the
    other, in each of which rows 32 apart are neighbours. Raises ArgumentError for elements that
    are no bytes, and without columns."""
    if not fp8.has_bytes(scales):
        raise ArgumentError(
            'tensor "scales": expected elements of one byte and a dimension of columns, got '
            f"{fp8.describe(scales)}"
        )
    flat = scales.reshape(-1, scales.shape[-1])
    rows, columns = flat.shape
    shape = _pad(rows, _ROWS), _pad(columns, _COLUMNS)
    if hasattr(flat, "new_zeros"):
        padded = flat.new_zeros(shape)
        padded[:rows, :columns] = flat
    else:
        import numpy as np

        padded = np.zeros(shape, flat.dtype)
        padded[:rows, :columns] = flat
    parts = padded.reshape(-1, _ROWS // _NEAR, _NEAR, shape[1] // _COLUMNS, _COLUMNS)
    permute = getattr(parts, "permute", parts.transpose)
    return permute(0, 3, 2, 1, 4).reshape(shape)


def _untile_scales(tiled: Any, rows: int, columns: int) -> Any:
    """The reverse of `tile_scales`, of numpy's bytes."""
    shape = _pad(rows, _ROWS), _pad(columns, _COLUMNS)
    if tiled.shape != shape:
        raise ArgumentError(
            f'tensor "o_scales": expected {list(shape)} for {rows} rows of {columns} scales, padded to '
            f"tiles of {_ROWS} x {_COLUMNS}, got {list(tiled.shape)}"
        )
    parts = tiled.reshape(-1, shape[1] // _COLUMNS, _NEAR, _ROWS // _NEAR, _COLUMNS)
    return parts.transpose(0, 3, 2, 1, 4).reshape(shape)[:rows, :columns]


def unpack_nvfp4(o: Any, o_scales: Any, out_scale: float = 1.0, layout: str = "linear") -> Any:
    """What results of f4E2M1FN stand for, f32 (..., columns).

    `o` is (..., columns / 2), bytes of numpy or torch with two results in each, that of the even
    column in the lower half, and what it returns is of the same library, on the same device;
    `o_scales` is (..., columns / 16), the bytes of numbers of
    f8E4M3FN, or with the layout "128x4" what `tile_scales` makes of them; `out_scale` is what
    the kernel multiplied results by. Raises ArgumentError for other shapes and types."""
    import numpy as np

    if layout not in ("linear", "128x4"):
        raise ArgumentError(f"layout: expected linear or 128x4, got {layout!r}")
    for name, each in (("o", o), ("o_scales", o_scales)):
        if not fp8.has_bytes(each):
            raise ArgumentError(
                f'tensor "{name}": expected elements of one byte and a dimension of columns, got '
                f"{fp8.describe(each)}"
            )
    if device_tensors.is_torch(o):
        numbers = unpack_nvfp4(fp8.read_bytes(o), fp8.read_bytes(o_scales), out_scale, layout)
        return sys.modules["torch"].from_numpy(numbers).to(o.device)
    o, o_scales = fp8.read_bytes(o), fp8.read_bytes(o_scales)
    wanted = (*o.shape[:-1], 2 * o.shape[-1] // GROUP)
    if layout == "128x4" and 2 * o.shape[-1] % GROUP == 0:
        rows = int(np.prod(o.shape[:-1]))
        o_scales = _untile_scales(o_scales, rows, wanted[-1]).reshape(wanted)
    if 2 * o.shape[-1] % GROUP or o_scales.shape != wanted:
        raise ArgumentError(
            f'tensor "o_scales": expected shape {list(wanted)}, one for each {GROUP} columns of o, '
            f"got {list(o_scales.shape)}"
        )
    codes = np.stack([o & 15, o >> 4], -1).reshape(*o.shape[:-1], 2 * o.shape[-1])
    numbers = np.float32(_SIZES)[codes & 7] * np.where(codes & 8, np.float32(-1), np.float32(1))
    units = fp8.widen(o_scales, "f8E4M3FN")
    return numbers * units.repeat(GROUP, -1) / np.float32(out_scale)
