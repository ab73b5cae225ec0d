#!/usr/bin/env python3
"""Lists which kernel each kind of problem takes on a chip with tensor memory, and what bounds it.

Asks attn-compile for the plans of one problem of each kind, without a GPU. `--write` puts them
into docs/results/blackwell.json, from which scripts/gen-results.py makes the table of
docs/HowTo/blackwell.md. The exit status is 1 when a problem has no plan.

usage: scripts/blackwell-plans.py [--write] [--chip=sm_100a] [--bin=build/bin] [--workers=2]
"""

from __future__ import annotations

import argparse
import concurrent.futures
import datetime
import pathlib
import re
import subprocess
import sys

import results_util
from tool_util import ROOT

MQA = "--q=8x{rows}x1x{dim}xbf16 --kv-heads=1 --kv-len=8192"
LATENT = "--q=8x{rows}x1x576xbf16 --rope-dim=64 --kv-len=8192 --page-size={page}"
LISTED = "--kv-lengths=8192 --window=127,0,bottom-right --page-size=64 --added-page-size=1"


def list_problems() -> list[tuple[str, str]]:
    """Each problem's name and its flags."""
    found = []

    def add(name: str, flags: str, **sizes: object) -> None:
        found.append((name, flags.format(**sizes)))

    for dim in (64, 128, 256, 512):
        for rows in (16, 32, 33, 64, 128):
            add(f"one token, {rows} heads on one, D {dim}", MQA, rows=rows, dim=dim)
    for dim in (64, 128, 256, 512):
        for page in (1, 64):
            name = f"the same, 64 heads, D {dim}, pages of {page}"
            add(name, f"{MQA} --page-size={page}", rows=64, dim=dim)
        name = f"the same, 64 heads, D {dim}, "
        one = f"{MQA} --page-size=1 --selected"
        add(f"{name}selected keys", one, rows=64, dim=dim)
        add(f"{name}sinks", f"{MQA} --sinks", rows=64, dim=dim)
        add(f"{name}a state to go on from", f"{MQA} --init-state", rows=64, dim=dim)
        eight = f"{MQA} --kv-type=f8E4M3FN --descales --page-size=64"
        add(f"{name}8-bit keys", eight, rows=64, dim=dim)
    add("one token of 32 sequences, 4 heads on each of 8, D 128",
        "--q=32x32x1x128xbf16 --kv-heads=8 --kv-len=8192")  # fmt: skip
    for heads in (16, 32, 64, 128):
        for page in (1, 64):
            add(f"latent 576/512, {heads} heads, pages of {page}", LATENT, rows=heads, page=page)
        eight = f"{LATENT} --kv-type=f8E4M3FN --descales"
        add(f"latent 576/512, {heads} heads, 8-bit keys", eight, rows=heads, page=64)
    many = LATENT.replace("8x{rows}", "64x128")
    add("64 sequences, latent 576/512, 128 heads", many.replace(" --page-size={page}", ""))
    add("the same, pages of 64", many, page=64)
    listed = f"{LISTED} --added-lengths=1024"
    add("one sequence, 128 heads on one, D 512, a window and 1024 selected keys",
        f"--q=1x128x1x512xbf16 --kv-heads=1 {listed}")  # fmt: skip
    add("that with values that are the keys", f"--q=1x128x1x512xbf16 --rope-dim=0 {listed}")
    eight = LISTED.replace("8192", ",".join(["8192"] * 8))
    eight += f" --added-lengths={','.join(['1024'] * 8)}"
    for heads, dim in ((64, 128), (64, 256), (128, 512)):
        name = f"8 sequences, {heads} heads on one, D {dim}, a window and 1024 selected keys"
        add(name, f"--q=8x{heads}x1x{dim}xbf16 --kv-heads=1 {eight}")
    add("the same, latent 576/512", f"--q=8x128x1x576xbf16 --rope-dim=64 {eight}")
    for dim, more in ((64, ""), (128, ""), (192, "--dv=128"), (256, "")):
        name = f"prefill of 8192, D {dim}{'/128' * bool(more)}"
        add(name, f"--q=1x16x8192x{dim}xbf16 {more}")
        add(f"{name}, causal", f"--q=1x16x8192x{dim}xbf16 {more} --causal")
    add("prefill of 8192, D 128, 8 bits", "--q=1x16x8192x128xf8E4M3FN")
    add("prefill of 8192, D 512", "--q=1x16x8192x512xbf16")
    return found


def read_plan(options: argparse.Namespace, problem: tuple[str, str]) -> list[str] | None:
    """A row of the table: name, kernel, runs of keys, microseconds, bound, DRAM's time."""
    name, flags = problem
    command = [options.bin / "attn-compile", f"--chip={options.chip}", *flags.split()]
    command += ["--emit=plan", "--print-plan", "-o", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    line = re.search(r"^ +([\d.]+) .*? (\w+) +\d+ +\d+ +#attn\.(\w+)<", done.stderr, re.M)
    if done.returncode or not line:
        print(f"{name}: {done.stderr.strip()[:300]}", file=sys.stderr)
        return None
    # The plan that is taken stands in the IR: others may come first in the list.
    taken = re.search(r"attn\.attention .*plan = #attn\.(\w+)<(.*?)>", done.stdout)
    schedule = taken[1] if taken else line[3]
    chosen = re.search(
        rf"^ +([\d.]+) .*? (\w+) +\d+ +\d+ +#attn\.{schedule}<{re.escape(taken[2])}>" if taken else "$^",
        done.stderr, re.M,
    )  # fmt: skip
    micro, limit = (chosen or line)[1], (chosen or line)[2]
    runs = re.search(r"kv_splits = (\d+)", done.stdout)
    dram = re.search(r"^DRAM: .*? take ([\d.]+) us", done.stderr, re.M)
    forms = " (one tile)" if "tiles = 1" in (taken[2] if taken else "") else ""
    return [name, f"`{schedule}`{forms}", runs[1] if runs else "1", micro, limit,
            dram[1] if dram else ""]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--chip", default="sm_100a")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    problems = list_problems()
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        rows = list(pool.map(lambda each: read_plan(options, each), problems))
    found = [row for row in rows if row]
    for row in found:
        print(" | ".join(row))
    if options.write:
        section = results_util.make_section(
            f"Plans of {options.chip}", date=datetime.date.today().isoformat(),
            command="scripts/blackwell-plans.py --write",
        )  # fmt: skip
        section["notes"] = [
            "bf16 unless it is said otherwise; decoding is of 8192 keys and, unless it is said, of 8 "
            "sequences, prefill of 16 heads. *us* is the planner's estimate of the kernel, without the merging of runs, "
            "*bound* what it says limits it, *DRAM* the time that memory takes. No board took part."
        ]
        columns = ["problem", "kernel", "runs", "us", "bound", "DRAM, us"]
        section["tables"] = [{"caption": "", "columns": columns, "rows": found}]
        path = results_util.RESULTS / "blackwell.json"
        contents = {"title": "Plans of chips with tensor memory", "sections": [section]}
        path.write_text(results_util.to_text(contents), encoding="utf-8")
    return int(len(found) != len(rows))


if __name__ == "__main__":
    sys.exit(main())
