"""Tensors in device memory, whatever library they come from.

In this order: torch tensors, `__cuda_array_interface__`, DLPack.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from ..errors import ArgumentError, ArgumentTypeError
from ..record import TensorView

_TORCH_DTYPES = {
    "torch.float16": "f16",
    "torch.bfloat16": "bf16",
    "torch.float32": "f32",
    "torch.float64": "f64",
    "torch.float8_e4m3fn": "f8E4M3FN",
    "torch.float8_e5m2": "f8E5M2",
    "torch.float8_e8m0fnu": "f8E8M0FNU",
    "torch.int8": "i8",
    # Only captured tensors have such elements; a kernel reads their bytes.
    "torch.uint8": "i8",
    "torch.bool": "i8",
    "torch.int32": "i32",
    "torch.int64": "i64",
}
_ARRAY_DTYPES = {
    "<f2": "f16",
    "<f4": "f32",
    "<f8": "f64",
    "|i1": "i8",
    "|u1": "i8",
    "|b1": "i8",
    "<i4": "i32",
    "<i8": "i64",
}
#: DLPack's type code and bits.
_DLPACK_DTYPES = {
    (2, 16): "f16",
    (4, 16): "bf16",
    (2, 32): "f32",
    (2, 64): "f64",
    (10, 8): "f8E4M3FN",
    (12, 8): "f8E5M2",
    (0, 8): "i8",
    (1, 8): "i8",
    (6, 8): "i8",
    (0, 32): "i32",
    (0, 64): "i64",
}
_DLPACK_CUDA = (2, 13)


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * max(shape[axis], 1)
    return tuple(strides)


def _lookup(name: str, table: dict[Any, str], dtype: Any) -> str:
    if dtype not in table:
        raise ArgumentError(f'tensor "{name}": no kernel takes elements of {dtype}')
    return table[dtype]


def _not_on_gpu(name: str, device: object) -> ArgumentError:
    return ArgumentError(f'tensor "{name}": expected a CUDA device, got {device}')


def name_device(device: int) -> str:
    """A device as messages name it; below 0 it is host memory."""
    return "host memory" if device < 0 else f"device {device}"


def is_torch(value: Any) -> bool:
    """Whether `value` is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


#: Names by torch's own objects, filled as they are met.
_known_dtypes: dict[Any, str] = {}


def _view_torch(name: str, value: Any, is_launched: bool = True) -> TensorView:
    if is_launched and not value.is_cuda:
        raise _not_on_gpu(name, value.device)
    dtype = _known_dtypes.get(value.dtype)
    if dtype is None:
        dtype = _lookup(name, _TORCH_DTYPES, str(value.dtype))
        _known_dtypes[value.dtype] = dtype
    address = value.data_ptr() if is_launched else 0
    return TensorView(dtype, tuple(value.shape), value.stride(), address, value.get_device())


def describe(name: str, value: Any) -> TensorView:
    """A torch tensor without its address, wherever it lies: operators say where they want it."""
    return _view_torch(name, value, is_launched=False)


def _view_array(name: str, value: Any, device: int) -> TensorView:
    interface = value.__cuda_array_interface__
    dtype = _lookup(name, _ARRAY_DTYPES, interface["typestr"])
    width = int(interface["typestr"][2:])
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    if strides is None:
        elements = _contiguous(shape)
    elif any(stride % width for stride in strides):
        raise ArgumentError(
            f'tensor "{name}": expected strides of whole elements, got {strides} bytes'
        )
    else:
        elements = tuple(stride // width for stride in strides)
    return TensorView(dtype, shape, elements, interface["data"][0], device)


def _view_dlpack(name: str, value: Any) -> TensorView:
    try:
        capsule = value.__dlpack__()
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ArgumentTypeError(
            f'tensor "{name}": expected DLPack of a tensor, got {error}'
        ) from None
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    # The capsule's own destructor frees it; the caller keeps the tensor alive.
    tensor = _DLTensor.from_address(get_pointer(capsule, b"dltensor"))
    if tensor.device_type not in _DLPACK_CUDA:
        raise _not_on_gpu(name, f"DLPack device type {tensor.device_type}")
    key = (tensor.code, tensor.bits) if tensor.lanes == 1 else (tensor.code, -1)
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else _contiguous(shape)
    return TensorView(
        _lookup(name, _DLPACK_DTYPES, key),
        shape,
        strides,
        (tensor.data or 0) + tensor.byte_offset,
        tensor.device_id,
    )


def view(name: str, value: Any, device: int) -> TensorView:
    """`value` as a view; `device` is where arrays are that do not say. Raises
    ArgumentError for tensors in host memory and for unknown element types."""
    if isinstance(value, TensorView):
        return value
    if is_torch(value):
        return _view_torch(name, value)
    if hasattr(value, "__cuda_array_interface__"):
        return _view_array(name, value, device)
    if hasattr(value, "__dlpack__"):
        return _view_dlpack(name, value)
    raise ArgumentError(
        f'tensor "{name}": expected a torch tensor, __cuda_array_interface__ or DLPack, got '
        f"{type(value).__name__}"
    )
