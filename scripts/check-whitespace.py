#!/usr/bin/env python3
"""No tabs, trailing blanks, carriage returns, or missing final newline."""

import sys

from lint_util import read_text, report, tracked_files

# Files whose exact bytes are the point.
EXEMPT_SUFFIXES = {".npy", ".ptx", ".png", ".svg", ".json"}


def problems_of(path, text: str) -> list[str]:
    problems = []
    for number, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip():
            problems.append(f"{path}:{number}: trailing blank")
        if "\t" in line:
            problems.append(f"{path}:{number}: tab")
    if text and not text.endswith("\n"):
        problems.append(f"{path}: no newline at the end")
    if text.endswith("\n\n"):
        problems.append(f"{path}: blank line at the end")
    return problems


def main() -> int:
    problems = []
    for path in tracked_files():
        if path.suffix in EXEMPT_SUFFIXES:
            continue
        text = read_text(path)
        if text is not None:
            problems += problems_of(path, text)
    return report(problems, "whitespace")


if __name__ == "__main__":
    sys.exit(main())
