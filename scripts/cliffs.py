#!/usr/bin/env python3
"""Finds cliffs: neighbouring problems of which one is planned to take far longer.

A walk changes one thing of a problem (rows that share keys, drafts, queries, keys,
batch, heads, columns, pages, masks, strides) from 1 to 65537. Each point goes
through the planner on each chip, without a GPU. A jump is the ratio of the
estimates of two neighbours over the ratio of their roofs; a roof is the larger of
the time that memory takes with keys read once, and of the tensor cores' time in
whole matrix instructions. Times of a launch are added to both.

usage: scripts/cliffs.py [--sample] [--only=REGEX] [--chips=LIST] [--bin=build/bin]
           [--workers=2] [--limit=1.25] [--json=FILE] [--write] [--all]
  --sample   a few points of some walks, for continuous integration
  --only     walks whose names match
  --json     write the jumps to this file
  --write    write what is left and why to docs/results/cliffs.json, from which
             scripts/gen-results.py makes the page's table
  --all      list every pair, not only those above the limit

The exit status is 1 when a jump above the limit has no row in REASONS. The last line
is "N pairs, N jumps above LIMIT, N without a reason".
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterable

import results_util
from tool_util import ROOT, progress

CHIPS = ("sm_80", "sm_89", "sm_90a", "sm_100a")
LIMIT = 1.25
#: Microseconds of a launch, below which no roof is.
LAUNCH = 3.0
#: What of DRAM's rate kernels reach.
DRAM_SHARE = 0.9


@dataclasses.dataclass(frozen=True)
class Problem:
    batch: int = 8
    heads: int = 32
    kv_heads: int = 32
    queries: int = 1
    keys: int = 8192
    dim: int = 128
    page: int = 0
    mask: str = ""
    layout: str = "bhnd"
    kv_type: str = "bf16"
    more: tuple[str, ...] = ()

    def flags(self) -> list[str]:
        flags = [
            f"--q={self.batch}x{self.heads}x{self.queries}x{self.dim}xbf16",
            f"--kv-heads={self.kv_heads}",
            f"--kv-len={self.keys}",
            f"--layout={self.layout}",
            *self.more,
        ]
        if self.mask:
            flags.append(f"--{self.mask}")
        if self.page:
            flags.append(f"--page-size={self.page}")
        if self.kv_type != "bf16":
            flags.append(f"--kv-type={self.kv_type}")
        return flags

    def visible(self) -> float:
        """Pairs of a query and a key of a head that the mask leaves."""
        if self.mask == "causal":
            kept = min(self.queries, self.keys)
            return kept * (kept + 1) / 2 + max(0, self.queries - self.keys) * self.keys
        if self.mask == "causal=bottom-right":
            lacking = self.keys - self.queries
            return self.queries * lacking + self.queries * (self.queries + 1) / 2
        if self.mask.startswith("window="):
            left = int(self.mask.split("=")[1].split(",")[0])
            return self.queries * min(self.keys, left + 1)
        return float(self.queries * self.keys)

    def roof(self, chip: dict) -> float:
        """Microseconds."""
        size = 1 if self.kv_type != "bf16" else 2
        seen = min(self.keys, self.visible() / self.queries + self.queries)
        keys = self.batch * self.kv_heads * seen * 2 * self.dim * size
        rows = self.batch * self.heads * self.queries * 2 * self.dim * 2
        memory = (keys + rows) / (DRAM_SHARE * chip["dram_gb_per_second"] * 1e3)
        # Whole instructions of 16 rows.
        group = self.heads // self.kv_heads
        shared = -(-group * self.queries // 16) * 16
        pairs = self.visible() / self.queries * shared * self.batch * self.kv_heads
        rate = chip["tensor_flop_f16"] * chip["sm_count"] * chip["clock_mhz"]
        return max(memory, 4 * self.dim * pairs / rate) + LAUNCH


@dataclasses.dataclass(frozen=True)
class Walk:
    name: str
    problem: Problem
    axis: str
    #: Values of the axis; a value may be a change of several fields.
    values: tuple
    #: Both directions count: the values are forms, not sizes.
    forms: bool = False

    def points(self) -> list[tuple[str, Problem]]:
        result = []
        for value in self.values:
            change = value[1] if isinstance(value, tuple) else {self.axis: value}
            label = value[0] if isinstance(value, tuple) else str(value)
            result.append((label, dataclasses.replace(self.problem, **change)))
        return result


def neighbours(most: int, least: int = 1, also: Iterable[int] = ()) -> tuple[int, ...]:
    """Each power of two, the number between two of them, and what follows each."""
    values = set(also) | {least}
    power = 1
    while power <= most:
        for base in (power, power * 3 // 2):
            values |= {base, base + 1}
        power *= 2
    return tuple(sorted(v for v in values if least <= v <= most + 1))


def make_walks() -> list[Walk]:
    walks = []
    mqa = Problem(heads=1, kv_heads=1)
    gqa = Problem(heads=64, kv_heads=8, mask="causal=bottom-right")
    rows = tuple(sorted({*range(1, 18), *neighbours(160, 16), 33, 40, 47, 80, 81, 112, 113,
                         127, 144, 145, 159, 160, 161}))  # fmt: skip
    for form, change in {
        "dense": {}, "pages": {"page": 16}, "f8": {"kv_type": "f8E4M3FN"},
        "f8-pages": {"kv_type": "f8E4M3FN", "page": 64},
    }.items():  # fmt: skip
        for dim in (64, 128, 256, 512):
            walks.append(Walk(f"rows-{form}-d{dim}",
                              dataclasses.replace(mqa, dim=dim, **change), "heads", rows))  # fmt: skip
        for batch in (1, 8, 64):
            base = dataclasses.replace(gqa, batch=batch, **change)
            walks.append(Walk(f"drafts-{form}-b{batch}", base, "queries",
                              (*range(1, 22), *neighbours(256, 24))))  # fmt: skip
    for name, base in {
        "decode": Problem(kv_heads=8), "decode-pages": Problem(kv_heads=8, page=16),
        "mha": Problem(batch=1), "mqa": Problem(heads=64, kv_heads=1),
    }.items():  # fmt: skip
        walks.append(Walk(f"keys-{name}", base, "keys", neighbours(65536, 16, (100, 1000))))
        walks.append(Walk(f"batch-{name}", base, "batch",
                          neighbours(2048, also=(107, 108, 131, 132, 147, 148))))  # fmt: skip
    for mask in ("", "causal", "window=128,0"):
        for batch in (1, 8):
            base = Problem(batch=batch, mask=mask)
            walk = neighbours(65536 if batch == 1 else 8192, 16)
            walks.append(Walk(f"prefill-{mask or 'full'}-b{batch}", base, "",
                              tuple((str(n), {"queries": n, "keys": n}) for n in walk)))  # fmt: skip
    for name, heads in {"heads": (1, 64), "heads-b8": (8, 64)}.items():
        base = Problem(batch=heads[0], mask="causal", queries=2048, keys=2048)
        walks.append(Walk(f"{name}-prefill", base, "", tuple(
            (str(h), {"heads": h, "kv_heads": h}) for h in neighbours(heads[1]))))  # fmt: skip
    dims = tuple(range(16, 513, 8))
    walks.append(Walk("columns-decode", Problem(kv_heads=8), "dim", dims))
    walks.append(Walk("columns-rows", Problem(heads=64, kv_heads=1), "dim", dims))
    walks.append(Walk("columns-prefill", Problem(queries=2048, keys=2048, mask="causal"),
                      "dim", dims))  # fmt: skip
    pages = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)
    walks.append(Walk("pages-decode", Problem(kv_heads=8), "page", pages, forms=True))
    walks.append(Walk("pages-drafts", dataclasses.replace(gqa, queries=8), "page", pages,
                      forms=True))  # fmt: skip
    prefill = Problem(batch=2, queries=2048, keys=2048)
    masks = ("", "causal", "causal=bottom-right", "window=512,0")
    walks.append(Walk("masks-prefill", prefill, "mask", masks, forms=True))
    layouts = ("bhnd", "bnhd", "strided")
    walks.append(Walk("layouts-prefill", dataclasses.replace(prefill, mask="causal"),
                      "layout", layouts, forms=True))  # fmt: skip
    walks.append(Walk("layouts-drafts", dataclasses.replace(gqa, queries=8), "layout", layouts,
                      forms=True))  # fmt: skip
    return walks


#: What continuous integration looks at: (walk, values).
SAMPLE = {
    "rows-dense-d128": ("16", "17", "32", "33", "64", "65", "128", "129"),
    "rows-dense-d512": ("32", "33", "64", "65"),
    "drafts-pages-b8": ("4", "5", "8", "9", "16", "17"),
}


@dataclasses.dataclass(frozen=True)
class Jump:
    walk: str
    chip: str
    before: str
    after: str
    times: tuple[float, float]
    roofs: tuple[float, float]
    schedules: tuple[str, str]

    @property
    def jump(self) -> float:
        return self.times[1] / self.times[0] / (self.roofs[1] / self.roofs[0])

    @property
    def reason(self) -> str:
        return next((r.text for r in REASONS if self.jump <= r.most and r.holds(self)), "")




def rows_of(jump: Jump, label: str) -> int:
    """Rows that share keys: heads of a group times queries."""
    return int(label) * (1 if jump.walk.startswith("rows") else 8)


def adds_tile(jump: Jump) -> bool:
    """True if rows are more than tiles of some size hold that the schedules have."""
    if not jump.walk.startswith(("rows", "drafts")):
        return False
    before, after = rows_of(jump, jump.before), rows_of(jump, jump.after)
    return any(-(-after // size) > -(-before // size) for size in (16, 32, 48, 64, 128, 256))


@dataclasses.dataclass(frozen=True)
class Reason:
    """Why some jumps are left, up to the largest one that it explains."""

    text: str
    most: float
    holds: Callable[[Jump], bool]


#: What is left; of several reasons the first counts.
REASONS = [
    Reason("More than 256 queries of dense keys are not cut into runs, however few tiles there are",
           2.1, lambda j: j.walk.startswith("drafts-dense") and j.before == "256"),
    Reason("Above 256 columns `ws_tmem` takes multiples of 16 only",
           6.1, lambda j: j.walk.startswith("columns") and j.schedules == ("ws_tmem", "tiled_d")),
    Reason("Keys of 8 bits become 16 bits once for each tile of rows",
           2.1, lambda j: "f8" in j.walk and adds_tile(j)),
    Reason("Rows that a tile does not hold take another one, which reads keys from L2 and is "
           "mostly padding", 1.8, adds_tile),
    Reason("One more query of a head takes another tile of it, and another block of keys",
           2.5, lambda j: j.walk.startswith("prefill")),
    Reason("Above 256 columns `decode` takes multiples of 16 only, whose groups of 8 its warps "
           "divide", 3.2, lambda j: j.walk == "columns-decode"),
    Reason("Wider rows are padded to whole spans of a swizzle, and leave registers and shared "
           "memory for fewer rows and keys",
           2.4, lambda j: j.walk.startswith("columns")),
    Reason("One more key takes another block, of which short problems have few",
           1.4, lambda j: j.walk.startswith("keys") and int(j.before) <= 256),
    Reason("Beside keys that L2 holds `decode` has one tile for all of them only where other "
           "schedules take twice as long (margins.json); else its keys are cut into runs",
           1.4, lambda j: j.walk == "keys-decode" and set(j.schedules) == {"decode"}),
    Reason("One more head takes another wave of tiles",
           1.6, lambda j: j.walk.startswith("heads")),
    Reason("Another form of a mask or of pages has another schedule or order of tiles",
           1.8, lambda j: j.walk.startswith(("masks", "pages", "layouts"))),
]  # fmt: skip


def read_chips(bin_dir: pathlib.Path) -> dict[str, dict]:
    text = subprocess.run([bin_dir / "attn-targets", "--format=json"], capture_output=True,
                          text=True, check=True).stdout  # fmt: skip
    return find_chips(json.loads(text))


def find_chips(table: dict) -> dict[str, dict]:
    return {row["chip"]: row for row in table["targets"]}


def read_estimate(text: str) -> tuple[float, str] | None:
    """Microseconds of a launch as the planner says, and the schedule."""
    plan = re.search(r"^plan: #attn\.(\w+)<?.*$", text, re.M)
    first = re.search(r"^ +([\d.]+) +[\d.]+ +\d+ +\d+ +\S+ +\d+ +\d+ +#attn", text, re.M)
    if not plan or not first:
        return None
    time = float(first[1])
    taken = re.search(r"numbers of runs of keys for \w+, (\d+) taken", text)
    if taken:
        rows = re.findall(r"^ +(\d+) +\d+ +[\d.]+ +[\d.]+ +([\d.]+) +[\d.]+(.*)$", text, re.M)
        dealt = "dealt_runs" in plan[0]
        for runs, even, more in rows:
            if runs == taken[1] and ("dealt" in more) == dealt:
                time = float(even)
    return time, plan[1]


def ask(bin_dir: pathlib.Path, chip: str, problem: Problem) -> tuple[float, str] | None:
    done = subprocess.run(
        [bin_dir / "attn-compile", *problem.flags(), f"--chip={chip}", "--emit=plan",
         "--print-plan", "-o", os.devnull],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return read_estimate(done.stderr + done.stdout)


def find_jumps(walk: Walk, chip: str, row: dict, found: dict) -> list[Jump]:
    points = [(label, problem, found[(chip, problem)]) for label, problem in walk.points()
              if found.get((chip, problem))]  # fmt: skip
    pairs = list(zip(points, points[1:]))
    if walk.forms:
        pairs += [(after, before) for before, after in pairs]
    return [
        Jump(walk.name, chip, a[0], b[0], (a[2][0], b[2][0]),
             (a[1].roof(row), b[1].roof(row)), (a[2][1], b[2][1]))
        for a, b in pairs
    ]  # fmt: skip


def choose_walks(args: argparse.Namespace) -> list[Walk]:
    walks = [w for w in make_walks() if re.search(args.only, w.name)]
    if not args.sample:
        return walks
    return [
        dataclasses.replace(w, values=tuple(v for v in w.values if str(v) in SAMPLE[w.name]))
        for w in walks if w.name in SAMPLE
    ]  # fmt: skip


def show(jump: Jump) -> str:
    schedules = " -> ".join(dict.fromkeys(jump.schedules))
    return (
        f"{jump.jump:6.2f}  {jump.chip:8} {jump.walk}: {jump.before or 'none'} -> "
        f"{jump.after or 'none'}: {jump.times[0]:.1f} -> {jump.times[1]:.1f} us, "
        f"roof {jump.roofs[0]:.1f} -> {jump.roofs[1]:.1f} ({schedules})"
    )


def write_results(high: list[Jump], pairs: int, problems: int) -> None:
    """What is left by reason, with the largest jump of each."""
    section = results_util.make_section(
        "Jumps of the planner's estimates", date=datetime.date.today().isoformat(),
        command="scripts/cliffs.py --write",
    )  # fmt: skip
    section["notes"] = [
        f"{pairs} pairs of neighbours, {problems} problems on {', '.join(CHIPS)}: jumps above "
        f"{LIMIT} times that of the roof, by reason. No board took part."
    ]
    groups: dict[str, list[Jump]] = {}
    for jump in high:
        groups.setdefault(jump.reason or "not explained", []).append(jump)
    rows = []
    for reason, jumps in sorted(groups.items(), key=lambda item: -len(item[1])):
        most = jumps[0]
        rows.append([reason, len(jumps), f"{most.jump:.2f}",
                     f"{most.chip} {most.walk}: {most.before or 'none'} to {most.after or 'none'}",
                     ", ".join(dict.fromkeys(s for j in jumps for s in j.schedules))])  # fmt: skip
    section["tables"] = [{
        "caption": "", "rows": rows,
        "columns": ["what is left", "jumps", "largest", "where it is", "schedules"],
    }]  # fmt: skip
    path = results_util.RESULTS / "cliffs.json"
    contents = {"title": "Where planned times jump", "sections": [section]}
    path.write_text(results_util.to_text(contents), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--chips", default=",".join(CHIPS))
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()

    rows = read_chips(args.bin)
    chips = args.chips.split(",")
    walks = choose_walks(args)
    if not walks:
        parser.error(f"no walk matches '{args.only}'")
    asked = list(dict.fromkeys((chip, problem) for chip in chips for walk in walks
                               for _, problem in walk.points()))  # fmt: skip
    found = {}
    with concurrent.futures.ThreadPoolExecutor(args.workers) as pool:
        futures = [(key, pool.submit(ask, args.bin, *key)) for key in asked]
        for i, (key, future) in enumerate(futures):
            found[key] = future.result()
            progress(i + 1, len(asked), key[0])
    all_jumps = [j for walk in walks for chip in chips
                 for j in find_jumps(walk, chip, rows[chip], found)]  # fmt: skip
    high = sorted((j for j in all_jumps if j.jump > args.limit), key=lambda j: -j.jump)
    for jump in all_jumps if args.all else high:
        print(show(jump))
    open_jumps = [j for j in high if not j.reason]
    if args.json:
        lines = [{**dataclasses.asdict(j), "jump": round(j.jump, 2), "reason": j.reason}
                 for j in high]  # fmt: skip
        args.json.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    if args.write:
        write_results(high, len(all_jumps), len(asked))
    refused = sum(value is None for value in found.values())
    if refused:
        print(f"{refused} of {len(asked)} problems have no plan")
    print(f"{len(all_jumps)} pairs, {len(high)} jumps above {args.limit}, "
          f"{len(open_jumps)} without a reason")  # fmt: skip
    return 1 if open_jumps else 0


if __name__ == "__main__":
    sys.exit(main())
