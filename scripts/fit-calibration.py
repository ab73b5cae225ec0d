#!/usr/bin/env python3
"""Fits the factors of the model of time to measured plans, and writes a calibration file.

Reads results of python -m attn.autotune (--json=FILE): problems, and for each some plans
with the microseconds that they took on a board. Each plan is estimated with the factors as
they are; then the factors of its schedule (split_q.block_latency and the like, and those
that several schedules share) are changed one after the other, by a step up and a step down
that gets smaller, and keep what makes the estimates of all its plans differ least from what
was measured: the mean square of log(estimate / measured). A factor's residual is the square
root of that over the plans that depend on it, as a share of the time: a number where such
plans were measured, null elsewhere, with a note that says why.

Results may also be tables of docs/results that say TFLOP/s of standard problems by type,
head dimension, mask and length (docs/results/speed-hopper.json): the plans are those that
the planner takes now.

usage: scripts/fit-calibration.py RESULTS... --board=NAME [--bin=build/bin] [--workers=2]
           [--only=REGEX] [--rounds=3] [--residuals] [--data=FILE] [--out=FILE]
       scripts/fit-calibration.py --new --board=NAME
  --board   name of lib/Target/Boards.json; results of other boards are left out
  --only    factors whose names match; others keep their values and residuals
  --residuals  keep all values, and write only residuals
  --new     write the file of a board that nobody has measured: scales are 1, all other
            factors those of the H200
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
sys.path.insert(0, str(ROOT / "benchmarks"))

import gpu_cells  # noqa: E402

DATA = ROOT / "lib/Planner/Data"
#: Factors of several schedules.
SHARED = ("balance", "combine", "copied", "rings", "splits", "uneven")


#: Kinds of scales, whose second part is the schedule.
SCALES = ("time", "packed", "lengths", "pages")
#: The change of a factor by which the plans are found that depend on it.
PROBE = 0.2


def concerns(factor: str, schedule: str) -> bool:
    """True if estimates of a schedule may depend on a factor."""
    first, second = factor.split(".", 1)
    return second == schedule if first in SCALES else first in (schedule, *SHARED)


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


def get_error(cells: list[Cell], estimates: list[float | None], own: list[int]) -> float:
    """How far some estimates are off: the root of the mean square of their logarithms."""
    errors = [math.log(estimates[index] / cells[index].measured) ** 2 for index in own if estimates[index]]
    return math.sqrt(sum(errors) / len(errors)) if errors else math.inf


def list_tables(results: dict, board: dict) -> list[dict]:
    """The tables of standard problems of a file of docs/results."""
    return [
        table
        for section in results["sections"]
        if section["board"] in (board["title"], *board["driver"])
        for table in section["tables"]
        if table["columns"][0] in gpu_cells.DTYPES
    ]


def read_tables(results: dict, board: dict, compiler: pathlib.Path) -> list[Cell]:
    """Standard problems, with the plans that they have now."""
    measured = {}
    for table in list_tables(results, board):
        dtype, *lengths = table["columns"]
        for label, *values in table["rows"]:
            if not (found := re.fullmatch(r"D (\d+)( causal)?", label)):
                continue
            for length, value in zip(lengths, values):
                key = (dtype, int(found[1]), int(length.removesuffix("k")) * 1024, bool(found[2]))
                measured[key] = float(value.split()[0])
    cells = []
    for cell in gpu_cells.make_standard():
        speed = measured.get((cell.dtype, cell.d, cell.rows, cell.causal))
        if speed is None:
            continue
        flags = [*cell.get_compiler_input()[0], "--chip=sm_90a", f"--board={board['name']}"]
        planned = run(compiler, [*flags, "--emit=plan", "-o", "-"])
        found = re.search(r"plan = #attn\.(\w+)<", planned.stdout)
        if found:
            cells.append(Cell(found[1], "sm_90a", planned.stdout, cell.flops / speed / 1e6))
    return cells


def read_cells(paths: list[pathlib.Path], board: dict, compiler: pathlib.Path) -> list[Cell]:
    cells = []
    for path in paths:
        results = json.loads(path.read_text(encoding="utf-8"))
        if "sections" in results:
            cells += read_tables(results, board, compiler)
            continue
        for problem in results["results"]:
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
        self.known: dict[tuple[str, ...], list[float | None]] = {}

    def estimate(self, cell: Cell) -> float | None:
        done = run(
            self.compiler,
            [f"--chip={cell.chip}", f"--board={self.board}", f"--calibration={self.path}",
             "--set=spills=allow", "--emit=plan", "--remarks-filter=attn.plan", "-o", "/dev/null"],
            cell.text,
        )  # fmt: skip
        found = re.search(r"microseconds=([\d.]+)", done.stderr)
        return float(found[1]) if found else None

    def estimate_all(self, cells: list[Cell]) -> list[float | None]:
        """What cells are estimated at with the factors as they are."""
        self.path.write_text(json.dumps(self.data), encoding="utf-8")
        return list(self.pool.map(self.estimate, cells))

    def fit(self, factor: dict, step: float) -> bool:
        """Changes one factor, unless `step` is 0; true if estimates got better."""
        cells = [cell for cell in self.cells if concerns(factor["name"], cell.schedule)]
        if not cells:
            return False
        value, found = factor["value"], factor["value"]
        schedules = tuple(sorted({cell.schedule for cell in cells}))
        # Without steps no value changes, and estimates stay.
        if step or schedules not in self.known:
            self.known[schedules] = self.estimate_all(cells)
        now = self.known[schedules]
        others: dict[float, list[float | None]] = {}
        for other in (value * (1 + (step or PROBE)), value * (1 - step))[: 2 if step else 1]:
            factor["value"] = other
            others[other] = self.estimate_all(cells)
        # What does not depend on the factor says nothing about it.
        own = [
            index for index in range(len(cells)) if any(each[index] != now[index] for each in others.values())
        ]
        best = get_error(cells, now, own)
        for other, estimates in others.items():
            if step and get_error(cells, estimates, own) < best:
                best, found = get_error(cells, estimates, own), other
        factor["value"] = found
        if own:
            factor["residual"] = round(best, 4)
            factor.pop("note", None)
        return found != value


def write(path: pathlib.Path, data: dict) -> None:
    head = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in data.items() if name != "factors"]
    factors = ",\n".join(f"  {json.dumps(factor, ensure_ascii=False)}" for factor in data["factors"])
    path.write_text("{\n" + ",\n".join(head) + ',\n "factors": [\n' + factors + "\n ]\n}\n", encoding="utf-8")


def make_unmeasured(board: str, base: dict, today: str) -> dict:
    """The file of a board whose times nobody has taken."""
    return {
        "version": 1, "board": board, "clocks_of": base["board"], "date": today,
        "source": "not measured",
        "factors": [
            {"name": factor["name"], "value": 1, "residual": None, "note": "Not measured."}
            for factor in base["factors"]
            if factor["name"].split(".")[0] in SCALES
        ],
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("results", nargs="*", type=pathlib.Path)
    parser.add_argument("--board", required=True)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--residuals", action="store_true")
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    boards = json.loads((ROOT / "lib/Target/Boards.json").read_text(encoding="utf-8"))["boards"]
    board = next((each for each in boards if each["name"] == options.board), None)
    if board is None:
        names = ", ".join(each["name"] for each in boards)
        parser.error(f"expected one of the boards {names}, got {options.board!r}")
    own = DATA / f"calibration-{options.board}.json"
    base = json.loads((DATA / "calibration-h200.json").read_text(encoding="utf-8"))
    today = datetime.date.today().isoformat()
    if options.new:
        write(options.out or own, make_unmeasured(options.board, base, today))
        return 0
    start = options.data or (own if own.exists() else DATA / "calibration-h200.json")
    data = json.loads(start.read_text(encoding="utf-8"))
    cells = read_cells(options.results, board, options.bin / "attn-compile")
    if not cells:
        print(f"expected measured plans on {options.board} in the results, got none")
        return 1
    source = f"fitted by scripts/fit-calibration.py to {len(cells)} measured plans"
    if options.residuals:
        source = f"{data['source'].split('; ')[0]}; residuals are those of {len(cells)} measured plans"
    data |= {"board": options.board, "date": today, "source": source}
    fitter = Fitter(options, data, cells)
    everything = list(range(len(cells)))
    before = get_error(cells, fitter.estimate_all(cells), everything)
    for number in range(1 if options.residuals else options.rounds):
        changed = [
            factor["name"]
            for factor in data["factors"]
            if re.search(options.only, factor["name"])
            and fitter.fit(factor, 0 if options.residuals else 0.2 / 2**number)
        ]
        print(f"round {number + 1}: {len(changed)} factors changed", flush=True)
    after = get_error(cells, fitter.estimate_all(cells), everything)
    print(f"{len(cells)} plans: estimates off by {before:.3f} before, {after:.3f} after")
    write(options.out or own, data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
