"""Options of a compilation that depend on the machine, and what tells machines apart."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Callable

from ..errors import ArgumentError
from ..options import readers


def _read_native_board() -> str:
    """What the driver says of the first device."""
    for path in sorted(pathlib.Path("/proc/driver/nvidia/gpus").glob("*/information")):
        with contextlib.suppress(OSError):
            return path.read_text(encoding="utf-8", errors="replace")
    return ""


def read(
    board: str | None, assemble_check: bool, get_assembler: Callable[[], str]
) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    """The options, and texts on which what they give depends: kernels of another board
    or ptxas are others."""
    options: list[tuple[str, str]] = []
    texts: list[str] = []
    if board is not None:
        name = readers.to_text("board", board)
        options.append(("board", name))
        texts += [_read_native_board()] * (name == "native")
    if readers.to_bool("assemble_check", assemble_check):
        options.append(("assemble-check", "true"))
        texts.append(get_assembler())
    return options, tuple(texts)


def get_mask_options(read_masks: bool | None) -> list[tuple[str, str]]:
    """The option that leaves what a mask's function says to that function; None is what
    $ATTN_READ_MASKS says, whose 0 is the only thing that differs from True."""
    if read_masks is None:
        said = os.environ.get("ATTN_READ_MASKS", "")
        if said not in ("", "0", "1"):
            raise ArgumentError(f"ATTN_READ_MASKS: expected 0 or 1, got {said!r}")
        is_read = said != "0"
    else:
        is_read = readers.to_bool("read_masks", read_masks)
    return [] if is_read else [("read-masks", "false")]
