"""Moves arrivals at the mbarriers NAME up behind the loads of the buffer BUFFER in front of them.

usage: early-release.py FILE NAME BUFFER
"""

import re
import sys


def main() -> None:
    path, name, buffer = sys.argv[1:]
    lines: list[str] = []
    at = None
    with open(path) as file:
        for line in file:
            if f"attn.mbarrier.arrive %{name}[" in line and at is not None:
                # The slot is the only one, whose number stands further down.
                lines.insert(at, re.sub(r"\[%\w+\]", "[%c0_i32]", line))
                at = None
                continue
            lines.append(line)
            if f"attn.local_load %{buffer} " in line:
                at = len(lines)
    sys.stdout.write("".join(lines))


if __name__ == "__main__":
    main()
