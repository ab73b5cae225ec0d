#!/usr/bin/env python3
"""Sources include each other without circles, and no two have one name.

A header and the source file of its name count as one: a circle means that two
such pairs cannot be understood one after the other. Folders with libraries may
not include each other in a circle either. Packages of python/attn import in one
direction: each those of PACKAGES that stand before it.

usage: scripts/check-include-circles.py [--rooms]
  --rooms   print which folder includes which instead
"""

import ast
import os
import pathlib
import re
import sys
from collections import Counter, defaultdict

from lint_util import read_text, report, tracked_files

ROOTS = ("include", "lib", "tools", "test/lib", "unittests", "python/attn")
# Names that LLVM's conventions give: one for each folder, or fixed by an API.
PYTHON = "python/attn"
#: The packages of python/attn, with the public modules of each, which stand in attn itself
#: since users import them from there. A package may import those before it.
PACKAGES = {
    "base": ("errors", "arrays", "conformance"),
    "options": (),
    "launch": ("record", "bundle", "runtime"),
    "tracing": ("mods",),
    "tensors": (),
    "compiler": ("kernel", "commands"),
    "sim": (),
    "calls": ("functional", "torch_op"),
    "serving": ("torch_serving",),
    "doors": ("hf", "torch"),
    "compat": (),
    "tuning": ("autotune", "__main__"),
}
#: Of a package's folder.
MOST_MODULES = 40
SAME_NAME = {"__init__.py", "CMakeLists.txt", "Passes.h", "Passes.td", "Attn.h"}
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def unit(path: str) -> str:
    """The pair of header and source: include/attn/A/B.h goes with lib/A/B.cpp."""
    path = re.sub(r"^(include/attn|lib)/", "", path)
    return os.path.splitext(path)[0]


def find_imports(path: str, text: str, known: set[str]) -> set[str]:
    """The modules of its own package that a module imports, relatively."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        folder = path
        for _ in range(node.level):
            folder = os.path.dirname(folder)
        base = "/".join([folder, *(node.module or "").split(".")]).rstrip("/")
        names = [f"{base}.py", *(f"{base}/{each.name}.py" for each in node.names)]
        found.update(set(names) & known)
    return found


def get_package(path: str) -> str:
    """The package that a module of python/attn belongs to."""
    first, _, rest = path.removeprefix(f"{PYTHON}/").partition("/")
    module = first.removesuffix(".py")
    return first if rest else next((p for p, all in PACKAGES.items() if module in all), module)


def check_packages(graph: dict[str, set[str]]) -> list[str]:
    """A problem for each import that goes up, and for modules of no package."""
    order, problems = list(PACKAGES), []
    sizes = Counter(os.path.dirname(path) for path in graph if path.startswith(f"{PYTHON}/"))
    for folder, size in sorted(sizes.items()):
        if size > MOST_MODULES:
            problems.append(f"{folder}: expected at most {MOST_MODULES} modules, got {size}")
    for path, others in sorted(graph.items()):
        if not path.startswith(f"{PYTHON}/") or path == f"{PYTHON}/__init__.py":
            continue
        package = get_package(path)
        if package not in PACKAGES:
            problems.append(f"{path}: expected it in a package of {', '.join(order)}")
            continue
        for other in sorted(others):
            imported = get_package(other)
            if imported in PACKAGES and order.index(imported) > order.index(package):
                problems.append(f"{path}: {package} imports {other} of {imported}, which is above it")
    return problems


def edges(files: list[str]) -> dict[str, set[str]]:
    """Which files each file includes or imports."""
    known, result = set(files), defaultdict(set)
    for path in files:
        text = read_text(pathlib.Path(path)) or ""
        folder = os.path.dirname(path)
        if path.endswith(".py"):
            result[path] |= find_imports(path, text, known)
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
        packages = merged({p: o for p, o in graph.items() if p.startswith(PYTHON)}, get_package)
        for name, others in sorted((rooms | packages).items()):
            print(name, "->", ", ".join(sorted(others)))
        return 0
    problems = [f"circle of files: {', '.join(group)}" for group in circles(merged(graph, unit))]
    problems += [f"circle of folders: {', '.join(group)}" for group in circles(rooms)]
    problems += check_packages({path: graph[path] for path in sources})
    by_name = defaultdict(list)
    for path in files:
        by_name[os.path.basename(path)].append(path)
    for name, paths in sorted(by_name.items()):
        if len(paths) > 1 and name not in SAME_NAME:
            problems.append(f"files of one name: {', '.join(paths)}")
    return report(problems, "include circles")


if __name__ == "__main__":
    sys.exit(main())
