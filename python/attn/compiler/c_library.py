"""The compiler's C interface (attn-c/Attn.h) through ctypes."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import pathlib
from collections.abc import Iterable
from ctypes import (
    POINTER,
    c_bool,
    c_char_p,
    c_double,
    c_int,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)

from ..errors import Diagnostic, LibraryError

#: ATTN_C_API_VERSION that this file was written for.
API_VERSION = 5
SEVERITIES = ("error", "warning", "remark", "note")


class StringRef(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("length", c_size_t)]

    def bytes(self) -> bytes:
        return ctypes.string_at(self.data, self.length) if self.data else b""

    def text(self) -> str:
        return self.bytes().decode("utf-8", "replace")


def ref(data: str | bytes) -> StringRef:
    """`data` as an argument. The structure keeps the bytes alive."""
    raw = data.encode() if isinstance(data, str) else data
    result = StringRef(ctypes.cast(c_char_p(raw), c_void_p), len(raw))
    result.owner = raw
    return result


class CDiagnostic(ctypes.Structure):
    _fields_ = [
        ("severity", c_int),
        ("message", StringRef),
        ("file", StringRef),
        ("line", c_uint32),
        ("column", c_uint32),
        ("numNotes", c_size_t),
    ]


class CTarget(ctypes.Structure):
    _fields_ = [
        ("chip", StringRef),
        ("computeCapability", c_uint32),
        ("minPTX", c_uint32),
        ("defaultPTX", c_uint32),
        ("sharedBytesPerCTA", c_uint32),
    ]


class CTensor(ctypes.Structure):
    _fields_ = [
        ("name", StringRef),
        ("dtype", StringRef),
        ("shape", POINTER(c_int64)),
        ("rank", c_size_t),
        ("written", c_bool),
        ("data", c_void_p),
        ("numBytes", c_size_t),
    ]


#: Tells how far a run is: of what, the share that is done, seconds that are
#: left; the last two are negative while nobody knows. False ends the run.
ProgressCallback = ctypes.CFUNCTYPE(c_bool, c_void_p, StringRef, c_double, c_double)

#: Result and arguments of every function that is used.
_SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "attnGetAPIVersion": (c_uint32, []),
    "attnGetCompilerVersion": (StringRef, []),
    "attnGetAssemblerVersion": (StringRef, []),
    "attnAddProgramFolder": (None, [StringRef]),
    "attnGetNumTargets": (c_size_t, []),
    "attnGetTarget": (CTarget, [c_size_t]),
    "attnEvaluateSize": (
        c_bool,
        [
            StringRef,
            POINTER(StringRef),
            POINTER(c_int64),
            c_size_t,
            POINTER(c_int64),
            POINTER(StringRef),
        ],
    ),
    "attnRequestCreate": (c_void_p, []),
    "attnRequestDestroy": (None, [c_void_p]),
    "attnRequestSetText": (None, [c_void_p, StringRef, StringRef]),
    "attnRequestSetOption": (None, [c_void_p, StringRef, StringRef]),
    "attnCompile": (c_void_p, [c_void_p]),
    "attnResultDestroy": (None, [c_void_p]),
    "attnResultSucceeded": (c_bool, [c_void_p]),
    "attnResultGetOutput": (StringRef, [c_void_p]),
    "attnResultGetPTX": (StringRef, [c_void_p]),
    "attnResultGetNumPlans": (c_size_t, [c_void_p]),
    "attnResultGetPlan": (StringRef, [c_void_p, c_size_t]),
    "attnResultGetNumLaunches": (c_size_t, [c_void_p]),
    "attnResultGetLaunch": (StringRef, [c_void_p, c_size_t]),
    "attnResultGetDiagnosticText": (StringRef, [c_void_p]),
    "attnResultGetNumDiagnostics": (c_size_t, [c_void_p]),
    "attnResultGetDiagnostic": (CDiagnostic, [c_void_p, c_size_t]),
    "attnResultGetNote": (CDiagnostic, [c_void_p, c_size_t, c_size_t]),
    "attnSimulationCreate": (c_void_p, []),
    "attnSimulationDestroy": (None, [c_void_p]),
    "attnSimulationSetInput": (
        None,
        [c_void_p, StringRef, StringRef, POINTER(c_int64), c_size_t, c_void_p, c_size_t],
    ),
    "attnSimulationSetSize": (None, [c_void_p, StringRef, c_int64]),
    "attnSimulationSetSeed": (None, [c_void_p, c_uint64]),
    "attnSimulationSetVerify": (None, [c_void_p, c_bool]),
    "attnSimulationSetQuick": (None, [c_void_p, c_bool]),
    "attnSimulationSetCorners": (None, [c_void_p, c_bool]),
    "attnSimulationSetThreads": (None, [c_void_p, c_uint32]),
    "attnSimulationSetOption": (None, [c_void_p, StringRef, StringRef]),
    "attnSimulationSetProgress": (None, [c_void_p, ProgressCallback, c_void_p]),
    "attnSimulateLaunch": (c_void_p, [StringRef, StringRef, c_void_p]),
    "attnSimulate": (c_void_p, [StringRef, StringRef, c_void_p, c_void_p]),
    "attnReportDestroy": (None, [c_void_p]),
    "attnReportRan": (c_bool, [c_void_p]),
    "attnReportWasStopped": (c_bool, [c_void_p]),
    "attnReportGetError": (StringRef, [c_void_p]),
    "attnReportPassed": (c_bool, [c_void_p]),
    "attnReportGetJSON": (StringRef, [c_void_p]),
    "attnReportGetText": (StringRef, [c_void_p]),
    "attnReportGetNumTensors": (c_size_t, [c_void_p]),
    "attnReportGetTensor": (CTensor, [c_void_p, c_size_t]),
}


def find_library() -> str:
    """$ATTN_LIBRARY, or the library that the package was built with."""
    named = os.environ.get("ATTN_LIBRARY")
    if named:
        return named
    return str(pathlib.Path(__file__).parents[1] / "_lib" / "libAttnC.so")


def find_program_folders() -> list[pathlib.Path]:
    """Where Python packages that the extra `ptxas` brings have CUDA's programs."""
    found = importlib.util.find_spec("nvidia")
    roots = sorted(map(pathlib.Path, (found.submodule_search_locations if found else None) or ()))
    folders = [each for root in roots for each in sorted(root.glob("*/bin"))]
    return [each for each in folders if (each / "ptxas").is_file()]


@functools.cache
def load() -> ctypes.CDLL:
    """The library, loaded at the first use, so that importing the package
    needs no compiler."""
    path = find_library()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise LibraryError(
            f"cannot load the compiler: {error}; build the package with pip, or name "
            "libAttnC.so in $ATTN_LIBRARY"
        ) from None
    try:
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype = result
            function.argtypes = arguments
    except AttributeError as error:
        raise LibraryError(f"{path} is not this compiler: {error}") from None
    version = library.attnGetAPIVersion()
    if version < API_VERSION:
        raise LibraryError(
            f"{path}: expected interface version {API_VERSION} or later, got {version}"
        )
    for folder in find_program_folders():
        library.attnAddProgramFolder(ref(str(folder)))
    return library


class Handle:
    """An object of the library, destroyed at the end of a `with`."""

    def __init__(self, kind: str, pointer: int) -> None:
        self._destroy = getattr(load(), f"attn{kind}Destroy")
        self.pointer = pointer

    def __enter__(self) -> int:
        return self.pointer

    def __exit__(self, *_: object) -> None:
        self._destroy(self.pointer)


def make_request(text: str | None, name: str, options: Iterable[tuple[str, str]]) -> Handle:
    """A request with a problem as text, if any, and options."""
    library = load()
    request = Handle("Request", library.attnRequestCreate())
    if text is not None:
        library.attnRequestSetText(request.pointer, ref(text), ref(name))
    for key, value in options:
        library.attnRequestSetOption(request.pointer, ref(key), ref(value))
    return request


def _convert(record: CDiagnostic, notes: tuple[Diagnostic, ...] = ()) -> Diagnostic:
    return Diagnostic(
        SEVERITIES[record.severity],
        record.message.text(),
        record.file.text(),
        record.line,
        record.column,
        notes,
    )


def get_diagnostics(result: int) -> tuple[Diagnostic, ...]:
    """All messages of a compilation."""
    library = load()
    found = []
    for index in range(library.attnResultGetNumDiagnostics(result)):
        record = library.attnResultGetDiagnostic(result, index)
        notes = tuple(
            _convert(library.attnResultGetNote(result, index, note))
            for note in range(record.numNotes)
        )
        found.append(_convert(record, notes))
    return tuple(found)
