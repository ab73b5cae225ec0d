#!/usr/bin/env python3
"""What compiling a list of problems works on, against stored counts.

How long a compiler takes depends on the machine and on what else runs there; what it works on does
not. So this counts, of one run of attn-compile for each problem: lines of IR at all rungs, steps of
the two checks (attn-check-channels, attn-check-barriers) and of the proofs that attn-insert-fences
tries, lines of LLVM IR, lines of PTX. A count more than a tenth above the stored one is an error:
the compiler has become slower for this problem, or a change that is meant comes with new counts.
Times are in benchmarks/compile-time.py and benchmarks/compile-ratios.py.

With --lengths it compares the steps of the check of barriers, and its verdict, for problems
with few keys and tiles and for the same ones with millions: they may not grow.
benchmarks/compile-length.py has time and memory of more of them.

usage: scripts/compile-work.py --check | --update | --lengths [--bin=FOLDER] [--counts=FILE]
                               [--only=REGEX]
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
COUNTS = ROOT / "test/Tools/attn-compile/Inputs/compile-work.json"
SLACK = 0.1
SERVED = "--kv-lengths=4096,4096 --chip=sm_90a"
PROBLEMS = (
    # Prompts.
    "--q=4x32x4096x128xf16 --kv-heads=8 --causal --chip=sm_90a",
    "--q=4x32x4096x64xf16 --kv-heads=8 --chip=sm_90a",
    "--q=4x32x4096x128xf16 --kv-heads=8 --causal --chip=sm_100a",
    "--q=4x32x4096x64xf16 --kv-heads=8 --chip=sm_100a",
    # Keys of a batch that is served.
    f"--q=2x32x1x128xbf16 --kv-heads=8 --page-size=16 {SERVED}",
    f"--q=2x64x1x576xbf16 --rope-dim=64 --page-size=64 {SERVED}",
    # Wide heads, whose slices are unrolled.
    "--q=1x32x4096x512xf16 --causal --chip=sm_80",
    "--q=1x32x4096x1024xf16 --chip=sm_80",
    "--q=1x32x4096x1024xf16 --causal --chip=sm_80",
    "--q=1x32x4096x512xf16 --chip=sm_90a",
    "--q=1x32x4096x512xf16 --causal --chip=sm_90a",
)
# Problems with something of a few sizes, the first of which the others are measured by.
SIZES = (
    ("--q=1x8x{}x128xf16 --chip=sm_80", (4096, 1 << 22)),
    ("--q=1x8x{}x128xf16 --causal --chip=sm_80", (4096, 1 << 22)),
    ("--q=1x8x{}x128xf16 --chip=sm_90a", (4096, 1 << 22)),
    ("--q=1x8x{}x128xf16 --causal --chip=sm_90a", (4096, 1 << 22)),
    ("--q=1x8x{}x128xf16 --chip=sm_100a", (4096, 1 << 22)),
    ("--q=1x8x{}x128xf16 --causal --chip=sm_100a", (4096, 1 << 22)),
    ("--q={}x64x4096x128xf16 --causal --chip=sm_80", (2, 65535)),
    ("--q={}x64x4096x128xf16 --causal --chip=sm_90a", (2, 65535)),
    ("--q={}x64x4096x128xf16 --causal --chip=sm_100a", (2, 65535)),
)
# How much more steps may be, and what is few in any case.
FACTOR, FEW = 1.5, 8000
# Categories of remarks, and the metric that counts.
STEPS = {
    "channel_steps": ("attn.check-channels", "steps"),
    "barrier_steps": ("attn.check-barriers", "steps"),
    "fence_steps": ("attn.insert-fences", "trial-steps"),
}


def count_lines(files) -> int:
    return sum(bool(line.strip()) for file in files for line in file.read_text().splitlines())


def count(compiler: pathlib.Path, flags: str) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        done = subprocess.run(
            [compiler, *flags.split(), f"--dump-dir={folder / 'rungs'}", "-o", folder / "k.ptx"]
            + ["--remarks-filter=attn[.](check-|insert-fences).*"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            sys.exit(f"error: attn-compile {flags}\n{done.stderr}")
        rungs = folder / "rungs"
        counts = {"ir_lines": count_lines(rungs.glob("*.mlir"))}
        for key, (category, metric) in STEPS.items():
            pattern = rf"Category:{re.escape(category)} .*[ ,]{metric}=(\d+)"
            counts[key] = sum(map(int, re.findall(pattern, done.stderr)))
        counts["llvm_lines"] = count_lines(rungs.glob("*.ll"))
        counts["ptx_lines"] = count_lines(rungs.glob("*.ptx"))
    return counts


def compare(flags: str, found: dict[str, int], stored: dict[str, int] | None) -> int:
    """Prints what is more than it may be; how many counts are."""
    if stored is None:
        print(f"{flags}\n  expected stored counts, got none")
        return 1
    over = 0
    for key, value in found.items():
        limit = int(stored[key] * (1 + SLACK))
        if value > limit:
            print(f"{flags}\n  {key}: expected at most {limit} ({stored[key]} are stored), got {value}")
            over += 1
    return over


def count_steps(compiler: pathlib.Path, flags: str) -> int | None:
    """The steps of the check of barriers; nothing if the kernel is not proved."""
    done = subprocess.run(
        [compiler, *flags.split(), "-o", os.devnull, "--require-proof",
         "--remarks-filter=attn[.]check-barriers"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = re.search(r"Category:attn\.check-barriers .*[ ,]steps=(\d+)", done.stderr)
    return int(found[1]) if found and not done.returncode else None


def check_lengths(compiler: pathlib.Path, only: str) -> int:
    """Prints what takes more steps as it grows; the exit status."""
    wrong = checked = 0
    for form, (few, *many) in SIZES:
        if not re.search(only, form):
            continue
        least = count_steps(compiler, form.format(few))
        for size in many:
            checked += 1
            steps = count_steps(compiler, form.format(size))
            limit = int(FACTOR * max(least or 0, FEW))
            if least is None or steps is None or steps > limit:
                print(f"{form.format(size)}\n  expected a proof of at most {limit} steps, got {steps}")
                wrong += 1
    if not wrong:
        print(f"{checked} problems are proved in the steps of small ones")
    return int(wrong > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true")
    what.add_argument("--update", action="store_true")
    what.add_argument("--lengths", action="store_true")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--counts", type=pathlib.Path, default=COUNTS)
    parser.add_argument("--only", default="", metavar="REGEX", help="problems to check")
    options = parser.parse_args()
    if options.lengths:
        return check_lengths(options.bin / "attn-compile", options.only)
    problems = PROBLEMS if options.update else [p for p in PROBLEMS if re.search(options.only, p)]
    found = {flags: count(options.bin / "attn-compile", flags) for flags in problems}
    if options.update:
        options.counts.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    stored = json.loads(options.counts.read_text())
    over = sum(compare(flags, counts, stored.get(flags)) for flags, counts in found.items())
    if over:
        print("where that is meant: scripts/compile-work.py --update")
    else:
        print(f"{len(found)} problems are compiled with no more work than is stored")
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main())
