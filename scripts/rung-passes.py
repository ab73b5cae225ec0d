#!/usr/bin/env python3
"""Runs MLIR's own passes over the rungs of kernels, then compiles and executes these.

A kernel at any rung is IR like any other: -canonicalize, -sccp, -cse,
-loop-invariant-code-motion and -symbol-dce leave one that still compiles, and that
gives the right result on the simulator. There is a case for each schedule, element
type and option.

usage: scripts/rung-passes.py [--sample] [--only=REGEX] [--workers=2] [--bin=build/bin]
           [--list]
  --sample   each case once, with all passes at one of its rungs
  --only     checks whose names match

The last line is "N passed, N failed". The exit status is 1 when one failed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PASSES = ("canonicalize", "sccp", "cse", "loop-invariant-code-motion", "symbol-dce")
ALL = "canonicalize,sccp,cse,loop-invariant-code-motion,canonicalize,symbol-dce"
RUNGS = ("problem", "plan", "tile", "barrier", "thread", "nvvm")
Q = "-q 1x1x150x64x"
# A name and the flags of attn-compile.
CASES = {
    "split_q sm_80": f"{Q}f16",
    "split_q causal": f"{Q}bf16 --causal",
    "split_q window": f"{Q}f16 --window=40,8 --kv-len=200",
    "split_q softcap, sinks": f"{Q}f16 --softcap=5 --sinks --causal",
    "split_q packed": "-q 1x2x81x64xf16 --varlen=q:17,64",
    "split_q dynamic": f"{Q}f16 --dynamic --causal --size=q.dim0=1 --size=q.dim2=150 --size=k.dim2=150",
    "split_q heads": "-q 1x4x150x64xf16 --kv-heads=2 --layout=bnhd",
    "split_q one stage": f"{Q}f16 --set=stages=1 --set=q_in_regs=true",
    "split_q parts": f"{Q}f16 --set=block_n=64 --set=parts=2",
    "split_q exact": f"{Q}f16 --set=softmax=exact",
    "split_q staged": f"{Q}f16 --epilogue=staged",
    "split_q wide": "-q 1x1x150x128xf16 --dv=64",
    "default sm_100a": "-q 1x1x150x64xf16 --chip=sm_100a --causal",
    "ws_wgmma": f"{Q}f16 --chip=sm_90a --schedule=ws_wgmma",
    "ws_wgmma causal": f"{Q}bf16 --chip=sm_90a --schedule=ws_wgmma --causal",
    "ws_wgmma wide": "-q 1x1x150x128xf16 --chip=sm_90a --schedule=ws_wgmma --causal",
    "ws_wgmma widest": "-q 1x1x150x256xf16 --chip=sm_90a --schedule=ws_wgmma --causal",
    "ws_wgmma window": f"{Q}f16 --chip=sm_90a --schedule=ws_wgmma --window=40,8",
    "ws_wgmma softcap, sinks": f"{Q}f16 --chip=sm_90a --schedule=ws_wgmma --softcap=5 --sinks",
    "ws_wgmma packed": "-q 1x2x81x64xf16 --chip=sm_90a --schedule=ws_wgmma --varlen=q:17,64",
    "ws_wgmma dealt": f"{Q}f16 --chip=sm_90a --schedule=ws_wgmma --set=dynamic=true --causal",
    "ws_wgmma cluster": "-q 1x2x512x64xf16 --chip=sm_90a --schedule=ws_wgmma --set=cluster=2",
    "ws_wgmma cluster, dealt": "-q 1x1x512x64xf16 --chip=sm_90a --schedule=ws_wgmma --causal "
                               "--set=cluster=2 --set=dynamic=true",
    "ws_wgmma e4m3": f"{Q}f8E4M3FN --chip=sm_90a --schedule=ws_wgmma --descales",
    "ws_wgmma e5m2, transposed": "-q 1x1x160x128xf8E5M2 --chip=sm_90a --schedule=ws_wgmma "
                                 "--v-transposed",
    "ws_wgmma behind": f"{Q}f16 --chip=sm_90a --schedule=ws_wgmma --set=pv_behind=true "
                       "--set=softmax=optimistic",
    "ws_wgmma in turn": f"{Q}f16 --chip=sm_90a --schedule=ws_wgmma --set=qk_ahead=false "
                        "--set=turns=false",
    "ws_wgmma TMA": f"{Q}f16 --chip=sm_90a --schedule=ws_wgmma --set=epilogue=tma",
    "split_q runs of keys": f"{Q}f16 --kv-len=300 --kv-splits=3",
    "split_q merged": f"{Q}f16 --kv-len=300 --kv-splits=3 --set=combine=launch",
    "split_q pages": "-q 2x4x3x64xf16 --kv-heads=2 --kv-len=100 --page-size=16",
    "ws_tmem": f"{Q}f16 --chip=sm_100a --schedule=ws_tmem",
    "ws_tmem causal": "-q 1x1x300x128xbf16 --chip=sm_100a --schedule=ws_tmem --causal",
    "self_load": f"{Q}f16 --chip=sm_90a --schedule=self_load",
    "self_load causal": f"{Q}bf16 --chip=sm_90a --schedule=self_load --causal",
    "self_load e4m3": "-q 1x1x160x64xf8E4M3FN --chip=sm_90a --schedule=self_load --v-transposed",
    "ws_columns": "-q 1x1x80x264xf16 --kv-len=150 --causal --chip=sm_90a --schedule=ws_columns",
    "ws_pair": "-q 1x1x80x128xf16 --kv-len=150 --causal --chip=sm_90a --schedule=ws_pair",
    "decode": "-q 1x4x2x64xf16 --kv-heads=2 --kv-len=150 --chip=sm_80 --schedule=decode --set=warps=2",
    "ws_mla": "-q 1x16x1x128xf16 --rope-dim=64 --kv-len=50 --chip=sm_80 --schedule=ws_mla "
              "--set=block_n=16",
    "tiled_d": "-q 1x1x80x264xf16 --kv-len=150 --causal --chip=sm_80 --schedule=tiled_d",
}  # fmt: skip


def run(command: list, folder: pathlib.Path) -> str:
    """An empty string, or why the command failed."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    said = [line for line in done.stderr.splitlines() if "rror" in line] or done.stdout.splitlines()
    return f"{shlex.join(map(str, command))}: {(said or ['no message'])[0]}"


class Runner:
    def __init__(self, options: argparse.Namespace, folder: pathlib.Path) -> None:
        self.bin = options.bin.resolve()
        self.folder = folder

    def dump(self, case: str) -> dict[str, pathlib.Path] | str:
        """The files of a case's rungs, or why there are none."""
        folder = self.folder / re.sub(r"\W+", "-", case)
        flags = [f for f in shlex.split(CASES[case]) if not f.startswith("--size")]
        why = run([self.bin / "attn-compile", *flags, f"--dump-dir={folder}", "-o", "/dev/null"],
                  self.folder)  # fmt: skip
        if why:
            return why
        return {p.stem.split("-", 1)[1]: p for p in folder.glob("*.mlir")}

    def check(self, case: str, rung: str, passes: str, path: pathlib.Path) -> str:
        changed = path.with_name(f"{path.stem}.{passes.replace(',', '+')}.mlir")
        why = run([self.bin / "attn-opt", path, f"--pass-pipeline=builtin.module({passes})",
                   "-o", changed], self.folder)  # fmt: skip
        # Problems name no chip; what they leave open is for the run.
        flags = ("--size", "--chip") if rung in ("problem", "plan") else ("--size",)
        sizes = [f for f in shlex.split(CASES[case]) if f.startswith(flags)]
        return why or run([self.bin / "attn-compile", changed, "--verify", *sizes, "-o",
                           "/dev/null"], self.folder)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    checks = []
    for number, case in enumerate(CASES):
        at = [RUNGS[2 + number % 4]] if options.sample else RUNGS
        checks += [(case, r, p) for r in at for p in ((ALL,) if options.sample else (*PASSES, ALL))]
    checks = [c for c in checks if re.search(options.only, ": ".join(c))]
    if options.list:
        print("\n".join(": ".join(c) for c in checks))
        return 0
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="rung-passes-") as folder:
        runner = Runner(options, pathlib.Path(folder))
        with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
            cases = list(dict.fromkeys(c[0] for c in checks))
            rungs = dict(zip(cases, pool.map(runner.dump, cases), strict=True))

            def one(check: tuple[str, str, str]) -> str:
                files = rungs[check[0]]
                if isinstance(files, str):
                    return files
                return runner.check(*check, files[check[1]])

            for check, why in zip(checks, pool.map(one, checks), strict=True):
                passed, failed = passed + (not why), failed + bool(why)
                if why:
                    print(f"FAILED {': '.join(check)}: {why}", flush=True)
                elif sys.stderr.isatty():
                    print(f"\r{passed + failed}/{len(checks)} ", end="", file=sys.stderr)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
