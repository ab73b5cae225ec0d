#!/usr/bin/env python3
"""Prints the slowest tests of a run of lit, and which of them are over the budget.

usage: scripts/slow-tests.py [--count=10] [--budget=15] RESULTS.json...

RESULTS.json is what `lit -o` wrote. A test's time is the processor time of what it
started; unit tests, of which lit runs many in one process, have the time that they say
themselves. A test above the budget grows the suite for everybody: it needs smaller
shapes, or keeps a part for the nightly tier (docs/Nightly.md). The status is always 0,
since machines differ.
"""

from __future__ import annotations

import argparse
import json
import pathlib


def read_times(path: pathlib.Path) -> dict[str, float]:
    tests = json.loads(path.read_text())["tests"]
    return {
        test["name"]: test.get("metrics", {}).get("cpu", test["elapsed"])
        for test in tests
        if test["elapsed"] is not None
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--budget", type=float, default=15, metavar="SECONDS")
    parser.add_argument("results", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    times: dict[str, float] = {}
    for path in options.results:
        if path.exists():
            times.update(read_times(path))
    print(f"slowest of {len(times)} tests, {sum(times.values()):.0f} s of processor time:")
    slowest = sorted(times.items(), key=lambda item: -item[1])
    over = [name for name, seconds in slowest if seconds > options.budget]
    for name, seconds in slowest[: max(options.count, len(over))]:
        mark = f"  over the budget of {options.budget:g} s" if name in over else ""
        print(f"{seconds:8.1f} s  {name}{mark}")


if __name__ == "__main__":
    main()
