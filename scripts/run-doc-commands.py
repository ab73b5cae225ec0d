#!/usr/bin/env python3
"""Runs the commands of the documentation that run on any machine.

Each page's shell fences are commands for a folder of its own, in which lie the
files that pages speak of (INPUTS). A command runs if all of its lines start with
a program of this project; the others, and those in SKIPPED, are for other
machines or take too long. After a line that starts with `$ ` come the lines that
it prints, which are compared.

usage: scripts/run-doc-commands.py BIN [PAGE...] [--list]
  BIN      the folder of the programs
  PAGE     pages, from the repository's root; without any: all
  --list   print what runs and what does not, and run nothing
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```shell\n(?P<body>.*?)^```$", re.M | re.S)
PROGRAMS = ("attn-compile", "attn-opt", "attn-sim", "attn-reduce", "attn-targets")

#: What pages take as given: a problem, one for attn-reduce's script, and a kernel.
INPUTS = {
    "problem.mlir": "cp {root}/examples/causal-gqa.mlir problem.mlir",
    "in.mlir": "cp {root}/examples/causal-gqa.mlir in.mlir",
    "kernel.mlir": "attn-compile in.mlir --emit=barrier -o kernel.mlir",
    "examples": "cp -r {root}/examples examples",
}

#: Parts of commands that do not run here, and why.
SKIPPED = {
    "--autotune=": "compiles a kernel for each of many plans; autotune.test runs it smaller",
    "--plan-table=plans.json": "the table comes from a GPU",
    "--bundle-chips=": "needs ptxas; bundle.test runs it where there is one",
    "attn-sim kernel.ptx --launch=kernel.json --verify": "of the program of docs/HowTo/embed.md",
}
#: The same for single pages: elsewhere the command runs.
RUNS_ON = {"attn-sim kernel.ptx --launch=kernel.json --verify": "README.md"}


def commands(body: str) -> list[tuple[str, str | None]]:
    """The commands of a fence, each with what it prints if the page says that."""
    found: list[tuple[str, str | None]] = []
    lines = body.splitlines()
    while lines:
        line = lines.pop(0)
        if line.startswith("$ "):
            found.append((line[2:], "".join(each + "\n" for each in lines)))
            break
        while line.endswith("\\") and lines:
            line = line[:-1] + " " + lines.pop(0).strip()
        if "<<'EOF'" in line:
            while not line.endswith("\nEOF"):
                line += "\n" + lines.pop(0)
        if line and not line.startswith("#"):
            found.append((line, None))
    return found


def why_not(command: str, page: str) -> str | None:
    """Why a command does not run; None if it does."""
    for part, reason in SKIPPED.items():
        if part in command and RUNS_ON.get(part) != page:
            return reason
    first = command.split()[0]
    if first in (*PROGRAMS, "cat", "chmod"):
        return None
    return f"{first} is no program of this project's build"


def run_page(page: str, folder: str, binaries: pathlib.Path) -> int:
    """The number of commands that ran; raises RuntimeError at one that fails."""
    count = 0

    def shell(command: str, expected: str | None = None) -> None:
        done = subprocess.run(
            ["bash", "-c", f'export PATH="{binaries}:$PATH"\n{command}'],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{page}: {command}\nstatus {done.returncode}\n{done.stderr}")
        if expected is not None and done.stdout != expected:
            raise RuntimeError(f"{page}: {command}\nprints\n{done.stdout}\nnot\n{expected}")

    for make in INPUTS.values():
        shell(make.format(root=ROOT))
    for fence in FENCE.finditer((ROOT / page).read_text(encoding="utf-8")):
        for command, expected in commands(fence["body"]):
            if why_not(command, page) is None:
                shell(command, expected)
                count += 1
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binaries", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("pages", nargs="*")
    parser.add_argument("--list", action="store_true", dest="only_list")
    arguments = parser.parse_args()
    pages = arguments.pages or ["README.md"] + sorted(
        str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md")
        # Its commands are tests by themselves.
        if path.name != "Passes.md"
    )  # fmt: skip
    total = 0
    for page in pages:
        fences = FENCE.finditer((ROOT / page).read_text(encoding="utf-8"))
        found = [command for fence in fences for command, _ in commands(fence["body"])]
        if arguments.only_list:
            for command in found:
                print(f"{page}: {command.splitlines()[0]}: {why_not(command, page) or 'runs'}")
        elif any(why_not(command, page) is None for command in found):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    total += run_page(page, folder, arguments.binaries)
                except RuntimeError as error:
                    print(error, file=sys.stderr)
                    return 1
    if not arguments.only_list:
        print(f"{total} commands ran")
    return 0


if __name__ == "__main__":
    sys.exit(main())
