#!/usr/bin/env python3
"""Runs attention on tensors whose second head begins behind 2^31 elements.

Of q, k, v and o one at a time has such a stride; the other tensors are small, and so
is the work: two heads of 130 queries and keys. The simulator keeps whole tensors, so
that this takes 13 GiB of memory.

usage: scripts/far-offsets.py [--chip=sm_100a] [--schedule=ws_tmem] [--bin=FOLDER]
  [--only=REGEX]
The exit status is 1 when a result is wrong, and 2 where there is too little memory.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAMES = ("q", "k", "v", "o")
NEAR = "memref<1x2x130x64xf16>"
# 8 elements more, so that rows are aligned and a wrapped offset hits another one.
FAR = f"memref<1x2x130x64xf16, strided<[{2**33}, {2**31 + 8}, 64, 1]>>"
BYTES = 16 << 30


def make_problem(far: str) -> str:
    q, k, v, o = (FAR if name == far else NEAR for name in NAMES)
    lse = "memref<1x2x130xf32>"
    return f"""func.func @attention(%q: {q}, %k: {k}, %v: {v}, %o: {o}, %lse: {lse}) {{
  attn.attention ins(%q, %k, %v : {q}, {k}, {v}) outs(%o, %lse : {o}, {lse})
  return
}}
"""


def find_available() -> int:
    """Bytes that programs can have."""
    text = pathlib.Path("/proc/meminfo").read_text()
    return int(re.search(r"MemAvailable:\s+(\d+)", text)[1]) << 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--chip", default="sm_100a")
    parser.add_argument("--schedule", default="ws_tmem")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if find_available() < BYTES:
        print(f"not run: less than {BYTES >> 30} GiB of memory are free")
        return 2
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        problem, ptx, launch = (f"{scratch}/{name}" for name in ("p.mlir", "k.ptx", "k.json"))
        for name in NAMES:
            if not re.search(options.only, name):
                continue
            pathlib.Path(problem).write_text(make_problem(name))
            compiled = [options.bin / "attn-compile", problem, f"--chip={options.chip}",
                        f"--schedule={options.schedule}", "-o", ptx, f"--launch-out={launch}"]  # fmt: skip
            subprocess.run(compiled, check=True)
            # Without the second run, which would hold all tensors again.
            run = [options.bin / "attn-sim", ptx, f"--launch={launch}", "--verify",
                   "--lose-bets=false"]  # fmt: skip
            done = subprocess.run(run, capture_output=True, text=True)
            failed += done.returncode != 0
            print(f"{name}: {'right' if done.returncode == 0 else 'FAILED'}", flush=True)
            if done.returncode:
                print(done.stdout + done.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
