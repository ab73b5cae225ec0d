#!/usr/bin/env python3
"""What attn-check-barriers says of a list of kernels, and how long it takes.

Prints the table of docs/BarrierCheck.md. Seconds are processor time of the check alone: that of
attn-opt with the pass less that without it, the least of three runs.

usage: benchmarks/barrier-check.py [--bin=FOLDER] [--only=TEXT] [--limit=STEPS]
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SMALL, LARGE = "--q=1x4x1024x128xf16", "--q=4x32x4096x128xf16"
HOPPER, TENSOR = "--chip=sm_90a", "--chip=sm_100a --schedule=ws_tmem"
# Name, flags of attn-compile.
KERNELS = (
    ("`ws_wgmma`", f"{SMALL} {HOPPER}"),
    ("`ws_wgmma`, cluster of 2", f"{SMALL} {HOPPER} --set cluster=2"),
    ("`ws_wgmma`, cluster of 4, 4x32x4096x128", f"{LARGE} {HOPPER} --set cluster=4"),
    ("`ws_wgmma`, 8-bit with transposer", f"--q=1x4x1024x128xf8E4M3FN {HOPPER}"),
    ("`ws_wgmma`, causal", f"{SMALL} {HOPPER} --causal"),
    ("`ws_wgmma`, causal, cluster of 2", f"{SMALL} {HOPPER} --causal --set cluster=2"),
    ("`ws_wgmma`, causal, `dynamic`", f"{SMALL} {HOPPER} --causal --set dynamic=true"),
    (
        "`ws_wgmma`, causal, cluster of 2, `dynamic`",
        f"{SMALL} {HOPPER} --causal --set cluster=2 --set dynamic=true",
    ),
    ("`ws_wgmma`, causal, 4x32x4096x128", f"{LARGE} {HOPPER} --causal"),
    (
        "`ws_wgmma`, causal, cluster of 2, 4x32x4096x128",
        f"{LARGE} {HOPPER} --causal --set cluster=2",
    ),
    ("`ws_wgmma`, window of 256", f"{SMALL} {HOPPER} --window=256,0"),
    ("`ws_wgmma`, `epilogue=tma`", f"{SMALL} {HOPPER} --epilogue=tma"),
    ("`ws_wgmma`, D 64", f"--q=1x4x1024x64xf16 {HOPPER}"),
    ("`ws_wgmma`, D 256", f"--q=1x4x1024x256xf16 {HOPPER}"),
    ("`self_load`", f"{SMALL} {HOPPER} --schedule=self_load"),
    ("`self_load`, `epilogue=tma`", f"{SMALL} {HOPPER} --schedule=self_load --epilogue=tma"),
    ("`self_load`, causal", f"{SMALL} {HOPPER} --schedule=self_load --causal"),
    ("`ws_tmem`", f"--q=2x4x512x128xbf16 {TENSOR}"),
    ("`ws_tmem`, causal", f"--q=2x4x512x128xbf16 {TENSOR} --causal"),
    ("`split_q` on sm_80", f"{SMALL} --chip=sm_80"),
    ("`split_q` on sm_80, causal", f"{SMALL} --chip=sm_80 --causal"),
)


def seconds_of(command: list[str]) -> tuple[float, str]:
    """The least processor time of three runs, and what is printed."""
    times = []
    for _ in range(3):
        before = os.times()
        done = subprocess.run(command, capture_output=True, text=True)
        after = os.times()
        times.append(after.children_user + after.children_system
                     - before.children_user - before.children_system)  # fmt: skip
    return min(times), done.stderr


def row_of(name: str, flags: str, bins: pathlib.Path, limit: int, folder: str) -> str:
    path = f"{folder}/kernel.mlir"
    command = [str(bins / "attn-compile"), *flags.split(), "--emit=barrier", "-o", path]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode != 0:
        return f"| {name} | | no kernel: {made.stderr.splitlines()[0][:60]} | | | | |"
    reading, _ = seconds_of([str(bins / "attn-opt"), path, "-o", "/dev/null"])
    seconds, text = seconds_of([
        str(bins / "attn-opt"), path, "-o", "/dev/null", "--remarks-filter=attn.check.*",
        f"--pass-pipeline=builtin.module(gpu.module(attn-check-barriers{{limit={limit}}}))",
    ])  # fmt: skip
    taken = f"{max(0.0, seconds - reading):.2f}"
    if "is proved" not in text:
        match = re.search(r"(checked up to \d+ tiles|cannot be checked[^\n]*|error: [^\n]*)", text)
        return f"| {name} | | | | | {taken} | {match.group(1) if match else text[:60]} |"
    number = {key: int(value) for key, value in re.findall(r"([a-z-]+)=(\d+)", text)}
    assumed = re.search(r'assumptions="?([A-Z0-9a-z ]*?)"?,', text).group(1)
    kinds = max(number["tile-kinds"], number["block-kinds"])
    return (
        f"| {name} | {number['warps']} | {kinds} | {number['states']} | {number['steps']:,} "
        f"| {taken} | {assumed} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--limit", type=int, default=30000000)
    options = parser.parse_args()
    print("| kernel | warps | kinds of tiles or blocks | states | steps | seconds | rests on |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, flags in KERNELS:
            if options.only in name:
                print(row_of(name, flags, options.bin, options.limit, folder), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
