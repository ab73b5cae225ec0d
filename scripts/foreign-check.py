#!/usr/bin/env python3
"""Kernels of other compilers on the simulator: what is compiled here, and what was recorded.

Compiles the kernels of test/Foreign with Triton for sm_80, sm_90 and sm_100, runs them on
the simulator, and compares with numpy; none may be reported. With --recordings, the recorded launches in
a folder run as scripts/recorded-check.py runs them. Neither needs a GPU. Needs Triton 3.9
(pip install triton==3.9.0 numpy) and a built libAttnC.so.

usage: scripts/foreign-check.py [--chips=80,90,100] [--filter=REGEX] [--jobs=N] [--schedules=N]
                                [--keep=FOLDER] [--recordings=FOLDER [--seeds=N]] [--list]
The exit status is 1 when a kernel fails, and 2 when there is nothing to run.
"""

import argparse
import concurrent.futures
import importlib
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOREIGN = ROOT / "test" / "Foreign"
sys.path.insert(0, str(FOREIGN))

MODULES = ("scalars", "reductions", "matmuls", "attentions", "gluon_kernels")


def all_cases():
    return {case.name: case for name in MODULES for case in importlib.import_module(name).cases()}


def run_one(job):
    """In a process of its own: a crash is one failure."""
    name, chip, schedules, keep = job
    harness = importlib.import_module("harness")
    start = time.monotonic()
    verdict = harness.run_case(all_cases()[name], chip, schedules, keep)
    return verdict, time.monotonic() - start


def run_kernels(options):
    try:
        cases = all_cases()
    except ImportError as error:
        print(f"no kernels: {error}", file=sys.stderr)
        return None
    chips = [int(chip) for chip in options.chips.split(",")]
    jobs = [
        (name, chip, options.schedules, options.keep)
        for name, case in cases.items()
        for chip in case.chips
        if chip in chips and re.search(options.filter, f"{name}_{chip}")
    ]
    if options.list:
        print("\n".join(f"{name} sm_{chip}" for name, chip, *_ in jobs))
        return []
    failed, instructions = [], 0
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for job, future in [(job, pool.submit(run_one, job)) for job in jobs]:
            verdict, seconds = future.result()
            instructions += verdict.instructions
            if verdict.problem:
                failed.append(f"{job[0]} sm_{job[1]}")
            what = verdict.problem or f"error {verdict.error:.1e}"
            print(f"{job[0]:32} sm_{job[1]:<4} {seconds:5.1f} s  {what}", flush=True)
    print(f"{len(jobs) - len(failed)} of {len(jobs)} kernels agree, {instructions} warp instructions")
    return failed if jobs else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--chips", default="80,90,100")
    parser.add_argument("--filter", default="", metavar="REGEX", help="of NAME_CHIP")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--schedules", type=int, default=1, help="of three")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the PTX")
    parser.add_argument("--recordings", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("ATTN_LIBRARY", str(ROOT / "build/lib/libAttnC.so"))
    failed = run_kernels(options)
    status = 2 if failed is None else int(bool(failed))
    if options.recordings:
        command = [ROOT / "scripts/recorded-check.py", options.recordings, f"--seeds={options.seeds}"]
        status = max(status, subprocess.run([sys.executable, *command]).returncode)
    return status


if __name__ == "__main__":
    sys.exit(main())
