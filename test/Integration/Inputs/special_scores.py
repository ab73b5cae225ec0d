"""Scores that take the rare paths of ws_tmem's policies.

NaN and infinite scores make NaN of the rows that have them, and of no other. Where
maxima grow late, in some rows or in all, results are right against float64. Keys are
read from the last block to the first.

usage: special_scores.py FOLDER CHIP [--dim=D] [more flags of attn-compile]
"""

import pathlib
import sys

import numpy as np
from run_kernel import run_kernel

QUERIES, KEYS = 140, 270
# In every 16 keys of a row the polynomial takes 6, 7, 14 and 15.
SPECIAL = ("plain", "nan_6", "nan_0", "late_nan", "inf_7", "inf_1", "less_14", "query")
# The share of the largest norm of an error that rounding of f16 explains.
LIMIT = 6e-4


def special(name, q, k):
    """NaN and infinities."""
    if name == "query":
        q[5] = np.nan
    keys = {"nan_6": (6, np.nan), "nan_0": (0, np.nan), "late_nan": (135, np.nan)}
    keys |= {"inf_7": (7, np.inf), "inf_1": (1, np.inf), "less_14": (14, -np.inf)}
    if name in keys:
        k[keys[name][0]] = keys[name][1]


def raised(name, q, k):
    """What is added to a key's scores, in nats, and to how many of 7 rows all of it."""
    place = np.arange(KEYS)
    added = {
        "ramp": (KEYS - place) * 0.2,
        "falling": place * 0.2,
        "stairs": (KEYS - place) // 64 * 9.0,
        "small_stairs": (KEYS - place) // 64 * 2.5,
        "stairs_of_rows": (KEYS - place) // 64 * 7.0,
        "sink": np.where(place == 0, 30.0, 0.0),
        "sink_of_rows": np.where(place == 3, 40.0, 0.0),
        "late": np.where(place == 130, 12.0, 0.0),
        "first_less": np.where(place >= 130, -np.inf, 0.0),
        "last_less": np.where(place < 20, -np.inf, 0.0),
        "all_less": np.full(KEYS, -np.inf),
    }[name]
    share = np.arange(QUERIES) % 7 / 6 if name.endswith("of_rows") else 1.0
    q[:, 0] = 4.0 * share
    k[:, 0] = added * np.sqrt(q.shape[1]) / 4.0


RAISED = ("ramp", "falling", "stairs", "small_stairs", "stairs_of_rows", "sink", "sink_of_rows",
          "late", "first_less", "last_less", "all_less")  # fmt: skip
CASES = SPECIAL + RAISED


def make_operands(dim):
    rng = np.random.default_rng()
    count = len(CASES)
    q = np.abs(rng.standard_normal((count, 1, QUERIES, dim))).astype(np.float16)
    k, v = (rng.standard_normal((count, 1, KEYS, dim)).astype(np.float16) for _ in "kv")
    for index, name in enumerate(CASES):
        (special if name in SPECIAL else raised)(name, q[index, 0], k[index, 0])
    return {"q": q, "k": k, "v": v}


def reference(operands, flags):
    q, k, v = (operands[name].astype(np.float64) for name in "qkv")
    scores = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])
    first = {"--causal": 1, "--causal=bottom-right": KEYS - QUERIES + 1}
    for flag in first.keys() & set(flags):
        scores[..., np.triu(np.ones((QUERIES, KEYS), bool), first[flag])] = -np.inf
    most = scores.max(3, keepdims=True)
    powers = np.exp(scores - np.where(most == -np.inf, 0, most))
    sums = powers.sum(3, keepdims=True)
    return powers @ v / np.where(sums == 0, 1, sums)


def main():
    folder, chip, flags = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    dims = [int(flag.removeprefix("--dim=")) for flag in flags if flag.startswith("--dim=")]
    dim = dims[0] if dims else 64
    flags = [flag for flag in flags if not flag.startswith("--dim=")]
    operands = make_operands(dim)
    shape = f"{len(CASES)}x1x{QUERIES}x{dim}xf16"
    compiled = [f"--q={shape}", f"--kv-len={KEYS}", f"--chip={chip}", "--no-lse",
                "--schedule=ws_tmem", *flags]  # fmt: skip
    result = run_kernel(folder, "k", operands, compiled).astype(np.float64)
    with np.errstate(invalid="ignore"):
        exact = reference(operands, flags)
    for case, got, wanted in zip(CASES, result[:, 0], exact[:, 0]):
        is_nan = np.isnan(wanted)
        error = np.linalg.norm((got - wanted)[~is_nan])
        error /= max(np.linalg.norm(wanted[~is_nan]), 1e-30)
        print(
            f"{case}: {is_nan.all(1).sum()} rows of NaN,",
            "right" if (np.isnan(got) == is_nan).all() and error < LIMIT else f"wrong, {error}",
        )


main()
