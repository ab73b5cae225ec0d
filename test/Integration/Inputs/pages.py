"""Lengths and tables for two sequences of four pages of a pool of 11, with entries that are not
in it: in rows, and as a list whose counts lead out of it.

usage: pages.py FOLDER
"""

import pathlib
import sys

import numpy as np


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    rows = np.int32([[5, -1, 10, 2147483647], [11, 0, -2147483648, 3]])
    np.save(folder / "rows.npy", rows)
    np.save(folder / "list.npy", rows.reshape(-1))
    np.save(folder / "lengths.npy", np.int32([50, 41]))
    np.save(folder / "counts.npy", np.int32([-3, 4, 1000]))


main()
