#!/usr/bin/env python3
"""Every diagnostic of the compiler occurs in a test.

Reads each statement of lib/, include/ and tools/ that makes an error or a
warning, joins its adjacent string literals, cuts them at placeholders, and
looks for the longest piece in test/ and unittests/. Names of helpers that
only pass a message on belong in MAKERS.

usage: scripts/check-messages-tested.py [--list]
  --list   print every message found, with its place
"""

import re
import sys

from lint_util import read_text, report, tracked_files

MAKERS = {
    "createStringError",
    "emitError",
    "emitOpError",
    "emitOptionalError",
    "emitWarning",
    "error",
    "fail",
    "fault",
    "makeError",
    "report",
}
# Shorter pieces would be found anywhere.
MIN_LENGTH = 8
PLACEHOLDER = re.compile(r"\{\d+[^{}]*\}|%(?:\.?\d+)?l{0,2}[sduxfgc]|%%|\{\{|\n")
# Messages that no test can provoke, with the reason.
ALLOWED: dict[str, str] = {
    "the order that its engine keeps is not known": "guards against engines without a rule",
    "has a result whose layout nothing determines": "guards against ops without a rule",
    "expected a layout whose registers hold no copies": "no layout attribute has such",
    "expected 'tiles' in partition": "the verifier refuses the partition's tiles first",
    "fatal error in the compiler:": "what LLVM ends the process for is found before",
    "more threads arrive at barrier": "whole warps arrive, and the last one completes it",
    "' is deflated, and LLVM was built without zlib": "Debian's LLVM was built with it",
}

TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/            # comments
      |R"\((?P<raw>.*?)\)"            # raw string without delimiter
      |"(?P<string>(?:[^"\\\n]|\\.)*)"
      |'(?:[^'\\\n]|\\.)+'            # character
      |(?P<name>[A-Za-z_]\w*)
      |(?P<other>[^\s])""",
    re.X | re.S,
)
ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "'": "'"}


def unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: ESCAPES.get(m.group(1), m.group(0)), text)


def tokens(text: str):
    """(kind, text, offset) with comments and preprocessor lines dropped."""
    text = re.sub(r"^[ \t]*#[^\n]*", lambda m: " " * len(m.group()), text, flags=re.M)
    for match in TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "string":
            yield "string", unescape(match.group("string")), match.start()
        elif kind == "raw":
            yield "string", match.group("raw"), match.start()
        elif kind:
            yield kind, match.group(kind), match.start()


def messages(text: str):
    """(offset, longest literal piece) of each statement that makes a message.

    A statement ends at the semicolon, or at a closing bracket that it did not
    open; literals that follow each other directly are one.
    """
    stream = list(tokens(text))
    position = 0
    while position < len(stream):
        kind, value, offset = stream[position]
        position += 1
        # A variable may have a maker's name.
        is_call = position < len(stream) and stream[position][1] == "("
        if kind != "name" or value not in MAKERS or not is_call:
            continue
        literals, depth, previous = [], 0, None
        while position < len(stream):
            kind, value, _ = stream[position]
            if kind == "other":
                # A brace outside of all brackets: the definition of a maker.
                if value == "{" and depth == 0:
                    break
                depth += value in "([{"
                depth -= value in ")]}"
                if depth < 0 or (value == ";" and depth == 0):
                    break
            if kind == "string":
                if previous == "string":
                    literals[-1] += value
                else:
                    literals.append(value)
            previous = kind
            position += 1
        pieces = [p.strip() for lit in literals for p in PLACEHOLDER.split(lit)]
        longest = max(pieces, key=len, default="")
        if len(longest) >= MIN_LENGTH:
            yield offset, longest


def main() -> int:
    corpus = "\n".join(
        re.sub(r'"\s*\n\s*"', "", (read_text(path) or "").replace('\\"', '"'))
        for path in tracked_files("test", "unittests", "python/tests")
    )
    problems = []
    for path in tracked_files("lib/*.cpp", "lib/*.h", "include/*.h", "tools/*.cpp"):
        if path.parts[:2] == ("test", "lib"):
            continue
        text = read_text(path) or ""
        for offset, message in messages(text):
            line = text.count("\n", 0, offset) + 1
            if "--list" in sys.argv[1:]:
                print(f"{path}:{line}: {message}")
            elif message not in corpus and message not in ALLOWED:
                problems.append(f"{path}:{line}: no test has '{message}'")
    return report(problems, "messages tested")


if __name__ == "__main__":
    sys.exit(main())
