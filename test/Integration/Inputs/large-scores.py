"""The edge of the range of scores (docs/Reference.md): rows whose largest score is below it
are right, rows whose largest score reaches it are NaN.

usage: large-scores.py FOLDER CHIP TYPE LIMIT [attn-compile option...]

LIMIT is that of scores in powers of two. Each key is the query of one row and every
other one is far from it, so that the row's result is the key's value. Needs
attn-compile and attn-sim on the PATH.
"""

import pathlib
import subprocess
import sys

import numpy as np

ROWS, DIM = 64, 32
#: Scores by the limit, one below it and one beyond, from factors that all types hold.
FACTORS = (1.0, 1.125)
BEYOND = 1 + 1 / 16
#: Bits of 1.0 and their type, by which operands of ones and zeros are made.
UNITS = {"f16": (0x3C00, "u2"), "bf16": (0x3F80, "u2"), "f8E4M3FN": (0x38, "u1")}
#: The bits of 1.125.
LARGER = {"f16": 0x3C80, "bf16": 0x3F90, "f8E4M3FN": 0x39}


def make_signs():
    rng = np.random.default_rng(0)
    while True:
        signs = rng.choice((-1, 1), (ROWS, DIM))
        if (signs @ signs.T - DIM * np.eye(ROWS)).max() <= DIM - 4:
            return signs


def encode(signs, dtype, factor):
    one, carrier = UNITS[dtype]
    bits = one if factor == 1 else LARGER[dtype]
    top = 1 << (8 * np.dtype(carrier).itemsize - 1)
    return np.where(signs < 0, bits | top, bits).astype(carrier)[None, None]


def main(folder, chip, dtype, limit, *options):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    kernel, launch = f"{folder}/kernel.ptx", f"{folder}/kernel.json"
    # What the larger factor makes of it is beyond.
    scale = 2.0 ** float(limit) * np.log(2) * BEYOND / FACTORS[1] / DIM
    subprocess.run(["attn-compile", f"--q=1x1x{ROWS}x{DIM}x{dtype}", f"--scale={scale!r}", f"--chip={chip}",
                    "--out-type=f32", "-o", kernel, f"--launch-out={launch}", *options], check=True)  # fmt: skip
    signs = make_signs()
    values = signs[::-1]
    np.save(folder / "k.npy", encode(signs, dtype, 1))
    np.save(folder / "v.npy", encode(values, dtype, 1))
    found = []
    for factor in FACTORS:
        np.save(folder / "q.npy", encode(signs, dtype, factor))
        subprocess.run(["attn-sim", kernel, f"--launch={launch}", *[f"--in={x}={folder}/{x}.npy" for x in "qkv"],
                        f"--out=o={folder}/o.npy", f"--out=lse={folder}/lse.npy"],
                       check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        o, lse = np.load(folder / "o.npy")[0, 0], np.load(folder / "lse.npy")[0, 0]
        right = np.abs(o - values).max(1) < 1e-2
        right &= np.abs(lse / (factor * DIM * scale) - 1) < 1e-3
        found.append((int(right.sum()), int(np.isnan(o).all(1).sum()), int(np.isnan(lse).sum())))
    (below, _, _), (_, nan, nan_lse) = found
    print(f"{chip} {dtype}: {below} right below, {nan} and {nan_lse} NaN beyond")


if __name__ == "__main__":
    main(*sys.argv[1:])
