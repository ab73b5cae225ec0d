"""What the scripts that run tools for long share: ptxas, a bar, and a file of results."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import pathlib
import sys
from typing import TextIO

ROOT = pathlib.Path(__file__).resolve().parent.parent


def find_ptxas() -> str | None:
    """As the programs look for it: $CUDA_HOME, /usr/local/cuda, the PATH."""
    for folder in (os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if folder and os.access(f"{folder}/bin/ptxas", os.X_OK):
            return f"{folder}/bin/ptxas"
    for folder in os.get_exec_path():
        if os.access(f"{folder}/ptxas", os.X_OK):
            return f"{folder}/ptxas"
    return None


def add_nvdisasm() -> bool:
    """Puts the nvdisasm of scripts/install-deps.sh on the PATH; false if there is none."""
    folders = glob.glob(str(ROOT / ".venv-sass/lib/python3*/site-packages/nvidia/cu*/bin"))
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", ""), *folders])
    known = [f"{home}/bin" for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda") if home]
    return any(os.access(f"{folder}/nvdisasm", os.X_OK) for folder in known + os.get_exec_path())


def progress(done: int, total: int, what: str) -> None:
    """Draws a bar over the last one, on a terminal only."""
    if sys.stderr.isatty():
        filled = "#" * (30 * done // max(total, 1))
        print(f"\r[{filled:<30}] {done}/{total} {what:<34}", end="", file=sys.stderr)
        if done == total:
            print(file=sys.stderr)


def open_lines(path: pathlib.Path, again: bool) -> tuple[list[dict], TextIO]:
    """What a file of JSON lines holds, none with `again`, and the file to append to."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if again:
        path.unlink(missing_ok=True)
    lines = []
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError):  # the last line may be torn
                lines.append(json.loads(line))
    return lines, path.open("a", encoding="utf-8")
