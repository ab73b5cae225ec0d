"""Compares the processor time of attn-compile with that of LLVM's llc, or of itself
with the flags of another problem.

usage: compile-time.py ATTN_COMPILE LIMIT FLAG... [--beside FLAG...]
llc gets the LLVM IR that attn-compile makes of the problem and does the last part
of its work. How fast the machine is, and how busy, changes both: the ratio of the
least times of some runs says whether attn-compile has become slow. The exit
status is 1 when it exceeds the limit.
"""

import os
import pathlib
import resource
import subprocess
import sys
import tempfile

RUNS = 5
# The PTX versions in which llc writes for chips.
PTX = {"sm_90a": "ptx80", "sm_100a": "ptx86"}


def least_seconds(command: list) -> float:
    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    times = []
    for _ in range(RUNS):
        before = spent()
        subprocess.run(command, check=True)
        times.append(spent() - before)
    return min(times)


def report(ours: float, other: float, name: str, limit: float) -> int:
    print(f"attn-compile {ours:.3f} s, {name} {other:.3f} s, ratio {ours / other:.2f}, limit {limit}")
    return 0 if ours <= limit * other else 1


def main() -> int:
    attn_compile, limit, flags = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    if "--beside" in flags:
        place = flags.index("--beside")
        times = [
            least_seconds([attn_compile, *each, "-o", os.devnull])
            for each in (flags[:place], flags[place + 1 :])
        ]
        return report(*times, "the other problem", limit)
    with tempfile.TemporaryDirectory() as folder:
        ir = pathlib.Path(folder) / "kernel.ll"
        chip = next(flag.split("=")[1] for flag in flags if flag.startswith("--chip="))
        subprocess.run([attn_compile, *flags, "--emit=llvm", "-o", ir], check=True)
        ours = least_seconds([attn_compile, *flags, "-o", os.devnull])
        llc = least_seconds(
            ["llc", "-O1", f"-mcpu={chip}", f"-mattr=+{PTX[chip]}", "--nvptx-short-ptr", ir]
            + ["-o", os.devnull]
        )
    return report(ours, llc, "llc", limit)


if __name__ == "__main__":
    sys.exit(main())
