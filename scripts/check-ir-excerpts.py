#!/usr/bin/env python3
"""IR that a page shows is what a file holds.

The lines of the page's `mlir` fences stand in the file one after the other. A line
`...` leaves some out; fences start anywhere. A line that ends with ` ...` is the
start of one, lines that start with `//` are the page's. Indentation and the
names of values do not count, other than that of a value which an op named.

usage: scripts/check-ir-excerpts.py PAGE FILE
"""

import pathlib
import re
import sys

FENCE = re.compile(r"^```mlir\n(?P<body>.*?)^```$", re.M | re.S)
#: Names that printing makes up: numbers, arguments, constants, and the numbers
#: behind a name that occurs again.
VALUE = re.compile(r"%[\w-]+")


def normalize(line: str) -> str:
    line = VALUE.sub(lambda match: re.sub(r"_\d+$", "", match.group()), line.strip())
    return re.sub(r"\s+", " ", line)


def pattern(line: str) -> re.Pattern[str]:
    """What a line of the page stands for: `%name` may be any value that has no
    name of its own in the file."""
    is_start = line.endswith(" ...")
    text = normalize(line[: -len(" ...")] if is_start else line)
    parts = []
    position = 0
    for match in VALUE.finditer(text):
        parts.append(re.escape(text[position : match.start()]))
        name = re.escape(match.group())
        parts.append(rf"(?:{name}|%(?:\d+|arg\d+|c-?\d+_i\d+|cst))")
        position = match.end()
    parts.append(re.escape(text[position:]))
    return re.compile("".join(parts) + ("" if is_start else "$"))


def check(page: str, lines: list[str]) -> tuple[list[str], int]:
    """What the page shows and the file does not hold, and the lines compared."""
    problems, count = [], 0
    for match in FENCE.finditer(page):
        position = 0
        first = page.count("\n", 0, match.start("body")) + 1
        follows = False
        for number, line in enumerate(match["body"].splitlines(), first):
            if not line.strip() or line.lstrip().startswith("//"):
                continue
            if line.strip() == "...":
                follows = False
                continue
            count += 1
            wanted = pattern(line.strip())
            found = next((i for i in range(position, len(lines)) if wanted.match(lines[i])), None)
            if found is None or (follows and found != position):
                problems.append(f"{number}: the file does not hold '{line.strip()}' there")
                break
            position, follows = found + 1, True
    return problems, count


def main() -> int:
    page, file = (pathlib.Path(name).read_text(encoding="utf-8") for name in sys.argv[1:3])
    problems, count = check(page, [normalize(line) for line in file.splitlines()])
    for problem in problems:
        print(f"{sys.argv[1]}:{problem}")
    print(f"{count} lines compared, {len(problems)} problem(s)")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    sys.exit(main())
