#!/usr/bin/env python3
"""What attn-check-barriers says of a list of kernels, and how long it takes.

Prints a table of docs/results/barrier-evidence.json. Seconds are processor time of the check
alone: that of attn-opt with the pass less that without it, the least of three runs.

With --random it takes random problems and plans in place of the list, and prints those that are
not proved, and how many there are of each verdict.

With --table it takes the problems and plans of a table, and of each one head with few queries and
keys besides, whose PTX is held against the proof (attn-compile --check-ptx).

With --open it takes kernels whose batch, lengths and strides the launch gives, and says of each
mask and chip whether they are proved, with the limit of steps that attn-compile has.

usage: benchmarks/barrier-check.py [--bin=FOLDER] [--only=TEXT] [--limit=STEPS]
       benchmarks/barrier-check.py --open [--bin=FOLDER] [--jobs=N]
       benchmarks/barrier-check.py --random=N [--seed=N] [--jobs=N] [options]
       benchmarks/barrier-check.py --table=lib/Planner/ShippedPlans.json [options]
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SMALL, LARGE = "--q=1x4x1024x128xf16", "--q=4x32x4096x128xf16"
OPEN = ROOT / "test/Analysis/unknown/tiles.mlir"
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
    ("`decode` on sm_80, 4096 keys", "--q=1x8x4x64xf16 --kv-len=4096 --no-split-keys --chip=sm_80 --schedule=decode"),
    ("`split_q` on sm_80, causal", f"{SMALL} --chip=sm_80 --causal"),
    ("`ws_columns`, causal, 1x8x4096x512", f"--q=1x8x4096x512xf16 {HOPPER} --causal"),
    (
        "`ws_wgmma`, causal, cluster of 2, `dynamic`, 4x32x4096x128",
        f"{LARGE} {HOPPER} --causal --set cluster=2 --set dynamic=true",
    ),
    # Sizes that only the launch gives.
    ("`split_q` on sm_80, `--dynamic`", f"{SMALL} --chip=sm_80 --dynamic"),
    ("`split_q` on sm_80, causal, `--dynamic`", f"{SMALL} --chip=sm_80 --causal --dynamic"),
    ("window of 256 on sm_80, `--dynamic`", f"{SMALL} --chip=sm_80 --window=256,0 --dynamic"),
    ("`ws_wgmma`, 2x4x?x128", f"{OPEN} {HOPPER} --schedule=ws_wgmma"),
    ("`ws_wgmma`, 2x4x?x128, `dynamic`", f"{OPEN} {HOPPER} --schedule=ws_wgmma --set dynamic=true"),
)

# Masks of the kernels of --open, by what their columns are called.
MASKS = {
    "no mask": "",
    "causal": "--causal",
    "bottom-right": "--causal=bottom-right",
    "window 64, 32": "--window=64,32",
}
# What a cell of --open says.
OPEN_VERDICTS = {"proved": "proved", "bounded": "to the limit", "unknown": "not shown"}
# The limit of attn-check-barriers in attn-compile.
COMPILE_LIMIT = 3000000


# Parameters of the schedules of sm_90a, each taken now and then.
PARAMETERS = {
    "cluster": ("2", "4"),
    "dynamic": ("true",),
    "snake": ("true",),
    "block_m": ("64", "128", "192"),
    "pv_behind": ("true",),
    "turns": ("true", "false"),
    "softmax": ("exact", "lagged", "optimistic", "bounded"),
    "epilogue": ("tma", "staged", "direct"),
}


def random_flags(rng: random.Random) -> str:
    """Flags of a problem and a plan; many are of no kernel."""
    shape = [1, rng.choice((1, 2, 4)), rng.choice((64, 100, 300, 512, 700)),
             rng.choice((16, 40, 64, 96, 128, 192, 256))]  # fmt: skip
    chip = rng.choice(("sm_80", "sm_90a", "sm_90a", "sm_100a"))
    kinds = ("f16", "bf16", "f8E4M3FN") if chip == "sm_90a" else ("f16", "bf16")
    flags = [f"--q={'x'.join(map(str, shape))}x{rng.choice(kinds)}", f"--chip={chip}"]
    flags.append(rng.choice(("", "", "--kv-len=1", "--kv-len=64", "--kv-len=300")))
    flags.append(
        rng.choice(("", "", "--causal", "--causal=bottom-right", "--window=100,0"))
    )
    if chip == "sm_100a":
        flags.append("--schedule=ws_tmem")
    elif chip == "sm_90a":
        flags.append(rng.choice(("--schedule=ws_wgmma", "--schedule=self_load")))
        flags.append("--set=spills=allow")
        for name, values in PARAMETERS.items():
            if rng.random() < 0.25:
                flags.append(f"--set={name}={rng.choice(values)}")
    elif rng.random() < 0.2:
        flags.append("--kv-splits=2")
    return " ".join(filter(None, flags))


def judge(flags: str, bins: pathlib.Path, limit: int) -> tuple[str, str]:
    """The verdict, and what is said where there is no proof."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/kernel.mlir"
        command = [str(bins / "attn-compile"), *flags.split(), "--emit=barrier", "-o", path]
        if subprocess.run(command, capture_output=True).returncode != 0:
            return "no kernel", ""
        done = subprocess.run([
            str(bins / "attn-opt"), path, "-o", "/dev/null", "-mlir-print-op-on-diagnostic=false",
            f"--pass-pipeline=builtin.module(gpu.module(attn-check-barriers{{limit={limit}}}))",
        ], capture_output=True, text=True)  # fmt: skip
    said = re.search(r"(error|warning): ([^\n]*)", done.stderr)
    if not said and done.returncode == 0:
        return "proved", ""
    if not said:
        return "crash", done.stderr[:200]
    if said.group(1) == "error":
        return "wrong", said.group(2)
    return ("bounded" if "not proved" in said.group(2) else "unknown"), said.group(2)


def judge_random(options: argparse.Namespace) -> int:
    rng = random.Random(options.seed)
    cases = [random_flags(rng) for _ in range(options.random)]
    counts: collections.Counter = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        verdicts = pool.map(lambda flags: judge(flags, options.bin, options.limit), cases)
        for flags, (verdict, said) in zip(cases, verdicts):
            counts[verdict] += 1
            if verdict not in ("proved", "no kernel"):
                print(f"{verdict}: {flags}\n    {said}", flush=True)
    for verdict, count in sorted(counts.items()):
        print(f"{count:6} {verdict}")
    return 1 if set(counts) - {"proved", "no kernel"} else 0


def judge_open(options: argparse.Namespace) -> int:
    """Prints the table of kernels with open sizes; 1 if one of them is called wrong."""
    rows = [(chip, depth) for chip in ("sm_80", "sm_90a", "sm_100a") for depth in (64, 128)]
    cases = [
        f"--q=2x8x1024x{depth}xf16 --kv-heads=2 --dynamic {mask} --chip={chip}"
        for chip, depth in rows
        for mask in MASKS.values()
    ]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        verdicts = list(pool.map(lambda flags: judge(flags, options.bin, COMPILE_LIMIT)[0], cases))
    print("| chip | D |" + "".join(f" {name} |" for name in MASKS))
    print("|---|---|" + "---|" * len(MASKS))
    for number, (chip, depth) in enumerate(rows):
        cells = verdicts[number * len(MASKS) : (number + 1) * len(MASKS)]
        print(f"| {chip} | {depth} |" + "".join(f" {OPEN_VERDICTS.get(v, v)} |" for v in cells))
    return 0 if set(verdicts) <= set(OPEN_VERDICTS) else 1


def flags_of(entry: dict, is_small: bool) -> str:
    """Flags for a problem and the plan of a table; `is_small` for one that the simulator can run."""
    problem, plan = entry["problem"], entry["plan"]
    batch, heads, queries, keys = (problem[name] for name in ("batch", "heads", "queries", "keys"))
    kv_heads = problem["kv_heads"]
    if is_small:
        batch, heads, kv_heads = 1, max(1, heads // kv_heads), 1
        queries, keys = min(queries, 1024), min(keys, 1024)
    schedule, parameters = re.fullmatch(r"#attn\.(\w+)(?:<(.*)>)?", plan).groups()
    flags = [f"--q={batch}x{heads}x{queries}x{problem['head_dim']}x{problem['type']}",
             f"--kv-heads={kv_heads}", f"--kv-len={keys}", f"--dv={problem['value_dim']}",
             f"--out-type={problem['out_type']}", f"--chip={entry['chip']}", f"--schedule={schedule}"]  # fmt: skip
    flags += [f"--set={part.replace(' ', '')}" for part in (parameters or "").split(", ") if part]
    masks = {"none": [], "causal": ["--causal"]}
    if problem["mask"] not in masks or set(problem["features"]) - {"lse"}:
        raise ValueError(f"expected a plain or causal problem, got {problem}")
    return " ".join([*flags, *masks[problem["mask"]]])


def judge_table(options: argparse.Namespace) -> int:
    counts: collections.Counter = collections.Counter()
    for entry in json.loads(options.table.read_text())["plans"]:
        flags = flags_of(entry, is_small=False)
        verdict, said = judge(flags, options.bin, options.limit)
        command = [str(options.bin / "attn-compile"), *flags_of(entry, is_small=True).split(),
                   "--check-ptx=600", "-o", os.devnull]  # fmt: skip
        held = subprocess.run(command, capture_output=True, text=True)
        counts[verdict] += 1
        counts["PTX the same" if held.returncode == 0 else "PTX not shown to be the same"] += 1
        print(f"{verdict} {said}: {flags}\n    {held.stderr.strip()[-300:]}", flush=True)
    for verdict, count in sorted(counts.items()):
        print(f"{count:6} {verdict}")
    return 1 if set(counts) - {"proved", "PTX the same"} else 0


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
    parser.add_argument("--random", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="of --random and --open")
    parser.add_argument("--open", action="store_true", help="kernels with sizes of the launch")
    parser.add_argument("--table", type=pathlib.Path, help="a table of plans")
    options = parser.parse_args()
    if options.open:
        return judge_open(options)
    if options.random:
        return judge_random(options)
    if options.table:
        return judge_table(options)
    print("| kernel | warps | kinds of tiles or blocks | states | steps | seconds | rests on |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, flags in KERNELS:
            if options.only in name:
                print(row_of(name, flags, options.bin, options.limit, folder), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
