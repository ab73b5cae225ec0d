#!/usr/bin/env python3
"""Source files stay short: none above 600 lines."""

import sys

from lint_util import read_text, report, tracked_files

LIMIT = 600
SUFFIXES = {".cpp", ".h", ".c", ".td", ".py", ".sh", ".cmake"}


def main() -> int:
    problems = []
    for path in tracked_files():
        if path.suffix not in SUFFIXES:
            continue
        text = read_text(path)
        lines = text.count("\n") if text else 0
        if lines > LIMIT:
            problems.append(f"{path}: {lines} lines, split it (limit {LIMIT})")
    return report(problems, "file length")


if __name__ == "__main__":
    sys.exit(main())
