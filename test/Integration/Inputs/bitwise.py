"""Rows of ws_tmem are the same bits alone, in a batch, in another order of tiles and
with another way of storing them.

usage: bitwise.py FOLDER DIM [more flags of attn-compile]
"""

import pathlib
import sys

import numpy as np
from run_kernel import run_kernel

LENGTH = 300


def run(folder, name, operands, flags):
    shape = "x".join(map(str, operands["q"].shape))
    flags = [f"--q={shape}xf16", "--chip=sm_100a", "--schedule=ws_tmem", *flags]
    return run_kernel(folder, name, operands, flags).view(np.uint16)


def main():
    folder, dim, flags = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    rng = np.random.default_rng()
    operands = {x: rng.standard_normal((2, 3, LENGTH, dim)).astype(np.float16) for x in "qkv"}
    whole = run(folder, "whole", operands, flags)
    own = {x: values[1:2, 2:3].copy() for x, values in operands.items()}
    alone = run(folder, "alone", own, flags)
    other = "--set=order=row_major,epilogue=direct,kv_stages=2"
    ordered = run(folder, "ordered", operands, [*flags, other])
    chunked = run(folder, "chunked", operands, [*flags, "--set=masked_blocks=chunks"])
    print("alone", "equal" if (whole[1:2, 2:3] == alone).all() else "different")
    print("ordered", "equal" if (whole == ordered).all() else "different")
    print("chunked", "equal" if (whole == chunked).all() else "different")


main()
