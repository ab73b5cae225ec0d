"""Compares the processor time of attn-compile for a wide head with that for D 256.

usage: compile-time-of-heads.py ATTN_COMPILE LIMIT HEAD_DIM FLAG...
How fast the machine is, and how busy, changes both: the ratio of the least times of
some runs says whether unrolled slices have become slow. The exit status is 1 when it
exceeds the limit.
"""

import importlib.util
import os
import pathlib
import sys

spec = importlib.util.spec_from_file_location(
    "compile_time", pathlib.Path(__file__).with_name("compile-time.py")
)
compile_time = importlib.util.module_from_spec(spec)
spec.loader.exec_module(compile_time)


def main() -> int:
    attn_compile, limit, dim, flags = sys.argv[1], float(sys.argv[2]), sys.argv[3], sys.argv[4:]
    wide, usual = (
        compile_time.least_seconds(
            [attn_compile, f"--q=1x32x4096x{each}xf16", *flags, "-o", os.devnull]
        )
        for each in (dim, 256)
    )
    print(f"D {dim} {wide:.3f} s, D 256 {usual:.3f} s, ratio {wide / usual:.2f}, limit {limit}")
    return 0 if wide <= limit * usual else 1


if __name__ == "__main__":
    sys.exit(main())
