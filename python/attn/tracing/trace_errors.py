"""Errors at the line of the user's code that is traced."""

from __future__ import annotations

import linecache
import os
import sys

from ..errors import TraceError

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
#: Frames below these belong to no user.
_LIBRARIES = tuple(f"{os.sep}{name}{os.sep}" for name in ("torch", "numpy"))


def is_library(file: str) -> bool:
    """Whether a file of code belongs to this package, torch or numpy."""
    is_own = os.path.abspath(file).startswith(_PACKAGE)
    return is_own or any(name in file for name in _LIBRARIES)


def fail(message: str) -> TraceError:
    """An error at the line of the user's code that is being executed."""
    frame = sys._getframe(1)
    while frame.f_back is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    file, line = frame.f_code.co_filename, frame.f_lineno
    return TraceError(message, file, line, linecache.getline(file, line).strip())
