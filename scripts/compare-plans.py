#!/usr/bin/env python3
"""Compares what the planners of two builds say, byte for byte.

The problems are a sample of all cells of plan-sweep.py: head dimensions, features
and whole problems on each chip. Of each the plan rung is compared, and all plans
with their estimates in the planner's order (--print-plan=all). With --chosen only
the plan that is taken counts, and those that differ are listed.

usage: scripts/compare-plans.py OLD NEW [--count=2000] [--seed=0] [--only=REGEX]
           [--workers=2] [--chosen] [--old=FLAG]... [--new=FLAG]...
  OLD, NEW      folders with attn-compile, such as build/bin
  --count       cells of the sample; 0 takes all
  --only        cells whose names match
  --old, --new  flags that only this build gets

The last line is "N problems: N equal, N differ, N refused by both". The exit status
is 1 when one differs.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys
from collections import Counter

from sweep_cells import make_cells, make_feature_cells, make_grid_cells
from tool_util import progress


def plan(folder: pathlib.Path, cell, chosen: bool, more: list[str]) -> tuple[bool, str]:
    """True if there is a plan, and what the planner says."""
    done = subprocess.run(
        [folder / "attn-compile", *(["-"] if cell.source else []), *cell.flags(), "--emit=plan",
         "-o", "-", "--print-plan=all", *more],
        input=cell.source.encode(), capture_output=True, check=False,
    )  # fmt: skip
    text = done.stderr.decode()
    if chosen and not done.returncode:
        plans = re.findall(r"#attn\.\w+<[^>]*>", text)
        return True, plans[0] if plans else ""
    return done.returncode == 0, text + done.stdout.decode()


def first_difference(old: str, new: str) -> str:
    for before, after in zip(old.splitlines(), new.splitlines()):
        if before != after:
            return f"  old {before.strip()[:300]}\n  new {after.strip()[:300]}"
    return f"  old has {len(old.splitlines())} lines, new {len(new.splitlines())}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--chosen", action="store_true")
    parser.add_argument("--old", action="append", default=[], dest="old_flags")
    parser.add_argument("--new", action="append", default=[], dest="new_flags")
    options = parser.parse_args()
    cells = [*make_cells(), *make_feature_cells(), *make_grid_cells()]
    cells = [cell for cell in cells if re.search(options.only, cell.name)]
    if 0 < options.count < len(cells):
        cells = random.Random(options.seed).sample(cells, options.count)
    counts: Counter[str] = Counter()

    def compare(cell) -> tuple[str, str]:
        (good, old) = plan(options.old, cell, options.chosen, options.old_flags)
        (other, new) = plan(options.new, cell, options.chosen, options.new_flags)
        if old == new and good == other:
            return ("equal" if good else "refused"), ""
        return "differ", f"{cell.name}:\n{first_difference(old, new)}"

    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        for verdict, text in pool.map(compare, cells):
            counts[verdict] += 1
            if text:
                print(text, flush=True)
            progress(sum(counts.values()), len(cells), f"{counts['differ']} differ")
    print(
        f"{len(cells)} problems: {counts['equal']} equal, {counts['differ']} differ, "
        f"{counts['refused']} refused by both"
    )
    return 1 if counts["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
