"""Lists with counts that are out of range, of which one names more full blocks than there are."""

import pathlib
import sys

import numpy as np

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
counts = np.array([[-1, 0], [9, -5], [2, 7], [3, 1]], np.int32)
indices = np.array([[0, 1, 2, 3], [3, 0, 2, 1], [2, 0, -1, -1], [1, 3, 0, 2**31 - 1]], np.int32)
np.save(folder / "counts.npy", counts[None, None])
np.save(folder / "indices.npy", indices[None, None])
