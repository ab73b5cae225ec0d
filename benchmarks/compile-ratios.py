#!/usr/bin/env python3
"""Processor time of attn-compile, in times of LLVM's llc or of another problem's.

How fast a machine is, and how busy, changes both sides of a ratio: that of the least times of
some runs, taken by turns, says whether attn-compile has become slow. llc gets the LLVM IR that
attn-compile makes of the problem, and does the last part of its work. Continuous integration
counts what is worked on instead (scripts/compile-work.py), since no count depends on the machine.

usage: benchmarks/compile-ratios.py [--runs=N] [--only=REGEX] [--build=DIR]
The exit status is 1 when a ratio is above its limit.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The PTX versions in which llc writes for chips.
PTX = {"sm_90a": "ptx80", "sm_100a": "ptx86"}
PROMPT = "--q=4x32x4096x128xbf16 --kv-heads=8 --chip=sm_90a"
SERVED = "--kv-lengths=4096,4096 --chip=sm_90a"
# Flags, those of the other problem (empty: llc), limit.
ROWS = (
    ("--q=4x32x4096x128xf16 --kv-heads=8 --causal --chip=sm_90a", "", 2.5),
    ("--q=4x32x4096x64xf16 --kv-heads=8 --chip=sm_90a", "", 2.5),
    ("--q=4x32x4096x128xf16 --kv-heads=8 --causal --chip=sm_100a", "", 2.5),
    ("--q=4x32x4096x64xf16 --kv-heads=8 --chip=sm_100a", "", 2.5),
    (f"--q=2x32x1x128xbf16 --kv-heads=8 --page-size=16 {SERVED}", PROMPT, 2.5),
    (f"--q=2x64x1x576xbf16 --rope-dim=64 --page-size=64 {SERVED}", PROMPT, 2.6),
    *(
        (f"--q=1x32x4096x{dim}xf16 {rest}", f"--q=1x32x4096x256xf16 {rest}", limit)
        for dim, rest, limit in (
            (512, "--causal --chip=sm_80", 2),
            (1024, "--chip=sm_80", 2.1),
            (1024, "--causal --chip=sm_80", 2.2),
            (512, "--chip=sm_90a", 2),
            (512, "--causal --chip=sm_90a", 2.2),
        )
    ),
)


def measure(command: list) -> float:
    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = spent()
    subprocess.run(command, check=True)
    return spent() - before


def least_seconds(commands: list[list], runs: int) -> list[float]:
    times = [[measure(command) for command in commands] for _ in range(runs)]
    return [min(each) for each in zip(*times, strict=True)]


def compare(flags: str, other: str, options, folder: pathlib.Path) -> tuple[float, float]:
    compiler = options.build / "bin/attn-compile"
    ours = [compiler, *flags.split(), "-o", os.devnull]
    if other:
        theirs = [compiler, *other.split(), "-o", os.devnull]
    else:
        ir, chip = folder / "kernel.ll", flags.rsplit("--chip=", 1)[1]
        subprocess.run([compiler, *flags.split(), "--emit=llvm", "-o", ir], check=True)
        theirs = ["/usr/lib/llvm-22/bin/llc", "-O1", f"-mcpu={chip}", f"-mattr=+{PTX[chip]}"]
        theirs += ["--nvptx-short-ptr", ir, "-o", os.devnull]
    first, second = least_seconds([ours, theirs], options.runs)
    return first, second


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options = parser.parse_args()
    above = 0
    with tempfile.TemporaryDirectory() as folder:
        for flags, other, limit in ROWS:
            if not re.search(options.only, flags):
                continue
            ours, theirs = compare(flags, other, options, pathlib.Path(folder))
            is_above = ours > limit * theirs
            above += is_above
            print(f"{flags}\n  {ours * 1e3:.0f} ms, {other or 'llc'}: {theirs * 1e3:.0f} ms, ratio "
                  f"{ours / theirs:.2f}, limit {limit:g}{', ABOVE' * is_above}", flush=True)  # fmt: skip
    return int(above > 0)


if __name__ == "__main__":
    sys.exit(main())
