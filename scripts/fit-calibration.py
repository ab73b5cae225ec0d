#!/usr/bin/env python3
"""Fits the factors of the model of time to measured plans, and writes a calibration file.

Reads results of python -m attn.autotune (--json=FILE): problems, and for each some plans
with the microseconds that they took on a board. Each plan is estimated with the factors as
they are; then the factors of its schedule (split_q.block_latency and the like, and those
that several schedules share) are changed one after the other, by a step up and a step down
that gets smaller, and keep what makes the estimates of all its plans differ least from what
was measured: the mean square of log(estimate / measured). A factor's residual is the square
root of that, as a share of the time, with the factor's last value: a number where plans were
measured that depend on the factor, null elsewhere.

usage: scripts/fit-calibration.py RESULTS... --board=NAME [--bin=build/bin] [--workers=2]
           [--only=REGEX] [--rounds=3] [--data=FILE] [--out=FILE]
  --board   name of lib/Target/Boards.json; results of other boards are left out
  --only    factors whose names match; others keep their values
  --data    the file to start from (default: that of the board, else the shipped one)
  --out     where the new file goes (default: lib/Planner/Data/calibration-BOARD.json)

Problems with features other than lse are left out. An estimate takes about 20 ms of a core,
a round two for each factor and plan that depends on it.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import datetime
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "lib/Planner/Data"
#: Factors of several schedules.
SHARED = ("balance", "combine", "copied", "splits", "uneven")


class Cell(NamedTuple):
    """A plan of a problem, as IR, and the microseconds that it took."""

    schedule: str
    chip: str
    text: str
    measured: float


def get_flags(chip: str, problem: dict) -> list[str] | None:
    """The flags that state a problem of results; none for what they do not state."""
    if set(problem["features"]) - {"lse"} or problem["out_type"] != problem["type"]:
        return None
    mask = problem["mask"]
    if mask not in ("none", "causal", "causal, align = bottom_right"):
        return None
    lengths = [problem[name] for name in ("batch", "heads", "queries", "head_dim")]
    if not all(isinstance(each, int) for each in (*lengths, problem["keys"], problem["kv_heads"])):
        return None
    flags = [
        "--q=" + "x".join(map(str, [*lengths, problem["type"]])),
        f"--kv-heads={problem['kv_heads']}", f"--kv-len={problem['keys']}",
        f"--dv={problem['value_dim']}", f"--chip={chip}",
    ]  # fmt: skip
    if mask != "none":
        flags.append("--causal" + ("=bottom-right" if "bottom" in mask else ""))
    return flags + ["--no-lse"] * ("lse" not in problem["features"])


def run(compiler: pathlib.Path, flags: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [compiler, *(["-"] if text else []), *flags], input=text, capture_output=True, text=True, check=False
    )


def read_cells(paths: list[pathlib.Path], board: dict, compiler: pathlib.Path) -> list[Cell]:
    cells = []
    for path in paths:
        for problem in json.loads(path.read_text(encoding="utf-8"))["results"]:
            flags = get_flags(problem["chip"], problem["problem"])
            known = [board["name"], board["title"], *board["driver"]]
            if problem.get("board") not in known or flags is None:
                continue
            stated = run(compiler, [*flags, "--emit=problem", "-o", "-"])
            if stated.returncode or "plan =" in stated.stdout:
                continue
            for candidate in problem["candidates"]:
                if candidate.get("error") or not candidate.get("measured_us"):
                    continue
                plan = candidate["plan"]
                # Attributes of the problem end before the types of functions.
                text = re.sub(
                    r"(outs\([^\n]*?\))( \{)?",
                    lambda found: f"{found[1]} {{plan = {plan}" + (", " if found[2] else "}"),
                    stated.stdout,
                    count=1,
                )
                schedule = plan.removeprefix("#attn.").split("<")[0]
                cells.append(Cell(schedule, problem["chip"], text, candidate["measured_us"]))
    return cells


class Fitter:
    def __init__(self, options: argparse.Namespace, data: dict, cells: list[Cell]) -> None:
        self.compiler, self.board = options.bin / "attn-compile", options.board
        self.data, self.cells = data, cells
        self.pool = concurrent.futures.ThreadPoolExecutor(options.workers)
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="fit-")) / "calibration.json"

    def estimate(self, cell: Cell) -> float | None:
        done = run(
            self.compiler,
            [f"--chip={cell.chip}", f"--board={self.board}", f"--calibration={self.path}",
             "--set=spills=allow", "--emit=plan", "--remarks-filter=attn.plan", "-o", "/dev/null"],
            cell.text,
        )  # fmt: skip
        found = re.search(r"microseconds=([\d.]+)", done.stderr)
        return float(found[1]) if found else None

    def measure(self, cells: list[Cell]) -> float:
        """How far estimates are off, with the factors as they are."""
        self.path.write_text(json.dumps(self.data), encoding="utf-8")
        errors = [
            math.log(expected / cell.measured) ** 2
            for cell, expected in zip(cells, self.pool.map(self.estimate, cells))
            if expected
        ]
        return math.sqrt(sum(errors) / len(errors)) if errors else math.inf

    def fit(self, factor: dict, step: float) -> bool:
        """Changes one factor; true if estimates got better."""
        prefix = factor["name"].split(".")[0]
        cells = [cell for cell in self.cells if prefix in (cell.schedule, *SHARED)]
        if not cells:
            return False
        best, value = self.measure(cells), factor["value"]
        found = value
        depends = False
        for other in (value * (1 + step), value * (1 - step)):
            factor["value"] = other
            error = self.measure(cells)
            depends |= error != best
            if error < best:
                best, found = error, other
        factor["value"] = found
        if depends:
            factor["residual"] = round(best, 4)
        return found != value


def write(path: pathlib.Path, data: dict) -> None:
    head = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in data.items() if name != "factors"]
    factors = ",\n".join(f"  {json.dumps(factor, ensure_ascii=False)}" for factor in data["factors"])
    path.write_text(
        "{\n" + ",\n".join(head) + ',\n "factors": [\n' + factors + "\n ]\n}\n", encoding="utf-8"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("results", nargs="+", type=pathlib.Path)
    parser.add_argument("--board", required=True)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    boards = json.loads((ROOT / "lib/Target/Boards.json").read_text(encoding="utf-8"))["boards"]
    board = next((each for each in boards if each["name"] == options.board), None)
    if board is None:
        names = ", ".join(each["name"] for each in boards)
        parser.error(f"expected one of the boards {names}, got {options.board!r}")
    own = DATA / f"calibration-{options.board}.json"
    start = options.data or (own if own.exists() else DATA / "calibration-h200.json")
    data = json.loads(start.read_text(encoding="utf-8"))
    cells = read_cells(options.results, board, options.bin / "attn-compile")
    if not cells:
        print(f"expected measured plans on {options.board} in the results, got none")
        return 1
    data |= {
        "board": options.board,
        "date": datetime.date.today().isoformat(),
        "source": f"fitted by scripts/fit-calibration.py to {len(cells)} measured plans",
    }
    fitter = Fitter(options, data, cells)
    before = fitter.measure(cells)
    for number in range(options.rounds):
        changed = [
            factor["name"]
            for factor in data["factors"]
            if re.search(options.only, factor["name"]) and fitter.fit(factor, 0.2 / 2**number)
        ]
        print(f"round {number + 1}: {len(changed)} factors changed", flush=True)
    print(f"{len(cells)} plans: estimates off by {before:.3f} before, {fitter.measure(cells):.3f} after")
    write(options.out or own, data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
