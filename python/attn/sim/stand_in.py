"""The stand-in for the CUDA driver (docs/StandInDriver.md) through ctypes: what it has beside
the driver's own interface.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import pathlib
import shutil
import stat
import sys
import tempfile
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_size_t, c_uint64, c_void_p

from ..errors import DriverError

#: Attributes of a device: the numbers of its compute capability.
_MAJOR, _MINOR = 75, 76
#: Environment variables that a process reads when the stand-in starts.
CHIPS = "ATTN_SIM_CHIPS"

_Take = CFUNCTYPE(None, c_void_p, c_size_t, c_void_p)
_SIGNATURES: dict[str, list[object]] = {
    "cuInit": [ctypes.c_uint],
    "cuDeviceGetCount": [POINTER(c_int)],
    "cuDeviceGetAttribute": [POINTER(c_int), c_int, c_int],
    "cuDevicePrimaryCtxRetain": [POINTER(c_void_p), c_int],
    "cuCtxSetCurrent": [c_void_p],
    "cuCtxSynchronize": [],
    "cuGetErrorString": [c_int, POINTER(c_char_p)],
    "attnSimSetSite": [c_char_p],
    "attnSimSetQuiet": [c_int],
    "attnSimRegister": [c_void_p, c_size_t, c_char_p],
    "attnSimUnregister": [c_void_p],
    "attnSimCountFindings": [POINTER(c_uint64), POINTER(c_uint64)],
    "attnSimReport": [c_char_p, c_uint64, _Take, c_void_p],
}


def find_folder() -> pathlib.Path:
    """The folder with the stand-in's libcuda.so.1: $ATTN_DRIVER, else that of the package."""
    given = os.environ.get("ATTN_DRIVER")
    folder = pathlib.Path(given) if given else pathlib.Path(__file__).parents[1] / "_lib" / "driver"
    if not (folder / "libcuda.so.1").exists():
        raise DriverError(f"expected the stand-in driver's libcuda.so.1 in {folder}, got none")
    return folder


def make_folder(prefix: str) -> str:
    """Makes a folder for temporary files that goes with the process."""
    folder, owner = tempfile.mkdtemp(prefix=prefix), os.getpid()

    def remove() -> None:
        # Not at the end of a process that was forked from this one.
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def check_absent() -> None:
    """That no driver of a GPU is here, in whose place the stand-in must not stand."""
    if pathlib.Path("/proc/driver/nvidia/version").exists():
        raise DriverError(
            "expected a machine without a CUDA driver, got one: run on its GPU instead"
        )


def write_assembler(folder: pathlib.Path) -> pathlib.Path:
    """Writes what Triton runs in ptxas' place, and returns its path. It hands the PTX on as the
    machine code, behind the real ptxas where $ATTN_SIM_PTXAS names one. Its version is its own,
    so that caches keep what is made by it apart."""
    path = folder / "ptxas"
    text = _ASSEMBLER.replace("PYTHON", sys.executable)
    if not path.exists() or path.read_text() != text:
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / f"ptxas.{os.getpid()}"
        fresh.write_text(text)
        fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR)
        fresh.replace(path)
    return path


_ASSEMBLER = """#!/bin/sh
# Hands PTX on in place of machine code: the simulator's stand-in driver reads it.
for argument in "$@"; do
  if [ "$argument" = --version ]; then
    echo "attn: hands PTX on in ptxas' place"
    echo "Cuda compilation tools, release 13.0, V13.0.0"
    exit 0
  fi
done
if [ -n "$ATTN_SIM_PTXAS" ]; then "$ATTN_SIM_PTXAS" "$@" || exit $?; fi
previous=
for argument in "$@"; do
  [ "$previous" = -o ] && output=$argument
  case $argument in *.ptx) input=$argument ;; esac
  previous=$argument
done
cp "$input" "$output"
"""


class StandIn:
    """The loaded library, its devices started."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        for name, arguments in _SIGNATURES.items():
            getattr(library, name).argtypes = arguments
        self.check(library.cuInit(0), "cuInit")

    def check(self, status: int, call: str) -> None:
        """Raises DriverError unless `status` is success."""
        if status:
            text = c_char_p()
            self.library.cuGetErrorString(status, byref(text))
            raise DriverError(f"{call}: {(text.value or b'').decode()}")

    def set_device(self, ordinal: int) -> None:
        """Makes the device's context this thread's."""
        context = c_void_p()
        self.check(
            self.library.cuDevicePrimaryCtxRetain(byref(context), ordinal),
            "cuDevicePrimaryCtxRetain",
        )
        self.check(self.library.cuCtxSetCurrent(context), "cuCtxSetCurrent")

    def get_capability(self, ordinal: int) -> tuple[int, int]:
        """Major and minor number of a device."""
        numbers = []
        for attribute in (_MAJOR, _MINOR):
            value = c_int()
            self.check(
                self.library.cuDeviceGetAttribute(byref(value), attribute, ordinal),
                "cuDeviceGetAttribute",
            )
            numbers.append(value.value)
        return numbers[0], numbers[1]

    def register(self, address: int, size: int, name: str) -> None:
        """Lets kernels use memory of the host, in bytes."""
        self.check(self.library.attnSimRegister(address, size, name.encode()), "attnSimRegister")

    def unregister(self, address: int) -> None:
        """Ends one registration."""
        self.check(self.library.attnSimUnregister(address), "attnSimUnregister")

    def set_site(self, site: str | None) -> None:
        """Says which line of the program what comes next belongs to."""
        self.library.attnSimSetSite(site.encode() if site else None)

    def set_quiet(self, is_quiet: bool) -> None:
        """Whether findings are not printed as they come."""
        self.library.attnSimSetQuiet(is_quiet)

    def count_findings(self) -> tuple[int, int]:
        """The number of findings so far, and of those that are errors."""
        found, errors = c_uint64(), c_uint64()
        self.check(
            self.library.attnSimCountFindings(byref(found), byref(errors)), "attnSimCountFindings"
        )
        return found.value, errors.value

    def report(self, form: str = "text", start: int = 0) -> str:
        """The report of findings from number `start` on: "text", "json", "sarif" or "github"."""
        pieces: list[bytes] = []

        @_Take
        def take(data: int, size: int, _: object) -> None:
            pieces.append(ctypes.string_at(data, size))

        self.check(self.library.attnSimReport(form.encode(), start, take, None), "attnSimReport")
        return b"".join(pieces).decode("utf-8", "replace")


@functools.cache
def load() -> StandIn:
    """The stand-in, in place of the CUDA driver for all of the process."""
    check_absent()
    path = find_folder() / "libcuda.so.1"
    if other := _find_other(path):
        library = _open_loaded(other)
        # Two stand-ins would each know half of what the process does.
        if library is not None and _find_library(str(path)) is None:
            return StandIn(library)
        raise DriverError(
            f"expected no CUDA driver in the process yet, got {other}; call attn.sim before what "
            "loads a driver, or start the program with attn-run"
        )
    # By its file name, under which whoever links to the driver finds it again.
    return StandIn(ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL))


def _open_loaded(other: str) -> ctypes.CDLL | None:
    """Returns the library of a file that is loaded, None where it is no stand-in. The file may be
    replaced since, and then has its name no longer."""
    library = _find_library(other) or _find_library("libcuda.so.1")
    return library if hasattr(library, "attnSimRegister") else None


def _find_library(name: str) -> ctypes.CDLL | None:
    """Returns a library of this name, or of this file, if it is loaded."""
    try:
        return ctypes.CDLL(name, ctypes.RTLD_GLOBAL | os.RTLD_NOLOAD)
    except OSError:
        return None


def _find_other(path: pathlib.Path) -> str | None:
    """The file of a CUDA driver that is loaded, other than this one."""
    try:
        lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        # A container may have no /proc.
        return None
    for line in lines:
        mapped = line.split(maxsplit=5)[5:]
        name = pathlib.Path(mapped[0]) if mapped else pathlib.Path()
        if name.name.startswith("libcuda.so") and not (name.exists() and name.samefile(path)):
            return str(name)
    return None
