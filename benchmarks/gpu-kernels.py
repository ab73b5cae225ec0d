#!/usr/bin/env python3
"""Compiles the kernels that gpu-speed.py times, into a folder of bundles.

usage: benchmarks/gpu-kernels.py FOLDER [--filter=REGEX] [--plans=FILE]
                                 [--chip=sm_80] [--cubin=sm_90] [--workers=2]
                                 [--models | --inputs]
Each cell gets the kernel of the plan that the compiler chooses. --plans names
a JSON list of further plans: objects with `match` (a regular expression for
cells' names), `label`, and `set` (parameters by name). FOLDER/kernels.json
lists cells, kernels, plans and the time that the cost model predicts for the
chip of --predict-for. --models takes the problems of well-known models instead
of the standard ones, --inputs slices of fused tensors, packed sequences and
kernels for any lengths beside dense ones.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import pathlib
import re
import subprocess
import sys

import gpu_cells

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))

from tool_util import progress  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLANNED = "planned"


def run(options: argparse.Namespace, cell: gpu_cells.Cell, *more: str) -> tuple[str, str]:
    """Standard output and error of attn-compile on a cell."""
    flags, text = cell.get_compiler_input()
    command = [str(options.build / "bin/attn-compile"), *flags, *more]
    if text is not None:
        command.append("-")
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{cell.name}: {done.stderr.strip()}")
    return done.stdout, done.stderr


def predict(options: argparse.Namespace, cell: gpu_cells.Cell, plan: str) -> dict | None:
    """Microseconds and limiter of a plan by the cost model of --predict-for."""
    schedule, body = re.fullmatch(r"#attn\.(\w+)<(.*)>", plan).groups()
    settings = [f"--set={part.replace(' ', '')}" for part in body.split(", ") if part]
    try:
        # Parameters that the plan does not print have their defaults.
        _, text = run(
            options, cell, f"--chip={options.predict_for}", f"--schedule={schedule}",
            *settings, "--print-plan=all", "--emit=plan", "-o", "/dev/null",
        )  # fmt: skip
    except RuntimeError:
        return None
    for note in text.splitlines():
        found = re.search(r"note: (#attn\S.*?>): ([\d.]+) us .*limit (\w+)\)", note)
        if found and found[1] == plan:
            return {"us": float(found[2]), "limiter": found[3]}
    return None


def build(options: argparse.Namespace, cell: gpu_cells.Cell, label: str, settings: dict) -> dict:
    """Compiles one kernel; its entry of the list."""
    settings = dict(settings)
    schedule = [f"--schedule={settings.pop('schedule')}"] if "schedule" in settings else []
    name = re.sub(r"[^\w.-]", "_", f"{cell.name}-{label}") + ".attn"
    out, _ = run(
        options, cell, f"--chip={options.chip}", *schedule,
        *[f"--set={key}={value}" for key, value in settings.items()],
        f"--bundle={options.folder / name}", f"--bundle-chips={options.cubin}",
        "--json", "-o", "/dev/null",
    )  # fmt: skip
    plan = json.loads(out)["plan"][0]
    return {"label": label, "file": name, "plan": plan, "predicted": predict(options, cell, plan)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--filter", default="", metavar="REGEX", help="only cells that match")
    parser.add_argument("--plans", type=pathlib.Path, help="further plans")
    parser.add_argument("--layout", choices=("bhnd", "bnhd"), default="bhnd")
    parser.add_argument("--models", action="store_true", help="the problems of well-known models")
    parser.add_argument(
        "--inputs", action="store_true", help="fused, packed and open inputs beside dense ones"
    )
    parser.add_argument("--chip", default="sm_80", help="the target of the PTX")
    parser.add_argument("--cubin", default="sm_90", help="what ptxas assembles for")
    parser.add_argument("--predict-for", default="sm_90a", metavar="CHIP")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    plans = json.loads(options.plans.read_text()) if options.plans else []
    if options.models:
        cells = gpu_cells.make_models()
    elif options.inputs:
        cells = gpu_cells.make_inputs()
    else:
        cells = gpu_cells.make_standard(options.layout) + gpu_cells.make_features(options.layout)
        if options.chip == "sm_90a":
            cells += gpu_cells.make_narrow(options.layout)
    cells = [cell for cell in cells if re.search(options.filter, cell.name)]
    work = []
    for cell in cells:
        work.append((cell, PLANNED, {}))
        work += [(cell, p["label"], p["set"]) for p in plans if re.search(p["match"], cell.name)]
    kernels: dict[gpu_cells.Cell, list[dict]] = {cell: [] for cell in cells}
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        futures = [(cell, pool.submit(build, options, cell, *rest)) for cell, *rest in work]
        for index, (cell, future) in enumerate(futures):
            progress(index, len(futures), cell.name)
            try:
                kernels[cell].append(future.result())
            except (RuntimeError, OSError) as error:
                failed += 1
                print(error, file=sys.stderr)
        progress(len(futures), len(futures), "done")
    listing = {
        "chip": options.chip,
        "cubin": options.cubin,
        "cells": [{"cell": dataclasses.asdict(c), "kernels": kernels[c]} for c in cells],
    }
    (options.folder / "kernels.json").write_text(json.dumps(listing, indent=1), encoding="utf-8")
    print(f"{len(work) - failed} of {len(work)} kernels for {len(cells)} problems in {options.folder}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
