#!/usr/bin/env python3
"""A first look at kernels on a board that nobody has tried them on.

Compiles a bundle for each of a few problems, then launches each in a process of
its own, which a watchdog ends: a kernel that waits for ever costs its own row
only. Results are compared with float64 (python/tests/gpu_check.py, which needs
torch), two launches with each other, and times are printed. Made for ws_tmem on
sm_100a, sm_100f and sm_103a, which so far only the simulator has run; any
schedule of any chip will do:

    benchmarks/blackwell-smoke.py FOLDER --chip=sm_100a
    benchmarks/blackwell-smoke.py FOLDER --chip=sm_90a --schedule=ws_wgmma

usage: benchmarks/blackwell-smoke.py FOLDER [--chip=CHIP] [--schedule=NAME]
         [--filter=REGEX] [--set=PARAMETERS] [--seconds=N] [--compile-only]
Where ptxas is missing, the driver assembles the PTX. The exit status is 1 when a
kernel cannot be compiled, hangs, or is wrong.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: Name and flags: short ones first, each of them with something that the ones
#: before do not have.
PROBLEMS = [
    ("one_block", "-q 1x1x128x64xf16"),
    ("two_tiles", "-q 1x1x256x64xf16 --kv-len=512"),
    ("d64", "-q 2x4x1024x64xbf16"),
    ("d64_causal", "-q 2x4x1024x64xf16 --causal"),
    ("d128", "-q 2x4x1024x128xbf16"),
    ("d128_causal", "-q 2x4x1024x128xf16 --causal"),
    ("ragged", "-q 1x2x333x64xf16 --kv-len=257 --causal=bottom-right"),
    ("window", "-q 1x2x1000x128xbf16 --window=130,17"),
    ("grouped", "-q 2x8x500x128xf16 --kv-heads=2 --causal"),
    ("d96", "-q 1x2x300x96xbf16"),
    ("d80_48", "-q 1x2x300x80xf16 --dv=48"),
    ("softcap_sinks", "-q 1x2x300x64xf16 --softcap=5 --sinks"),
    ("packed", "-q 1x4x145x64xf16 --varlen=q:17,64,1,63/k:20,64,9,300 --causal"),
    ("many_tiles", "-q 4x32x1024x64xbf16 --causal"),
    ("long_d64", "-q 1x16x8192x64xbf16"),
    ("long_d128_causal", "-q 1x16x8192x128xbf16 --causal"),
]


def compile_bundle(options, name: str, flags: str) -> str:
    """What went wrong, or nothing."""
    folder = options.folder / name
    folder.mkdir(parents=True, exist_ok=True)
    command = [options.compile, f"--chip={options.chip}", f"--bundle={folder / name}.attn"]
    if options.schedule:
        command.append(f"--schedule={options.schedule}")
    if options.set:
        command.append(f"--set={options.set}")
    done = subprocess.run([*command, *flags.split()], capture_output=True, text=True)
    return "" if done.returncode == 0 else (done.stderr.strip() or "no output").splitlines()[-1]


def launch(options, name: str) -> tuple[bool, str]:
    """Whether the kernel is right, and its row."""
    command = [sys.executable, str(ROOT / "python/tests/gpu_check.py")]
    command.append(str(options.folder / name))
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=options.seconds
        )
    except subprocess.TimeoutExpired:
        return False, f"HANGS: ended after {options.seconds} s"
    rows = [line for line in done.stdout.splitlines() if line.startswith(f"{name}.attn")]
    if not rows:
        return False, (done.stderr.strip() or "no output").splitlines()[-1]
    return done.returncode == 0, rows[-1].removeprefix(f"{name}.attn").strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--chip", default="sm_100a")
    parser.add_argument("--schedule", default="ws_tmem")
    parser.add_argument("--filter", default="", metavar="REGEX")
    parser.add_argument("--set", default="", metavar="PARAMETERS")
    parser.add_argument("--seconds", type=float, default=60, help="for each kernel")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--compile", default=str(ROOT / "build/bin/attn-compile"))
    options = parser.parse_args()
    chosen = [problem for problem in PROBLEMS if re.search(options.filter, problem[0])]
    good = 0
    print("problem           image, q, O error, LSE error, GPU us, host us", flush=True)
    for name, flags in chosen:
        problem = compile_bundle(options, name, flags)
        if problem:
            row = f"cannot be compiled: {problem}"
        elif options.compile_only:
            good, row = good + 1, "compiled"
        else:
            right, row = launch(options, name)
            good += right
        print(f"{name:17} {row}", flush=True)
    word = "compiled" if options.compile_only else "right"
    print(f"{good} of {len(chosen)} {word}, {options.schedule} on {options.chip}")
    return 0 if good == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
