#!/usr/bin/env python3
"""Functions of public libraries of Triton kernels, on the simulator: each, with its gradients,
against torch in float64, and checked for races.

Runs in interpreters with triton, torch and some of the libraries, this one or those that
$ATTN_TRITON_PYTHON names, with colons between:

    pip install triton==3.9.0 torch liger-kernel==0.8.5 fla-core==0.6.0
    pip install triton==3.6.0 torch sqlalchemy; pip install --no-deps flag-gems==5.0.2

Without triton and torch the status is 2.

usage: scripts/triton-functions.py [--chip=sm_90a] [--only=REGEX] [--list] [--json=FILE]
                                   [--record=FOLDER]
  --chip   whose code Triton makes; several with commas, one after the other
  --only   functions whose name matches
  --list   print their names
  --json   write the results
  --record leave recordings of launches with findings, and repeat each by attn-sim

Prints one line for each. Fails when fewer than nine of ten agree, where one that does not agree
or has findings is not in EXPLAINED, where one of those has no findings, or where a recording
repeats nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import warnings
from typing import Any

from gems_cases import make_gems_cases
from triton_cases import Case, Fixed, first, make_fla_cases, make_liger_cases

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("ATTN_DRIVER", str(ROOT / "build/lib/driver"))
# Fused multiply-adds make lanes of a reduction differ in the last bit.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "0")
# FlagGems looks for the maker's tools else.
os.environ.setdefault("GEMS_VENDOR", "nvidia")

#: Defects of the functions themselves, which are found: what the kernel does.
EXPLAINED = {
    "gems batch_norm, no statistics": "takes its input for the running statistics, and overwrites it "
    "while other programs read it",
    "gems nll_loss": "warps read the counter of finished programs that one of them has just raised, "
    "with no barrier between",
    "gems scaled_dot_product_attention, gradients": "loads the gradient of rows after the last one, "
    "without a mask (attention.py: `do = tl.load(do_ptrs)`)",
}


def make_cases(torch: Any) -> list[Case]:
    """The cases of all libraries that are here and go with this Triton."""
    import triton

    version = tuple(int(part) for part in triton.__version__.split(".")[:2])
    cases: list[Case] = []
    for library, make, suits in (
        ("liger_kernel", make_liger_cases, True),
        # Refuses gated functions on Hopper with older ones.
        ("fla", make_fla_cases, version > (3, 7)),
        # Launches kernels as they were called up to then.
        ("flag_gems", make_gems_cases, version <= (3, 6)),
    ):
        if suits and importlib.util.find_spec(library) is not None:
            cases += make(torch)
    return cases


def prepare(torch: Any, inputs: list[Any], dtype: Any) -> list[Any]:
    """Copies of the inputs in a type of floats."""
    made = []
    for each in inputs:
        is_fixed = isinstance(each, Fixed)
        tensor = (each.tensor if is_fixed else each).detach().clone()
        if tensor.is_floating_point():
            tensor = tensor.to(dtype)
            if not is_fixed:
                tensor.requires_grad_()
        made.append(tensor)
    return made


def deviation(got: Any, expected: Any) -> float:
    """The largest difference, relative to the largest element."""
    size = expected.abs().max().item() or 1.0
    return (got.double() - expected).abs().max().item() / size


def run_case(torch: Any, case: Case) -> float:
    """The largest deviation of the result and of all gradients."""
    dtype = getattr(torch, case.dtype)
    ours = prepare(torch, case.inputs, dtype)
    # From the same values.
    rounded = [
        Fixed(prepare(torch, [each], dtype)[0].detach()) if isinstance(each, Fixed) else mine.detach()
        for each, mine in zip(case.inputs, ours)
    ]
    theirs = prepare(torch, rounded, torch.float64)
    result, expected = first(case.function(*ours)), case.reference(*theirs)
    worst = deviation(result.detach(), expected.detach())
    if not case.has_gradients:
        return worst
    upstream = torch.randn(expected.shape).to(dtype)
    # Some functions write the gradient over what they are given.
    result.backward(upstream.clone().to(result.dtype))
    expected.backward(upstream.double())
    for mine, other in zip(ours, theirs):
        if mine.requires_grad and other.grad is not None:
            worst = max(worst, deviation(mine.grad, other.grad))
    return worst


def judge(torch: Any, driver: Any, case: Case) -> dict[str, Any]:
    """Runs one case."""
    torch.manual_seed(0)
    start, before = time.monotonic(), driver.library.count_findings()
    row: dict[str, Any] = {"name": case.name, "agrees": False}
    try:
        row["deviation"] = run_case(torch, case)
        row["agrees"] = row["deviation"] <= case.tolerance
    except Exception as error:  # whatever a library raises is its result
        row["error"] = f"{type(error).__name__}: {error}"
    row["seconds"] = round(time.monotonic() - start, 2)
    errors = driver.library.count_findings()[1] - before[1]
    if errors:
        row["findings"] = driver.report("text", before[0])
    return row


def show(row: dict[str, Any]) -> None:
    """Prints the line of a case."""
    result = f"{row['deviation']:.1e}" if "deviation" in row else row["error"].split("\n")[0][:100]
    mark = "ok" if row["agrees"] else "FAILED"
    print(f"{mark:7}{row['name']:46}{row['seconds']:7.2f} s  {result}", flush=True)
    if row["name"] in EXPLAINED:
        print(f"       {EXPLAINED[row['name']]}")
    elif "findings" in row:
        print("    " + row["findings"].replace("\n", "\n    "), flush=True)


def repeat_recordings(folder: pathlib.Path) -> list[str]:
    """Runs each recording again. Returns those in which nothing is found."""
    silent = []
    for recording in sorted(each.parent for each in folder.glob("*/launch.json")):
        command = [str(ROOT / "build/bin/attn-sim"), f"--recorded={recording}"]
        ran = subprocess.run(command, check=False, capture_output=True, text=True)
        if "error: " not in ran.stdout + ran.stderr:
            silent.append(recording.name)
        print(f"{'silent' if silent[-1:] == [recording.name] else 'found again':12}{recording}")
    return silent


def sum_up(options: argparse.Namespace, rows: list[dict[str, Any]]) -> int:
    """Prints what all cases came to, and returns the status."""
    agreeing = sum(row["agrees"] for row in rows)
    odd = [
        row["name"]
        for row in rows
        if ("findings" in row or not row["agrees"]) != (row["name"] in EXPLAINED)
    ]
    silent = repeat_recordings(pathlib.Path(options.record, options.chip)) if options.record else []
    print(f"{options.chip}: {agreeing} of {len(rows)} functions agree; not explained: {odd or 'none'}")
    return int(10 * agreeing < 9 * len(rows) or bool(odd) or bool(silent))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--record")
    options = parser.parse_args()
    if not all(importlib.util.find_spec(each) for each in ("torch", "triton")):
        others = [each for each in os.environ.get("ATTN_TRITON_PYTHON", "").split(":") if each]
        if not others or sys.executable in others:
            print("expected interpreters with triton and torch, got none")
            return 2
        return max(subprocess.run([each, *sys.argv], check=False).returncode for each in others)
    if "," in options.chip:
        rest = [each for each in sys.argv if not each.startswith("--chip")]
        runs = [
            subprocess.run([sys.executable, *rest, f"--chip={chip}"], check=False).returncode
            for chip in options.chip.split(",")
        ]
        return max(runs)
    warnings.simplefilter("ignore")
    # Its tunings outlast a process.
    os.environ["FLAGGEMS_CACHE_DIR"] = tempfile.mkdtemp()
    if options.record:
        os.environ["ATTN_SIM_RECORD"] = str(pathlib.Path(options.record).resolve() / options.chip)
    import attn.sim
    import torch

    driver = attn.sim.triton(options.chip, raises=False)
    driver.library.set_quiet(True)
    torch.manual_seed(0)
    cases = [case for case in make_cases(torch) if re.search(options.only, case.name)]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    rows = []
    for case in cases:
        rows.append(judge(torch, driver, case))
        show(rows[-1])
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"chip": options.chip, "rows": rows}, indent=1) + "\n")
    return sum_up(options, rows)


if __name__ == "__main__":
    sys.exit(main())
