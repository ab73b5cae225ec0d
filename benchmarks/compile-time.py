#!/usr/bin/env python3
"""Time from an attention problem to PTX: attn-compile against Triton 3.9.

Both compile the same problem (f16, causal, grouped heads, LSE) for the same
GPU in one run, by turns, each run in a fresh process; caches are off. No GPU
is needed. The table has medians over the runs:
  process    wall time of the whole process, start-up included; for Triton
             without its last stage, ptxas
  compile    time inside the process from the problem to the PTX text; for
             Triton of the second compilation, when everything is loaded
  cpu        processor time of the whole process, which other work on the
             machine disturbs less; for Triton without ptxas
The last part shows where attn-compile's time goes, pass by pass.

usage: benchmarks/compile-time.py [--runs=N] [--head-dim=D] [--chip=sm_80]
                                  [--no-causal] [--build=DIR] [--json=FILE]
The exit status is 1 when `process` exceeds a tenth of Triton's: what a user who
starts either waits for, without ptxas on both sides.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))

from tool_util import progress  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV_PYTHON = ROOT / ".venv/bin/python"
WORKER = ROOT / "benchmarks/triton_worker.py"
LIMIT = 0.1


def set_up() -> None:
    subprocess.run([ROOT / "scripts/install-deps.sh", "--with-python"], check=True)


def child_seconds() -> float:
    """Processor time of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run_attn(arguments: argparse.Namespace) -> dict:
    """One run of attn-compile: process and compile time in seconds, and the
    time of each stage and, indented, of each pass in it."""
    command = [
        arguments.build / "bin/attn-compile",
        f"--q=4x32x4096x{arguments.head_dim}xf16", "--kv-heads=8",
        f"--chip={arguments.chip}", "--emit=ptx", "-o", os.devnull, "--timing",
    ]
    if arguments.causal:
        command.append("--causal")
    start, cpu = time.perf_counter(), child_seconds()
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    wall, cpu = time.perf_counter() - start, child_seconds() - cpu
    if result.returncode:
        sys.exit(f"error: {' '.join(map(str, command))}\n{result.stderr}")
    total = re.search(r"Total Execution Time: ([\d.]+) seconds", result.stderr)
    if not total:
        sys.exit(f"error: attn-compile printed no timing report:\n{result.stderr}")
    passes = {}
    for seconds, name in re.findall(r"^\s+([\d.]+) \([^)]*\)  (.*?)\s*$", result.stderr, re.M):
        if name != "Total":
            passes[name] = passes.get(name, 0.0) + float(seconds)
    return {"process": wall, "compile": float(total.group(1)), "cpu": cpu, "passes": passes}


def run_triton(arguments: argparse.Namespace) -> dict:
    """One run of Triton: the same two times, and the stages of the second
    compilation."""
    capability = int(re.sub(r"\D", "", arguments.chip))
    with tempfile.TemporaryDirectory() as cache:
        environment = dict(
            os.environ, TRITON_CACHE_DIR=cache, TRITON_ALWAYS_COMPILE="1",
            TRITON_DEFAULT_FP_FUSION="1", PYTHONDONTWRITEBYTECODE="1",
        )
        start = time.perf_counter()
        result = subprocess.run(
            [VENV_PYTHON, WORKER, str(capability), str(arguments.head_dim),
             str(int(arguments.causal))],
            capture_output=True, text=True, check=False, env=environment,
        )
        wall = time.perf_counter() - start
    if result.returncode:
        sys.exit(f"error: Triton failed:\n{result.stderr}")
    report = json.loads(result.stdout)
    second = report["compilations"][1]
    stages = {name: seconds for name, seconds in second["stages"].items() if name != "cubin"}
    # The process ran two compilations; a user's process runs one.
    process = wall - second["total"] - report["compilations"][0]["stages"]["cubin"]
    return {"process": process, "compile": sum(stages.values()), "total": second["total"], "cpu": report["cpu"] - second["cpu"],
            "passes": stages, "version": report["version"]}


def median(runs: list[dict], key: str) -> float:
    return statistics.median(run[key] for run in runs)


def median_parts(runs: list[dict]) -> list[tuple[str, float]]:
    """Name and median of each part, in the order in which they ran."""
    names = dict.fromkeys(name for run in runs for name in run["passes"])
    return [(n, statistics.median(run["passes"].get(n, 0.0) for run in runs)) for n in names]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--head-dim", type=int, default=128)
    parser.add_argument("--chip", default="sm_80")
    parser.add_argument("--no-causal", dest="causal", action="store_false")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    set_up()

    ours, triton = [], []
    for index in range(arguments.runs):
        progress(2 * index, 2 * arguments.runs, "attn-compile")
        ours.append(run_attn(arguments))
        progress(2 * index + 1, 2 * arguments.runs, "Triton")
        triton.append(run_triton(arguments))
    progress(2 * arguments.runs, 2 * arguments.runs, "done")

    kind = "causal" if arguments.causal else "no mask"
    print(f"problem to PTX, f16, D = {arguments.head_dim}, {kind}, {arguments.chip}, "
          f"median of {arguments.runs}, Triton {triton[0]['version']}\n")
    print(f"{'':10}{'attn':>12}{'Triton':>12}{'ratio':>9}")
    for key in ("compile", "process", "cpu"):
        a, t = median(ours, key), median(triton, key)
        print(f"{key:10}{a * 1e3:9.1f} ms{t * 1e3:9.1f} ms{a / t:9.3f}")
    whole = median(triton, "total")
    print(f"all of triton.compile, ptxas included: {whole * 1e3:.1f} ms, "
          f"ratio {median(ours, 'compile') / whole:.3f}")
    for title, runs in (("attn-compile", ours), ("Triton, second compilation", triton)):
        print(f"\n{title}:")
        for name, seconds in median_parts(runs):
            if seconds >= 0.0001:
                print(f"{seconds * 1e3:9.1f} ms  {name}")
    ratio = median(ours, "process") / median(triton, "process")
    print(f"\nratio of process {ratio:.3f}, limit {LIMIT}: {'met' if ratio <= LIMIT else 'MISSED'}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"attn": ours, "triton": triton}, indent=1))
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
