#!/usr/bin/env python3
"""Sources include each other without circles, and no two have one name.

A header and the source file of its name count as one: a circle means that two
such pairs cannot be understood one after the other. Folders with libraries may
not include each other in a circle either.

usage: scripts/check-include-circles.py [--rooms]
  --rooms   print which folder includes which instead
"""

import os
import pathlib
import re
import sys
from collections import defaultdict

from lint_util import read_text, report, tracked_files

ROOTS = ("include", "lib", "tools", "test/lib", "unittests", "python/attn")
# Names that LLVM's conventions give: one for each folder, or fixed by an API.
SAME_NAME = {"__init__.py", "CMakeLists.txt", "Passes.h", "Passes.td", "Attn.h"}
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
IMPORT = re.compile(r"^[ \t]*from \. import ([\w, ]+)|^[ \t]*from \.(\w+) import", re.M)


def unit(path: str) -> str:
    """The pair of header and source: include/attn/A/B.h goes with lib/A/B.cpp."""
    path = re.sub(r"^(include/attn|lib)/", "", path)
    return os.path.splitext(path)[0]


def edges(files: list[str]) -> dict[str, set[str]]:
    """Which files each file includes or imports."""
    known, result = set(files), defaultdict(set)
    for path in files:
        text = read_text(pathlib.Path(path)) or ""
        folder = os.path.dirname(path)
        if path.endswith(".py"):
            for many, one in IMPORT.findall(text):
                names = [one] if one else [name.strip() for name in many.split(",")]
                result[path].update({f"{folder}/{name}.py" for name in names} & known)
            continue
        for name in INCLUDE.findall(text):
            for candidate in (os.path.normpath(f"{folder}/{name}"), f"include/{name}"):
                if candidate in known:
                    result[path].add(candidate)
    return result


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one node (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[-len(group) :]
            if len(group) > 1:
                found.append(sorted(group))

    sys.setrecursionlimit(10000)
    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def merged(graph: dict[str, set[str]], name) -> dict[str, set[str]]:
    result = defaultdict(set)
    for path, others in graph.items():
        result[name(path)].update(name(other) for other in others if name(other) != name(path))
    return result


def room(path: str) -> str:
    return os.path.dirname(re.sub(r"^include/attn(?=/)", "lib", path))


def main() -> int:
    files = [str(path) for path in tracked_files(*(f"{root}/*" for root in ROOTS))]
    sources = [path for path in files if path.endswith((".h", ".cpp", ".py"))]
    graph = edges(sources)
    rooms = merged({p: o for p, o in graph.items() if p.startswith(("lib/", "include/"))}, room)
    if sys.argv[1:] == ["--rooms"]:
        for name, others in sorted(rooms.items()):
            print(name, "->", ", ".join(sorted(others)))
        return 0
    problems = [f"circle of files: {', '.join(group)}" for group in circles(merged(graph, unit))]
    problems += [f"circle of folders: {', '.join(group)}" for group in circles(rooms)]
    by_name = defaultdict(list)
    for path in files:
        by_name[os.path.basename(path)].append(path)
    for name, paths in sorted(by_name.items()):
        if len(paths) > 1 and name not in SAME_NAME:
            problems.append(f"files of one name: {', '.join(paths)}")
    return report(problems, "include circles")


if __name__ == "__main__":
    sys.exit(main())
