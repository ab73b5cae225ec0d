"""NaN and infinite scores make NaN of the rows that have them, and of no other.

usage: special_scores.py FOLDER CHIP [more flags of attn-compile]
"""

import pathlib
import sys

import numpy as np
from run_kernel import run_kernel

QUERIES, KEYS, DIM = 140, 270, 64
# In every 16 keys of a row the polynomial takes 6, 7, 14 and 15.
CASES = ("plain", "nan_6", "nan_0", "late_nan", "inf_7", "inf_1", "less_14", "query")


def make_operands():
    rng = np.random.default_rng(5)
    count = len(CASES)
    q = np.abs(rng.standard_normal((count, 1, QUERIES, DIM))).astype(np.float16)
    k, v = (rng.standard_normal((count, 1, KEYS, DIM)).astype(np.float16) for _ in "kv")
    key = lambda case: k[CASES.index(case), 0]
    key("nan_6")[6] = np.nan
    key("nan_0")[0] = np.nan
    key("late_nan")[135] = np.nan
    key("inf_7")[7] = np.inf
    key("inf_1")[1] = np.inf
    key("less_14")[14] = -np.inf
    q[CASES.index("query"), 0, 5] = np.nan
    return {"q": q, "k": k, "v": v}


def reference(operands, is_causal):
    q, k, v = (operands[name].astype(np.float64) for name in "qkv")
    scores = q @ k.swapaxes(2, 3) / np.sqrt(DIM)
    if is_causal:
        scores[..., np.triu(np.ones((QUERIES, KEYS), bool), 1)] = -np.inf
    powers = np.exp(scores - scores.max(3, keepdims=True))
    return powers @ v / powers.sum(3, keepdims=True)


def main():
    folder, chip, flags = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    operands = make_operands()
    shape = f"{len(CASES)}x1x{QUERIES}x{DIM}xf16"
    flags = [f"--q={shape}", f"--kv-len={KEYS}", f"--chip={chip}", "--no-lse",
             "--schedule=ws_tmem", *flags]  # fmt: skip
    result = run_kernel(folder, "k", operands, flags).astype(np.float64)
    with np.errstate(invalid="ignore"):
        exact = reference(operands, "--causal" in flags)
    for case, got, wanted in zip(CASES, result[:, 0], exact[:, 0]):
        is_nan = np.isnan(wanted)
        error = np.abs(got - wanted)[~is_nan].max(initial=0)
        print(
            f"{case}: {is_nan.all(1).sum()} rows of NaN,",
            "right" if (np.isnan(got) == is_nan).all() and error < 4e-3 else f"wrong, {error}",
        )


main()
