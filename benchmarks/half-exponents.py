#!/usr/bin/env python3
"""What exponents that are rounded to f16 do to results.

sm_103a has a packed exponential of two halves, which takes half of the special
function unit and needs no conversion behind it. Its exponent is an f16. This
compares the error of O against float64 with that of f32 exponents, both with
powers that are rounded correctly, and so better than the hardware's. Sums are
those of the powers as PV takes them for halves, of the f32 powers else.

usage: benchmarks/half-exponents.py [--seed=N]          (needs numpy)
"""

import argparse

import numpy as np

QUERIES, KEYS, DIM = 64, 1024, 64
CLASSES = ("normal", "sink", "ramp", "positive values")
DEVIATIONS = (0.5, 1, 2, 4, 6)


def relative_error(p: np.ndarray, sums: np.ndarray, v: np.ndarray, exact: np.ndarray) -> float:
    o = ((p.astype(np.float64) @ v) / sums).astype(np.float16)
    return float(np.sqrt(((o - exact) ** 2).sum() / (exact**2).sum()))


def measure(rng: np.random.Generator, kind: str, deviation: float) -> tuple[float, float]:
    """Errors with exponents in f32 and in f16."""
    scores = rng.standard_normal((QUERIES, KEYS)) * deviation
    if kind == "sink":
        scores[:, 3] += 9
    if kind == "ramp":
        scores += np.linspace(0, 30, KEYS)
    v = rng.standard_normal((KEYS, DIM)).astype(np.float16).astype(np.float64)
    if kind == "positive values":
        v = np.abs(v)
    exponents = (scores * np.log2(np.e)).astype(np.float32)
    exponents -= exponents.max(1, keepdims=True)
    powers = np.exp2(exponents.astype(np.float64))
    sums = powers.sum(1, keepdims=True)
    exact = powers @ v / sums
    halves = np.exp2(exponents.astype(np.float16).astype(np.float64)).astype(np.float16)
    half_sums = halves.astype(np.float64).sum(1, keepdims=True)
    return (
        relative_error(powers.astype(np.float16), sums, v, exact),
        relative_error(halves, half_sums, v, exact),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    print("scores           deviation  f32      f16      ratio")
    for kind in CLASSES:
        for deviation in DEVIATIONS:
            wide, half = measure(rng, kind, deviation)
            print(f"{kind:16} {deviation:9}  {wide:.2e} {half:.2e} {half / wide:5.2f}")


if __name__ == "__main__":
    main()
