#!/usr/bin/env python3
"""Runs what continuous integration has no time for, or a fixed sample of each.

Each check below is a command with the minutes that it takes on two cores, and a
sample of it that takes seconds. A check that passed at this commit is not run again,
and one that was stopped goes on by itself where its own state says so; a new commit
starts anew. How long the whole takes is said before it starts.

usage: scripts/nightly.py [--only=REGEX] [--again]     everything
       scripts/nightly.py --sample [--only=REGEX]      the samples
       scripts/nightly.py --list                       what there is, and what was measured
The exit status is 1 when a check failed. The last line is "N passed, N failed, N skipped".
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("ATTN_BUILD", ROOT / "build"))
JOBS = os.environ.get("ATTN_JOBS", str(os.cpu_count()))


@dataclasses.dataclass(frozen=True)
class Check:
    name: str
    # On two cores.
    minutes: float
    command: str
    # Seconds on two cores; empty where there is none, or the suite holds it.
    sample: str = ""
    # With this status what it needs is not on this machine.
    skipped: int | None = None


# {python}, {build} and {jobs} are filled in. One line for a check.
CHECKS = [
    Check("sanitizer build", 30,
          "bash -c 'cmake --preset sanitize -B {build}/sanitize && "
          "ninja -C {build}/sanitize -j {jobs} all AttnUnitTests'"),
    Check("tests, sanitized", 60,
          "{python} scripts/sanitized-tests.py --build={build}/sanitize --jobs={jobs}"),
    Check("fuzz, sanitized", 10,
          "{python} scripts/fuzz.py --build={build}/sanitize --minutes=10 --seconds=60",
          "{python} scripts/fuzz.py --fresh --state={build}/fuzz-sample --inputs=6500 --minimise=0"),
    Check("extreme integers, sanitized", 5,
          "{python} scripts/fuzz.py --build={build}/sanitize --extremes --seconds=60"),
    Check("fuzz, programs", 10, "{python} scripts/fuzz.py --programs --minutes=10",
          "{python} scripts/fuzz.py --programs --state={build}/fuzz-sample --inputs=150"),
    Check("doors with other versions of torch", 25,
          "{python} scripts/doors.py --torch=2.8.0,2.11.0"),
    Check("mutants of the sources", 90, "{python} scripts/mutate-source.py",
          "{python} scripts/mutate-source.py --check"),
    Check("mutants of kernels", 20,
          "bash -c '{build}/bin/attn-compile -q 1x1x64x64xf16 --causal -o {build}/mutants.ptx "
          "--launch-out={build}/mutants.json && {python} scripts/mutate-ptx.py "
          "{build}/mutants.ptx --launch={build}/mutants.json --sim={build}/bin/attn-sim'"),
    Check("mutants of the barrier rung", 60,
          "{python} scripts/mutate-ir.py --standard --jobs={jobs} --bin={build}/bin",
          "{python} scripts/mutate-ir.py --standard --sample=5 --jobs={jobs} --bin={build}/bin"),
    Check("mutants of the channel rung", 20,
          "{python} scripts/mutate-channels.py --standard --jobs={jobs} --bin={build}/bin"),
    Check("mutants of PTX against the proof", 20,
          "{python} scripts/hold-ptx.py --standard --jobs={jobs} --bin={build}/bin",
          "{python} scripts/hold-ptx.py --standard --most=3 --jobs={jobs} --bin={build}/bin"),
    Check("kernels in every order", 20,
          "env ATTN_ORACLE_KERNELS=100000 ATTN_ORACLE_SEED=2 "
          "{build}/unittests/Analysis/AttnAnalysisTests --gtest_filter=*Oracle*"),
    Check("loops of any lengths", 20,
          "{python} scripts/open-loops.py --count=20000 --workers={jobs} --bin={build}/bin",
          "{python} scripts/open-loops.py --count=60 --seed=1 --workers={jobs} --bin={build}/bin"),
    Check("whole tests of kernels", 12,
          "bash -c 'source scripts/common.sh && ATTN_NIGHTLY=1 $LLVM_BIN/lit -sv -j {jobs} "
          "--filter=\"Integration|sim-grid|skeleton\" {build}/test'"),
    Check("problems that chance draws", 30,
          "{python} scripts/random-problems.py --count=3000 --workers={jobs} --bin={build}/bin",
          "{python} scripts/random-problems.py --count=10 --workers={jobs} --bin={build}/bin"),
    Check("grid of problems", 240, "{python} scripts/sim-grid.py --workers={jobs}"),
    Check(
        "lengths and pages",
        40,
        "{python} scripts/sim-grid.py --serving --sample=600 --workers={jobs}",
    ),
    Check("wide heads", 30, "{python} scripts/sim-grid.py --wide --chip=sm_90a --sample=600 "
          "--workers={jobs}"),
    Check("wide heads in tensor memory", 30, "{python} scripts/sim-grid.py --tmem-wide --sample=200 "
          "--workers={jobs}"),
    Check("slices of heads", 30, "{python} scripts/sim-grid.py --tiled --sample=600 "
          "--workers={jobs}"),
    Check("tensor memory", 30, "{python} scripts/sim-grid.py --whole --workers={jobs} "
          "--state={build}/tmem-grid.jsonl"),
    Check("forms of tensor memory in pairs", 15,
          "{python} scripts/sim-grid.py --pairs --workers={jobs} --state={build}/tmem-pairs.jsonl"),
    Check("functions of public libraries", 30,
          "{python} scripts/triton-functions.py --chip=sm_80,sm_90a,sm_100a", skipped=2),
    Check("Triton's own tests", 30,
          "{python} scripts/triton-suites.py --chips=sm_80,sm_90a,sm_100a --bin={build}/bin", skipped=2),
    Check("costs of the stand-in driver", 2, "{python} scripts/stand-in-costs.py --bin={build}/bin",
          skipped=2),
    Check("programs with faults", 10,
          "{python} scripts/faulty-programs.py --chip=sm_80,sm_90a,sm_100a"),
    Check("GPU tests on the stand-in driver", 20,
          "{python} scripts/gpu-tests.py --bin={build}/bin", skipped=2),
    Check("examples of CuTe DSL", 10, "{python} scripts/cute-examples.py --bin={build}/bin",
          skipped=2),
    Check("masks as functions", 12, "{python} scripts/mask-forms.py --workers={jobs} "
          "--compile={build}/bin/attn-compile"),
    Check("offsets beyond 2^31 elements", 5, "{python} scripts/far-offsets.py --bin={build}/bin",
          skipped=2),
    Check("plans of all head dimensions", 180,
          "{python} scripts/plan-sweep.py --workers={jobs} --bin={build}/bin "
          "--state={build}/plan-sweep.jsonl"),
    Check("plans of all features", 60,
          "{python} scripts/plan-sweep.py --features --workers={jobs} --bin={build}/bin "
          "--state={build}/feature-sweep.jsonl"),
    Check("plans of the grid of tensor memory", 45,
          "{python} scripts/plan-sweep.py --problems --workers={jobs} --bin={build}/bin "
          "--state={build}/problem-sweep.jsonl"),
    Check("cliffs of the planner", 10,
          "{python} scripts/cliffs.py --workers={jobs} --bin={build}/bin",
          "{python} scripts/cliffs.py --sample --workers={jobs} --bin={build}/bin"),
    Check("plans of all pairs of head dimensions", 1,
          "env ATTN_NIGHTLY=1 {build}/unittests/Compile/AttnCompileTests "
          "--gtest_filter=PlanTest.AllHeadDimensionsHavePlans"),
    Check("MLIR's passes at every rung", 10,
          "{python} scripts/rung-passes.py --workers={jobs} --bin={build}/bin"),
    Check("accuracy of softmax policies", 60, "{python} scripts/accuracy.py"),
    Check("accuracy of softmax policies in tensor memory", 3,
          "{python} scripts/accuracy.py --chip=sm_100a --schedule=ws_tmem --dim=128 --out-type=f32"),
    Check("pages in a browser", 1, "{python} scripts/check-pages.py --bin={build}/bin",
          "{python} scripts/check-pages.py --sample --bin={build}/bin", skipped=2),
    Check("foreign kernels", 30, "{python} scripts/foreign-check.py --jobs={jobs} --schedules=3",
          skipped=2),
]  # fmt: skip


class State:
    """What each check took, and which passed at which commit."""

    def __init__(self) -> None:
        self.path = BUILD / "nightly.json"
        self.checks: dict = {}
        if self.path.exists():
            self.checks = json.loads(self.path.read_text())
        git = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40"],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.commit = git.stdout.strip()

    def has_passed(self, check: Check) -> bool:
        old = self.checks.get(check.name, {})
        clean = bool(self.commit) and not self.commit.endswith("-dirty")
        return clean and old.get("passed_at") == self.commit

    def minutes(self, check: Check) -> float:
        return self.checks.get(check.name, {}).get("minutes", check.minutes)

    def note(self, check: Check, **values) -> None:
        self.checks.setdefault(check.name, {}).update(values)
        temporary = self.path.with_suffix(".new")
        temporary.write_text(json.dumps(self.checks, indent=1))
        temporary.rename(self.path)


def run(command: str, log: pathlib.Path) -> tuple[int, float]:
    filled = command.format(python=sys.executable, build=BUILD, jobs=JOBS)
    start = time.monotonic()
    with log.open("w") as file:
        process = subprocess.Popen(shlex.split(filled), cwd=ROOT, stdout=file,
                                   stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
        try:
            status = process.wait()
        except KeyboardInterrupt:
            # The check keeps its state and ends.
            os.killpg(process.pid, signal.SIGINT)
            process.wait(timeout=60)
            raise
    return status, time.monotonic() - start


def show_end(log: pathlib.Path) -> None:
    for line in log.read_text(errors="replace").splitlines()[-40:]:
        print("    " + line)


def name_status(check: Check, status: int) -> str:
    return "ok" if status == 0 else "skipped" if status == check.skipped else "FAILED"


def run_samples(checks: list[Check], state: State, logs: pathlib.Path) -> list[str]:
    statuses = []
    for check in checks:
        if not check.sample:
            continue
        log = logs / f"sample-{re.sub('[^a-z]+', '-', check.name)}.log"
        status, seconds = run(check.sample, log)
        statuses.append(name_status(check, status))
        word = name_status(check, status)
        print(f"{word:8}{check.name}: {seconds:.0f} s; all of it takes "
              f"{state.minutes(check):.0f} min", flush=True)  # fmt: skip
        if word == "FAILED":
            show_end(log)
    return statuses


def run_all(checks: list[Check], state: State, logs: pathlib.Path, again: bool) -> list[str]:
    left = [check for check in checks if again or not state.has_passed(check)]
    statuses = ["ok"] * (len(checks) - len(left))
    if statuses:
        print(f"{len(statuses)} checks have passed at this commit (--again runs them too)")
    total = sum(state.minutes(check) for check in left)
    print(f"{len(left)} checks, {total / 60:.1f} h", flush=True)
    for check in left:
        print(f"        {check.name}: {state.minutes(check):.0f} min ...", flush=True)
        log = logs / f"nightly-{re.sub('[^a-z]+', '-', check.name)}.log"
        status, seconds = run(check.command, log)
        statuses.append(name_status(check, status))
        word = name_status(check, status)
        print(f"{word:8}{check.name}: {seconds / 60:.1f} min, log {log}", flush=True)
        if status == 0:
            state.note(check, minutes=round(seconds / 60, 1), passed_at=state.commit)
        elif word == "FAILED":
            show_end(log)
    return statuses


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--only", default="", metavar="REGEX")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    checks = [check for check in CHECKS if re.search(options.only, check.name)]
    if not checks:
        print(f"no check matches '{options.only}'", file=sys.stderr)
        return 2
    logs = BUILD / "test-logs"
    logs.mkdir(parents=True, exist_ok=True)
    state = State()
    if options.list:
        for check in checks:
            print(f"{check.name}: {state.minutes(check):.0f} min\n  {check.command}\n"
                  f"  sample: {check.sample or 'none of its own'}")  # fmt: skip
        return 0
    try:
        if options.sample:
            statuses = run_samples(checks, state, logs)
        else:
            statuses = run_all(checks, state, logs, options.again)
    except KeyboardInterrupt:
        print("stopped; the next call goes on here")
        return 130
    counts = [statuses.count(word) for word in ("ok", "FAILED", "skipped")]
    print("{} passed, {} failed, {} skipped".format(*counts))
    return int(counts[1] > 0)


if __name__ == "__main__":
    sys.exit(main())
