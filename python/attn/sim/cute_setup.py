"""CuTe DSL's kernels on arrays in host memory, without a GPU."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from typing import Any

from . import cute_tensors, stand_in

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


def cute(chip: str = "sm_90a") -> None:
    """Runs CuTe DSL's kernels on the simulator from now on, on arrays in host memory (numpy, or
    torch on the CPU). Call it before cutlass is imported: it compiles for `chip`, such as "sm_80",
    "sm_90a" or "sm_100a". Findings are printed as they come.

    Raises DriverError where a CUDA driver is installed, or has been loaded."""
    stand_in.check_absent()
    prepare_environment(chip, os.environ, os.environ.get("CUTE_DSL_DUMP_DIR") or stand_in.make_folder("attn-cute-"))
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
    tensors.from_dlpack = cute_tensors.register_first(tensors.from_dlpack)
    cute_tensors.convert_calls()

    def count_clusters(info: Any, cluster_size: int, stream: Any = None) -> int:
        """The answer of one CTA a multiprocessor, without loading a kernel to ask the driver."""
        return max(1, int(info.get_device_multiprocessor_count()) // cluster_size)

    hardware_info.HardwareInfo.get_max_active_clusters = count_clusters
