"""What `python -m attn` prints: versions, the GPU, ptxas, the cache, the targets."""

from __future__ import annotations

import importlib.util
import os
import platform
from importlib import metadata

from ..compiler import builds, c_library, kernel_cache
from ..errors import AttnError
from ..launch import cuda_driver, host_arrays

#: Variables of the environment that change what the package does (docs/Environment.md).
VARIABLES = (
    "ATTN_CACHE_DIR", "ATTN_CHIP", "ATTN_DEBUG_CHECKS", "ATTN_LIBRARY", "ATTN_LOG",
    "ATTN_READ_MASKS", "CUDA_HOME",
)  # fmt: skip
#: Packages with a door.
_HOSTS = ("numpy", "torch", "transformers")


def _describe_device() -> str:
    try:
        if not host_arrays.has_device():
            return "none: kernels run on the simulator"
        device = cuda_driver.get_device(0)
        capability = f"compute capability {device.major}.{device.minor}"
        return f"{capability}, {device.multiprocessors} multiprocessors"
    except AttnError as error:
        return f"none that works: {error}"


def _describe_cache() -> str:
    folder = kernel_cache.get_folder()
    if folder is None:
        return "switched off"
    if not folder.is_dir():
        return f"{folder}, not there yet"
    files = [path for path in folder.iterdir() if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    return f"{folder}, {len(files)} files, {size / 1e6:.1f} MB"


def _find_version(name: str) -> str:
    """A package's version, without importing it."""
    if importlib.util.find_spec(name) is None:
        return "not installed"
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"


def list_lines() -> list[tuple[str, str]]:
    """What there is, by name. What is missing is said, not raised."""
    lines = [("python", f"{platform.python_version()} on {platform.machine()} {platform.system()}")]
    try:
        library = c_library.load()
        lines.append(("compiler", f"{builds.compiler_version()} in {c_library.find_library()}"))
        lines.append(
            ("ptxas", library.attnGetAssemblerVersion().text() or "none: the driver translates PTX")
        )
        lines.append(("targets", ", ".join(target.chip for target in builds.targets())))
    except AttnError as error:
        lines.append(("compiler", f"none: {error}"))
    lines.append(("GPU", _describe_device()))
    lines.append(("cache", _describe_cache()))
    lines += [(name, _find_version(name)) for name in _HOSTS]
    return lines + [(name, repr(os.environ[name])) for name in VARIABLES if name in os.environ]


def print_report() -> None:
    """Prints the report."""
    lines = list_lines()
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        print(f"{name:<{width}}  {text}")
