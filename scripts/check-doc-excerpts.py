#!/usr/bin/env python3
"""Code that the HowTo pages show is what the files hold.

A fence behind a line that ends with a link and a colon, `[File](path):`, is an
excerpt of that file: its lines stand there one after the other, whatever their
indentation. A line `...` leaves some out. The page on adding an op names the td
file of every family.

usage: scripts/check-doc-excerpts.py
"""

import re
import sys

from lint_util import ROOT, read_text, report, tracked_files

FENCE = re.compile(
    r"^.*\]\((?P<path>[^)]+)\):\n\n(?P<indent> *)```\w*\n(?P<body>.*?)\n(?P=indent)```$",
    re.M | re.S,
)


def normalize(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def find(lines: list[str], piece: list[str], start: int) -> int:
    """The end of `piece` in `lines`, from `start` on; -1 if it is not there."""
    for i in range(start, len(lines) - len(piece) + 1):
        if lines[i : i + len(piece)] == piece:
            return i + len(piece)
    return -1


def check(page: str, text: str, match: re.Match) -> list[str]:
    line = text.count("\n", 0, match.start("body")) + 1
    path = (ROOT / page).parent.joinpath(match["path"]).resolve()
    if not path.is_file():
        return [f"{page}:{line}: there is no {match['path']}"]
    lines, position = normalize(path.read_text(encoding="utf-8")), 0
    for piece in re.split(r"^ *\.\.\.$", match["body"], flags=re.M):
        if not (wanted := normalize(piece)):
            continue
        position = find(lines, wanted, position)
        if position < 0:
            return [f"{page}:{line}: {match['path']} does not hold '{wanted[0]}' and what follows"]
    return []


def check_families() -> list[str]:
    """The td files of ops are those that the page names."""
    page = "docs/HowTo/add-op.md"
    named = set(re.findall(r"`(\w+Ops)`", (ROOT / page).read_text(encoding="utf-8")))
    folder = ROOT / "include/attn/Dialect/Attn/IR/Ops"
    there = {path.stem for path in folder.glob("*Ops.td")}
    return [
        f"{page}: expected the td files {', '.join(sorted(there))}, got {', '.join(sorted(named))}"
    ] * (named != there)  # fmt: skip


def main() -> int:
    problems, count = check_families(), 0
    for path in tracked_files("docs/HowTo/*.md"):
        text = read_text(path) or ""
        for match in FENCE.finditer(text):
            problems += check(str(path), text, match)
            count += 1
    if count == 0:
        problems.append("docs/HowTo: expected excerpts of files, got none")
    return report(problems, "excerpts in docs")


if __name__ == "__main__":
    sys.exit(main())
