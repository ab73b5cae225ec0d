"""Numbers of the documents that keys are of: in order, with borders inside of tiles, out of
order, more documents than a list of tiles has room for, and two batches.

usage: documents.py FOLDER
"""

import pathlib
import sys

import numpy as np


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    ids = np.repeat(np.arange(4, dtype=np.int32), (70, 20, 100, 66))[None]
    np.save(folder / "ordered.npy", ids)
    ids[0, -40:] = 0
    np.save(folder / "unordered.npy", ids)
    np.save(folder / "many.npy", np.arange(256, dtype=np.int32)[None] // 3)
    rows = [np.repeat([-5, 3, 1 << 40], (64, 1, 135)), np.repeat([0, 7], (130, 70))]
    np.save(folder / "two.npy", np.stack(rows).astype(np.int64))


main()
