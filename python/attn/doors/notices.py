"""What the doors say: why a call is left to the host."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager

import torch

from ..errors import ArgumentError, CopyRemark
from ..launch import events


def say_fallback(call: str, host: str, reason: str) -> None:
    """Says in the log that a call is the host's."""
    events.tell("fallback: %s is %s's, since %s", call, host, reason)


def make_refusal(call: str, reason: str) -> ArgumentError:
    """The error in the place of a fallback that the caller does not want."""
    return ArgumentError(f"{call}: no kernel of attn takes the call, since {reason}")


def hide_copies() -> AbstractContextManager[None]:
    """Leaves out the remarks on copies: a host cannot change its operands. Code that torch compiles
    shows them, since it cannot change which warnings are shown."""
    return contextlib.nullcontext() if torch.compiler.is_compiling() else _hide_copies()


@contextlib.contextmanager
def _hide_copies() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CopyRemark)
        yield
