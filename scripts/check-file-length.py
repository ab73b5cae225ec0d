#!/usr/bin/env python3
"""Source files stay short: a warning above 600 lines, an error above 800."""

import sys

from lint_util import read_text, report, tracked_files

WARN, FAIL = 600, 800
SUFFIXES = {".cpp", ".h", ".c", ".td", ".py", ".sh", ".cmake"}


def main() -> int:
    problems = []
    for path in tracked_files():
        if path.suffix not in SUFFIXES:
            continue
        text = read_text(path)
        lines = text.count("\n") if text else 0
        if lines > FAIL:
            problems.append(f"{path}: {lines} lines, split it (limit {FAIL})")
        elif lines > WARN:
            print(f"warning: {path}: {lines} lines (aim: at most {WARN})")
    return report(problems, "file length")


if __name__ == "__main__":
    sys.exit(main())
