#!/usr/bin/env python3
"""Loops walk no list that ends before them.

`for (auto x : llvm::enumerate(ArrayRef({a, b})))` reads a list whose elements
are gone when the loop begins: of what stands in the head of a loop only the
range itself lives on, not what a call in it was given. A warning of the
compiler says so of few types; sanitizers find it where a test walks the loop.
"""

import re
import sys

from lint_util import read_text, report, tracked_files

#: From a loop's colon to an ArrayRef of a braced list inside of a call.
LIST = re.compile(
    r"\bfor\s*\([^;{}]*?[^:]:\s*[\w:]+(?:<[^;{}]*?>)?"
    r"\((?:[^;{}()]|\([^;{}()]*\))*?ArrayRef(?:<[^;{}]*?>)?\(?\{"
)


def find_lists(text: str) -> list[int]:
    """Lines of loops over lists that have ended."""
    return [text.count("\n", 0, match.start()) + 1 for match in LIST.finditer(text)]


def main() -> int:
    problems = [
        f"{path}:{line}: the list ends before the loop, name it in front"
        for path in tracked_files("*.cpp", "*.h")
        for line in find_lists(read_text(path) or "")
    ]
    return report(problems, "lists of loops")


if __name__ == "__main__":
    sys.exit(main())
