"""Results of 4 bits with scales of 8, as numbers."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError

#: Columns that share a scale.
GROUP = 16
#: Magnitudes by the lower three bits of f4E2M1FN.
_SIZES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def unpack_nvfp4(o: Any, o_scales: Any, out_scale: float = 1.0) -> Any:
    """What results of f4E2M1FN stand for, f32 (..., columns).

    `o` is (..., columns / 2), an array of bytes of numpy with two results in each, that of the
    even column in the lower half; `o_scales` is (..., columns / 16), the bytes of numbers of
    f8E4M3FN; `out_scale` is what the kernel multiplied results by. Raises ArgumentError for
    other shapes and types."""
    import numpy as np

    for name, each in (("o", o), ("o_scales", o_scales)):
        if not isinstance(each, np.ndarray) or each.dtype.itemsize != 1:
            kind = getattr(each, "dtype", type(each).__name__)
            raise ArgumentError(f'tensor "{name}": expected an array of bytes, got {kind}')
    wanted = (*o.shape[:-1], 2 * o.shape[-1] // GROUP)
    if 2 * o.shape[-1] % GROUP or o_scales.shape != wanted:
        raise ArgumentError(
            f'tensor "o_scales": expected shape {list(wanted)}, one for each {GROUP} columns of o, '
            f"got {list(o_scales.shape)}"
        )
    packed, scales = o.view(np.uint8), o_scales.view(np.uint8).astype(np.int32)
    codes = np.stack([packed & 15, packed >> 4], -1).reshape(*o.shape[:-1], -1)
    numbers = np.float32(_SIZES)[codes & 7] * np.where(codes & 8, np.float32(-1), np.float32(1))
    exponent, mantissa = scales >> 3 & 15, scales & 7
    normal = np.ldexp(np.float32(8 + mantissa), exponent - 10)
    units = np.where(exponent == 0, np.ldexp(np.float32(mantissa), -9), normal)
    units = np.where(scales & 127 == 127, np.float32(np.nan), units).astype(np.float32)
    return numbers * units.repeat(GROUP, -1) / np.float32(out_scale)
