#!/usr/bin/env python3
"""How many more steps the proof of a kernel in pairs of CTAs takes than that of one CTA.

usage: pair-steps.py [--times=N] FLAGS..

Each argument has the flags of a problem. The exit status is 1 if one of the proofs takes more than N times
the steps, twice unless told, or is none.
"""

import re
import subprocess
import sys


def count(flags, pair):
    """The steps of a proof, and for how many tiles in a row it had to follow the kernel."""
    command = ["attn-compile", "--chip=sm_100a", "--schedule=ws_tmem", "--require-proof", *flags.split(),
               f"--set=pair={pair}", "--no-shipped-plans", "-o", "/dev/null",
               "--remarks-filter=attn.check-barriers"]  # fmt: skip
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return [int(re.search(rf"{name}=(\d+)", said)[1]) for name in ("steps", "tiles-in-a-row")]


def main():
    failures, times = 0, 2.0
    for flags in sys.argv[1:]:
        if flags.startswith("--times="):
            times = float(flags.split("=")[1])
            continue
        (own, tiles), (both, pair_tiles) = count(flags, "false"), count(flags, "true")
        failures += both > times * own
        print(f"{flags}: {own} and {both} steps, {both / own:.2f} times as many; tiles {tiles} and {pair_tiles}")
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
