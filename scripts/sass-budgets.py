#!/usr/bin/env python3
"""Machine code of the planner's default kernels, against stored budgets.

Each kernel is compiled, assembled and disassembled, and attn-lint-sass compares
it with its entry of the file of budgets: instructions of the hot loop by
purpose, registers, spills, waits. Without ptxas or nvdisasm, or with another
version of ptxas than the budgets were made with, nothing is checked, and the
reason is printed.

usage: scripts/sass-budgets.py --check | --update [--bin=FOLDER] [--only=REGEX]
  --check    fail when a kernel exceeds its budget; lower counts are printed
  --update   write what there is now as the budgets
  --bin      folder of attn-compile and attn-lint-sass (default: build/bin)
  --only     kernels whose name matches; with --update the others are kept
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from tool_util import add_nvdisasm, find_ptxas

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUDGETS = ROOT / "test/Tools/attn-lint-sass/Inputs/sass-budgets.json"
KEPT = ("registers", "spill_bytes", "local", "hot_loop")
# Where other warps start the products.
SOFTMAX, EPILOGUE = "softmax_loop", "epilogue"

WAYS = {
    "exact": "softmax=exact",
    "lagged": "softmax=lagged",
    "optimistic": "softmax=optimistic,block_n=96",
}


#: A kernel of each other schedule and form, by attn-compile's flags.
FORMS = {
    "sm_80-decode-dealt": "--q=8x32x1x128xbf16 --kv-heads=4 --kv-lengths=8192,8192,100,5,1,2,3,4 "
    "--kv-splits=4 --page-size=16 --chip=sm_80 --schedule=decode --set=dealt_runs=32",
    "sm_80-mla": "--q=8x128x1x576xbf16 --rope-dim=64 --kv-len=8192 --chip=sm_80 --schedule=mla",
    "sm_80-ws_mla": "--q=8x16x1x576xbf16 --rope-dim=64 --kv-len=8192 --chip=sm_80 --schedule=ws_mla",
    "sm_80-tiled_d-packed": "--q=4x33x1x512xbf16 --kv-heads=1 --kv-len=8192 --chip=sm_80 "
    "--schedule=tiled_d",
    "sm_80-added": "--q=2x64x1x128xbf16 --kv-heads=1 --kv-lengths=8192,8192 --page-size=64 "
    "--added-page-size=1 --added-lengths=1024,1024 --chip=sm_80",
    "sm_90a-self_load": "--q=4x32x4096x64xbf16 --chip=sm_90a --schedule=self_load",
    "sm_90a-ws_pair": "--q=4x32x4096x256xbf16 --chip=sm_90a --schedule=ws_pair",
    "sm_90a-ws_columns-split": "--q=1x4x64x512xbf16 --kv-len=16384 --chip=sm_90a "
    "--schedule=ws_columns --kv-splits=8",
    "sm_90a-open": "--q=4x32x4096x128xbf16 --chip=sm_90a --dynamic --causal",
    "sm_90a-packed": "--q=1x32x4096x128xbf16 --varlen=q:4096/k:1 --chip=sm_90a --dynamic --causal",
    "sm_90a-nvfp4-amax": "--q=4x32x4096x128xbf16 --chip=sm_90a --causal --out-type=f4E2M1FN "
    "--out-group=16 --amax",
    "sm_100a-latent-pair": "--q=64x128x1x576xbf16 --rope-dim=64 --kv-len=8192 --chip=sm_100a",
    "sm_100a-added": "--q=2x128x1x512xbf16 --kv-heads=1 --kv-lengths=8192,8192 --page-size=64 "
    "--added-page-size=1 --added-lengths=1024,1024 --chip=sm_100a --schedule=ws_tmem",
    "sm_100a-d256-pair": "--q=4x32x4096x256xbf16 --causal --chip=sm_100a --schedule=ws_tmem "
    "--set=pair=true",
}


def kernels() -> dict[str, list[str]]:
    """The flags of attn-compile for each kernel."""
    found = {name: flags.split() for name, flags in FORMS.items()}
    for chip in ("sm_80", "sm_90a"):
        for dtype in ("f16", "bf16"):
            for dim in (64, 128, 256):
                for causal in ("", "-causal"):
                    flags = [f"--q=4x32x4096x{dim}x{dtype}", f"--chip={chip}"]
                    if causal:
                        flags.append("--causal")
                    found[f"{chip}-{dtype}-d{dim}{causal}"] = flags
    for dim in (64, 128):
        for causal in ("", "-causal"):
            flags = [f"--q=4x32x4096x{dim}xbf16", "--chip=sm_100a"]
            found[f"sm_100a-bf16-d{dim}{causal}"] = flags + ["--causal"] * bool(causal)
    # A tile for each CTA.
    found["sm_100a-bf16-d128-short"] = ["--q=1x8x1024x128xbf16", "--chip=sm_100a"]
    for dim in (64, 128):
        found[f"sm_103a-bf16-d{dim}"] = [f"--q=4x32x4096x{dim}xbf16", "--chip=sm_103a"]
        # Ways of ws_tmem that are asked for.
        for name, settings in WAYS.items():
            if name == "optimistic" and dim != 64:
                continue
            flags = [f"--q=4x32x4096x{dim}xbf16", "--chip=sm_100a", f"--set={settings}"]
            found[f"sm_100a-bf16-d{dim}-{name}"] = flags
    return found


def ptxas_version(ptxas: str) -> str:
    text = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True).stdout
    match = re.search(r"\bV([\d.]+)", text)
    return match[1] if match else "unknown"


class Checker:
    def __init__(self, folder: pathlib.Path, scratch: pathlib.Path):
        self.folder = folder
        self.scratch = scratch

    def compile(self, name: str, flags: list[str]) -> tuple[pathlib.Path, str]:
        """The PTX of a kernel, and its plan."""
        path = self.scratch / f"{name}.ptx"
        done = subprocess.run(
            [self.folder / "attn-compile", *flags, "--json", "-o", path],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{name}: attn-compile failed: {done.stderr.strip()}")
        return path, json.loads(done.stdout)["plan"][0]

    def lint(self, name: str, flags: list[str], checks: bool) -> tuple[str, dict]:
        """The plan and the report of a kernel; with `checks` against its budget."""
        path, plan = self.compile(name, flags)
        command = [self.folder / "attn-lint-sass", path, "--json"]
        if checks:
            command += [f"--budget={BUDGETS}", f"--name={name}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode > 1:
            raise RuntimeError(f"{name}: attn-lint-sass failed: {done.stderr.strip()}")
        return plan, json.loads(done.stdout)


def read_budgets() -> dict:
    if BUDGETS.exists():
        return json.loads(BUDGETS.read_text(encoding="utf-8"))
    return {"version": 1, "ptxas": "", "kernels": {}}


def make_budget(plan: str, flags: list[str], report: dict) -> dict:
    budget = {"flags": flags, "plan": plan} | {key: report[key] for key in KEPT}
    # Moves are counted by opcode where one thread's products are set up by them.
    loops = ("hot_loop", SOFTMAX, EPILOGUE)
    for loop in loops:
        if loop in report:
            dropped = ("begin", "end") if SOFTMAX in report else ("begin", "end", "moves")
            budget[loop] = {k: v for k, v in report[loop].items() if k not in dropped}
    return budget


def complaints(name: str, plan: str, report: dict, budget: dict) -> list[str]:
    if plan != budget.get("plan"):
        return [f"{name}: planned {plan}, the budget is for {budget.get('plan')}"]
    return [f"{name}: {f['text']}" for f in report["findings"] if f["severity"] == "error"]


def savings(report: dict, budget: dict) -> str:
    """What a kernel needs less of than its budget."""
    pairs = [("registers", report["registers"], budget["registers"])]
    for name in ("hot_loop", SOFTMAX, EPILOGUE):
        if name not in report or name not in budget:
            continue
        loop, stored = report[name], budget[name]
        pairs += [(key, loop[key], stored[key]) for key in ("instructions", "rare_inside")]
        pairs += [
            (key, loop["purposes"].get(key, 0), most) for key, most in stored["purposes"].items()
        ]
    return ", ".join(f"{name} {got} of {most}" for name, got, most in pairs if got < most)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--update", action="store_true")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--only", default="")
    args = parser.parse_args()

    add_nvdisasm()
    ptxas = find_ptxas()
    if ptxas is None:
        print("not checked: no ptxas in $CUDA_HOME/bin, in /usr/local/cuda/bin or on the PATH")
        return 0
    budgets = read_budgets()
    version = ptxas_version(ptxas)
    if args.check and version != budgets["ptxas"]:
        print(f"not checked: the budgets are for ptxas {budgets['ptxas']}, this is {version}")
        return 0
    wanted = {n: flags for n, flags in kernels().items() if re.search(args.only, n)}
    if missing := [name for name in wanted if args.check and name not in budgets["kernels"]]:
        print(f"error: no budget for {', '.join(missing)}; run scripts/sass-budgets.py --update")
        return 1
    bad = []
    with tempfile.TemporaryDirectory() as scratch:
        checker = Checker(args.bin, pathlib.Path(scratch))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = {n: pool.submit(checker.lint, n, f, args.check) for n, f in wanted.items()}
            for name, job in jobs.items():
                plan, report = job.result()
                if "hot_loop" not in report:
                    print(f"not checked: {'; '.join(report['not_checked'])}")
                    return 0
                if args.update:
                    budgets["kernels"][name] = make_budget(plan, wanted[name], report)
                    continue
                budget = budgets["kernels"][name]
                if found := complaints(name, plan, report, budget):
                    bad += found
                elif less := savings(report, budget):
                    print(f"{name}: less than its budget: {less}")
    if args.update:
        budgets["ptxas"] = version
        budgets["kernels"] = {name: budgets["kernels"][name] for name in kernels()}
        BUDGETS.write_text(json.dumps(budgets, indent=1, sort_keys=False) + "\n", encoding="utf-8")
        print(f"{len(wanted)} kernels written to {BUDGETS.relative_to(ROOT)}")
        return 0
    for line in bad:
        print(f"error: {line}")
    if bad:
        print("a change that is meant is stored by scripts/sass-budgets.py --update")
        return 1
    print(f"{len(wanted)} kernels within their budgets")
    return 0


if __name__ == "__main__":
    sys.exit(main())
