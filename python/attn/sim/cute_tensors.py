"""Arrays in host memory, as CuTe DSL takes a GPU's: it and TVM FFI, through which its compiled
functions may be called, ask DLPack where an array is.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
import weakref
from collections.abc import Callable
from typing import Any

from . import stand_in
from .host_array import HostArray

#: The offset of the kind of device in DLPack's DLManagedTensor, and CUDA's kind.
_KIND_OFFSET, _KIND_CUDA = 8, 2


class Moved:
    """An array that says through DLPack that it is in a GPU's memory."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **_: Any) -> Any:
        capsule = self._array.__dlpack__()
        move(capsule)
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return _KIND_CUDA, 0


def move(capsule: Any) -> None:
    """Says of what DLPack describes that it is in a GPU's memory: CuTe takes other tensors for
    what no copy of global memory may have."""
    python = ctypes.pythonapi
    python.PyCapsule_GetName.argtypes = [ctypes.py_object]
    python.PyCapsule_GetName.restype = ctypes.c_char_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    if python.PyCapsule_GetName(capsule) == b"dltensor":
        address = python.PyCapsule_GetPointer(capsule, b"dltensor")
        ctypes.c_int32.from_address(address + _KIND_OFFSET).value = _KIND_CUDA


def register_first(make: Callable[..., Any]) -> Callable[..., Any]:
    """A maker of CuTe's tensors that lets kernels use the memory behind them, as long as they
    live."""

    def from_dlpack(tensor: Any, *arguments: Any, **options: Any) -> Any:
        memory = find_memory(tensor)
        if memory is None:
            return make(tensor, *arguments, **options)
        made = make(Moved(tensor), *arguments, **options)
        if memory[1]:
            library = stand_in.load()
            library.register(*memory, f"array of shape {list(tensor.shape)}")
            weakref.finalize(made, library.unregister, memory[0])
        return made

    return from_dlpack


def find_memory(tensor: Any) -> tuple[int, int] | None:
    """Returns address and bytes, which may be 0, of all the memory that an array in host memory
    is part of; None for what is no array, such as a number of numpy."""
    if hasattr(tensor, "untyped_storage"):
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(tensor, numpy.ndarray):
        return HostArray(tensor).find_memory()
    return None


def convert_calls() -> None:
    """Lets functions that are compiled for TVM FFI (`--enable-tvm-ffi`) be called with arrays in
    host memory, which kernels may use until the call is over."""
    if importlib.util.find_spec("tvm_ffi") is None:
        return
    from cutlass.cutlass_dsl import tvm_ffi_provider as provider

    for kind in (provider.TVMFFIJitCompiledFunction, provider.TVMFFIJitCompiledFunctionWithKwargs):
        kind.__call__ = _convert_first(kind.__call__)


def _convert_first(call: Callable[..., Any]) -> Callable[..., Any]:
    def convert_and_call(function: Any, *arguments: Any, **named: Any) -> Any:
        library, taken = stand_in.load(), []
        try:
            moved = [_convert(value, taken) for value in arguments]
            moved_named = {name: _convert(value, taken) for name, value in named.items()}
            return call(function, *moved, **moved_named)
        finally:
            for address in taken:
                library.unregister(address)

    return convert_and_call


def _convert(value: Any, taken: list[int]) -> Any:
    """An argument as TVM FFI is to get it. What is registered for it is added to `taken`."""
    if isinstance(value, (tuple, list)):
        parts = [_convert(each, taken) for each in value]
        # A named tuple takes its parts one by one.
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    memory = find_memory(value)
    if memory is None:
        return value
    import tvm_ffi

    if memory[1]:
        stand_in.load().register(*memory, f"array of shape {list(value.shape)}")
        taken.append(memory[0])
    return tvm_ffi.from_dlpack(Moved(value))
