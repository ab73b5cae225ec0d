#!/usr/bin/env python3
"""Runs recorded launches of other compilers in every corner and many seeds.

Each folder below the one given that holds a recorded launch
(docs/RecordedLaunches.md) runs once for each seed, each time as it is and in
every corner of schedule and timing. It passes when nothing is found, the output
agrees with the stored reference, and all corners give the same bits. Recordings
are not part of the project.

usage: scripts/recorded-check.py FOLDER [--seeds=N] [--profile=hw] [--filter=REGEX]
                                 [--sim=PATH]
The exit status is 1 when a run fails, and 2 when there is no recording.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ERROR = r"^{}error: +(\S+), accepted"


def run(sim: str, folder: pathlib.Path, seed: int, profile: str) -> tuple[bool, str]:
    """Whether a recording passes with a seed, and what there is to say."""
    command = [sim, f"--recorded={folder}", f"--seed={seed}", f"--profile={profile}"]
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
    parser.add_argument("--sim", default=str(ROOT / "build/bin/attn-sim"))
    options = parser.parse_args()
    folders = sorted(
        path.parent
        for path in options.folder.glob("*/launch.json")
        if re.search(options.filter, path.parent.name)
    )
    if not folders:
        print(f"no recorded launch in {options.folder}", file=sys.stderr)
        return 2
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
