"""Moves the arrivals of a kernel to the comment `// behind PLACE` in front of each.

usage: move-signal.py FILE PLACE
"""

import sys


def main() -> None:
    path, place = sys.argv[1:]
    lines: list[str] = []
    at = None
    with open(path) as file:
        for line in file:
            if line.strip() == f"// behind {place}":
                at = len(lines)
            elif "attn.mbarrier.arrive" in line and at is not None:
                lines.insert(at, line)
                continue
            lines.append(line)
    sys.stdout.write("".join(lines))


if __name__ == "__main__":
    main()
