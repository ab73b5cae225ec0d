"""Rows of ws_tmem are the same bits alone, in a batch, in another order of tiles, on one
CTA, and with another way of storing them.

usage: bitwise.py FOLDER DIM [--heads=KV] [more flags of attn-compile]
"""

import pathlib
import sys

import numpy as np
from run_kernel import run_kernel

LENGTH = 300
#: What is run beside the whole batch, and what differs.
CHANGED = {
    "ordered": ["--set=order=row_major,epilogue=direct,kv_stages=2"],
    "dealt": ["--set=dynamic=true"],
}


def run(folder, name, operands, flags, simulated=()):
    shape = "x".join(map(str, operands["q"].shape))
    heads = operands["k"].shape[1]
    flags = [f"--q={shape}xf16", f"--kv-heads={heads}", "--chip=sm_100a",
             "--schedule=ws_tmem", *flags]  # fmt: skip
    # Other tests look for races.
    simulated = ["--sanitize=false", *simulated]
    return run_kernel(folder, name, operands, flags, simulated).view(np.uint16)


def main():
    folder, dim, flags = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    shared = "--heads=1" in flags
    flags = [flag for flag in flags if flag != "--heads=1"]
    # A group of three has one row of four too few.
    query_heads = 3 if shared else 2
    rng = np.random.default_rng()
    operands = {}
    for name in "qkv":
        heads = 1 if shared and name != "q" else query_heads
        # Scores of deviation 2: maxima grow in some rows and blocks.
        values = rng.standard_normal((2, heads, LENGTH, dim)) * (2 if name == "q" else 1)
        operands[name] = values.astype(np.float16)
    whole = run(folder, "whole", operands, flags)
    first = 0 if shared else query_heads - 1
    own = {name: values[1:, first:].copy() for name, values in operands.items()}
    same = {"alone": (whole[1:, first:] == run(folder, "alone", own, flags)).all()}
    same["on one CTA"] = (whole == run(folder, "whole", operands, flags, ["--grid=1"])).all()
    for name, changed in CHANGED.items():
        same[name] = (whole == run(folder, name, operands, [*flags, *changed])).all()
    for name, is_same in same.items():
        print(name, "equal" if is_same else "different")


main()
