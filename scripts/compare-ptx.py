#!/usr/bin/env python3
"""Compares the PTX of two builds, byte for byte: what a refactoring must not change.

The kernels are those of every attn-compile command in the tests, whatever form it
prints there, and of problems drawn at random over chips, types, head dimensions,
masks, lengths, grouped heads, packed sequences, sinks, descales, dynamic sizes,
schedules and parameters of plans. Launch records are compared too.

usage: scripts/compare-ptx.py OLD NEW [--count=300] [--seed=0] [--only=REGEX]
           [--workers=2] [--cache=FOLDER] [--allow=REGEX]
  OLD, NEW  folders with attn-compile and attn-opt, such as build/bin
  --count   problems drawn at random
  --cache   where OLD's results stay for the next call
  --allow   names that may differ, with a reason in the commit that changes them

The last line is "N kernels: N equal, N differ, N refused by both". The exit status
is 1 when one differs or is refused by one build only.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHIPS = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_90a", "sm_90a", "sm_100a", "sm_100f", "sm_103a")
DIMS = (16, 32, 40, 64, 64, 72, 80, 96, 104, 128, 128, 160, 192, 256, 256)
HEADS = ((8, 8), (8, 2), (6, 1), (16, 4), (1, 1))
MASKS = ((), (), ("--causal",), ("--causal=bottom-right",), ("--window=100,0",),
         ("--window=60,20,bottom-right",), ("--window=-1,30",))  # fmt: skip
SETTINGS = {
    "split_q": ("block_m=64", "block_n=32", "warps=8", "stages=1", "q_in_regs=true", "parts=2",
                "softmax=exact", "order=row_major", "epilogue=direct", "epilogue=staged"),
    "ws_wgmma": ("block_m=64", "block_m=192", "block_n=64", "q_stages=2", "k_stages=3",
                 "v_stages=3", "qk_ahead=false", "pv_behind=true", "turns=false",
                 "cluster=2", "dynamic=true", "softmax=exact", "softmax=threshold",
                 "order=row_major", "epilogue=tma", "epilogue=direct", "first_block=tail"),
    "self_load": ("block_n=64", "k_stages=3", "v_stages=2", "ctas_per_sm=1", "softmax=exact",
                  "order=row_major"),
}  # fmt: skip


def draw(rng: random.Random) -> list[str]:
    """The flags of a problem; not every one has a kernel."""
    chip, d = rng.choice(CHIPS), rng.choice(DIMS)
    dtype = rng.choice(("f16", "bf16"))
    if chip == "sm_90a" and rng.random() < 0.3:
        dtype = rng.choice(("f8E4M3FN", "f8E5M2"))
    narrow = dtype.startswith("f8")
    if narrow:
        d = rng.choice((64, 128, 256, 96))
    heads, kv_heads = rng.choice(HEADS)
    rows = rng.choice((1, 63, 128, 577, 1024, 4096))
    flags = [f"--chip={chip}", f"--kv-heads={kv_heads}", *rng.choice(MASKS)]
    packed = not narrow and rng.random() < 0.15
    if packed:
        lengths = [rng.randint(1, 300) for _ in range(rng.randint(1, 4))]
        rows = sum(lengths)
        flags.append("--varlen=q:" + ",".join(map(str, lengths)))
    elif rng.random() < 0.4:
        flags.append(f"--kv-len={rng.choice((1, 77, 512, 640, 5000))}")
    flags.insert(0, f"--q={1 if packed else rng.randint(1, 3)}x{heads}x{rows}x{d}x{dtype}")
    if not narrow and rng.random() < 0.2:
        flags.append(f"--dv={rng.choice(DIMS)}")
    for flag, chance in (("--softcap=20", 0.2), ("--sinks", 0.15), ("--no-lse", 0.2),
                         ("--dynamic", 0.25), ("--layout=bnhd", 0.3), ("--scale=0.1", 0.1)):  # fmt: skip
        if rng.random() < chance:
            flags.append(flag)
    if narrow and rng.random() < 0.5:
        flags.append("--descales")
    if chip == "sm_90a" and rng.random() < (0.4 if narrow else 0.1):
        flags.append("--v-transposed")
    if rng.random() < 0.5:
        names = ("ws_wgmma", "self_load", "split_q") if chip == "sm_90a" else ("split_q",)
        schedule = rng.choice(names)
        flags.append(f"--schedule={schedule}")
        picked = rng.sample(SETTINGS[schedule], rng.randint(0, 2))
        flags += [f"--set={setting}" for setting in picked]
    return flags


def read_runs(path: pathlib.Path) -> list[str]:
    """The RUN lines of a test, joined."""
    lines, open_line = [], ""
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if not (found := re.search(r"RUN:\s?(?:%if nightly %\{ )?(.*?)(?: %\})?$", text)):
            continue
        open_line += found[1].strip()
        if open_line.endswith("\\"):
            open_line = open_line[:-1] + " "
            continue
        lines.append(open_line)
        open_line = ""
    return lines


def make_script(path: pathlib.Path) -> list[str]:
    """The test's commands that make kernels, each up to its attn-compile."""
    commands = []
    for line in read_runs(path):
        stages = re.split(r"(?<!\|)\|(?!\|)", line)
        at = [i for i, s in enumerate(stages) if re.search(r"\battn-compile\b", s)]
        words = shlex.split(line.replace("%", "PERCENT"), comments=False) if not at else []
        if at:
            command = "|".join(stages[: at[0] + 1])
            # Every form leads to PTX.
            command = re.sub(r"--emit[= ](?!ptx|cubin)\w+", "", command)
            command = re.sub(r"--(verify|corners|json|timing|print-plan\S*|lose-bets)(?=\s|$)", "",
                             command)  # fmt: skip
            command = re.sub(r"\s(not|not --crash)\s", " ", f" {command} ")
            if "--dump-dir" not in command and "--autotune" not in command:
                commands.append(command.strip())
        elif words and words[0] in ("mkdir", "split-file", "sed", "printf", "echo", "cp", "attn-opt"):
            commands.append(line)
    return commands if any("attn-compile" in c for c in commands) else []


def substitute(command: str, test: pathlib.Path, folder: pathlib.Path, tools: pathlib.Path) -> str:
    command = command.replace("%attn_src", str(ROOT)).replace("%python", "/usr/bin/python3")
    command = re.sub(r"%t\b", str(folder / "t"), command)
    command = re.sub(r"%s\b", str(test), command).replace("%S", str(test.parent))
    for tool in ("attn-compile", "attn-opt", "attn-test-opt"):
        command = re.sub(rf"(?<![\w/.-]){tool}\b(?![\w.])", str(tools / tool), command)
    return command


def makes_kernel(kind: str, command) -> bool:
    """Of a test as it stands: the paths put into it may name a program too."""
    return kind == "problem" or "attn-compile" in command


def run_job(job: tuple, tools: pathlib.Path) -> list[str]:
    """What each command of a job leaves: a hash of PTX and record, or "refused"."""
    name, kind, commands = job
    results = []
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/lib/llvm-22/bin"}
    with tempfile.TemporaryDirectory(prefix="compare-ptx-") as scratch:
        folder = pathlib.Path(scratch)
        for command in commands:
            if kind == "test":
                text = substitute(command, ROOT / name, folder, tools)
            else:
                text = shlex.join([str(tools / "attn-compile"), *command])
            is_kernel = makes_kernel(kind, command)
            record, ptx = folder / "record.json", folder / "kernel.ptx"
            if is_kernel:
                text = re.sub(r"(^|\s)(-o|--launch-out=|--bundle=)\s*\S+", " ", text)
                text += f" --launch-out={record} -o {ptx}"
            done = subprocess.run(
                ["bash", "-c", text], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                capture_output=True, check=False, timeout=600,
            )  # fmt: skip
            if not is_kernel:
                continue
            if done.returncode or not ptx.exists():
                results.append("refused")
            else:
                digest = hashlib.sha256(ptx.read_bytes())
                digest.update(record.read_bytes() if record.exists() else b"")
                results.append(digest.hexdigest()[:24])
            ptx.unlink(missing_ok=True)
            record.unlink(missing_ok=True)
    return results


def collect(options: argparse.Namespace) -> list[tuple]:
    jobs = []
    for path in sorted((ROOT / "test").rglob("*")):
        if path.suffix in (".test", ".mlir") and "Inputs" not in path.parts:
            if script := make_script(path):
                jobs.append((str(path.relative_to(ROOT)), "test", script))
    rng = random.Random(options.seed)
    for index in range(options.count):
        flags = draw(rng)
        jobs.append((f"{index}: {' '.join(flags)}", "problem", [flags]))
    return [job for job in jobs if re.search(options.only, job[0])]


def run_all(options: argparse.Namespace, jobs: list[tuple], tools: pathlib.Path,
            cache: pathlib.Path | None) -> dict[str, list[str]]:  # fmt: skip
    known: dict[str, list[str]] = {}
    if cache and cache.exists():
        known = json.loads(cache.read_text())
    keys = {job[0]: hashlib.sha256(json.dumps(job).encode()).hexdigest() for job in jobs}
    waiting = [job for job in jobs if keys[job[0]] not in known]
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        for number, (job, result) in enumerate(
            zip(waiting, pool.map(lambda job: run_job(job, tools), waiting), strict=True), 1
        ):
            known[keys[job[0]]] = result
            if number % 50 == 0:
                print(f"{tools}: {number} of {len(waiting)}", file=sys.stderr, flush=True)
    if cache:
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.write_text(json.dumps(known))
    return {job[0]: known[keys[job[0]]] for job in jobs}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--allow", default="^$", metavar="REGEX")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--cache", type=pathlib.Path, default=ROOT / "build/compare-ptx")
    options = parser.parse_args()
    jobs = collect(options)
    mark = hashlib.sha256((options.old / "attn-compile").read_bytes()).hexdigest()[:16]
    old = run_all(options, jobs, options.old.resolve(), options.cache / f"{mark}.json")
    new = run_all(options, jobs, options.new.resolve(), None)
    equal = differ = refused = allowed = 0
    for name, kind, commands in jobs:
        for index, (a, b) in enumerate(zip(old[name], new[name], strict=True)):
            if a == b:
                refused += a == "refused"
                equal += a != "refused"
            elif re.search(options.allow, name):
                allowed += 1
            else:
                differ += 1
                kernels = [c for c in commands if makes_kernel(kind, c)]
                print(f"differs: {name}: {kernels[index]} ({a[:8]}, {b[:8]})")
    if allowed:
        print(f"{allowed} differ as allowed")
    print(f"{equal + differ + allowed + refused} kernels: {equal} equal, {differ} differ, "
          f"{refused} refused by both")  # fmt: skip
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
