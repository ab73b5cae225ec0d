#!/usr/bin/env python3
"""No left-over markers, private paths, host names of registries, or lines
that tests and readers cannot use."""

import re
import sys

from lint_util import read_text, report, tracked_files

# Each pattern is spelled so that it does not find itself.
BANNED = [
    (r"\b(?:TO[D]O|FIX[M]E|X[X]X|HAC[K])\b", "left-over marker"),
    (r"(?<![\w.$}])/wor[k](?:/|\b)", "private path"),
    (r"(?<![\w.$}])/(?:root|home)/[\w.]", "private path"),
    (r"\b[Ss]essio[n]s?\b", "word about how the project is made"),
    (r"\bshared/(?:background|snippets|foreign|DESIGN)", "private path"),
    (r"\b(?:deb[.]debian|py[p]i|files[.]pythonhosted)[.]org\b", "registry host"),
]
CODE_SUFFIXES = {".cpp", ".h", ".c", ".td"}
BANNED_IN_CODE = [
    (r"\bllvm::errs\(\)|\bstd::cerr\b", "library prints by itself"),
    (r"\bstd::abort\(|\breport_fatal_error\(", "library ends the process"),
    (r"\.create<\w", "deprecated builder.create<Op>, use Op::create"),
]


def main() -> int:
    problems = []
    for path in tracked_files():
        text = read_text(path)
        if text is None or path.name == "LICENSE":
            continue
        rules = list(BANNED)
        if path.suffix in CODE_SUFFIXES and path.parts[0] in ("lib", "include"):
            rules += BANNED_IN_CODE
        for number, line in enumerate(text.split("\n"), 1):
            for pattern, reason in rules:
                match = re.search(pattern, line)
                if match:
                    problems.append(f"{path}:{number}: {reason}: '{match.group()}'")
    return report(problems, "banned words")


if __name__ == "__main__":
    sys.exit(main())
