#!/usr/bin/env python3
"""Runs CuTe DSL's own examples, as they are, on the stand-in driver: element-wise kernels, matrix
products with mma.sync, wgmma and tcgen05, and attention, at small sizes. Each compares its results
with torch's; a launch that is found to be wrong counts as well, but for what
scripts/cute-findings.txt explains. Then FlashAttention-4's forward, through TVM FFI, against
float64, where flash-attn-4 is installed.

Needs a checkout of CUTLASS, by $ATTN_CUTLASS where no argument names it, and an interpreter with
nvidia-cutlass-dsl and torch: this one, or the one that $ATTN_CUTE_PYTHON names. Without either
the status is 2.

usage: scripts/cute-examples.py [CUTLASS] [--only=REGEX] [--bin=build/bin]
The last line is "N passed, N failed".
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
#: Files under examples/python/CuTeDSL/cute, with a chip and arguments.
EXAMPLES = {
    "elementwise add": ("sm_80", "ampere/kernel/elementwise/elementwise_add.py --M=64 --N=256"),
    "elementwise apply": ("sm_90a", "ampere/kernel/elementwise/elementwise_apply.py --M=64 --N=256"),
    "mma.sync product": (
        "sm_80",
        "ampere/kernel/dense_gemm/tensorop_gemm.py --mnkl=128,128,64,1 --warmup_iterations=0 --iterations=1",
    ),
    "wgmma product": (
        "sm_90a",
        "hopper/kernel/dense_gemm/dense_gemm.py --mnkl=128,128,128,1 --tile_shape_mn=128,128 --iterations=1",
    ),
    "wgmma product, clusters": (
        "sm_90a",
        "hopper/kernel/dense_gemm/dense_gemm.py --mnkl=256,128,128,1 --tile_shape_mn=128,128 "
        "--cluster_shape_mn=2,1 --iterations=1",
    ),
    "tcgen05 product": ("sm_100a", "blackwell/tutorial/tutorial_gemm/fp16_gemm_0.py --mnk=128,256,128"),
    "tcgen05 product of pairs": (
        "sm_100a",
        "blackwell/kernel/dense_gemm/dense_gemm.py --mnkl=256,128,128,1 --mma_tiler_mn=256,128 "
        "--cluster_shape_mn=2,1 --use_2cta_instrs --use_tma_store --ab_dtype=Float16 --c_dtype=Float16",
    ),
    "attention by mma.sync": (
        "sm_80",
        "ampere/kernel/attention/flash_attention_v2.py --batch_size=1 --seqlen_q=128 --seqlen_k=128 "
        "--num_head=1 --head_dim=64 --iterations=1 --warmup_iterations=0",
    ),
    "attention by wgmma": (
        "sm_90a",
        "hopper/kernel/attention/fmha.py --q_shape=1,128,1,64 --k_shape=1,128,1,64 --iterations=1",
    ),
    "attention by tcgen05": (
        "sm_100a",
        "blackwell/kernel/attention/fmha/fmha.py --q_shape=1,256,1,64 --k_shape=1,256,1,64 --iterations=1",
    ),
}

#: Calls of FlashAttention-4, by file and arguments below python/tests.
FLASH_ATTENTION = {
    f"FlashAttention-4 for {chip}, {words}": (chip, f"sim/fa4_forward.py {words}")
    for chip in ("sm_80", "sm_90a", "sm_100a")
    for words in ("--shape=1,300,2,1,128 --causal", "--shape=2,200,2,2,64")
}


def run(python: str, chip: str, line: str) -> tuple[bool, str]:
    """Runs a file with arguments. Returns whether it is right, and the end of what it says."""
    start = [python, str(ROOT / "python/tests/on_stand_in.py"), "--cute", f"--chip={chip}"]
    command = [*start, *line.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def find_lack(python: str, folder: pathlib.Path) -> str | None:
    """What is not there to run examples with; None where all is."""
    if not folder.is_dir():
        return f"expected a checkout of CUTLASS with {folder}, got none"
    # Another package is called cutlass, too.
    if not has_modules(python, "cutlass.cute", "torch"):
        return f"expected nvidia-cutlass-dsl and torch in {python}, got none"
    return None


def has_modules(python: str, *names: str) -> bool:
    """Whether an interpreter finds all of them."""
    probe = "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1:])))"
    try:
        return subprocess.run([python, "-c", probe, *names], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    given = os.environ.get("ATTN_CUTLASS")
    parser.add_argument("cutlass", nargs="?", default=given)
    parser.add_argument("--only", default="", help="examples whose names match")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    options = parser.parse_args()
    if options.cutlass is None:
        print("expected a checkout of CUTLASS, got none")
        return 2
    python = os.environ.get("ATTN_CUTE_PYTHON") or sys.executable
    folder = pathlib.Path(options.cutlass) / "examples/python/CuTeDSL/cute"
    if lack := find_lack(python, folder):
        print(lack)
        return 2
    os.environ["PYTHONPATH"] = str(ROOT / "python")
    os.environ["ATTN_SIM_SUPPRESS"] = str(ROOT / "scripts/cute-findings.txt")
    os.environ.setdefault("ATTN_DRIVER", str(options.bin.parent / "lib/driver"))
    os.environ.setdefault("ATTN_LIBRARY", str(options.bin.parent / "lib/libAttnC.so"))
    passed = failed = 0
    lines = {name: (chip, f"{folder}/{line}") for name, (chip, line) in EXAMPLES.items()}
    if has_modules(python, "flash_attn.cute"):
        lines |= FLASH_ATTENTION
    for name, (chip, line) in lines.items():
        if not re.search(options.only, name):
            continue
        begin = time.monotonic()
        is_right, text = run(python, chip, line)
        passed, failed = passed + is_right, failed + (not is_right)
        verdict = "right" if is_right else "WRONG"
        print(f"{verdict} {name} on {chip} ({time.monotonic() - begin:.0f} s)", flush=True)
        if not is_right:
            print(text, flush=True)
    print(f"{passed} passed, {failed} failed")
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
