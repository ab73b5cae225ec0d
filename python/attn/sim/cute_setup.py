"""CuTe DSL's kernels on arrays in host memory, without a GPU."""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, MutableMapping
from typing import Any

from . import stand_in
from .host_array import HostArray

#: The folder of the PTX that goes with machine code, as the stand-in reads it.
PTX = "ATTN_SIM_PTX"


def prepare_environment(chip: str, environment: MutableMapping[str, str], folder: str) -> None:
    """Sets what CuTe DSL reads from the environment: it compiles for the chip, keeps its PTX where
    the stand-in looks for it, in `folder` where no other one is set, and calls the stand-in in its
    runtime library's place."""
    environment[stand_in.CHIPS] = chip
    environment["CUTE_DSL_LIBS"] = str(stand_in.find_folder() / "libcuda.so.1")
    # The architecture of several chips is the first one's.
    environment["CUTE_DSL_ARCH"] = chip.split(",")[0]
    folder = environment.get("CUTE_DSL_DUMP_DIR") or folder
    environment["CUTE_DSL_DUMP_DIR"] = environment[PTX] = folder
    kept = [each for each in environment.get("CUTE_DSL_KEEP", "").split(",") if each]
    environment["CUTE_DSL_KEEP"] = ",".join(dict.fromkeys([*kept, "ptx"]))


def _make_folder() -> str:
    """A folder that goes with the process."""
    folder, owner = tempfile.mkdtemp(prefix="attn-cute-"), os.getpid()

    def remove() -> None:
        # Not at the end of a process that was forked from this one.
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def cute(chip: str = "sm_90a") -> None:
    """Runs CuTe DSL's kernels on the simulator from now on, on arrays in host memory (numpy, or
    torch on the CPU). Call it before cutlass is imported: it compiles for `chip`, such as "sm_80",
    "sm_90a" or "sm_100a". Findings are printed as they come.

    Raises DriverError where a CUDA driver is installed, or has been loaded."""
    stand_in.check_absent()
    prepare_environment(chip, os.environ, os.environ.get("CUTE_DSL_DUMP_DIR") or _make_folder())
    stand_in.load().set_device(0)
    install()


def install() -> None:
    """Lets CuTe DSL's Python part, which is imported by now or by this, use the stand-in: what it
    asks the CUDA runtime for, and the memory of arrays."""
    # attn-run names a folder that programs without CuTe do not need.
    os.makedirs(os.environ["CUTE_DSL_DUMP_DIR"], exist_ok=True)
    from cuda.bindings import runtime
    from cutlass.cute import runtime as tensors
    from cutlass.utils import hardware_info

    success = runtime.cudaError_t.cudaSuccess

    def count_devices() -> tuple[Any, int]:
        return success, len(os.environ[stand_in.CHIPS].split(","))

    def unload(library: Any) -> tuple[Any]:
        stand_in.load().library.cuLibraryUnload(stand_in.c_void_p(int(library)))
        return (success,)

    runtime.cudaGetDeviceCount, runtime.cudaLibraryUnload = count_devices, unload
    tensors.from_dlpack = _register_first(tensors.from_dlpack)
    read = tensors._Tensor.load_dltensor

    def read_moved(tensor: Any) -> None:
        if tensor._dltensor_wrapper is None:
            _move(tensor._dlpack_data)
        read(tensor)

    tensors._Tensor.load_dltensor = read_moved

    def count_clusters(info: Any, cluster_size: int, stream: Any = None) -> int:
        """The answer of one CTA a multiprocessor, without loading a kernel to ask the driver."""
        return max(1, int(info.get_device_multiprocessor_count()) // cluster_size)

    hardware_info.HardwareInfo.get_max_active_clusters = count_clusters


#: The offset of the kind of device in DLPack's DLManagedTensor, and CUDA's kind.
_KIND_OFFSET, _KIND_CUDA = 8, 2


def _move(capsule: Any) -> None:
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


def _register_first(make: Callable[..., Any]) -> Callable[..., Any]:
    """A maker of CuTe's tensors that lets kernels use the memory behind them, as long as they
    live."""

    def from_dlpack(tensor: Any, *arguments: Any, **options: Any) -> Any:
        made = make(tensor, *arguments, **options)
        memory = _find_memory(tensor)
        if memory is not None:
            library = stand_in.load()
            library.register(*memory, f"array of shape {list(tensor.shape)}")
            weakref.finalize(made, library.unregister, memory[0])
        return made

    return from_dlpack


def _find_memory(tensor: Any) -> tuple[int, int] | None:
    """Address and bytes of all the memory that an array in host memory is part of."""
    if hasattr(tensor, "untyped_storage"):
        storage = tensor.untyped_storage()
        memory = storage.data_ptr(), storage.nbytes()
    elif hasattr(tensor, "__array_interface__"):
        memory = HostArray(tensor).find_memory()
    else:
        return None
    return memory if memory[1] else None
