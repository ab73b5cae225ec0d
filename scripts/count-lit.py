#!/usr/bin/env python3
"""Prints "PASSED FAILED SKIPPED" for a result file of `lit -o FILE`.

A missing or unreadable file counts as one failure: lit did not get that far.
"""

import json
import sys

FAILURES = {"FAIL", "XPASS", "UNRESOLVED", "TIMEOUT"}
SKIPPED = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}


def main() -> int:
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            codes = [test["code"] for test in json.load(file)["tests"]]
    except (OSError, ValueError, KeyError):
        print(0, 1, 0)
        return 0
    failed = sum(code in FAILURES for code in codes)
    skipped = sum(code in SKIPPED for code in codes)
    print(len(codes) - failed - skipped, failed, skipped)
    return 0


if __name__ == "__main__":
    sys.exit(main())
