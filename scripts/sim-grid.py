#!/usr/bin/env python3
"""Compiles, simulates and verifies attention kernels over a grid of problems.

The grid is element type x head dimension x mask x query length x key length x
heads, with --wide over head dimensions above 384, with --tiled over those to
1024 and plans of tiled_d, with --tmem over what ws_tmem computes, in packed
sequences too, and over its plans, with --tmem-wide over its wide heads, or with
--serving what servers ask for: pages
and their tables, lengths of sequences, heads of a group, few queries, runs of
keys. Each case is one call of `attn-compile --verify --json`; it passes when the
result agrees with the float64 reference and the simulator found nothing.

With --whole all 3072 problems of ws_tmem are run once each (head dimension, mask,
queries, keys), the other axes drawn, each pair of values of two axes among them:
type, heads, packed sequences, policy, epilogue, rows, sums, chunks, chip, order of
tiles, CTAs, inputs. They are compiled by attn-compile and run by attn-sim with
--sanitize --corners --lose-bets --profile=isa --assume=A1,A2,A4. What passed stays in a
state, so that the next call goes on there; under another attn-compile only cases
whose kernel or launch is another one are run again, under another attn-sim all are.
All of them take about an hour of a core.

usage: scripts/sim-grid.py [options]
  --serving        the grid of lengths and pages, under all corners of the
                   simulator
  --wide           the grid of head dimensions above 384 of ws_columns
  --tmem           the grid of ws_tmem
  --tmem-wide      the grid of heads above 256 in ws_tmem
  --whole          all problems of ws_tmem
  --pairs          forms of decode and prefill on these chips: a set in which every pair
                   of values of two axes occurs, with five seeds each, compiled with
                   --require-proof and run as the problems of --whole are
  --tiled          the grid of head dimensions to 1024 in tiled_d
  --corners        each case under all corners of the simulator too
  --pairwise       a fixed subset in which every pair of values of two axes
                   occurs (for continuous integration)
  --sample=N       N cases drawn with --seed, instead of all
  --seed=N         what --sample and --whole draw from (default 0), and which of the sets and
                   inputs of --pairs
  --filter=REGEX   only cases whose name matches
  --chip=CHIP      target (default: one that the grid's schedule has; cases of --tiled
                   and --serving name theirs)
  --workers=N      processes at once (default 2)
  --timeout=S      seconds for one case (default 300)
  --compile=PATH   attn-compile (default: build/bin, then PATH)
  --simulate=PATH  attn-sim of --whole and --pairs (default: beside attn-compile)
  --state=FILE     of --whole and --pairs (default: build/tmem-grid.jsonl)
  --limit=S        start no case after this time
  --again          forget what the state says
  --json=FILE      write every result
  --list           print the names and commands, run nothing
"""

import argparse
import collections
import concurrent.futures
import itertools
import json
import math
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))  # where gpu_grid.py loads this file
from grid_cases import AXES, LSE_TOLERANCE, MASKS, TOLERANCE, WIDE_AXES, Case  # noqa: E402
from grid_state import GridState  # noqa: E402
from served_cases import SERVED_AXES, ServedCase  # noqa: E402
from tmem_pairs import PAIR_SEEDS, PairCase, draw_axes  # noqa: E402
from tmem_cases import (  # noqa: E402
    TMEM_AXES,
    TMEM_WIDE_AXES,
    WHOLE_AXES,
    TmemCase,
    TmemWideCase,
    WholeCase,
    count_pairs,
    draw_whole,
)

# Head dimensions whose shared-memory layout must be free of conflicts.
CONFLICT_FREE = (64, 128)

#: Plans of tiled_d, and of split_q where one is named, that no problem has to get
#: from the planner.
TILED_PLANS = {
    "chosen": "",
    "rows": "block_m=64,block_n=32,warps_m=4,warps_n=1,slice=64,stages=3",
    "grid": "block_m=64,block_n=32,warps_m=4,warps_n=2,slice=32,stages=8",
    "streamed": "block_m=32,block_n=64,warps_m=2,warps_n=4,slice=32,stages=4,q_streamed=true",
    "columns": "block_m=16,block_n=64,warps_m=1,warps_n=8,slice=64,stages=2,softmax=exact",
    "rows-32": "block_m=64,block_n=64,warps_m=2,warps_n=4,slice=128,stages=5,softmax=exact",
    "long-block": "block_m=32,block_n=128,warps_m=1,warps_n=8,slice=64,stages=3,softmax=exact",
    "gathered": "block_m=32,block_n=96,warps_m=2,warps_n=4,slice=64,stages=4,softmax=exact",
    "threshold": "block_m=32,block_n=32,warps_m=1,warps_n=4,slice=64,stages=5,softmax=threshold",
    "narrow-block": "block_m=64,block_n=32,warps_m=2,warps_n=4,slice=64,stages=4,"
                    "accumulate_o=f16_block",
    "narrow-o": "block_m=64,block_n=32,warps_m=4,warps_n=2,slice=64,stages=4,accumulate_o=f16",
    "narrow-s": "block_m=32,block_n=64,warps_m=2,warps_n=4,slice=64,stages=4,accumulate_s=f16",
    "depth": "block_m=32,block_n=32,warps_m=2,warps_n=4,slice=128,stages=4,s_split=depth",
    "narrow-depth": "block_m=32,block_n=32,warps_m=2,warps_n=2,slice=64,stages=4,s_split=depth,"
                    "accumulate_s=f16,accumulate_o=f16",
    "split_q shared": "share=kv,stages=2,q_in_regs=false",
    "split_q shared-qkv": "share=kv,stages=1,q_in_regs=true,block_m=64,block_n=64,warps=4",
    "split_q narrow-o": "accumulate_o=f16",
    "split_q narrow-s": "accumulate_s=f16,accumulate_o=f16_block",
}  # fmt: skip
#: Products of f16 sums, which only f16 operands have, are twice as far off, scores
#: of f16, and LSE with them, five times.
NARROW_TOLERANCE = 4e-3
NARROW_SCORE_TOLERANCE = 1e-2
#: How far results are off where scores grow, and what the worst one should be.
GROWN = (r"with scores that grow: (relative|LSE) error ([-+.\de]+), accepted .*"
         r" expected ([-+.\de]+), got [-+.\de]+$")  # fmt: skip
#: Standard deviation of scores that grow (lib/Harness/HarnessInputs.cpp).
GROWN_SCORES = 16
#: Most columns of a head of split_q.
SPLIT_Q_COLUMNS = 256
TILED_AXES = AXES | {
    "d": ((64, 64), (128, 128), (256, 256), (320, 320), (384, 384), (512, 512), (576, 576),
          (640, 640), (768, 768), (1024, 1024), (256, 512), (64, 512), (520, 72)),
    "mask": ("none", "causal", "window"),
    "heads": ((8, 8), (8, 4), (8, 1)),
    "chip": ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a"),
    "plan": tuple(TILED_PLANS),
}  # fmt: skip


class TiledCase(Case):
    """One point of the grid of tiled_d and of its relatives in split_q, on a chip of
    its own."""

    is_free = True

    def __init__(self, values):
        *usual, self.chip, self.plan = values
        super().__init__(usual)
        self.d, self.dv = self.d
        self.parameters = TILED_PLANS[self.plan]
        schedule = self.plan.rpartition(" ")[0]
        # K and V of one ring have equal slots.
        is_taken = max(self.d, self.dv) <= SPLIT_Q_COLUMNS and (
            "share=kv" not in self.parameters or self.d == self.dv
        )
        self.schedule = schedule if schedule and is_taken else "tiled_d"
        if schedule and not is_taken:
            # What split_q does not take is another case of the planner's.
            self.parameters = ""
        self.sums = set(re.findall("accumulate_([so])=f16", self.parameters))
        if self.sums:
            self.dtype = "f16"

    @property
    def tolerance(self):
        if "s" in self.sums:
            return NARROW_SCORE_TOLERANCE
        return NARROW_TOLERANCE if self.sums else super().tolerance

    @property
    def lse_tolerance(self):
        return NARROW_SCORE_TOLERANCE if "s" in self.sums else LSE_TOLERANCE

    def is_forgiven(self, problem):
        # What rounding of f16 scores explains: errors of O up to the tolerance, and of
        # LSE twice what independent roundings to 11 bits in all k-steps add up to. That of
        # few keys may be small where the sums that were rounded were not.
        found = re.match(GROWN, problem)
        if "s" not in self.sums or not found:
            return False
        rounding = 2 * math.sqrt(max(1, self.d / 16)) * 2**-11
        bounds = {"relative": self.tolerance, "LSE": rounding * max(abs(float(found[3])), GROWN_SCORES)}
        return float(found[2]) <= bounds[found[1]]

    def is_too_large(self, error):
        found = re.search(r"does not fit: shared memory (\d+) .* exceeds (\d+) on", error)
        return bool(self.parameters and found) and int(found[1]) > int(found[2])

    @property
    def name(self):
        return f"{super().name}-dv{self.dv}-{self.chip}-{self.plan.replace(' ', '-')}"

    def command(self, tool, chip):
        command = [*super().command(tool, self.chip), f"--dv={self.dv}"]
        command.append(f"--schedule={self.schedule}")
        if self.parameters:
            command.append(f"--set=spills=allow,{self.parameters}")
        return command


def make_grid(axes=AXES, case=Case):
    return [case(values) for values in itertools.product(*axes.values())]


#: Points of a grid that are listed; of more, points are drawn one by one.
LISTED_POINTS = 1_000_000


def draw_grid(axes, case, options):
    """Different random points of a grid whose names match."""
    draws = random.Random(options.seed)
    drawn = {}
    for _ in range(LISTED_POINTS):
        point = case([draws.choice(values) for values in axes.values()])
        if re.search(options.filter, point.name):
            drawn.setdefault(point.name, point)
        if len(drawn) == options.sample:
            break
    return list(drawn.values())


def make_cases(axes, case, options):
    points = math.prod(map(len, axes.values()))
    if points > LISTED_POINTS and not options.pairwise:
        if options.sample is None:
            sys.exit(f"sim-grid: expected --sample or --pairwise of a grid of {points} points")
        return draw_grid(axes, case, options)
    cases = make_pairwise(axes, case) if options.pairwise else make_grid(axes, case)
    return choose_cases(cases, options)


def draw_cases(axes, case, options):
    """The cases of the grid that options name."""
    if options.pairs:
        cases = make_pairwise(draw_axes(options.seed), PairCase)
        seeds = [seed + options.seed * len(PAIR_SEEDS) for seed in PAIR_SEEDS]
        # The first seed of all comes first, if time ends.
        return choose_cases([each.with_seed(s) for s in seeds for each in cases], options)
    if not options.whole:
        return make_cases(axes, case, options)
    points = draw_whole(WHOLE_AXES, options.seed)
    print("{} problems, {} of {} pairs of values".format(len(points), *count_pairs(points)))
    return choose_cases([WholeCase(point) for point in points], options)


def choose_cases(cases, options):
    """What the options leave of cases."""
    # Points that an axis does not tell apart are one case.
    cases = list({case.name: case for case in cases}.values())
    cases = [case for case in cases if re.search(options.filter, case.name)]
    if options.sample is not None and options.sample < len(cases):
        cases = random.Random(options.seed).sample(cases, options.sample)
    return cases


def make_pairwise(grid=AXES, case=Case):
    """Cases in which each pair of values of two axes occurs, chosen greedily.

    Each case starts from the first pair that is still open and takes, axis by
    axis, the value that closes most open pairs; ties go to the value used least.
    """
    axes = list(grid.values())
    axis_pairs = list(itertools.combinations(range(len(axes)), 2))
    uncovered = {
        (a, i, b, j)
        for a, b in axis_pairs
        for i in range(len(axes[a]))
        for j in range(len(axes[b]))
    }
    used = [[0] * len(axis) for axis in axes]
    cases = []

    def gain(chosen, axis, value):
        return sum(
            (min(axis, other), value if axis < other else chosen[other],
             max(axis, other), chosen[other] if axis < other else value)
            in uncovered
            for other in chosen
        )

    while uncovered:
        a, i, b, j = min(uncovered)
        chosen = {a: i, b: j}
        # Axes with many values have the most pairs to close: they choose first.
        for axis in sorted(range(len(axes)), key=lambda x: (-len(axes[x]), x)):
            if axis not in chosen:
                chosen[axis] = max(
                    range(len(axes[axis])),
                    key=lambda v: (gain(chosen, axis, v), -used[axis][v], -v),
                )
        for a, b in axis_pairs:
            uncovered.discard((a, chosen[a], b, chosen[b]))
        for axis, value in chosen.items():
            used[axis][value] += 1
        cases.append(case([axes[axis][chosen[axis]] for axis in range(len(axes))]))
    return cases


def as_number(value):
    """A number of a report, in which infinity and NaN are strings."""
    return math.inf if isinstance(value, str) else float(value)


def judge(case, report):
    """Fills in what a report says; returns the reasons to fail."""
    reasons = []
    result = {"error": None, "lse": None, "findings": 0, "conflicts": None}
    run = report.get("run", {})
    errors = [f for f in run.get("findings", []) if f.get("severity") == "error"]
    result["findings"] = len(errors)
    for finding in errors[:3]:
        reasons.append(f"{finding['kind']}: {finding['message']}")
    forgiven = [p for p in report.get("problems", []) if case.is_forgiven(p)]
    reasons += [p for p in report.get("problems", []) if p not in forgiven]
    is_explained = bool(forgiven)
    for key, field, tolerance in (
        ("error", "output", case.tolerance),
        ("lse", "lse", case.lse_tolerance),
    ):
        if field not in report:
            reasons.append(f"the report has no {field}")
            continue
        result[key] = as_number(report[field]["error"])
        if not result[key] <= tolerance:
            reasons.append(f"{field} error {result[key]:.2e}, at most {tolerance:.1e}")
        # What the report takes for wrong, and this case does not.
        is_explained |= report[field].get("tolerance", tolerance) < result[key] <= tolerance
    grown = report.get("lost_bets", {})
    for key, field in (("grown_error", "output"), ("grown_lse", "lse")):
        result[key] = as_number(grown[field]["error"]) if field in grown else None
    if not run.get("completed"):
        reasons.append("the run did not complete")
    traffic = run.get("counters", {}).get("shared", {}).get("ldmatrix")
    if traffic:
        result["conflicts"] = traffic["conflicts"]
        if traffic["conflicts"] and (case.d in CONFLICT_FREE or case.is_free):
            reasons.append(f"{traffic['conflicts']} bank conflicts of ldmatrix")
    result["forgiven"] = int(is_explained)
    if not reasons and not is_explained and not report.get("passed"):
        reasons.append("the report says that it failed")
    return result, reasons


def make_command(case, tool, options):
    command = case.command(tool, options.chip)
    needs_corners = options.corners and "--corners" not in shlex.join(command)
    return [*command, "--corners"] if needs_corners else command


def is_staged(options):
    """Whether attn-compile and attn-sim run cases one after the other."""
    return options.whole or options.pairs


def show_command(case, options):
    if is_staged(options):
        return case.show("/tmp")
    return shlex.join(make_command(case, "attn-compile", options))


def run_case(case, command, timeout):
    start = time.monotonic()
    result, reasons = {}, []
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, check=False
        )
        try:
            result, reasons = judge(case, json.loads(process.stdout))
        except (ValueError, KeyError, TypeError, AttributeError):
            text = (process.stderr or process.stdout).strip()
            reasons = [text.splitlines()[0] if text else "no report"]
            if case.is_too_large(text):
                result, reasons = {"forgiven": 1}, []
        if process.returncode and not reasons and not result.get("forgiven"):
            reasons = [f"exit status {process.returncode}"]
    except subprocess.TimeoutExpired:
        reasons = [f"not finished after {timeout} s"]
    except OSError as error:
        reasons = [str(error)]
    return {
        "name": case.name,
        "dtype": case.dtype,
        "command": shlex.join(command),
        "seconds": time.monotonic() - start,
        "reasons": reasons,
        **result,
    }


class Progress:
    """A bar on a terminal; a line for every tenth otherwise."""

    def __init__(self, total):
        self.total, self.done, self.failed = total, 0, 0
        self.start = time.monotonic()
        self.is_terminal = sys.stderr.isatty()

    def advance(self, result):
        self.done += 1
        if result["reasons"]:
            self.failed += 1
            self.clear()
            print(f"FAILED {result['name']}: {'; '.join(result['reasons'])}")
            print(f"       {result['command']}", flush=True)
        elapsed = time.monotonic() - self.start
        rest = elapsed / self.done * (self.total - self.done)
        text = (
            f"{self.done}/{self.total}, {self.failed} failed, "
            f"{elapsed:.0f} s, about {rest:.0f} s left"
        )
        if self.is_terminal:
            filled = 30 * self.done // self.total
            bar = "#" * filled + "." * (30 - filled)
            print(f"\r[{bar}] {text} ", end="", file=sys.stderr, flush=True)
        elif self.done * 10 // self.total != (self.done - 1) * 10 // self.total:
            print(text, file=sys.stderr, flush=True)

    def clear(self):
        if self.is_terminal:
            print("\r" + " " * 79 + "\r", end="", file=sys.stderr, flush=True)


def summarise(results):
    """Prints a table by element type; returns the number of failures."""
    print(f"{'dtype':9} {'cases':>6} {'failed':>6} {'findings':>8} "
          f"{'max O error':>11} {'max LSE error':>13} {'O, grown':>9} {'LSE, grown':>10}")
    left = [r for r in results if r.get("left")]
    refused = [r for r in results if r.get("refused")]
    for dtype in dict.fromkeys(r["dtype"] for r in results):
        rows = [r for r in results if r["dtype"] == dtype]

        def largest(key):
            values = [r[key] for r in rows if r.get(key) is not None]
            return f"{max(values):.2e}" if values else "-"

        print(f"{dtype:9} {len(rows):6} {sum(bool(r['reasons']) for r in rows):6} "
              f"{sum(r.get('findings') or 0 for r in rows):8} "
              f"{largest('error'):>11} {largest('lse'):>13} {largest('grown_error'):>9} "
              f"{largest('grown_lse'):>10}")
    failed = sum(bool(r["reasons"]) for r in results)
    for what in ("refused", "unproved"):
        counts = collections.Counter(r[what] for r in results if r.get(what))
        for reason, count in counts.most_common():
            print(f"{what} {count:4}: {reason}")
    passed = len(results) - failed - len(refused) - len(left)
    others = [(len(refused), "refused"), (len(left), "not run")]
    print(", ".join([f"{passed} passed", *(f"{n} {what}" for n, what in others if n)])
          + f", {failed} failed")  # fmt: skip
    return failed + len(left)


def find_tool():
    built = ROOT / "build/bin/attn-compile"
    return str(built) if built.exists() else shutil.which("attn-compile")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    for flag in (
        "serving", "wide", "tmem", "tmem-wide", "tiled", "whole", "pairs", "corners", "pairwise", "list", "again"
    ):  # fmt: skip
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--sample", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--filter", metavar="REGEX", default="")
    parser.add_argument("--chip")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--compile", default=find_tool(), metavar="PATH")
    parser.add_argument("--simulate", metavar="PATH")
    parser.add_argument("--state", type=pathlib.Path, default=ROOT / "build/tmem-grid.jsonl")
    parser.add_argument("--limit", type=float, metavar="SECONDS")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()

    grid = (SERVED_AXES, ServedCase) if options.serving else (AXES, Case)
    chip = "sm_80"
    if options.tiled:
        grid = (TILED_AXES, TiledCase)
    if options.wide:
        grid, chip = (WIDE_AXES, Case), "sm_90a"
    if options.tmem:
        grid, chip = (TMEM_AXES, TmemCase), "sm_100a"
    if options.tmem_wide:
        grid, chip = (TMEM_WIDE_AXES, TmemWideCase), "sm_100a"
    options.chip = options.chip or chip
    cases = draw_cases(*grid, options)
    if options.list:
        for case in cases:
            print(case.name, show_command(case, options), sep="\t")
        print(f"{len(cases)} cases", file=sys.stderr)
        return 0
    if not cases:
        print("sim-grid: no case matches", file=sys.stderr)
        return 2
    if not options.compile:
        print("sim-grid: attn-compile not found, give --compile", file=sys.stderr)
        return 2
    if is_staged(options):
        simulator = options.simulate or pathlib.Path(options.compile).parent / "attn-sim"
        state = GridState(
            options.state, options.compile, simulator, options.again, options.timeout
        )

    end = time.monotonic() + (options.limit or float("inf"))

    def run(case):
        if time.monotonic() > end:
            return {"name": case.name, "dtype": case.dtype, "left": 1, "reasons": []}
        if is_staged(options):
            return state.get(case, lambda command: run_case(case, command, options.timeout))
        return run_case(case, make_command(case, options.compile, options), options.timeout)

    progress = Progress(len(cases))
    results = []
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        futures = [pool.submit(run, case) for case in cases]
        try:
            for future in concurrent.futures.as_completed(futures):
                results.append(future.result())
                progress.advance(results[-1])
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            print("\ninterrupted", file=sys.stderr)
    progress.clear()
    if options.json:
        order = {case.name: index for index, case in enumerate(cases)}
        results.sort(key=lambda r: order[r["name"]])
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1), encoding="utf-8")
    failed = summarise(results)
    return 1 if failed or len(results) < len(cases) else 0


if __name__ == "__main__":
    sys.exit(main())
