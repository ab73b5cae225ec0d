#!/usr/bin/env python3
"""Classes with private state stay small: at most 40 methods and 15 members, and their
methods stand in at most 3 source files.

usage: scripts/check-class-size.py [--print]
  --print   print the classes that break a limit, as the list below has them
"""

import collections
import json
import subprocess
import sys

from lint_util import ROOT, report, tracked_files

METHODS, MEMBERS, FILES = 40, 15, 3
# Classes that are still larger: methods, members and source files, none of which may grow.
# They are several types in one and wait to be divided; take off what keeps the limits.
ALLOWED = {
    "ChunkEmitter": (12, 18, 1),
    "Compiler": (89, 23, 12),
    "KernelLowering": (18, 21, 2),
    "LinearLayout": (56, 4, 3),
    "Machine": (184, 68, 14),
    "MmaProduct": (17, 29, 1),
    "PartitionLowering": (50, 9, 21),
    "Replayer": (23, 23, 2),
    "RingFinder": (12, 18, 1),
    "RotatedExpander": (38, 28, 3),
    "StateKey": (48, 17, 4),
    "TileLayout": (48, 7, 2),
    "WgmmaProduct": (8, 18, 1),
}


def tags() -> list[dict]:
    paths = [str(p) for p in tracked_files("lib/*", "include/*", "tools/*")
             if p.suffix in {".h", ".cpp"}]
    command = ["ctags", "-L", "-", "--languages=C++", "--langmap=C++:.h.cpp",
               "--c++-kinds=cspfm", "--fields=+aKSZn", "--output-format=json", "-f", "-"]
    output = subprocess.run(command, input="\n".join(paths), cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def measure() -> dict[str, tuple[int, int, int]]:
    """Methods, members and source files of each class that has private members."""
    methods = collections.defaultdict(set)
    members = collections.defaultdict(set)
    private = set()
    files = collections.defaultdict(set)
    for tag in tags():
        scope = tag.get("scope", "")
        if tag.get("scopeKind") not in ("class", "struct"):
            continue
        # Definitions outside of the class may name it without its namespace.
        name = "::".join(scope.split("::")[-1:])
        if tag["kind"] == "member":
            members[name].add(tag["name"])
            if tag.get("access") in ("private", "protected"):
                private.add(name)
        elif tag["kind"] in ("prototype", "function"):
            if "access" in tag:
                methods[name].add((tag["name"], tag.get("signature", "")))
            if tag["kind"] == "function" and tag["path"].endswith(".cpp"):
                files[name].add(tag["path"])
    return {name: (len(methods[name]), len(members[name]), len(files[name]))
            for name in sorted(private)}


def main() -> int:
    sizes = {name: size for name, size in measure().items()
             if any(got > most for got, most in zip(size, (METHODS, MEMBERS, FILES)))}
    if "--print" in sys.argv:
        for name, size in sizes.items():
            print(f'    "{name}": {size},')
        return 0
    problems = []
    for name, size in sizes.items():
        limits = ALLOWED.get(name, (METHODS, MEMBERS, FILES))
        limits = tuple(max(a, b) for a, b in zip(limits, (METHODS, MEMBERS, FILES)))
        for what, got, most in zip(("methods", "members", "source files"), size, limits):
            if got > most:
                problems.append(f"{name}: expected at most {most} {what}, got {got}")
    problems += [f"{name}: keeps the limits, take it off the list of "
                 "scripts/check-class-size.py" for name in ALLOWED if name not in sizes]
    return report(problems, "class size")


if __name__ == "__main__":
    sys.exit(main())
