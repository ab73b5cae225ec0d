#!/usr/bin/env python3
"""Holds the cycle model to the published slopes of recorded attention kernels.

Takes recordings of one kernel at several lengths (NAME_nN, as
scripts/record-fa4.py --lengths makes them), estimates each launch, and solves
for the cycles of a tile and of each further pair of 128-key blocks of its two
query tiles. Prints them with their range over the corners of the model and what
each SM did in a pair. Recordings without such a name are estimated as they are.
Recordings are not part of the project.

usage: scripts/model-check.py FOLDER [--filter=REGEX] [--chip=CHIP] [--sim=PATH]
The exit status is 1 when a slope is outside of what is published for it, or a
launch cannot be estimated, and 2 when there is no recording.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

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


def estimate(sim: str, folder: pathlib.Path, chip: str) -> dict:
    command = [sim, f"--recorded={folder}", "--vary", "--json", "--sanitize=false"]
    if chip:
        command.append(f"--chip={chip}")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout)["estimate"]


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--filter", default="", metavar="REGEX")
    parser.add_argument("--chip", default="")
    parser.add_argument("--sim", default=str(ROOT / "build/bin/attn-sim"))
    options = parser.parse_args()
    folders = sorted(path.parent for path in options.folder.glob("*/launch.json"))
    folders = [folder for folder in folders if re.search(options.filter, folder.name)]
    if not folders:
        print(f"no recorded launch in {options.folder}", file=sys.stderr)
        return 2
    print("| recording | cycles | corners | busiest unit |", " | ".join(COUNTS), "|")
    print("|---" * (4 + len(COUNTS)) + "|")
    families, failed = collections.defaultdict(dict), 0
    for folder in folders:
        try:
            found = estimate(options.sim, folder, options.chip)
        except RuntimeError as error:
            print(f"| {folder.name} | {error} |")
            failed += 1
            continue
        print_single(folder.name, found)
        if match := re.fullmatch(r"(.*)_n(\d+)", folder.name):
            families[match[1]][int(match[2])] = found
    for name, lengths in families.items():
        if len(lengths) > 1 and not print_slope(name, lengths):
            print(f"{name}: expected a slope from {PUBLISHED[name]}", file=sys.stderr)
            failed += 1
    print(f"{len(folders)} recordings, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
