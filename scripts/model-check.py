#!/usr/bin/env python3
"""Holds the cycle model to the published slopes of recorded attention kernels.

Takes recordings of one kernel at several lengths (NAME_nN, as
scripts/record-fa4.py --lengths makes them), estimates each launch, and solves
for the cycles of a tile and of each further pair of 128-key blocks of its two
query tiles. Prints them with their range over the corners of the model and what
each SM did in a pair. Recordings without such a name are estimated as they are.
Recordings are not part of the project.

--beside=SCHEDULE compiles the problem of each recording whose name tells it
(sm100a_d64_bf16_causal_n512: one head, 512 queries and keys), prints our kernel
too, and says of the corners that both have in how many it takes fewer cycles,
and which of its counts are greater: cycles of the busiest unit, operations of the
special function unit, shared bytes (one CTA is not held to those of a pair, which
reads half of B), barrier waits, and issue slots beyond four for each exponential
that a polynomial takes over.

--extrapolate=KEYS also prints what the line through the two greatest lengths says
of so many keys, in each corner, and compares both kernels there.

usage: scripts/model-check.py FOLDER [--filter=REGEX] [--chip=CHIP]
  [--beside=SCHEDULE] [--set=PARAMETERS] [--extrapolate=KEYS] [--sim=PATH]
  [--compile=PATH]
The exit status is 1 when a slope is outside of what is published for it, or a
launch cannot be estimated, and 2 when there is no recording.
"""

import argparse
import collections
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Cycles of a pair of blocks: what published speeds of FlashAttention-4 on B200
# allow for its kernels (docs/CycleModel.md), by the name of the recording.
PUBLISHED = {
    "sm100a_d64_bf16": (1783, 1930),
    "sm100a_d64_bf16_causal": (1674, 1930),
    "sm100a_d128_bf16_causal": (2300, 2600),
    "sm100a_d256_bf16": (1949, 2382),
}
COUNTS = ("issue", "mufu", "fma", "alu", "shared_bytes", "tmem_bytes", "barrier_waits")
BLOCK = 128  # keys
#: Element types of recordings' names that problems call otherwise.
TYPES = {"e4m3": "f8E4M3FN"}
# Issue slots that an exponential by a polynomial takes more than one of the special
# function unit.
SLOTS_OF_POLYNOMIAL = 4


def run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or "no output").splitlines()[-1])
    return done.stdout


def vary(options, source: list[str], report: pathlib.Path) -> dict:
    """The estimate of a launch, which is left in `report` for comparisons."""
    command = [options.sim, *source, "--vary", "--json", "--sanitize=false"]
    if options.chip:
        command.append(f"--chip={options.chip}")
    report.write_text(run(command))
    return json.loads(report.read_text())["estimate"]


def compile_beside(options, name: str, scratch: pathlib.Path) -> list[str]:
    """Our kernel of the problem that a recording's name tells, as attn-sim takes
    it; nothing if it tells none."""
    found = re.fullmatch(r"(sm\d+[af]?)_d(\d+)(?:_(\d+))?_(b?f16|e4m3)(_causal)?_n(\d+)", name)
    if not found:
        return []
    chip, dim, dim_v, dtype, causal, keys = found.groups()
    chip = options.chip or chip.replace("sm", "sm_")
    kernel, launch = scratch / "kernel.ptx", scratch / "kernel.json"
    command = [options.compile, f"--chip={chip}", f"--schedule={options.beside}"]
    element = TYPES.get(dtype, dtype)
    command += [f"--q=1x1x{keys}x{dim}x{element}", "-o", str(kernel), f"--launch-out={launch}"]
    if dim_v:
        command.append(f"--dv={dim_v}")
    if causal:
        command.append("--causal")
    if options.set:
        command.append(f"--set={options.set}")
    run(command)
    return [str(kernel), f"--launch={launch}"]


def print_comparison(options, first: pathlib.Path, second: pathlib.Path) -> None:
    said = run([options.sim, "--compare", str(first), str(second)]).strip().splitlines()[-1]
    print(f"  {said.replace(str(first), 'ours').replace(str(second), 'theirs')}", flush=True)


def find_excess(ours: dict, theirs: dict, shares_operands: bool) -> list[str]:
    """What our kernel has more of than the other one."""
    own, other = ours["counts"], theirs["counts"]
    spared = max(0, other["mufu"] - own["mufu"])
    bounds = {
        "busiest unit": (max(ours["busy"].values()), max(theirs["busy"].values())),
        "mufu": (own["mufu"], other["mufu"]),
        "barrier_waits": (own["barrier_waits"], other["barrier_waits"]),
        "issue": (own["issue"], other["issue"] + SLOTS_OF_POLYNOMIAL * spared),
    }
    if not shares_operands:
        bounds["shared_bytes"] = (own["shared_bytes"], other["shared_bytes"])
    return [f"{name} {has:.0f} of {may:.0f}" for name, (has, may) in bounds.items() if has > may]


def print_single(name: str, found: dict) -> None:
    counts = " ".join(f"{found['counts'][each]:.0f} |" for each in COUNTS)
    corners = found["corners"]["cycles"]
    print(
        f"| {name} | {found['cycles']:.0f} | {min(corners):.0f} to {max(corners):.0f} |"
        f" {bound(found)} | {counts}",
        flush=True,
    )


def bound(found: dict) -> str:
    unit = max(found["busy"], key=found["busy"].get)
    return f"{unit} {found['busy'][unit]:.0f}"


def slope(first: dict, last: dict, blocks: int) -> tuple[float, float, float]:
    """Cycles of a pair: what we take, least and most in the corners of both."""
    pairs = list(zip(first["corners"]["cycles"], last["corners"]["cycles"], strict=True))
    slopes = [(b - a) / blocks for a, b in pairs]
    return slopes[0], min(slopes), max(slopes)


def print_slope(name: str, lengths: dict[int, dict]) -> bool:
    """Whether the slope between the two greatest lengths is one of those published."""
    few, many = sorted(lengths)[-2:]
    blocks = (many - few) / BLOCK
    nominal, least, most = slope(lengths[few], lengths[many], blocks)
    tile = lengths[few]["cycles"] - few / BLOCK * nominal
    counts = [
        (lengths[many]["counts"][each] - lengths[few]["counts"][each]) / blocks for each in COUNTS
    ]
    listed = " ".join(f"{count:.0f} |" for count in counts)
    print(
        f"| {name}, {few} to {many} | {tile:.0f} + {nominal:.0f} a pair |"
        f" {least:.0f} to {most:.0f} | {bound(lengths[many])} | {listed}",
        flush=True,
    )
    low, high = PUBLISHED.get(name, (0, float("inf")))
    return low <= nominal <= high


def extrapolate(lengths: dict[int, dict], keys: int) -> dict:
    """The estimate of so many keys, on a line through the two greatest lengths."""
    few, many = sorted(lengths)[-2:]
    first, last = lengths[few], lengths[many]
    share = (keys - many) / (many - few)

    def place(low: float, high: float) -> float:
        return high + share * (high - low)

    pairs = zip(first["corners"]["cycles"], last["corners"]["cycles"], strict=True)
    corners = last["corners"] | {"cycles": [place(*pair) for pair in pairs]}
    return last | {"cycles": place(first["cycles"], last["cycles"]), "corners": corners}


def print_extrapolated(options, families: dict[str, dict[int, dict]]) -> None:
    """What the families with two lengths or more take of --extrapolate's keys."""
    found = {
        name: extrapolate(lengths, options.extrapolate)
        for name, lengths in families.items()
        if len(lengths) > 1
    }
    for name, one in found.items():
        corners = one["corners"]["cycles"]
        print(
            f"| {name}, {options.extrapolate} by a line | {one['cycles']:.0f} |"
            f" {min(corners):.0f} to {max(corners):.0f} |"
        )
        own = found.get(f"{name}, {options.beside}")
        if own is None:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            ours, theirs = pathlib.Path(scratch, "ours.json"), pathlib.Path(scratch, "theirs.json")
            ours.write_text(json.dumps({"estimate": own}))
            theirs.write_text(json.dumps({"estimate": one}))
            print_comparison(options, ours, theirs)


def estimate(options, folder: pathlib.Path, scratch: pathlib.Path, families: dict) -> None:
    """Prints a recording, and our kernel beside it; adds both to `families`, by
    name and length."""
    theirs, ours = scratch / "theirs.json", scratch / "ours.json"
    found = vary(options, [f"--recorded={folder}"], theirs)
    print_single(folder.name, found)
    length = re.fullmatch(r"(.*)_n(\d+)", folder.name)
    if length:
        families[length[1]][int(length[2])] = found
    source = options.beside and compile_beside(options, folder.name, scratch)
    if not source:
        return
    own = vary(options, source, ours)
    print_single(f"{folder.name}, {options.beside}", own)
    print_comparison(options, ours, theirs)
    launch = json.loads((folder / "launch.json").read_text())
    excess = find_excess(own, found, shares_operands=math.prod(launch.get("cluster", [1])) > 1)
    print(f"  more than theirs: {', '.join(excess) or 'nothing'}", flush=True)
    families[f"{length[1]}, {options.beside}"][int(length[2])] = own


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--filter", default="", metavar="REGEX")
    parser.add_argument("--chip", default="")
    parser.add_argument("--beside", default="", metavar="SCHEDULE")
    parser.add_argument("--set", default="", metavar="PARAMETERS")
    parser.add_argument("--extrapolate", type=int, default=0, metavar="KEYS")
    parser.add_argument("--sim", default=str(ROOT / "build/bin/attn-sim"))
    parser.add_argument("--compile", default=str(ROOT / "build/bin/attn-compile"))
    options = parser.parse_args()
    folders = sorted(path.parent for path in options.folder.glob("*/launch.json"))
    folders = [folder for folder in folders if re.search(options.filter, folder.name)]
    if not folders:
        print(f"no recorded launch in {options.folder}", file=sys.stderr)
        return 2
    print("| recording | cycles | corners | busiest unit |", " | ".join(COUNTS), "|")
    print("|---" * (4 + len(COUNTS)) + "|")
    families, failed = collections.defaultdict(dict), 0
    with tempfile.TemporaryDirectory() as scratch:
        for folder in folders:
            try:
                estimate(options, folder, pathlib.Path(scratch), families)
            except RuntimeError as error:
                print(f"| {folder.name} | {error} |")
                failed += 1
    if options.extrapolate:
        print_extrapolated(options, families)
    for name, lengths in families.items():
        if len(lengths) > 1 and not print_slope(name, lengths):
            print(f"{name}: expected a slope from {PUBLISHED[name]}", file=sys.stderr)
            failed += 1
    print(f"{len(folders)} recordings, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
