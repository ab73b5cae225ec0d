#!/usr/bin/env python3
"""No test reads a clock: what is judged by time fails on a busy machine.

What a time is to show is counted (scripts/compile-work.py), a test of what depends on time gets
a clock of its own, and times are measured in benchmarks/. A limit of time that ends what never
ends is no verdict from 300 s on. A line, or the one above it, that says `no verdict: WHY` is left
alone. Programs for GPUs (test/Hardware/*.cu, gpu_*.py), which continuous integration does not run,
are too.
"""

import re
import sys

from lint_util import read_text, report, tracked_files

#: Limits that only what hangs comes to.
GUARD_SECONDS = 300
MARK = "no verdict: "

PYTHON = re.compile(
    r"\btime\.(?:time|monotonic|perf_counter|process_time|thread_time|clock_gettime)(?:_ns)?\b"
    r"|\bfrom time import\b|\bimport timeit\b|\btimeit\.|\bdatetime\.now\b|\bgetrusage\b|\bos\.times\b"
)
CPP = re.compile(
    r"\bstd::chrono\b|\b(?:steady|system|high_resolution)_clock\b|\bgetrusage\b|\bclock_gettime\b"
    r"|\bgettimeofday\b|\btime\((?:nullptr|NULL|0)\)|\bclock\(\)"
)
#: Where a command begins in a RUN line.
COMMAND = r"(?:RUN:|[|;&(]|\bnot\b|\benv\b(?:\s+\w+=\S*)*)\s*(?:--crash\s+)?"
TIMED = re.compile(COMMAND + r"(?:/usr/bin/)?time\s|/usr/bin/time\b|\bperf\s+stat\b|\$\(date\b")
TIMEOUT = re.compile(COMMAND + r"(?:/usr/bin/)?timeout\s+(?:-\S+\s+)*([\d.]+)(s|m|h|)\b")
SHORT = re.compile(r"\btimeout\s*=\s*([\d.]+)")
RUN_LINE = re.compile(r"^[\s/#;]*(?:RUN:|DEFINE:|REDEFINE:)")


def find_in_line(name: str, line: str) -> str | None:
    """What in a line reads a clock, or None."""
    if name.endswith(".py"):
        if found := PYTHON.search(line):
            return found[0]
        found = SHORT.search(line)
        return found[0] if found and float(found[1]) < GUARD_SECONDS else None
    if name.endswith((".cpp", ".h", ".c")):
        found = CPP.search(line)
        return found[0] if found else None
    if not RUN_LINE.match(line):
        return None
    line = re.sub(r"^([\s/#;]*)(?:RE)?DEFINE:\s*%\{\w+\}\s*=", r"\1RUN:", line)
    if found := TIMED.search(line):
        return found[0].strip()
    for found in TIMEOUT.finditer(line):
        seconds = float(found[1]) * {"m": 60, "h": 3600}.get(found[2], 1)
        if seconds < GUARD_SECONDS:
            return found[0].strip()
    return None


def find_clocks(name: str, text: str) -> list[tuple[int, str]]:
    """Lines that read a clock without saying why that is no verdict."""
    lines = text.splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        what = find_in_line(name, line)
        if what and not any(MARK in near for near in lines[max(number - 2, 0) : number]):
            found.append((number, what))
    return found


def main() -> int:
    problems = [
        f"{path}:{line}: expected a count in place of a time, got '{what}'"
        for path in tracked_files("test", "unittests", "python/tests")
        if not (path.name.startswith("gpu_") or path.suffix == ".cu")
        for line, what in find_clocks(path.name, read_text(path) or "")
    ]
    return report(problems, "clocks in tests")


if __name__ == "__main__":
    sys.exit(main())
