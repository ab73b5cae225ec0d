#!/usr/bin/env python3
"""Folders stay small: none of lib, include and python/attn holds more than 40 sources."""

import collections
import sys

from lint_util import report, tracked_files

LIMIT = 40
SUFFIXES = {".cpp", ".h", ".c", ".td", ".def", ".py"}


def main() -> int:
    counts: collections.Counter[str] = collections.Counter()
    for path in tracked_files("lib/*", "include/*", "python/attn/*"):
        if path.suffix in SUFFIXES:
            counts[path.parent.as_posix()] += 1
    problems = [
        f"{folder}: expected at most {LIMIT} source files, got {count}"
        for folder, count in sorted(counts.items())
        if count > LIMIT
    ]
    return report(problems, "folder size")


if __name__ == "__main__":
    sys.exit(main())
