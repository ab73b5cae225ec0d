#!/usr/bin/env python3
"""Triton's own tests over the stand-in driver: tutorials, Gluon's tutorials at small sizes, and a
sample of the tests of the language.

Runs in an interpreter with triton, torch and pytest, this one or the first that
$ATTN_TRITON_PYTHON names, on a checkout of Triton of about the same version, the argument or
$ATTN_TRITON_CHECKOUT. Without these the status is 2.

usage: scripts/triton-suites.py [CHECKOUT] [--suites=tutorials,gluon,language] [--chips=sm_90a]
                                [--sample=200] [--seed=1] [--only=EXPRESSION] [--seconds=120]
                                [--json=FILE] [--bin=build/bin]
  --sample   how many tests are drawn of each suite, the same for a seed
  --only     pytest's -k
  --seconds  of a test; what takes longer is listed apart
  --json     write the results

Tests that ask for torch's CUDA, whose tensors are not the stand-in's, or for machine code, and those
that Triton itself does not compile, as a checkout that is newer has some, are listed apart, too.
A test that finds a fault of its kernel's (EXPLAINED) counts as one that passes.
Prints what failed. Fails where fewer than nine of ten pass.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]
#: What of a checkout each runs.
SUITES = {
    "tutorials": "python/tutorials",
    "gluon": "python/tutorials/gluon",
    "language": "python/test/unit/language",
}
#: What is said by tests that are listed apart.
APART = {
    "asks for torch's CUDA": ("cudaGetDeviceCount", "not compiled with CUDA", "Found no NVIDIA driver"),
    "asks for machine code": ("cuobjdump",),
    "takes too long": ("over its time",),
    "is refused by Triton's front end": ("CompilationError",),
}

#: Faults of the tests' kernels, which are found beside right results: what a kernel does.
EXPLAINED = {
    "test_layer_norm": "warps read the counter of a row of partial sums that one of them may have set "
    "already, with no barrier between (05-layer-norm.py: `count = tl.load(Count)`)",
    "test_int_annotation": "writes to the fourth element of a tensor that has one",
    "test_load_scope_sem_coop_grid_cta_one": "two programs load and store one element",
    "test_load_scope_sem_coop_grid_cta_not_one": "two programs load and store one element",
}
#: What a finding says in a test's error.
FINDINGS = ("simulator's findings", "outside of every allocation")


def find_python() -> str | None:
    """An interpreter with triton and torch."""
    if all(importlib.util.find_spec(name) for name in ("triton", "torch", "pytest")):
        return sys.executable
    return os.environ.get("ATTN_TRITON_PYTHON", "").split(":")[0] or None


def judge(case: xml.etree.ElementTree.Element) -> str:
    """How a test ended."""
    if case.find("skipped") is not None:
        return "left out"
    for kind in ("failure", "error"):
        found = case.find(kind)
        if found is None:
            continue
        text = (found.get("message") or "") + (found.text or "")
        name = (case.get("name") or "").partition("[")[0]
        if name in EXPLAINED and any(sign in text for sign in FINDINGS):
            return "explained"
        for name, signs in APART.items():
            if any(sign in text for sign in signs):
                return name
        print(f"FAILED {case.get('name')}: {text.strip().splitlines()[0][:200]}", flush=True)
        return "failed"
    return "passed"


def run(python: str, suite: str, chip: str, options: argparse.Namespace) -> dict[str, int]:
    """Runs a suite on a chip. Returns how many tests ended in which way."""
    where = options.checkout / SUITES[suite]
    command = [python, "-m", "pytest", "-q", "-W", "ignore", "--tb=short", "-p", "attn.sim.pytest_plugin"]
    command += ["-p", "suite_plugin", f"--attn-chip={chip}", "--continue-on-collection-errors"]
    command += [f"--suite-sample={options.sample}", f"--suite-seed={options.seed}"]
    command.append(f"--suite-seconds={options.seconds}")
    if options.only:
        command += ["-k", options.only]
    folder = str(where)
    if suite == "tutorials":
        folder = str(ROOT / "scripts/tutorial_cases.py")
        os.environ["ATTN_TRITON_CHECKOUT"] = str(options.checkout)
    if suite == "language":
        command.append("--device=cpu")
    with tempfile.TemporaryDirectory() as temporary:
        report = pathlib.Path(temporary, "report.xml")
        done = subprocess.run(
            [*command, f"--junitxml={report}", folder], cwd=where, capture_output=True, text=True, check=False
        )
        if not report.exists():
            raise SystemExit(done.stdout[-3000:] + done.stderr[-3000:])
        cases = xml.etree.ElementTree.parse(report).iter("testcase")
        return dict(collections.Counter(judge(case) for case in cases))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given = os.environ.get("ATTN_TRITON_CHECKOUT")
    parser.add_argument("checkout", nargs="?", type=pathlib.Path, default=given)
    parser.add_argument("--suites", default="tutorials,gluon,language")
    parser.add_argument("--chips", default="sm_90a")
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    options = parser.parse_args()
    python = find_python()
    if python is None or options.checkout is None:
        print("expected a checkout of Triton, and an interpreter with triton, torch and pytest")
        return 2
    options.checkout = pathlib.Path(options.checkout).resolve()
    paths = [str(ROOT / "python"), str(ROOT / "scripts"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    os.environ.setdefault("ATTN_DRIVER", str(options.bin.parent / "lib/driver"))
    results, is_good = [], True
    for chip in options.chips.split(","):
        for suite in options.suites.split(","):
            counts = run(python, suite, chip, options)
            passed, failed = counts.get("passed", 0) + counts.get("explained", 0), counts.get("failed", 0)
            is_good &= passed >= 9 * failed and passed > 0
            results.append({"suite": suite, "chip": chip, **counts})
            print(f"{suite} on {chip}: " + ", ".join(f"{n} {name}" for name, n in sorted(counts.items())), flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return int(not is_good)


if __name__ == "__main__":
    sys.exit(main())
