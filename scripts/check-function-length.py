#!/usr/bin/env python3
"""C++ functions stay short: none above 100 lines.

Counts from the line of the body's opening brace to that of its closing one;
lambdas count as a part of the function around them.

usage: scripts/check-function-length.py [--list N]
  --list N   print the functions above N lines instead
"""

import re
import sys

from lint_util import read_text, report, tracked_files

LIMIT = 100
IGNORED = re.compile(
    r"""//[^\n]*|/\*.*?\*/
      |R"(?P<delimiter>[^(\s]*)\(.*?\)(?P=delimiter)"
      |"(?:[^"\\\n]|\\.)*"
      |(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'
      |^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*""",
    re.X | re.S | re.M,
)
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b[^()=]*$")
# The last call-like name in front of the parameters.
NAME = re.compile(r"((?:[\w~]+\s*::\s*)*(?:operator\s*(?:\(\)|[^\s\w(]+|\w+)|~?\w+))\s*\(")


def blank(text: str) -> str:
    """Comments, literals and preprocessor lines as blanks, lines kept."""
    return IGNORED.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def functions(text: str):
    """(name, line of the body's first brace, lines) of each function."""
    text = blank(text)
    start, depth, inside = 0, 0, None
    for match in re.finditer(r"[{};]", text):
        token, at = match.group(), match.start()
        if inside:
            depth += {"{": 1, "}": -1, ";": 0}[token]
            if depth == 0:
                name, begin = inside
                if name:
                    first = text.count("\n", 0, begin) + 1
                    yield name, first, text.count("\n", begin, at) + 1
                # What follows the braces of an initialiser belongs to it.
                start = at + 1 if name else start
                inside = None
        elif token == "{":
            head = text[start:at]
            found = NAME.search(head)
            if SCOPE.search(head) and not re.search(r"\)\s*(const|noexcept|override|->.*)?\s*$", head):
                start = at + 1
            else:
                initialiser = re.search(r"[=,(]\s*$", head) or not found
                # `: member{value}` in front of a constructor's body.
                member = re.search(r"\)\s*:(?!:).*\w\s*$", head, re.S)
                inside = (None if initialiser or member else found.group(1), at)
                depth = 1
        else:
            start = at + 1


def main() -> int:
    listed = sys.argv[1:2] == ["--list"]
    limit = int(sys.argv[2]) if listed else LIMIT
    long = []
    for path in tracked_files("include/*", "lib/*", "tools/*"):
        if path.suffix in {".cpp", ".h", ".c"}:
            for name, line, lines in functions(read_text(path) or ""):
                if lines > limit:
                    long.append((lines, str(path), line, name))
    if listed:
        for lines, path, line, name in sorted(long, reverse=True):
            print(f"{lines:5} {path}:{line} {name}")
        print(len(long))
        return 0
    problems = [
        f"{path}:{line}: {name} has {lines} lines, split it (limit {LIMIT})"
        for lines, path, line, name in long
    ]
    return report(sorted(problems), "function length")


if __name__ == "__main__":
    sys.exit(main())
