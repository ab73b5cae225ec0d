#!/usr/bin/env python3
"""Runs the commands of the documentation that run on any machine.

Each page's shell fences are commands for a folder of its own, in which lie the
files that pages speak of (INPUTS). A command runs if all of its lines start with
a program of this project; the others, and those in SKIPPED, are for other
machines or take too long. After a line that starts with `$ ` come the lines that
it prints, which are compared. The files that a command names are there after it.

A table whose header says "flags beside `COMMAND`" has flags in its second column. The
command runs with them, and without each of them: every flag makes a difference in what is
printed or written. In the tables of a program's page (PROGRAM_PAGES) each flag is one that
the program has.

usage: scripts/run-doc-commands.py BIN [PAGE...] [--list]
  BIN      the folder of the programs
  PAGE     pages, from the repository's root; without any: all
  --list   print what runs and what does not, and run nothing
"""

import argparse
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = re.compile(r"^\|[^\n]*\|\n\|-[-|]*\|\n(?:\|[^\n]*\|\n)+", re.M)
BESIDE = re.compile(r"flags beside `(?P<command>[^`]+)`")
FILE = re.compile(r"[\w./-]*\w\.(?:attn|cubin|html|json|mlir|npy|ptx|sh|svg|txt|yaml)")
FENCE = re.compile(r"^```shell\n(?P<body>.*?)^```$", re.M | re.S)
PROGRAMS = ("attn-compile", "attn-opt", "attn-sim", "attn-reduce", "attn-targets")

#: Pages whose tables list the flags of a program.
PROGRAM_PAGES = {
    "docs/CycleModel.md": "attn-sim",
    "docs/Debugging.md": "attn-opt",
    "docs/Simulate.md": "attn-sim",
    "docs/attn-compile.md": "attn-compile",
}

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


def tried_flags(text: str) -> list[tuple[str, list[str]]]:
    """The commands of tables of flags, each with the flags of a line."""
    found = []
    for table in TABLE.finditer(text):
        head, _, *rows = table[0].splitlines()
        if beside := BESIDE.search(head):
            for row in rows:
                flags = re.findall("`([^`]*)`", row.strip("| ").split(" | ")[1])
                found.append((beside["command"], " ".join(flags).split()))
    return found


def listed_flags(text: str) -> list[str]:
    """The flags that cells of tables begin with or list."""
    spans = [span for table in TABLE.finditer(text) for span in re.findall("`(--?[^`]+)`", table[0])]
    return [re.split(r"[=\[]", word)[0] for span in spans for word in span.split() if word[0] == "-"]


def named_files(command: str) -> list[str]:
    """The files that a command names: alone or after an equals sign."""
    words = shlex.split(command.split("<<'EOF'")[0], comments=True)
    names = [word.rsplit("=", 1)[-1].lstrip(">") for word in words]
    return [name for name in names if FILE.fullmatch(name)]


class Page:
    """A page, and a folder with what it takes as given."""

    def __init__(self, page: str, folder: str, binaries: pathlib.Path) -> None:
        self.page, self.folder, self.binaries = page, pathlib.Path(folder), binaries
        self.text = (ROOT / page).read_text(encoding="utf-8")
        for make in INPUTS.values():
            self.shell(make.format(root=ROOT))

    def run(self, command: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["bash", "-c", f'export PATH="{self.binaries}:$PATH"\n{command}'],
            cwd=self.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def fail(self, command: str, message: str) -> None:
        raise RuntimeError(f"{self.page}: {command}\n{message}")

    def check_files(self, command: str) -> None:
        for name in named_files(command):
            if not (self.folder / name).exists():
                self.fail(command, f"expected the file {name} after it, got none")

    def shell(self, command: str, expected: str | None = None) -> None:
        done = self.run(command)
        if done.returncode:
            self.fail(command, f"status {done.returncode}\n{done.stderr}")
        if expected is not None and done.stdout != expected:
            self.fail(command, f"prints\n{done.stdout}\nnot\n{expected}")
        self.check_files(command)

    def effect(self, command: str, is_whole: bool = False) -> tuple:
        """What a command prints, and the files that it makes, which are removed. Those that
        it names are among them if `is_whole`."""
        before = set(self.folder.rglob("*"))
        done = self.run(command)
        made = sorted(path for path in self.folder.rglob("*") if path not in before)
        contents = [(path, path.read_text() if path.is_file() else "") for path in made]
        if is_whole:
            self.check_files(command)
        for path in reversed(made):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()
        return done.returncode, done.stdout, done.stderr, contents

    def try_flags(self, command: str, flags: list[str]) -> None:
        """Every one of the flags makes a difference."""
        whole = self.effect(" ".join([command, *flags]), is_whole=True)
        for flag in flags:
            rest = [other for other in flags if other != flag]
            if self.effect(" ".join([command, *rest])) == whole:
                self.fail(" ".join([command, *flags]), f"expected {flag} to do something")
        if (whole[0] == 0) != (self.run(command).returncode == 0):
            self.fail(" ".join([command, *flags]), f"status {whole[0]}\n{whole[2]}")

    def run_all(self) -> int:
        """The number of commands that ran; raises RuntimeError at one that fails."""
        count = 0
        # Before commands leave files that these would make.
        for command, flags in tried_flags(self.text):
            self.try_flags(command, flags)
            count += 1
        for fence in FENCE.finditer(self.text):
            for command, expected in commands(fence["body"]):
                if why_not(command, self.page) is None:
                    self.shell(command, expected)
                    count += 1
        if program := PROGRAM_PAGES.get(self.page):
            known = self.run(f"{program} --help-hidden").stdout
            known = set(re.findall(r"^ +(--?[\w-]+)", known, re.M))
            for flag in listed_flags(self.text):
                # Of one letter a flag may have two dashes.
                if flag not in known and flag[1:] not in known:
                    self.fail(flag, f"expected a flag of {program}")
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
            for command, flags in tried_flags((ROOT / page).read_text(encoding="utf-8")):
                print(f"{page}: {command} {' '.join(flags)}: runs with and without each flag")
        elif page in PROGRAM_PAGES or any(why_not(command, page) is None for command in found):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    total += Page(page, folder, arguments.binaries).run_all()
                except RuntimeError as error:
                    print(error, file=sys.stderr)
                    return 1
    if not arguments.only_list:
        print(f"{total} commands ran")
    return 0


if __name__ == "__main__":
    sys.exit(main())
