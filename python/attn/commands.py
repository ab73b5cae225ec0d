"""The commands attn-compile and attn-sim of a wheel, whose library has them inside."""

from __future__ import annotations

import ctypes
import pathlib
import shutil
import signal
import sys
from typing import NoReturn

from .compiler import c_library
from .errors import LibraryError


def _run(name: str) -> NoReturn:
    """Runs a command of the library with the arguments of this process, and ends the process
    with its status."""
    library = c_library.load()
    try:
        run = library.attnRunCommand
    except AttributeError:
        print(
            f"{name}: error: {c_library.find_library()} has no commands: only that of a wheel has; "
            f"a build folder has bin/{name}",
            file=sys.stderr,
        )
        raise SystemExit(1) from None
    # The command reads its signals as any program does.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    words = [name.encode(), *(word.encode(errors="surrogateescape") for word in sys.argv[1:])]
    arguments = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    raise SystemExit(run(len(words), arguments))


def find(name: str) -> list[str]:
    """The words that run a command: the library's own of a wheel, else the program beside the
    library of a build folder, or on the PATH. Raises LibraryError where there is none."""
    if hasattr(c_library.load(), "attnRunCommand"):
        call = f"from attn import commands; commands.run_{name.replace('-', '_')}()"
        return [sys.executable, "-c", call]
    beside = pathlib.Path(c_library.find_library()).parent.parent / "bin" / name
    program = str(beside) if beside.is_file() else shutil.which(name)
    if program is None:
        raise LibraryError(f"no {name}: neither in {beside.parent} nor on the PATH")
    return [program]


def run_attn_compile() -> NoReturn:
    """Compiles a problem on the command line (docs/attn-compile.md)."""
    _run("attn-compile")


def run_attn_sim() -> NoReturn:
    """Runs PTX on the command line (docs/Simulate.md)."""
    _run("attn-sim")
