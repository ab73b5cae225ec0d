#!/usr/bin/env python3
"""Ops stay small: none has more than 12 arguments but attn.attention.

What belongs together is one attribute with parameters of its own.
"""

import sys

from doc_examples import ops
from lint_util import report

LIMIT = 12
# Ops that have more, and why. The list may only get shorter.
ALLOWED = {
    "attn.attention": "states the problem, and each option is an argument",
}


def main() -> int:
    problems = []
    for op in ops():
        count = sum(kind != "result" for kind, _, _ in op.variables)
        if count > LIMIT and op.name not in ALLOWED:
            problems.append(f"{op.name}: expected at most {LIMIT} arguments, got {count}")
        if count <= LIMIT and op.name in ALLOWED:
            problems.append(f"{op.name}: has {count} arguments, take it off the list")
    return report(problems, "op arguments")


if __name__ == "__main__":
    sys.exit(main())
