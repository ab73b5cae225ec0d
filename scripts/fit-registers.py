#!/usr/bin/env python3
"""Fits the register model to what ptxas made of a sweep's kernels.

Reads states of scripts/plan-sweep.py, best some of --others too: plans that the
planner takes do not tell where spills begin. Each kernel with its plan is planned once
more, which gives the terms of the model (attn-plan's remark); what ptxas said of it is
the registers it took or, where it spilled, more than a thread may have. Terms of one
name get one factor, but for fragments and the like, whose weights stay. Least squares count a
kernel that spilled in a loop over blocks as needing more than the limit, and another one as
needing at most what it took; factors stay near 1 where kernels say little.

Kernels whose roles of warps have registers of their own (ws_wgmma and the like) are left
out: ptxas says what the kernel starts with, and their weights stay as they are.

Prints, of each kind of kernels, before and after: how many registers the model is wrong
by at most for 50, 90 and 99 % of the kernels (too few where ptxas spilled, too many where
it did not); and how often it is wrong about spills in loops over blocks, without the rows
of ptxas-<version>.json.

usage: scripts/fit-registers.py [STATE...] [--bin=build/bin] [--workers=2] [--count=N]
           [--terms=FILE] [--leave-out=TERM]... [--data=lib/Planner/Data/registers-13.0.json]
           [--write=weights|errors]
  --leave-out  a term that the model is to do without
  --terms  keep the terms of each kernel there, a line of JSON each, and take them from there
           if the file exists: asking for them takes 0.1 s of a core a kernel
  --count  take so many cells of the states, drawn by their names (default: all)
  --write  store the new weights with their errors and the date, or only the errors of the
           weights as they are
"""

from __future__ import annotations

import argparse
import concurrent.futures
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
from collections import defaultdict
from typing import NamedTuple

from sweep_cells import make_cells, make_feature_cells, make_grid_cells

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: The kind of kernels that a schedule has, in the data file.
KINDS = {"split_q": "copied", "tiled_d": "copied", "decode": "copied", "mla": "copied"}
#: How much a register too few counts for kernels that spill, and for the others,
#: beside one too many.
STEEP, SLACK = 4.0, 0.05
#: The most registers beyond the limit that a kernel counts with.
MOST_SPILLED = 8.0
#: How much the factors as they are count, in kernels of a mean size.
HOLD = 3.0

#: Terms whose weights stay: fragments and values that a kernel holds, and what all have.
FIXED = ("o", "sums", "s", "p", "q", "q step", "row values", "other")


class Kernel(NamedTuple):
    """What the model and ptxas say of one kernel."""

    kind: str
    terms: dict[str, float]
    #: Registers that ptxas took, or the most of a thread where it spilled.
    taken: int
    spilled: int
    #: None where nobody said.
    spills_in_loops: bool | None
    #: The most of a thread.
    limit: int

    @property
    def counts(self) -> bool:
        """True if it spills where spills count, or nobody said where."""
        return self.spilled != 0 and self.spills_in_loops is not False

    @property
    def need(self) -> float:
        # Far over the limit, how far makes no difference.
        return self.taken + (min(MOST_SPILLED, self.spilled / 4) if self.counts else 0)

    def expect(self, factors: dict[tuple[str, str], float]) -> float:
        return sum(size * factors.get((self.kind, name), 1.0) for name, size in self.terms.items())


def read_states(paths: list[pathlib.Path]) -> list[tuple[str, str, dict]]:
    """Cells with their plans and what ptxas said of their kernels."""
    kernels: dict[str, dict] = {}
    cells: dict[str, tuple[str, str]] = {}
    for path in paths:
        for text in path.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            if "registers" in line:
                kernels[line["kernel"]] = line
            elif line.get("kernel"):
                cells[line["kernel"]] = (line["cell"], line["plan"])
    return [(cell, plan, kernels[kernel]) for kernel, (cell, plan) in cells.items() if kernel in kernels]


def ask(compiler: pathlib.Path, cell, plan: str, said: dict) -> Kernel | None:
    """Plans a cell with a given plan; nothing where the planner is of another mind."""
    done = subprocess.run(
        [compiler, *(["-"] if cell.source else []), *cell.flags(), "--emit=plan", "-o", "-"],
        input=cell.source.encode(), capture_output=True, check=False,
    )  # fmt: skip
    text = re.sub(r"plan = #attn\.(?!combine)\w+<[^>]*>", f"plan = {plan}", done.stdout.decode(), count=1)
    done = subprocess.run(
        [compiler, "-", f"--chip={cell.chip}", "--set=spills=allow", "--emit=plan",
         "--remarks-filter=attn.plan", "-o", "/dev/null"],
        input=text.encode(), capture_output=True, check=False,
    )  # fmt: skip
    found = re.search(r"registers \d+ \(([^)]*)\)", done.stderr.decode())
    if done.returncode or not found:
        return None
    terms: dict[str, float] = defaultdict(float)
    for part in found[1].split(" + "):
        name, count, size = re.fullmatch(r"(.*?) (?:(\d+) x )?(-?\d+)", part).groups()
        terms[name] += int(count or 1) * int(size)
    schedule = plan.removeprefix("#attn.").split("<")[0]
    # Roles of warps have registers of their own, which ptxas does not say.
    if schedule.startswith("ws_") or "wgmma = true" in plan or "score = own" in plan:
        return None
    spills = max(said["spills"], said["stack"])
    in_loops = False if not spills else bool(said["loops"]) if "loops" in said else None
    # CTAs of many threads have fewer.
    limit = said["registers"] if spills else 255
    return Kernel(KINDS.get(schedule, schedule), dict(terms), said["registers"], spills, in_loops, limit)


def read_kernels(options: argparse.Namespace) -> list[Kernel]:
    """Kernels with their terms, from --terms or from the compiler."""
    if options.terms and options.terms.exists():
        text = options.terms.read_text(encoding="utf-8")
        return [Kernel(**json.loads(line)) for line in text.splitlines()]
    cells = {cell.name: cell for cell in (*make_cells(), *make_feature_cells(), *make_grid_cells())}
    seen = [(cells.get(name.split("+")[0]), plan, said) for name, plan, said in read_states(options.states)]
    seen.sort(key=lambda each: hashlib.sha256(each[2]["kernel"].encode()).digest())
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        jobs = [
            pool.submit(ask, options.bin / "attn-compile", *each) for each in seen[: options.count] if each[0]
        ]
        kernels = [kernel for job in jobs if (kernel := job.result())]
    if options.terms:
        lines = "".join(json.dumps(kernel._asdict()) + "\n" for kernel in kernels)
        options.terms.write_text(lines, encoding="utf-8")
    return kernels


def fit(kernels: list[Kernel], rounds: int = 200) -> dict[tuple[str, str], float]:
    """The factor of each term, one coordinate after the other."""
    factors: dict[tuple[str, str], float] = {}
    for kind in sorted({kernel.kind for kernel in kernels}):
        own = [kernel for kernel in kernels if kernel.kind == kind]
        columns: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for index, kernel in enumerate(own):
            for name, size in kernel.terms.items():
                if name not in FIXED:
                    columns[name].append((index, size))
        scale = dict.fromkeys(columns, 1.0)
        expected = [sum(kernel.terms.values()) for kernel in own]
        for _ in range(rounds):
            for name, column in columns.items():
                above = below = HOLD * sum(size * size for _, size in column) / len(column)
                for index, size in column:
                    kernel = own[index]
                    error = kernel.need - expected[index]
                    # Spills say that it is too few, and not by how much; those
                    # outside of loops, that a little more makes no difference.
                    # Without any, ptxas may have taken more than it needs.
                    if kernel.spilled and (error < 0) == kernel.counts:
                        continue
                    weight = SLACK if error > 0 else 1.0
                    if kernel.counts or (not kernel.spilled and expected[index] > kernel.limit):
                        weight = STEEP
                    above += weight * size * (error + size * scale[name])
                    below += weight * size * size
                new = max(0.0, above / below)
                for index, size in column:
                    expected[index] += size * (new - scale[name])
                scale[name] = new
        factors.update({(kind, name): value for name, value in scale.items()})
    return factors


def without(kernels: list[Kernel], dropped: set[tuple[str, str]]) -> list[Kernel]:
    """The kernels without some terms."""
    return [
        kernel._replace(
            terms={name: size for name, size in kernel.terms.items() if (kernel.kind, name) not in dropped}
        )
        for kernel in kernels
    ]


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def measure(kernels: list[Kernel], factors: dict[tuple[str, str], float]) -> dict[str, float]:
    """How far off the model is."""
    short = [
        max(0.0, (kernel.need - kernel.expect(factors)) * (1 if kernel.counts else -1)) for kernel in kernels
    ]
    judged = [kernel for kernel in kernels if kernel.spills_in_loops is not None]
    wrong = [(kernel.spills_in_loops, kernel.expect(factors) > kernel.limit) for kernel in judged]
    return {
        "kernels": len(kernels),
        "p50": round(quantile(short, 0.5), 1),
        "p90": round(quantile(short, 0.9), 1),
        "p99": round(quantile(short, 0.99), 1),
        "spills_unexpected": sum(seen and not expected for seen, expected in wrong),
        "fits_refused": sum(expected and not seen for seen, expected in wrong),
    }


def show(title: str, kernels: list[Kernel], factors: dict[tuple[str, str], float]) -> dict:
    errors = {}
    for kind in sorted({kernel.kind for kernel in kernels}):
        errors[kind] = measure([kernel for kernel in kernels if kernel.kind == kind], factors)
        print(
            f"{title} {kind:<11} {errors[kind]['kernels']:>5} kernels; registers wrong: "
            f"p50 {errors[kind]['p50']}, p90 {errors[kind]['p90']}, p99 {errors[kind]['p99']}; "
            f"{errors[kind]['spills_unexpected']} spill in loops unexpectedly, "
            f"{errors[kind]['fits_refused']} that fit are refused"
        )
    return errors


def write(
    path: pathlib.Path, kernels: list[Kernel], factors: dict[tuple[str, str], float], errors: dict
) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    for kind, kernel in data["kernels"].items():
        # What is left out has no factor; a term of no kernel here stays as it is.
        seen = {name for each in kernels if each.kind == kind for name in each.terms} - {*FIXED}
        kernel["terms"] = [
            term
            for term in kernel["terms"]
            if not factors or term["term"] not in seen or (kind, term["term"]) in factors
        ]
        for term in kernel["terms"]:
            weight = term["weight"] * factors.get((kind, term["term"]), 1.0)
            term["weight"] = round(weight, 3)
        if kind in errors:
            kernel["error"] = errors[kind]
    if factors:
        data["date"] = datetime.date.today().isoformat()
        data["source"] = "fitted by scripts/fit-registers.py"
    head = [f" {json.dumps(key)}: {json.dumps(data[key])}" for key in ("version", "ptxas", "date", "source")]
    limits = ",\n".join(f"  {json.dumps(row)}" for row in data["limits"])
    kinds = []
    for kind, kernel in data["kernels"].items():
        terms = ",\n".join(f"    {json.dumps(term)}" for term in kernel["terms"])
        error = f'   "error": {json.dumps(kernel["error"])},\n' if "error" in kernel else ""
        kinds.append(f'  "{kind}": {{\n{error}   "terms": [\n{terms}\n   ]\n  }}')
    path.write_text(
        "{\n" + ",\n".join(head) + ',\n "limits": [\n' + limits + '\n ],\n "kernels": {\n'
        + ",\n".join(kinds) + "\n }\n}\n",
        encoding="utf-8",
    )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("states", nargs="*", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--count", type=int)
    parser.add_argument("--terms", type=pathlib.Path)
    parser.add_argument("--leave-out", action="append", default=[], metavar="TERM")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "lib/Planner/Data/registers-13.0.json")
    parser.add_argument("--write", choices=("weights", "errors"))
    options = parser.parse_args()
    kernels = read_kernels(options)
    if not kernels:
        print("expected kernels with registers in the states, got none")
        return 1
    before = show("before", kernels, {})
    left_out = {(kernel.kind, name) for kernel in kernels for name in options.leave_out}
    kept = without(kernels, left_out)
    factors = fit(kept)
    after = show("after ", kept, factors)
    for (kind, name), factor in sorted(factors.items()):
        print(f"{kind:<11} {name:<12} x {factor:.3f}")
    if options.write == "errors":
        write(options.data, kernels, {}, before)
    elif options.write:
        write(options.data, kernels, factors, after)
    else:
        print(f"weights are kept; p99 {max(each['p99'] for each in before.values())} registers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
