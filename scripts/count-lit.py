#!/usr/bin/env python3
"""Prints "PASSED FAILED SKIPPED" for a result file of `lit -o FILE`, and on stderr
the names of the skipped tests, so that nobody takes them for passed.

A missing or unreadable file counts as one failure: lit did not get that far.
"""

import json
import sys

FAILURES = {"FAIL", "XPASS", "UNRESOLVED", "TIMEOUT"}
SKIPPED = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}


def main() -> int:
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            tests = json.load(file)["tests"]
            codes = [test["code"] for test in tests]
    except (OSError, ValueError, KeyError):
        print(0, 1, 0)
        return 0
    failed = sum(code in FAILURES for code in codes)
    skipped = [test["name"] for test in tests if test["code"] in SKIPPED]
    for name in skipped:
        print(f"skipped: {name}", file=sys.stderr)
    print(len(codes) - failed - len(skipped), failed, len(skipped))
    return 0


if __name__ == "__main__":
    sys.exit(main())
