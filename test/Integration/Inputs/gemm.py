"""C = A B^T in numpy, beside what a kernel written by hand has computed.

usage: gemm.py make M N K DIR      writes a.npy and b.npy
       gemm.py check DIR [BIAS]    compares c.npy
"""

import sys

import numpy as np


def main():
    if sys.argv[1] == "make":
        m, n, k = map(int, sys.argv[2:5])
        rng = np.random.default_rng(1)
        for name, rows in (("a", m), ("b", n)):
            values = rng.standard_normal((rows, k)).astype(np.float16)
            np.save(f"{sys.argv[5]}/{name}.npy", values)
        return
    a, b, c = (np.load(f"{sys.argv[2]}/{name}.npy").astype(np.float64)
               for name in "abc")
    error = np.abs(a @ b.T - c).max() / np.abs(a @ b.T).max()
    print("right" if error < 1e-3 else f"wrong by {error}")


if __name__ == "__main__":
    main()
