"""Writes a float16 array of shape (1, 2, 17, 16) to the file given."""

import sys

import numpy as np

np.save(sys.argv[1], np.random.default_rng(0).standard_normal((1, 2, 17, 16)).astype(np.float16))
