#!/usr/bin/env python3
"""Runs recorded launches of other compilers in every corner and many seeds.

Each folder below the one given that holds a recorded launch
(docs/RecordedLaunches.md) runs once for each seed, each time as it is and in
every corner of schedule and timing. It passes when nothing is found, the output
agrees with the stored reference, and all corners give the same bits. --regrid
runs a recording a second time with another grid, which persistent kernels allow.
Recordings are not part of the project.

usage: scripts/recorded-check.py FOLDER [--seeds=N] [--profile=hw] [--filter=REGEX]
                                 [--regrid=NAME=X,Y,Z]... [--sim=PATH]
The exit status is 1 when a run fails, and 2 when there is no recording.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ERROR = r"^{}error: +(\S+), accepted"
# What rounding of the operands and of O leaves; attn-sim itself accepts four times as much.
TOLERANCE = {"float16": 1e-3, "bfloat16": 4e-3}
LSE_TOLERANCE = 1e-4


def with_grid(folder: pathlib.Path, grid: list[int], into: str) -> pathlib.Path:
    """A copy of a recording that is launched with another grid."""
    copy = pathlib.Path(into) / f"{folder.name}_grid_{'x'.join(map(str, grid))}"
    copy.mkdir()
    for item in folder.iterdir():
        if item.name != "launch.json":
            os.symlink(item.resolve(), copy / item.name)
    record = json.loads((folder / "launch.json").read_text())
    (copy / "launch.json").write_text(json.dumps({**record, "grid": grid}))
    return copy


def run(sim: str, folder: pathlib.Path, seed: int, profile: str) -> tuple[bool, str]:
    """Whether a recording passes with a seed, and what there is to say."""
    tensors = json.loads((folder / "launch.json").read_text())["tensors"]
    command = [sim, f"--recorded={folder}", f"--seed={seed}", f"--profile={profile}"]
    command.append(f"--lse-tolerance={LSE_TOLERANCE}")
    tolerance = TOLERANCE.get(tensors.get("o", {}).get("dtype"))
    if tolerance:
        command.append(f"--tolerance={tolerance}")
    done = subprocess.run([*command, "--corners"], capture_output=True, text=True)
    text = done.stdout + done.stderr
    found = [re.search(ERROR.format(name), text, re.M) for name in ("relative ", "LSE ")]
    errors = ", ".join(match[1] if match else "none" for match in found)
    if done.returncode == 0:
        return True, errors
    first = re.search(r"^.*error: (?!.*accepted).*$", text, re.M)
    return False, first[0] if first else errors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--profile", default="hw", choices=["hw", "isa"])
    parser.add_argument("--filter", default="", metavar="REGEX")
    parser.add_argument("--regrid", action="append", default=[], metavar="NAME=X,Y,Z")
    parser.add_argument("--sim", default=str(ROOT / "build/bin/attn-sim"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as copies:
        return check(options, copies)


def check(options: argparse.Namespace, copies: str) -> int:
    folders = sorted(
        path.parent
        for path in options.folder.glob("*/launch.json")
        if re.search(options.filter, path.parent.name)
    )
    if not folders:
        print(f"no recorded launch in {options.folder}", file=sys.stderr)
        return 2
    for text in options.regrid:
        name, _, grid = text.partition("=")
        extents = [int(extent) for extent in grid.split(",")]
        folders += [with_grid(f, extents, copies) for f in folders if f.name == name]
    failed = 0
    print(f"{'recording':32} {'seeds':>5} {'failed':>6}  relative and LSE error of the first seed")
    for folder in folders:
        start, results = time.monotonic(), []
        for seed in range(options.seeds):
            results.append(run(options.sim, folder, seed, options.profile))
        bad = [text for good, text in results if not good]
        failed += len(bad)
        seconds = time.monotonic() - start
        print(
            f"{folder.name:32} {len(results):5} {len(bad):6}  {results[0][1]} ({seconds:.0f} s)",
            flush=True,
        )
        for text in bad[:3]:
            print(f"  {text}")
    runs = options.seeds * len(folders)
    print(f"{runs - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
