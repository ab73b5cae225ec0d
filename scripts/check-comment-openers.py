#!/usr/bin/env python3
"""Comments of declarations begin with a verb: never with What, Whether, The same, Of or Who.

The number of those that still do may only get smaller: lower LIMIT with it.
"""

import re
import sys

from lint_util import read_text, report, tracked_files

LIMIT = 674
OPENER = re.compile(r"^ *///? (What|Whether|The same|Of|Who)\b")


def main() -> int:
    found = []
    for path in tracked_files("lib/*", "include/*"):
        for number, line in enumerate((read_text(path) or "").splitlines(), 1):
            if OPENER.match(line):
                found.append(f"{path}:{number}: {line.strip()}")
    if len(found) > LIMIT:
        summary = (
            f"expected at most {LIMIT} comments that begin with What, Whether, The same, Of "
            f"or Who, got {len(found)}"
        )
        return report([*found, summary], "comment openers")
    if len(found) < LIMIT:
        return report([f"{len(found)} are left: set LIMIT to that"], "comment openers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
