#!/usr/bin/env python3
"""Programs with a fault (test/Faults) on the stand-in driver: each has to be reported at its line,
and its repaired twin not at all.

Those of Triton and Gluon run in an interpreter that has triton (3.9 or so) and numpy, this one or
$ATTN_TRITON_PYTHON; without one they are left out.

usage: scripts/faulty-programs.py [--chip=sm_90a] [--only=REGEX] [--list]
  --chip   several with commas, one after the other
  --only   programs whose name matches
  --list   print their names

Prints one line for each. Fails where a program is not reported at its line, or its twin is.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import time
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "test/Faults")]
os.environ.setdefault("ATTN_DRIVER", str(ROOT / "build/lib/driver"))


def load_modules(has_triton: bool) -> None:
    """Lets the modules add their programs."""
    for name in ("ptx_faults", "stream_faults"):
        importlib.import_module(name)
    if has_triton:
        for name in ("triton_faults", "gluon_faults", "gluon_pipelines"):
            importlib.import_module(name)


def start(chip: str, has_triton: bool) -> Any:
    """The stand-in for one chip."""
    from attn.sim import stand_in

    if not has_triton:
        os.environ[stand_in.CHIPS] = chip
        library = stand_in.load()
        library.set_quiet(True)
        library.set_device(0)
        return library
    # The user's holds lines of where a file lay when it was compiled first.
    os.environ.setdefault("TRITON_CACHE_DIR", str(ROOT / "build/triton"))
    import attn.sim

    driver = attn.sim.triton(chip, raises=False)
    driver.library.set_quiet(True)
    return driver.library


def run_chip(chip: str, only: str, has_triton: bool) -> int:
    """Runs all programs of a chip. Returns how many are not as they should be."""
    library = start(chip, has_triton)
    load_modules(has_triton)
    import harness

    gpu, wrong, count = harness.Gpu(library), 0, 0
    for program in harness.FAULTS:
        if chip not in program.chips or not re.search(only, program.name):
            continue
        begin = time.monotonic()
        problems = harness.judge(gpu, program)
        wrong += bool(problems)
        count += 1
        mark = "FAILED" if problems else "ok"
        print(f"{mark:7}{program.name:40}{time.monotonic() - begin:7.2f} s", flush=True)
        for problem in problems:
            print(f"       {problem}", flush=True)
    print(f"{chip}: {count - wrong} of {count} programs are reported at their line, and their twins not")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    has_triton = importlib.util.find_spec("triton") is not None
    other = os.environ.get("ATTN_TRITON_PYTHON", "").split(":")[0]
    if not has_triton and other and other != sys.executable:
        return subprocess.run([other, *sys.argv], check=False).returncode
    if options.list:
        load_modules(has_triton)
        import harness

        print("\n".join(f"{each.name:40}{' '.join(each.chips)}" for each in harness.FAULTS))
        return 0
    if "," in options.chip:
        rest = [each for each in sys.argv if not each.startswith("--chip")]
        return max(
            subprocess.run([sys.executable, *rest, f"--chip={chip}"], check=False).returncode
            for chip in options.chip.split(",")
        )
    return int(run_chip(options.chip, options.only, has_triton) > 0)


if __name__ == "__main__":
    sys.exit(main())
