#!/usr/bin/env python3
"""How fast attn-sim runs: lane instructions per second of one host thread.

Attention of one head, 256 by 256, head dimension 128, as attn-compile makes it for
each chip, with and without the sanitizer; and recorded launches, where a folder
of them is given. The best of the runs counts, since other work on the machine
only adds time. `two threads` is the time of the run on two.

usage: benchmarks/simulator-speed.py [--build=DIR] [--runs=N] [--recordings=DIR]
                                     [--least=20e6]
The exit status is 1 when an attention with the sanitizer stays below `--least`
lane instructions per second.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHIPS = ["sm_80", "sm_90a", "sm_100a"]
SHAPE = "1x1x256x128xf16"


def measure(command: list[str], runs: int) -> tuple[float, int]:
    """Best seconds, and lane instructions."""
    best, lanes = float("inf"), 0
    for _ in range(runs):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"error: {' '.join(command)}\n{done.stdout}{done.stderr}")
        run = json.loads(done.stdout)["run"]
        best = min(best, run["seconds"])
        lanes = run["counters"]["lane_instructions"]
    return best, lanes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--recordings", type=pathlib.Path)
    parser.add_argument("--least", type=float, default=20e6)
    args = parser.parse_args()
    sim = str(args.build / "bin/attn-sim")
    slow = []
    print(f"{'launch':28}{'M lanes':>9}{'M/s':>8}{'without':>9}{'s':>8}{'two threads':>13}")

    def row(name: str, command: list[str]) -> float:
        one = [sim, *command, "--json", "--jobs=1"]
        checked, lanes = measure(one, args.runs)
        plain, _ = measure([*one, "--sanitize=false"], args.runs)
        two, _ = measure([sim, *command, "--json", "--jobs=2"], args.runs)
        print(
            f"{name:28}{lanes / 1e6:>9.1f}{lanes / checked / 1e6:>8.1f}"
            f"{lanes / plain / 1e6:>9.1f}{checked:>8.2f}{two:>13.2f}"
        )
        return lanes / checked

    with tempfile.TemporaryDirectory() as folder:
        for chip in CHIPS:
            ptx, launch = f"{folder}/{chip}.ptx", f"{folder}/{chip}.json"
            subprocess.run(
                [str(args.build / "bin/attn-compile"), f"--q={SHAPE}",
                 f"--chip={chip}", "-o", ptx, f"--launch-out={launch}"],
                check=True,
            )  # fmt: skip
            if row(f"attention {chip}", [ptx, f"--launch={launch}"]) < args.least:
                slow.append(chip)
        if args.recordings:
            for path in sorted(args.recordings.iterdir()):
                if (path / "launch.json").exists():
                    row(path.name, [f"--recorded={path}"])
    print("per host thread; `M/s` and `s` with the sanitizer")
    if slow:
        print(f"below {args.least / 1e6:.0f} M/s: {', '.join(slow)}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
