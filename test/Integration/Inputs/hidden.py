"""q, k and v as files, f16, whose keys from 40 on no row sees under a causal mask:
k holds NaN there and v what is given.

usage: hidden.py FOLDER VALUE
"""

import pathlib
import sys

import numpy as np


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    for name, rows in (("q", 40), ("k", 100), ("v", 100)):
        values = random.standard_normal((1, 2, rows, 64)).astype(np.float16)
        values[:, :, 40:] = np.nan if name == "k" else float(sys.argv[2])
        np.save(folder / f"{name}.npy", values)


main()
