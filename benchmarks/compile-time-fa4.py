#!/usr/bin/env python3
"""Time from an attention problem to PTX: attn-compile against FlashAttention-4.

FlashAttention-4 compiles its kernel when it is first called (CuTe DSL): it
traces Python code, runs MLIR passes on it, has libNVVM make PTX and ptxas make
machine code, all in the process of the caller. Both compile the same problem
(4 x 32 x 4096 x D, 8 key heads, LSE) by turns; caches are off. No GPU is needed.
  attn       the whole process of attn-compile, start-up included
  FA4        from the call of flash_attn_func to the PTX, in a process that has
             imported everything and compiled another kernel before; its import
             and start-up, several seconds, do not count
  trace      the part of it that traces Python code
  cubin      the same up to machine code, ptxas included
Each is a median over the runs, in wall time (ms) and, in brackets, in processor
time, which other work on the machine disturbs less.

usage: benchmarks/compile-time-fa4.py [--runs=N] [--types=float16,bfloat16]
                                      [--head-dims=64,128,256] [--no-cubin]
                                      [--build=DIR] [--fa4-python=FILE] [--json=FILE]
The exit status is 1 when attn takes more than a tenth of FA4's time to the PTX
of a kernel. FlashAttention-4 and PyTorch go to .venv-fa4 (6 GB) unless
--fa4-python names an interpreter that has them.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORKER = ROOT / "benchmarks/fa4_worker.py"
CHIP = "sm_90a"
SMS = 132
LIMIT = 0.1
WARM_UP = "bfloat16,96,0"
TYPES = {"float16": "f16", "bfloat16": "bf16"}
# Of attn-compile, which is fast, in each run.
REPETITIONS = 3


def child_seconds() -> float:
    """Processor time of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run_attn(build: pathlib.Path, kernel: str, rung: str) -> tuple[float, float]:
    """Wall and processor time of one process."""
    dtype, dim, causal = kernel.split(",")
    command = [
        build / "bin/attn-compile", f"--q=4x32x4096x{dim}x{TYPES[dtype]}", "--kv-heads=8",
        f"--chip={CHIP}", f"--emit={rung}", "-o", os.devnull,
    ] + ["--causal"] * (causal == "1")  # fmt: skip
    start, cpu = time.perf_counter(), child_seconds()
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"error: {' '.join(map(str, command))}\n{result.stderr}")
    return time.perf_counter() - start, child_seconds() - cpu


def run_fa4(python: pathlib.Path, kernels: list[str]) -> dict:
    command = [python, "-W", "ignore", WORKER, CHIP, str(SMS), WARM_UP, *kernels]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"error: FlashAttention-4 failed:\n{result.stderr}")
    return json.loads(result.stdout)


def median(runs: list[tuple[float, float]]) -> tuple[float, float]:
    return tuple(statistics.median(values) for values in zip(*runs, strict=True))


def spell(times: tuple[float, float]) -> str:
    return f"{times[0] * 1e3:.0f} ({times[1] * 1e3:.0f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--types", default="float16,bfloat16")
    parser.add_argument("--head-dims", default="64,128,256")
    parser.add_argument("--no-cubin", dest="cubin", action="store_false")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--fa4-python", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    if not arguments.fa4_python:
        subprocess.run([ROOT / "scripts/install-deps.sh", "--with-fa4"], check=True)
        arguments.fa4_python = ROOT / ".venv-fa4/bin/python"

    kernels = [
        f"{dtype},{dim},{causal}"
        for dtype in arguments.types.split(",")
        for dim in arguments.head_dims.split(",")
        for causal in (0, 1)
    ]
    times = {kernel: {} for kernel in kernels}
    for index in range(arguments.runs):
        print(f"run {index + 1} of {arguments.runs}", file=sys.stderr)
        fa4 = run_fa4(arguments.fa4_python, kernels)
        for entry in fa4["kernels"][1:]:
            for part in ("trace", "ptx", "all"):
                times[entry["kernel"]].setdefault("fa4 " + part, []).append(
                    (entry[part], entry[part + "_cpu"]))
        for kernel in kernels:
            for rung in ("ptx", "cubin") if arguments.cubin else ("ptx",):
                for _ in range(REPETITIONS):
                    times[kernel].setdefault("attn " + rung, []).append(
                        run_attn(arguments.build, kernel, rung))

    print(f"{CHIP}, FlashAttention-4 {fa4['version']}, CuTe DSL {fa4['dsl']}, "
          f"median of {arguments.runs}, ms\n")
    print("| | attn | FA4 | of it trace | ratio | attn to cubin | FA4 to cubin | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    missed = []
    for kernel in kernels:
        dtype, dim, causal = kernel.split(",")
        name = f"{TYPES[dtype]} D {dim}" + " causal" * (causal == "1")
        at = {part: median(runs) for part, runs in times[kernel].items()}
        row = [spell(at["attn ptx"]), spell(at["fa4 ptx"]), spell(at["fa4 trace"])]
        ratios = [a / f for a, f in zip(at["attn ptx"], at["fa4 ptx"], strict=True)]
        row.append(f"{ratios[0]:.3f} ({ratios[1]:.3f})")
        if arguments.cubin:
            whole = [a / f for a, f in zip(at["attn cubin"], at["fa4 all"], strict=True)]
            row += [spell(at["attn cubin"]), spell(at["fa4 all"]),
                    f"{whole[0]:.3f} ({whole[1]:.3f})"]  # fmt: skip
        else:
            row += ["", spell(at["fa4 all"]), ""]
        print(f"| {name} | {' | '.join(row)} |")
        if ratios[0] > LIMIT:
            missed.append(name)
    print(f"\nlimit {LIMIT}: {'MISSED by ' + ', '.join(missed) if missed else 'met'}")
    if arguments.json:
        arguments.json.write_text(json.dumps(times, indent=1))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
