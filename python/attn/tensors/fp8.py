"""Results of 8 bits with scales of their columns, as numbers."""

from __future__ import annotations

import sys
from typing import Any

from ..errors import ArgumentError
from ..launch import device_tensors
from ..options import readers
from . import tensor_views

#: Bits of the mantissa of each type of results, and the bias of its exponents.
_FORMATS = {"f8E4M3FN": (3, 7), "f8E5M2": (2, 15)}
#: Types of numpy and torch whose elements are bytes of any other.
_BYTES = ("uint8", "int8")


def has_bytes(value: Any) -> bool:
    """Whether `value` is an array or a tensor with a dimension of columns, whose elements are
    numbers of one byte."""
    if not tensor_views.is_array(value) or value.ndim < 1 or value.shape[-1] < 1:
        return False
    kind = str(value.dtype).removeprefix("torch.")
    return value.dtype.itemsize == 1 and kind not in ("bool", "|S1")


def describe(value: Any) -> str:
    """A tensor's type and shape, or the type of what is none."""
    if not hasattr(value, "dtype"):
        return type(value).__name__
    return f"{value.dtype} of shape {list(getattr(value, 'shape', ()))}"


def read_bytes(value: Any) -> Any:
    """An array of numpy's bytes, of which torch's are copied where they are on a GPU."""
    if not device_tensors.is_torch(value):
        return value.view("uint8")
    return value.detach().cpu().view(sys.modules["torch"].uint8).numpy()


def widen(codes: Any, kind: str) -> Any:
    """The f32 of numpy's bytes, which are numbers of f8E4M3FN or f8E5M2."""
    import numpy as np

    bits, bias = _FORMATS[kind]
    codes = codes.astype(np.int32)
    exponent, mantissa = codes >> bits & 127 >> bits, codes & (1 << bits) - 1
    normal = np.ldexp(np.float32((1 << bits) + mantissa), exponent - bias - bits)
    numbers = np.where(exponent == 0, np.ldexp(np.float32(mantissa), 1 - bias - bits), normal)
    if kind == "f8E4M3FN":
        numbers = np.where(codes & 127 == 127, np.nan, numbers)
    else:
        special = np.where(mantissa == 0, np.inf, np.nan)
        numbers = np.where(exponent == 31, special, numbers)
    return np.where(codes & 128 != 0, -numbers, numbers).astype(np.float32)


def _read_kind(o: Any, dtype: Any) -> str:
    """The type of results: what `dtype` says, or else the elements' own."""
    own = readers.get_dtype("dtype", o.dtype)
    stated = None if dtype is None else readers.get_dtype("dtype", dtype)
    kind = stated or ("f8E4M3FN" if str(o.dtype).removeprefix("torch.") in _BYTES else own)
    if kind not in _FORMATS or (own in _FORMATS and own != kind):
        raise ArgumentError(
            f"dtype: expected one of {', '.join(_FORMATS)}, that of o, got {kind} for {o.dtype}"
        )
    return kind


def _read_scales(o_scales: Any) -> Any:
    """The f32 of scales: of such elements, or of bytes that are powers of two."""
    import numpy as np

    if has_bytes(o_scales):
        exponents = read_bytes(o_scales).astype(np.int32) - 127
        return np.where(exponents == 128, np.nan, np.ldexp(np.float64(1), exponents))
    if device_tensors.is_torch(o_scales):
        o_scales = o_scales.detach().cpu().numpy()
    return o_scales


def unpack_fp8(o: Any, o_scales: Any, dtype: Any = None) -> Any:
    """What results of 8 bits with scales stand for, f32 (..., columns).

    `o` is (..., columns), of numpy or torch, and what it returns is of the same library, on the
    same device; `dtype` is its type where its elements are bytes, float8_e4m3fn if nothing says
    otherwise. `o_scales` is (..., groups), each for as many columns, f32 or bytes of
    float8_e8m0fnu. Raises ArgumentError for other shapes and types."""
    import numpy as np

    if not has_bytes(o):
        raise ArgumentError(
            f'tensor "o": expected elements of one byte and a dimension of columns, got {describe(o)}'
        )
    is_number = tensor_views.is_array(o_scales) and str(o_scales.dtype).endswith("float32")
    if not is_number and not has_bytes(o_scales):
        raise ArgumentError(
            f'tensor "o_scales": expected f32 or bytes of powers of two, got {describe(o_scales)}'
        )
    shape, rows = list(o_scales.shape), list(o.shape[:-1])
    if shape[:-1] != rows or not shape[-1:] or not shape[-1] or o.shape[-1] % shape[-1]:
        raise ArgumentError(
            f'tensor "o_scales": expected {rows} rows of a divisor of {o.shape[-1]} scales, got {shape}'
        )
    kind = _read_kind(o, dtype)
    units = _read_scales(o_scales).repeat(o.shape[-1] // shape[-1], -1)
    numbers = (widen(read_bytes(o), kind) * units).astype(np.float32)
    if device_tensors.is_torch(o):
        return sys.modules["torch"].from_numpy(numbers).to(o.device)
    return numbers
