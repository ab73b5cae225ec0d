"""Moves arrivals at the mbarriers NAME up behind the loads of the buffer BUFFER in front of them.

usage: early-release.py FILE NAME BUFFER
"""

import re
import sys


def main() -> None:
    path, name, buffer = sys.argv[1:]
    lines: list[str] = []
    at = None
    slot = ""
    with open(path) as file:
        for line in file:
            if f"attn.mbarrier.arrive %{name}[" in line and at is not None:
                # Its own number stands further down, that of the awaited slot is the same.
                lines.insert(at, re.sub(r"\[%\w+\]", slot, line))
                at = None
                continue
            lines.append(line)
            if at is None and (wait := re.search(r"attn\.mbarrier\.wait %[\w.]+(\[%\w+\])", line)):
                slot = wait[1]
            if f"attn.local_load %{buffer} " in line:
                at = len(lines)
    sys.stdout.write("".join(lines))


if __name__ == "__main__":
    main()
