#!/usr/bin/env python3
"""What compilation takes of time, memory and steps as keys and tiles become more.

For each chip problems of D 128 with 1k to 4M keys, with the causal mask and without, and
with 64 to 4M tiles (one of the largest grids besides), and prefill of paged keys whose
tables hold as many: processor time and peak memory of attn-compile as a whole process, the
least of a few runs, steps of the check of barriers, and its verdict. No GPU is needed.

usage: benchmarks/compile-length.py [--build=DIR] [--runs=N] [--chips=sm_80,...] [--limit=S]
                                    [--board=TEXT] [--write]
  --limit   seconds of processor time after which a run is ended
  --write   put the tables into docs/results/compile-length.json, as of `--board`; then
            scripts/gen-results.py draws the plot
The exit status is 1 when a problem takes more than 1.5 times the steps or the memory of
its form of 4k keys or 4k tiles and is not small, fails, or is not proved.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))

import results_util as results  # noqa: E402
from tool_util import progress  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = results.RESULTS / "compile-length.json"
CHIPS = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_100f", "sm_103a", "sm_110", "sm_120",
         "sm_121")  # fmt: skip
KEYS = tuple(1024 * 4**power for power in range(7))
#: Batch and heads, of 4096 queries each.
GRIDS = ((1, 2), (4, 32), (64, 32), (1024, 32), (4096, 32), (65535, 64))
FACTOR = 1.5
#: Steps and MB that are few, whatever the form takes: plans differ by length.
FEW = {"steps": 20000, "mb": 50}
#: The form that others are measured by.
OF_KEYS, OF_TILES = 4096, (4, 32)

PREFILL = """\
func.func @prefill(%q: !q, %k: !k, %v: !k, %o: !q, %table: !table, %lengths: memref<8xi32>,
                   %starts: memref<9xi32>) {{
  attn.attention ins(%q, %k, %v : !q, !k, !k) outs(%o : !q)
    cu_seqlens(%starts : memref<9xi32>) pages(%table : !table)
    kv_lengths(%lengths : memref<8xi32>)
    {{page_size = 16 : i64, max_seqlen_q = 512 : i64,
      mask = #attn.mask<kind = causal, align = bottom_right>}}
  return
}}
"""
TYPES = """\
!q = memref<1x32x4096x128xf16>
!k = memref<?x8x16x128xf16>
!table = memref<8x{pages}xi32>
"""


def label(number: int) -> str:
    for unit, size in (("M", 1 << 20), ("k", 1 << 10)):
        if number >= size:
            return f"{number / size:.0f}{unit}"
    return str(number)


def get_series(folder: pathlib.Path) -> dict[str, list[tuple[str, bool, list[str]]]]:
    """Of each series the sizes, whether others are measured by it, and arguments."""
    series: dict[str, list[tuple[str, bool, list[str]]]] = {}
    for mask in ("", "--causal"):
        name = "keys, causal" if mask else "keys"
        series[name] = [
            (label(keys), keys == OF_KEYS, [f"--q=1x1x{keys}x128xf16", *mask.split()])
            for keys in KEYS
        ]
    series["keys of a table"] = []
    for keys in KEYS:
        path = folder / f"prefill-{keys}.mlir"
        path.write_text(TYPES.format(pages=keys // 16) + PREFILL.format())
        series["keys of a table"].append((label(keys), keys == OF_KEYS, [str(path)]))
    series["keys of a query"] = [
        (label(keys), keys == OF_KEYS,
         ["--q=1x32x1x128xf16", "--kv-heads=8", f"--kv-len={keys}"])
        for keys in KEYS
    ]  # fmt: skip
    series["tiles, causal"] = [
        (label(32 * batch * heads), (batch, heads) == OF_TILES,
         [f"--q={batch}x{heads}x4096x128xf16", "--causal"])
        for batch, heads in GRIDS
    ]  # fmt: skip
    return series


def run(compiler: pathlib.Path, arguments: list[str], limit: int) -> dict:
    """Seconds, MB, steps and verdict of one run; "fails" in place of the verdict."""

    def set_limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))

    with subprocess.Popen(
        [compiler, *arguments, "-o", os.devnull, "--remarks-filter=attn[.]check-barriers"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=set_limit,
    ) as process:  # fmt: skip
        assert process.stderr
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
    steps = sum(map(int, re.findall(r"[ ,]steps=(\d+)", said)))
    verdict = "fails" if status else "proved"
    if "not proved" in said or "checked up to" in said:
        verdict = "not to the end"
    elif "cannot be checked" in said or "not checked" in said:
        verdict = "cannot be checked"
    return {"seconds": usage.ru_utime + usage.ru_stime, "mb": usage.ru_maxrss / 1024,
            "steps": steps, "verdict": verdict}  # fmt: skip


def find_wrong(name: str, rows: list[tuple[str, bool, dict]]) -> list[str]:
    """What is not as the exit status promises."""
    base = next(found for _, is_base, found in rows if is_base)
    wrong = []
    for size, _, found in rows:
        if found["verdict"] != "proved":
            wrong.append(f"{name}, {size}: {found['verdict']}")
        for what in ("steps", "mb"):
            most = FACTOR * max(base[what], FEW[what])
            if found[what] > most:
                wrong.append(f"{name}, {size}: expected at most {most:.0f} {what}, got {found[what]:.0f}")
    return wrong


def make_table(name: str, rows: list[tuple[str, bool, dict]]) -> dict:
    unit = name.split(",")[0].split(" ")[0]
    columns = [unit, "processor time, s", "memory, MB", "steps", "check"]
    return {"caption": name, "columns": columns, "rows": [
        [size, f"{found['seconds']:.2f}", f"{found['mb']:.0f}", str(found["steps"]), found["verdict"]]
        for size, _, found in rows
    ]}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--chips", default=",".join(CHIPS))
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--board", default="")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    compiler = options.build / "bin/attn-compile"
    sections, wrong = [], []
    chips = options.chips.split(",")
    with tempfile.TemporaryDirectory() as name:
        series = get_series(pathlib.Path(name))
        count, total = 0, len(chips) * sum(map(len, series.values()))
        for chip in chips:
            section = results.make_section(
                chip, options.board, str(datetime.date.today()), "benchmarks/compile-length.py"
            )
            for title, cells in series.items():
                rows = []
                for size, is_base, arguments in cells:
                    progress(count, total, f"{chip}: {title}, {size}")
                    count += 1
                    runs = [
                        run(compiler, [*arguments, f"--chip={chip}"], options.limit)
                        for _ in range(options.runs)
                    ]
                    rows.append((size, is_base, min(runs, key=lambda each: each["seconds"])))
                section["tables"].append(make_table(title, rows))
                wrong += [f"{chip}: {line}" for line in find_wrong(title, rows)]
            sections.append(section)
    progress(total, total, "done")
    file = {"title": "Compile time by length and number of tiles", "sections": sections}
    if options.write:
        FILE.write_text(results.to_text(file), encoding="utf-8")
    else:
        print(json.dumps(file, indent=1))
    print("\n".join(wrong), file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
