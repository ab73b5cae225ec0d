"""What the package tells of its work: a line for each compilation, find in the cache, launch and
call that goes to a host.

The lines are those of the logger `attn` at level DEBUG; ATTN_LOG=1 in the environment writes them
to standard error.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import TypeVar

from ..errors import ArgumentError

T = TypeVar("T")

_log = logging.getLogger("attn")


def is_told() -> bool:
    """Whether somebody reads the lines."""
    return _log.isEnabledFor(logging.DEBUG)


def tell(text: str, *values: object) -> None:
    """Tells a line, in the form of the logging module."""
    _log.debug(text, *values)


def time_call(text: str, name: str, call: Callable[[], T]) -> T:
    """Returns what `call` returns, and tells how long it took."""
    if not is_told():
        return call()
    start = time.perf_counter()
    result = call()
    tell(f"{text} %s in %.2f s", name, time.perf_counter() - start)
    return result


def follow_environment() -> None:
    """Writes the lines to standard error where ATTN_LOG says so."""
    said = os.environ.get("ATTN_LOG", "")
    if said not in ("", "0", "1"):
        raise ArgumentError(f"ATTN_LOG: expected 0 or 1, got {said!r}")
    if said != "1":
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("attn: %(message)s"))
    _log.addHandler(handler)
    _log.setLevel(logging.DEBUG)
    _log.propagate = False


follow_environment()
