"""Numbers of the documents that 256 keys are of: in order, with borders inside of tiles, and out
of order.

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


main()
