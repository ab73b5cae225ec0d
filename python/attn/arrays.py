"""Element types of tensors and their carriers in numpy.

numpy has no bf16 and no fp8: such arrays travel as raw bits, `uint16` and
`uint8`. Arrays of another package's types of the same width (`ml_dtypes`) are
taken too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .errors import ArgumentTypeError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

#: numpy's carrier and the bytes of each element type of a launch record.
CARRIERS: dict[str, tuple[str, int]] = {
    "f16": ("float16", 2),
    "bf16": ("uint16", 2),
    "f32": ("float32", 4),
    "f64": ("float64", 8),
    "f8E4M3FN": ("uint8", 1),
    "f8E5M2": ("uint8", 1),
    "f8E8M0FNU": ("uint8", 1),
    "i8": ("int8", 1),
    "i16": ("int16", 2),
    "i32": ("int32", 4),
    "i64": ("int64", 8),
    "u8": ("uint8", 1),
    "u16": ("uint16", 2),
    "u32": ("uint32", 4),
    "u64": ("uint64", 8),
}

#: Names of the types of `ml_dtypes` that numpy has no carrier for.
_FOREIGN = {
    "bf16": "bfloat16",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "f8E8M0FNU": "float8_e8m0fnu",
}
#: Element types by the names of what carries them; uint8 alone is e4m3.
_ELEMENTS = {carrier: name for name, (carrier, _) in reversed(CARRIERS.items())}
_ELEMENTS |= {"uint8": "f8E4M3FN"} | {name: element for element, name in _FOREIGN.items()}


def find_element(dtype: np.dtype[np.generic]) -> str | None:
    """The element type that elements of `dtype` carry, None where there is none: of Python's
    objects, of records, of another byte order."""
    return _ELEMENTS.get(dtype.name) if dtype.isnative and not dtype.names else None


def to_bits(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """The same memory as unsigned integers. One element type may have two carriers, between
    which numpy would convert the numbers that it takes them for: bits stay what they are."""
    return array.view(f"u{array.dtype.itemsize}")


def restore(
    outputs: Mapping[str, NDArray[np.generic]], inputs: Mapping[str, Any], dtypes: Mapping[str, str]
) -> dict[str, NDArray[np.generic]]:
    """Outputs with the carrier of q where they have its element type; `dtypes` has the element
    types by the names of tensors."""
    given = getattr(inputs.get("q"), "dtype", None)
    if getattr(given, "itemsize", None) is None:
        return dict(outputs)
    return {
        name: each.view(given) if dtypes[name] == dtypes["q"] else each
        for name, each in outputs.items()
    }


def to_bf16(values: ArrayLike) -> NDArray[np.uint16]:
    """The bits of `values` as bf16, rounded to nearest even."""
    import numpy as np

    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1)).astype(np.uint32)) >> 16
    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return np.where(is_nan, (bits >> 16) | 0x40, rounded).astype(np.uint16)


def from_bf16(bits: ArrayLike) -> NDArray[np.float32]:
    """The values of bf16 bits."""
    import numpy as np

    return (np.asarray(bits, dtype=np.uint16).astype(np.uint32) << 16).view(np.float32)


def carry(array: NDArray[np.generic], dtype: Any) -> NDArray[np.generic]:
    """`array` with the carrier that `dtype` is, where that is a type of numpy or another package
    of the same width; a type by its name has numpy's."""
    import numpy as np

    if dtype is None or isinstance(dtype, str) or not isinstance(dtype, (type, np.dtype)):
        return array
    return array.view(np.dtype(dtype))


def read(name: str, value: ArrayLike) -> NDArray[np.generic]:
    """`value` as an array, which shares its memory if it is one."""
    import numpy as np

    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ArgumentTypeError(f'array "{name}": expected an array, got {error}') from None


def read_elements(name: str, value: ArrayLike, dtype: str) -> NDArray[np.generic]:
    """`value` as an array whose elements are `dtype`, as it lies in memory. Raises
    ArgumentTypeError for elements of another kind: nothing is converted silently."""
    array = read(name, value)
    carrier, width = CARRIERS[dtype]
    is_raw = dtype in _FOREIGN
    kind = array.dtype
    if kind.type.__module__.partition(".")[0] not in ("numpy", "builtins"):
        # Another package's type says by its name what the bits are.
        fits = kind.name == _FOREIGN.get(dtype)
    elif is_raw:
        fits = kind.itemsize == width and kind.kind in "Vui" and kind.isnative and not kind.names
    else:
        fits = kind == carrier
    if not fits:
        expected = f"{carrier} (the bits of {dtype})" if is_raw else carrier
        raise ArgumentTypeError(f'array "{name}": expected elements of {expected}, got {kind}')
    return array


def to_elements(name: str, value: ArrayLike, dtype: str) -> NDArray[np.generic]:
    """The same, as a dense array of numpy's carrier."""
    import numpy as np

    # ascontiguousarray would give an array of rank 0 another rank.
    array = np.asarray(read_elements(name, value, dtype), order="C")
    return array.view(CARRIERS[dtype][0])
