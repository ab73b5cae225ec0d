#!/usr/bin/env python3
"""A test with expected-error comments runs with -verify-diagnostics.

Without the flag a diagnostic that is not produced does not fail the test.
"""

import re
import sys

from lint_util import read_text, report, tracked_files

EXPECTED = re.compile(r"^\s*//.*\bexpected-(?:error|warning|note|remark)\b", re.M)
FLAG = re.compile(r"RUN:.*-verify-diagnostics\b")


def problem_of(path, text: str) -> str | None:
    if EXPECTED.search(text) and not FLAG.search(re.sub(r"\\\n//\s*", " ", text)):
        return f"{path}: has expected-* comments but no RUN line with -verify-diagnostics"
    return None


def main() -> int:
    problems = []
    for path in tracked_files("test/*.mlir", "examples/*.mlir"):
        problem = problem_of(path, read_text(path) or "")
        if problem:
            problems.append(problem)
    return report(problems, "expected flags")


if __name__ == "__main__":
    sys.exit(main())
