#!/usr/bin/env python3
"""This project's GPU tests (python/tests/gpu_*.py) without a GPU, on the stand-in driver: kernels
of bundles, dense, grouped, packed, decoding, eager and in graphs, and the calls on torch tensors,
eager and captured: of attention, of decoding, of shared prefixes, of latent operands, of steps of
serving and of FlashInfer's wrappers, in small sizes. What is skipped is said.

Runs them in an interpreter with torch, this one or the first that $ATTN_TRITON_PYTHON names;
without one the status is 2.

usage: scripts/gpu-tests.py [--chips=sm_80,sm_90a,sm_100a] [--bin=build/bin] [--sample]
  --chips    those whose kernels are run
  --sample   the bundles alone
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
#: Problems of bundles, by attn-compile's flags.
BUNDLES = {
    "dense": ["-q", "1x2x100x64xf16", "--causal"],
    "gqa": ["-q", "2x4x70x128xbf16", "--kv-heads=2"],
    "packed": ["-q", "1x2x150x64xf16", "--varlen=q:17,64,69", "--causal"],
    "decode": ["-q", "1x8x1x64xf16", "--kv-heads=2", "--kv-len=600"],
    "split": ["-q", "1x2x1x64xf16", "--kv-heads=2", "--kv-len=4096"],
    "wide": ["-q", "1x2x60x256xbf16", "--kv-len=90"],
}
#: Checks of gpu_attention.py that take no other thread and no compiler of torch's, and are short.
CALLS = r"^(?!torch\.compile|host time|another thread|a growing cache)"
#: Tests of torch tensors in sizes that a simulator takes.
SMALL = {
    "gpu_calls.py": ["--small"],
    "gpu_cascade.py": ["--small"],
    "gpu_decode.py": ["--small", "--rounds=1"],
    "gpu_serve.py": ["--small"],
}


def find_python() -> str | None:
    """An interpreter with torch."""
    if importlib.util.find_spec("torch") is not None:
        return sys.executable
    return os.environ.get("ATTN_TRITON_PYTHON", "").split(":")[0] or None


def run(python: str, chip: str, *arguments: str) -> bool:
    """Runs a GPU test. Returns whether it is as it should be."""
    command = [python, str(ROOT / "python/tests/on_stand_in.py"), f"--chip={chip}", *arguments]
    return subprocess.run(command, check=False).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chips", default="sm_80,sm_90a,sm_100a")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--sample", action="store_true")
    options = parser.parse_args()
    python = find_python()
    if python is None:
        print("expected an interpreter with torch, got none")
        return 2
    os.environ["PYTHONPATH"] = str(ROOT / "python")
    os.environ.setdefault("ATTN_DRIVER", str(options.bin.parent / "lib/driver"))
    os.environ.setdefault("ATTN_LIBRARY", str(options.bin.parent / "lib/libAttnC.so"))
    good = True
    for chip in options.chips.split(","):
        with tempfile.TemporaryDirectory() as folder:
            for name, flags in BUNDLES.items():
                command = [options.bin / "attn-compile", *flags, f"--chip={chip}", "-o", "/dev/null"]
                subprocess.run([*command, f"--bundle={folder}/{name}.attn"], check=True)
            good &= run(python, chip, "gpu_check.py", folder, "--graph", "--repeats=0")
            if chip != "sm_80":
                # The test has to see rows that are too long.
                good &= not run(python, chip, "--break-strides", "gpu_check.py", folder, "--repeats=0")
            if not options.sample:
                good &= run(python, chip, "gpu_graphs.py")
                good &= run(python, chip, "gpu_packed.py")
                good &= run(python, chip, "gpu_attention.py", f"{folder}/cache", f"--only={CALLS}")
                for test, arguments in SMALL.items():
                    good &= run(python, chip, test, f"{folder}/cache", *arguments)
    print("all as it should be" if good else "something is wrong")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
