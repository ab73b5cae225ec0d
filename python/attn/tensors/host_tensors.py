"""Tensors of torch in host memory, as the arrays that stand for them, and back.

They are taken wherever arrays of numpy are. bf16 and the 8-bit floats, which numpy lacks, travel
by their bits.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .. import arrays
from ..errors import ArgumentError, ArgumentTypeError, GradientRemark
from ..launch import device_tensors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: torch's names of types without a carrier of the same name, and their element types.
_ELEMENTS = {"bfloat16": "bf16", "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2"}
_ELEMENTS |= {"float8_e8m0fnu": "f8E8M0FNU"}
_NAMES = {element: name for name, element in _ELEMENTS.items()}
#: True once it was said that results have no gradient.
_said_gradient = False


def is_host(value: Any) -> bool:
    """Whether `value` is a torch tensor in host memory, with contents: one that a compiler of
    torch traces has none."""
    if not device_tensors.is_torch(value) or value.device.type != "cpu":
        return False
    torch = sys.modules["torch"]
    return not torch.compiler.is_compiling() and type(value) in (torch.Tensor, torch.nn.Parameter)


def _say_gradient(name: str) -> None:
    """Says once that a tensor's gradient ends here."""
    global _said_gradient
    if not _said_gradient:
        _said_gradient = True
        warnings.warn(
            f'tensor "{name}" requires grad, and results do not: there is no backward pass; its '
            "values are taken as tensor.detach() has them",
            GradientRemark,
            stacklevel=4,
        )


def to_array(name: str, tensor: Any) -> NDArray[np.generic]:
    """A torch tensor in host memory as an array on the same memory. e4m3 is numpy's uint8, bf16
    its uint16; e5m2 and e8m0 have the types of `ml_dtypes`."""
    if tensor.device.type != "cpu":
        raise ArgumentTypeError(
            f'tensor "{name}": expected a tensor in host memory as q, got one on {tensor.device}'
        )
    if tensor.requires_grad:
        _say_gradient(name)
        tensor = tensor.detach()
    kind = str(tensor.dtype).removeprefix("torch.")
    torch = sys.modules["torch"]
    if kind not in _ELEMENTS:
        try:
            array: NDArray[np.generic] = tensor.numpy()
        except (TypeError, RuntimeError) as error:
            raise ArgumentTypeError(f'tensor "{name}": expected an array, got {error}') from None
        return array
    carrier, width = arrays.CARRIERS[_ELEMENTS[kind]]
    bits = tensor.view(torch.int16 if width == 2 else torch.uint8).numpy()
    if kind in ("bfloat16", "float8_e4m3fn"):
        return bits.view(carrier)
    try:
        import ml_dtypes
    except ImportError:
        raise ArgumentError(
            f'tensor "{name}": elements of {kind} in host memory need the package ml_dtypes'
        ) from None
    return bits.view(getattr(ml_dtypes, kind))


def to_arrays(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a call, with arrays in the place of torch tensors."""
    return {
        name: to_array(name, value) if device_tensors.is_torch(value) else value
        for name, value in tensors.items()
    }


def to_tensor(array: NDArray[np.generic]) -> Any:
    """An array as a torch tensor on the same memory: what `to_array` makes, back."""
    return _to_element(array, arrays.find_element(array.dtype) or "")


def to_tensors(result: Any) -> Any:
    """What a call on arrays returned, an array or several of them, as torch tensors."""
    return tuple(map(to_tensor, result)) if isinstance(result, tuple) else to_tensor(result)


def write(target: Any, array: NDArray[np.generic], kept: Any = slice(None)) -> None:
    """Copies a result to the caller's tensor: of its elements those at the index `kept`, slices or
    an array of bools; beside these the tensor stays as it was."""
    torch = sys.modules["torch"]
    made = torch.from_numpy(array.copy())
    # Elements of 8 bits have no choices in all of torch's versions.
    kind = torch.uint8 if target.dtype.itemsize == 1 else target.dtype
    made, target = (each if each.dtype == kind else each.view(kind) for each in (made, target))
    index = kept if isinstance(kept, (slice, tuple)) else torch.from_numpy(kept)
    target[index] = made[index]


def give(result: Any, out: Any, lse: Any) -> Any:
    """The results of a call, o or (o, lse), where the caller wants them: `out` and `lse` are its
    tensors, or None and whether there is an LSE."""
    if out is None:
        return result
    o, log = result if isinstance(result, tuple) else (result, None)
    with sys.modules["torch"].no_grad():
        out.copy_(o)
        if log is None:
            return out
        lse.copy_(log)
    return out, lse


def take_inputs(
    inputs: Mapping[str, Any], launch: Mapping[str, Any]
) -> tuple[dict[str, Any], Callable[[dict[str, Any]], dict[str, Any]]]:
    """The inputs of a kernel with arrays in the place of torch tensors, and what makes of its
    outputs what the caller gets: tensors if q was one. Raises ArgumentTypeError for a tensor of
    another type of the same width."""
    if not any(map(device_tensors.is_torch, inputs.values())):
        return dict(inputs), dict
    dtypes = {each["name"]: each["dtype"] for each in launch["tensors"]}
    taken = dict(inputs)
    for name, value in inputs.items():
        if not device_tensors.is_torch(value):
            continue
        kind = str(value.dtype).removeprefix("torch.")
        expected = dtypes.get(name, "")
        if kind in _ELEMENTS and expected in _NAMES and _ELEMENTS[kind] != expected:
            raise ArgumentTypeError(
                f'array "{name}": expected elements of {_NAMES[expected]}, got {kind}'
            )
        taken[name] = to_array(name, value)
    if not device_tensors.is_torch(inputs.get("q")):
        return taken, dict
    return taken, lambda outputs: {
        name: _to_element(array, dtypes[name]) for name, array in outputs.items()
    }


def _to_element(array: NDArray[np.generic], element: str) -> Any:
    """An array whose elements are `element` as a torch tensor on the same memory."""
    torch = sys.modules["torch"]
    if element not in _NAMES:
        return torch.from_numpy(array)
    bits = array.view("int16" if array.dtype.itemsize == 2 else "uint8")
    return torch.from_numpy(bits).view(getattr(torch, _NAMES[element]))
