"""What `pad=True` does: operands that no kernel takes as they are, copied to such that one does."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import arrays
from ..errors import ArgumentError, ArgumentTypeError, CopyRemark
from ..launch import device_tensors
from ..options import kernel_sizes, readers
from . import tensor_views

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Bytes of which addresses and strides are a multiple.
_ALIGNMENT = 16
#: Options that say what columns of rows are, which padding would change.
_COLUMN_OPTIONS = ("rope-dim", "scale-group", "out-group")


def pad_flags(
    written: Sequence[tuple[str, str]], has_text: bool
) -> tuple[tuple[tuple[str, str], ...], dict[str, int]]:
    """A problem's options with head dimensions that kernels take, and the columns that its tensors
    have of their own."""
    flags = dict(written)
    found = re.fullmatch(r"((?:\d+x){3})(\d+)x(\w+)", flags.get("q", ""))
    if has_text or found is None:
        raise ArgumentError("pad: expected a problem as q=(batch, heads, queries, head dimension)")
    for name in _COLUMN_OPTIONS:
        if name in flags:
            raise ArgumentError(f"pad: expected none beside {name.replace('-', '_')}")
    rows, dim, dtype = found[1], int(found[2]), found[3]
    dv = int(flags["dv"]) if flags.get("dv", "").isdecimal() else dim
    types = [each for each in (dtype, flags.get("kv-type")) if each in arrays.CARRIERS]
    if not types or not dim or not dv:
        return tuple(written), {}
    wide, wide_dv = (max(kernel_sizes.pad(each, kind) for kind in types) for each in (dim, dv))
    if (wide, wide_dv) == (dim, dv):
        return tuple(written), {}
    flags["q"] = f"{rows}{wide}x{dtype}"
    flags.setdefault("scale", repr(dim**-0.5))
    if "dv" in flags or wide_dv != wide:
        flags["dv"] = str(wide_dv)
    columns = dict.fromkeys(("q", "k"), dim) | dict.fromkeys(("v", "o", "init_o"), dv)
    return tuple(flags.items()), columns


def widen_inputs(
    inputs: Mapping[str, Any], columns: Mapping[str, int], launch: Mapping[str, Any]
) -> dict[str, Any]:
    """Arrays of the problem as it was stated, as those of the kernel."""
    shapes = {each["name"]: each["shape"] for each in launch["tensors"]}
    widened = dict(inputs)
    for name, count in columns.items():
        if name not in inputs or name not in shapes:
            continue
        array = arrays.read(name, inputs[name])
        if array.ndim and array.shape[-1] != count:
            raise ArgumentError(
                f'array "{name}": expected {count} columns, of which pad makes '
                f"{shapes[name][-1]}, got {array.shape[-1]}"
            )
        widened[name] = _widen_numpy(array, [(count, shapes[name][-1])])
    return widened


#: How many columns there are, and become, of the parts of a row.
Parts = Sequence[tuple[int, int]]


def _spread(source: Any, target: Any, parts: Parts) -> None:
    """Copies the columns of each part, with the others of the target as they are."""
    begin = place = 0
    for own, wide in parts:
        target[..., place : place + own] = source[..., begin : begin + own]
        begin, place = begin + own, place + wide


def _widen_numpy(array: NDArray[np.generic], parts: Parts) -> NDArray[np.generic]:
    """Zeros after the columns of each part: the bits of 0 are 0 in each type."""
    import numpy as np

    if not array.ndim or all(own == wide for own, wide in parts):
        return array
    wide = np.zeros((*array.shape[:-1], sum(width for _, width in parts)), array.dtype)
    _spread(arrays.to_bits(array), arrays.to_bits(wide), parts)
    return wide


def _get_address(tensor: Any) -> int:
    """Returns a torch tensor's address; 0 without one: while torch compiles, of a meta tensor, and
    inside of torch.func's transforms."""
    import torch

    if tensor.device.type == "meta" or torch.compiler.is_compiling():
        return 0
    try:
        return tensor.data_ptr()
    except RuntimeError:
        return 0


def _is_odd(tensor: Any, may_turn: bool) -> bool:
    """Whether a torch tensor's address and strides are such that no kernel takes it."""
    size = tensor.element_size()
    steps = [(n, step) for n, step in zip(tensor.shape, tensor.stride(), strict=True) if n > 1]
    if tensor.shape[-1] > 1 and tensor.stride(-1) != 1:
        if not (may_turn and tensor.dim() == 4 and tensor.stride(2) == 1):
            return True
        steps = [(n, step) for n, step in steps if step != 1]
    else:
        steps = steps[: len(steps) - (tensor.shape[-1] > 1)]
    if _get_address(tensor) % _ALIGNMENT:
        return True
    return any(step * size % _ALIGNMENT for _, step in steps)


def _fit(name: str, tensor: Any, parts: Parts, may_turn: bool, copied: list[str]) -> Any:
    """A tensor with wide columns, in memory as kernels take it; itself if it is so."""
    if tensor_views.is_numpy(tensor):
        return _widen_numpy(tensor, parts)
    if not device_tensors.is_torch(tensor):
        raise ArgumentTypeError(
            f'pad: expected torch tensors or numpy arrays, got {type(tensor).__name__} as "{name}"'
        )
    width = sum(wide for _, wide in parts)
    if any(own != wide for own, wide in parts):
        copied.append(f"{name} ({tensor.shape[-1]} columns as {width})")
        # torch pads no 8-bit floats; the bits of 0 are 0.
        result = tensor.new_empty((*tensor.shape[:-1], width))
        place = 0
        for own, wide in parts:
            result[..., place + own : place + wide] = 0
            place += wide
        _spread(tensor, result, parts)
        return result
    if _is_odd(tensor, may_turn):
        copied.append(f"{name} (strides {list(tensor.stride())})")
        return tensor.clone(memory_format=sys.modules["torch"].contiguous_format)
    return tensor


def _get_width(tensors: Mapping[str, Any], names: Sequence[str]) -> tuple[int, int]:
    """The columns of the first of these tensors, and those that kernels take of all."""
    found = [
        tensor_views.view(n, tensors[n]) if tensor_views.is_numpy(tensors[n]) else tensors[n]
        for n in names
    ]
    for name, each in zip(names, found, strict=True):
        if not len(getattr(each, "shape", ())):
            raise ArgumentTypeError(f'tensor "{name}": expected a tensor with columns')
    columns = found[0].shape[-1]
    units = [_get_unit(name, each) for name, each in zip(names, found, strict=True)]
    return columns, max(max(-(-columns // unit), 1) * unit for unit in units)


def _get_unit(name: str, tensor: Any) -> int:
    """Elements of a tensor in the bytes of which rows are a multiple."""
    each = tensor_views.view(name, tensor) if tensor_views.is_numpy(tensor) else tensor
    size = each.element_size() if hasattr(each, "element_size") else arrays.CARRIERS[each.dtype][1]
    return _ALIGNMENT // min(size, _ALIGNMENT)


def pad_operands(
    tensors: Mapping[str, Any], keys: str, values: str, scale: Any
) -> tuple[dict[str, Any], Any, int, int]:
    """Operands of a call, `keys` and `values` as it calls them: fitted, the factor of the scores
    that they had, and the columns of o before and after. Says what was copied."""
    for name in ("q", keys, values):
        if tensors.get(name) is None:
            raise ArgumentTypeError(f'tensor "{name}": expected a tensor, got None')
    dim, width = _get_width(tensors, ("q", keys))
    dv, wide = _get_width(tensors, (values, "q"))
    fitted, copied = dict(tensors), []
    for name, count in (("q", width), (keys, width), (values, wide), ("init_o", wide)):
        each = tensors.get(name)
        if each is not None:
            own = dim if name in ("q", keys) else dv
            if each.shape[-1] == own:
                fitted[name] = _fit(name, each, [(own, count)], name == "v", copied)
    if width != dim and scale is None:
        scale = dim**-0.5
    _say(copied)
    return fitted, scale, dv, wide


def pad_latent(tensors: Mapping[str, Any], value_dim: Any) -> tuple[dict[str, Any], int, int]:
    """Operands of a call of latent attention: fitted, and the columns of o before and after. The
    columns of values and the rotated ones are widened apart."""
    for name in ("q", "kv_cache"):
        if tensors.get(name) is None:
            raise ArgumentTypeError(f'tensor "{name}": expected a tensor, got None')
    dv = readers.to_integer("value_dim", value_dim, 1, 2**31 - 1)
    columns, _ = _get_width(tensors, ("kv_cache",))
    k_rope = tensors.get("k_rope")
    rope = max(columns - dv if k_rope is None else k_rope.shape[-1], 0)
    values, rotated = ((own, kernel_sizes.pad_latent(own)) for own in (dv, rope))
    fitted, copied = dict(tensors), []
    parts = {"q": [values] if tensors.get("q_rope") is not None else [values, rotated]}
    parts["kv_cache"] = [values, rotated] if k_rope is None else [values]
    parts |= {"q_rope": [rotated], "k_rope": [rotated], "init_o": [values]}
    for name, each in parts.items():
        tensor = tensors.get(name)
        # Others are refused by their columns.
        if tensor is not None and tensor.shape[-1] == sum(own for own, _ in each):
            fitted[name] = _fit(name, tensor, each, False, copied)
    _say(copied)
    return fitted, dv, values[1]


def _say(copied: Sequence[str]) -> None:
    """A remark on what was copied, at the call of the user."""
    torch = sys.modules.get("torch")
    if copied and not (torch is not None and torch.compiler.is_compiling()):
        warnings.warn(f"pad=True: copied {', '.join(copied)}", CopyRemark, stacklevel=6)


def cut(result: Any, out: Any, lse: Any, columns: int) -> Any:
    """The columns of results that the caller knows, in `out` where it is given."""
    o, log = result if isinstance(result, tuple) else (result, None)
    o = o[..., :columns]
    if out is not None:
        out.copy_(o)
        o = out
    return o if log is None else (o, log)
