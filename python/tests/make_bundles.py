#!/usr/bin/env python3
"""Makes the bundles that gpu_check.py launches: one for each feature.

python3 python/tests/make_bundles.py FOLDER --chips sm_80,sm_90
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
#: Flags of attn-compile, or a file, by the bundle's name.
PROBLEMS = {
    "f16-d64": ["--q=2x8x1000x64xf16"],
    "f16-d128": ["--q=2x8x1000x128xf16"],
    "f16-d256": ["--q=2x4x1000x256xf16"],
    "bf16-d64": ["--q=2x8x1000x64xbf16"],
    "bf16-d128-causal": ["--q=2x8x1000x128xbf16", "--causal"],
    "causal": ["--q=2x8x1000x64xf16", "--causal"],
    "causal-bottom-right": ["--q=2x8x300x64xf16", "--kv-len=1000", "--causal=bottom-right"],
    "causal-more-queries": ["--q=2x4x500x64xf16", "--kv-len=130", "--causal=bottom-right"],
    "gqa": ["--q=2x8x512x128xf16", "--kv-heads=2", "--causal"],
    "window": ["--q=1x8x2048x64xf16", "--window=128,0"],
    "window-both": ["--q=1x4x777x128xf16", "--window=100,50"],
    "softcap": ["--q=1x8x512x128xf16", "--softcap=30"],
    "scale": ["--q=1x8x512x64xf16", "--scale=0.3"],
    "sinks": ["--q=1x8x512x64xf16", "--sinks"],
    "f32-output": ["--q=1x8x512x64xf16", "--out-type=f32"],
    "no-lse": ["--q=1x8x512x64xf16", "--no-lse"],
    "bnhd": ["--q=2x8x512x64xf16", "--layout=bnhd"],
    "one-query": ["--q=4x8x1x64xf16", "--kv-len=1000"],
    "dv": ["--q=1x8x512x128xf16", "--dv=64"],
    "dynamic": ["--q=2x8x1000x64xf16", "--dynamic"],
    "dynamic-causal": ["--q=2x8x1000x128xbf16", "--dynamic", "--causal=bottom-right"],
    "split-keys": [str(EXAMPLES / "split-keys.mlir")],
    "split-causal-dynamic": [
        "--q=2x8x100x128xbf16",
        "--kv-heads=2",
        "--kv-len=5000",
        "--kv-splits=4",
        "--causal=bottom-right",
        "--dynamic",
    ],
    "varlen": ["--q=1x8x906x64xf16", "--varlen=q:17,64,300,0,525", "--causal"],
    "varlen-dynamic": ["--q=1x8x700x128xf16", "--varlen=q:100,600/k:90,700", "--dynamic"],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--attn-compile", default="attn-compile")
    parser.add_argument("--chip", default="sm_80")
    parser.add_argument("--chips", default="", help="cubins; without, one for --chip")
    options, more = parser.parse_known_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    failures = 0
    for name, flags in PROBLEMS.items():
        path = options.folder / f"{options.chip}-{name}.attn"
        command = [
            options.attn_compile,
            *flags,
            f"--chip={options.chip}",
            f"--bundle={path}",
            *more,
        ]
        if options.chips:
            command.append(f"--bundle-chips={options.chips}")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            failures += 1
            print(f"{name}: {done.stderr.strip()}", file=sys.stderr)
    print(f"{len(PROBLEMS) - failures} of {len(PROBLEMS)} bundles in {options.folder}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
