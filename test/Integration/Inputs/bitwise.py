"""Rows of ws_tmem are the same bits alone, in a batch, in another order of tiles and
with another way of storing them.

usage: bitwise.py FOLDER DIM [more flags of attn-compile]
"""

import pathlib
import subprocess
import sys

import numpy as np

LENGTH = 300


def run(folder, name, operands, flags):
    q = operands["q"]
    ptx, launch, out = (folder / f"{name}.{end}" for end in ("ptx", "json", "npy"))
    shape = "x".join(map(str, q.shape))
    command = ["attn-compile", f"--q={shape}xf16", "--chip=sm_100a", "--schedule=ws_tmem"]
    subprocess.run([*command, "-o", ptx, f"--launch-out={launch}", *flags], check=True)
    inputs = []
    for tensor, values in operands.items():
        np.save(folder / f"{name}-{tensor}.npy", values)
        inputs.append(f"--in={tensor}={folder / f'{name}-{tensor}.npy'}")
    subprocess.run(
        ["attn-sim", ptx, f"--launch={launch}", *inputs, f"--out=o={out}"],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return np.load(out).view(np.uint16)


def main():
    folder, dim, flags = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng()
    operands = {x: rng.standard_normal((2, 3, LENGTH, dim)).astype(np.float16) for x in "qkv"}
    whole = run(folder, "whole", operands, flags)
    own = {x: values[1:2, 2:3].copy() for x, values in operands.items()}
    alone = run(folder, "alone", own, flags)
    other = "--set=order=row_major,epilogue=direct,kv_stages=2"
    ordered = run(folder, "ordered", operands, [*flags, other])
    print("alone", "equal" if (whole[1:2, 2:3] == alone).all() else "different")
    print("ordered", "equal" if (whole == ordered).all() else "different")


main()
