"""The compiler that is there: its build, its targets, and the chip of this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import warnings
from typing import Any

from ..errors import DriverError, LibraryError
from ..launch import cuda_driver, host_arrays
from . import c_library, kernel_cache


@dataclasses.dataclass(frozen=True)
class Target:
    """One target of the compiler."""

    chip: str
    #: Times ten, without suffix: 90 for sm_90a.
    compute_capability: int
    #: PTX versions times ten: the least that knows the chip, and the default.
    min_ptx: int
    default_ptx: int
    #: Most bytes of shared memory of one CTA.
    shared_bytes_per_cta: int


def targets() -> list[Target]:
    """All targets, oldest first."""
    try:
        library = c_library.load()
    except LibraryError:
        described = _read_compiler()
        if described is None:
            raise
        return [Target(*row) for row in described["targets"]]
    rows = [library.attnGetTarget(index) for index in range(library.attnGetNumTargets())]
    return [
        Target(
            row.chip.text(),
            row.computeCapability,
            row.minPTX,
            row.defaultPTX,
            row.sharedBytesPerCTA,
        )
        for row in rows
    ]


def compiler_version() -> str:
    """Such as "0.1.0 (LLVM 22.1.8)"."""
    return str(c_library.load().attnGetCompilerVersion().text())


#: Name of the cache's file about the compiler that filled it.
_COMPILER_KEY = "compiler"


def _read_compiler() -> dict[str, Any] | None:
    """The compiler that filled the cache, for machines that have none."""
    raw = kernel_cache.read(_COMPILER_KEY)
    if raw is None:
        return None
    try:
        found = json.loads(raw)
        known = {name: found[name] for name in ("identity", "assembler", "targets")}
        rows = [Target(*row) for row in known["targets"]]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    is_named = isinstance(known["identity"], str) and isinstance(known["assembler"], str)
    is_typed = all(
        isinstance(row.chip, str) and isinstance(row.compute_capability, int) for row in rows
    )
    return known if is_named and is_typed else None


def write_compiler() -> None:
    rows = [dataclasses.astuple(target) for target in targets()]
    described = {
        "identity": get_identity(),
        "assembler": get_assembler(),
        "targets": list(map(list, rows)),
    }
    if _read_compiler() != described:
        kernel_cache.write(_COMPILER_KEY, json.dumps(described).encode())


def get_assembler() -> str:
    """What tells builds of ptxas apart. Without a ptxas it is that of the one
    that filled the cache."""
    with contextlib.suppress(LibraryError):
        version: str = c_library.load().attnGetAssemblerVersion().text()
        if version:
            return version
    return str((_read_compiler() or {}).get("assembler", ""))


def get_identity() -> str:
    """Tells builds of one version apart. Without a compiler it is that of the
    one that filled the cache."""
    try:
        version = compiler_version()
    except LibraryError:
        described = _read_compiler()
        if described is None:
            raise
        return str(described["identity"])
    library = pathlib.Path(c_library.find_library())
    # A wheel says what its library is, which then is one on all machines.
    with contextlib.suppress(OSError):
        return f"{version} {(library.parent / 'identity').read_text(encoding='utf-8').strip()}"
    stat = library.stat()
    return f"{version} {stat.st_size} {stat.st_mtime_ns}"


def get_chip(major: int, minor: int) -> str:
    """The target for a compute capability: its own, else the newest without
    suffix that is not newer than it, which a warning says."""
    capability = 10 * major + minor
    rows = targets()
    for row in rows:
        if row.compute_capability == capability:
            return row.chip
    older = [row for row in rows if row.compute_capability < capability and row.chip[-1].isdigit()]
    if not older:
        raise DriverError(
            f"no target for compute capability {major}.{minor}: kernels need cp.async and "
            "mma.sync on bf16, which 8.0 and later have"
        )
    chip = older[-1].chip
    warnings.warn(
        f"no target for compute capability {major}.{minor}: kernels are those of {chip}, from "
        "whose PTX the driver makes code for the device",
        stacklevel=2,
    )
    return chip


def get_native_chip() -> str:
    """The chip of device 0; without a GPU $ATTN_CHIP, else sm_80."""
    if not host_arrays.has_device():
        return os.environ.get("ATTN_CHIP") or "sm_80"
    device = cuda_driver.get_device(0)
    return get_chip(device.major, device.minor)
