#!/usr/bin/env python3
"""Prose in hand-written pages stays below 100 columns.

Cells of tables in README.md have at most 20 words.

Tables, fences, headings and lines of one word or one piece of code may be longer,
and what scripts write is not looked at.

usage: scripts/check-prose.py [--fix]
  --fix   wrap the paragraphs that have a longer line
"""

import re
import sys
import textwrap

from lint_util import GENERATED_PAGES, ROOT, read_text, report, tracked_files

LIMIT = 100
#: Words of a cell in README.md, which a reader takes in at a glance.
CELL_WORDS = 20
#: Where --fix wraps.
WIDTH = 92
GENERATED = re.compile(r"<!-- generated: (begin|end)")
MARKER = re.compile(r"(\s*)((?:[-*]|\d+\.)\s+)?")
#: What would mean something else at the start of a line.
SPECIAL = re.compile(r" (?=(?:[-+*#|>]|\d+[.)])(?:\s|$))")


def is_prose(line: str) -> bool:
    text = line.strip()
    return bool(text) and not text.startswith(("|", "#", "<!--", "![", "<", ">"))


def paragraphs(lines: list[str]):
    """(first line, one past the last line) of each paragraph or list item."""
    start, is_fence, is_generated = None, False, False
    for i, line in enumerate([*lines, ""]):
        starts_item = bool(re.match(r"\s*(?:[-*]|\d+\.)\s", line))
        is_mark = line.lstrip().startswith("```")
        if match := GENERATED.match(line):
            is_generated = match.group(1) == "begin"
        ends = is_mark or is_fence or is_generated or not is_prose(line)
        if start is not None and (ends or starts_item):
            yield start, i
            start = None
        if is_mark:
            is_fence = not is_fence
        elif not ends and start is None:
            start = i


def is_long(line: str) -> bool:
    words = re.sub(r"`[^`]*`", "code", line).split()
    return len(line) >= LIMIT and len(words) > 1


def wrap(lines: list[str]) -> list[str]:
    """The paragraph in lines of at most WIDTH columns."""
    match = MARKER.match(lines[0])
    indent, marker = match.group(1), match.group(2) or ""
    text = " ".join(line.strip() for line in lines)[len(marker.strip()) :].strip()
    # Code stays on one line, and nothing becomes a list by where it stands.
    text = re.sub(r"`[^`]*`", lambda m: m.group().replace(" ", "\0"), text)
    text = SPECIAL.sub("\0", text)
    wrapped = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent + marker,
        subsequent_indent=indent + " " * len(marker),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in wrapped]


def fix(text: str) -> str:
    lines = text.split("\n")
    for start, end in reversed(list(paragraphs(lines))):
        if any(is_long(line) for line in lines[start:end]):
            lines[start:end] = wrap(lines[start:end])
    return "\n".join(lines)


def problems(name: str, text: str) -> list[str]:
    """Lines of prose that are too long even where --fix has been."""
    lines = text.split("\n")
    return [
        f"{name}:{i + 1}: expected prose below {LIMIT} columns, got {len(lines[i])}"
        for start, end in paragraphs(lines)
        for i in range(start, end)
        if is_long(lines[i])
    ]


def long_cells(name: str, text: str) -> list[str]:
    """Cells of tables that have too many words; a link counts by its text."""
    found = []
    for i, line in enumerate(text.split("\n")):
        cells = re.split(r"(?<!\\)\|", line)[1:-1] if line.startswith("|") else []
        for cell in cells:
            words = len(re.sub(r"\]\([^)]*\)", "]", cell).split())
            if words > CELL_WORDS:
                found.append(f"{name}:{i + 1}: expected at most {CELL_WORDS} words in a cell, got {words}")
    return found


def main() -> int:
    found = []
    for path in tracked_files("*.md"):
        if path.as_posix() in GENERATED_PAGES:
            continue
        text = read_text(path) or ""
        if "--fix" in sys.argv[1:] and (fixed := fix(text)) != text:
            (ROOT / path).write_text(fixed, encoding="utf-8")
            text = fixed
        found += problems(path.as_posix(), text)
        if path.as_posix() == "README.md":
            found += long_cells(path.as_posix(), text)
    return report(found, "prose")


if __name__ == "__main__":
    sys.exit(main())
