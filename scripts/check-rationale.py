#!/usr/bin/env python3
"""Rationale is a few essays: a problem, a choice, and what was rejected.

docs/Rationale has at most 16 pages of at most 800 words and no folders. Each page has the
headings Problem, Choice and Rejected, in this order and no others, and is listed in
docs/Rationale/README.md.
"""

import pathlib
import re
import sys

from lint_util import read_text, report, tracked_files

FOLDER = pathlib.PurePosixPath("docs/Rationale")
HEADINGS = ["Problem", "Choice", "Rejected"]
PAGES, WORDS = 16, 800


def problems_of(name: str, text: str) -> list[str]:
    """What is wrong with one page."""
    found = []
    headings = re.findall(r"^##+ +(.+?) *$", text, re.M)
    if headings != HEADINGS:
        found.append(f"{name}: expected the headings {', '.join(HEADINGS)}, got {', '.join(headings)}")
    if not text.startswith("# "):
        found.append(f"{name}: expected a title")
    words = len(text.split())
    if words > WORDS:
        found.append(f"{name}: expected at most {WORDS} words, got {words}")
    return found


def main() -> int:
    index = read_text(pathlib.Path(FOLDER / "README.md")) or ""
    pages = [path for path in tracked_files(f"{FOLDER}/*.md") if path.name != "README.md"]
    problems = []
    if len(pages) > PAGES:
        problems.append(f"{FOLDER}: expected at most {PAGES} pages, got {len(pages)}")
    for path in pages:
        if path.parent.as_posix() != FOLDER.as_posix():
            problems.append(f"{path}: expected pages in {FOLDER} itself")
        if f"({path.name})" not in index:
            problems.append(f"{path}: expected a row in {FOLDER}/README.md")
        problems += problems_of(path.as_posix(), read_text(path) or "")
    return report(problems, "rationale")


if __name__ == "__main__":
    sys.exit(main())
