"""What merges make of infinite and NaN logits: compares attn.combine with the table of
docs/spec.md, "Infinite and NaN logits".

usage: infinite-logits.py STATES COLUMNS TYPE FOLDER

The kernel merges as many states of f32 or f16, with one row for each way to give three
of them logits of five kinds; of more states others are absent. Needs attn-compile and
attn-sim on the PATH.
"""

import itertools
import pathlib
import subprocess
import sys

import numpy as np

KINDS = (-np.inf, 0.25, -300.0, np.inf, np.nan)
#: Columns of o that are NaN in states that are absent, and in some that are not.
NAN_COLUMN = 1

KERNEL = """
func.func @merge(%po: memref<{partial}x{columns}x{type}>, %pl: memref<{partial}xf32>,
                 {parameter} %o: memref<{rows}x{columns}xf32>, %lse: memref<{rows}xf32>) {{
  attn.combine ins(%po, %pl : memref<{partial}x{columns}x{type}>, memref<{partial}xf32>)
    {scales} outs(%o, %lse : memref<{rows}x{columns}xf32>, memref<{rows}xf32>)
  return
}}
"""


def draw(states, columns):
    """LSE and o of all states."""
    rows = list(itertools.product(KINDS, repeat=min(states, 3)))
    rng = np.random.default_rng(0)
    lse = np.full((states, len(rows)), -np.inf)
    o = rng.standard_normal((states, len(rows), columns))
    for row, kinds in enumerate(rows):
        places = rng.choice(states, len(kinds), replace=False)
        lse[places, row] = kinds
        # A small weight hides no NaN.
        o[places[0], row, NAN_COLUMN] = np.nan
    o[np.isneginf(lse)] = np.nan
    return lse, o


def run(lse, o, dtype, folder):
    """What the kernel gives."""
    states, rows, columns = o.shape
    folder.mkdir(parents=True, exist_ok=True)
    inputs = {"partial_o": o[:, None, None].astype("f2" if dtype == "f16" else "f4"),
              "partial_lse": lse[:, None, None].astype("f4")}  # fmt: skip
    scales = parameter = ""
    if dtype == "f16":
        inputs["partial_scales"] = np.ones((states, 1, 1, rows, 1), "f4")
        text = f"memref<{states}x1x1x{rows}x1xf32>"
        scales, parameter = f"scales(%ps : {text})", f"%ps: {text},"
    for name, array in inputs.items():
        np.save(folder / f"{name}.npy", array)
    (folder / "merge.mlir").write_text(
        KERNEL.format(partial=f"{states}x1x1x{rows}", rows=f"1x1x{rows}", columns=columns,
                      type=dtype, scales=scales, parameter=parameter)  # fmt: skip
    )
    files = [f"{folder}/merge.ptx", f"--launch{{}}={folder}/merge.json"]
    subprocess.run(["attn-compile", f"{folder}/merge.mlir", "-o", files[0], files[1].format("-out")],
                   check=True)  # fmt: skip
    subprocess.run(["attn-sim", files[0], files[1].format(""),
                    *[f"--in={name}={folder}/{name}.npy" for name in inputs],
                    *[f"--out={name}={folder}/{name}.npy" for name in ("o", "lse")]],
                   check=True)  # fmt: skip
    return np.load(folder / "lse.npy").reshape(rows), np.load(folder / "o.npy").reshape(rows, columns)


def merge(lse, o):
    """What the table gives for a row."""
    there = lse != -np.inf
    lse, o = lse[there], o[there]
    infinite = int(np.isposinf(lse).sum())
    if np.isnan(lse).any() or infinite > 1:
        return np.nan, np.full(o.shape[1], np.nan)
    if not there.any():
        return -np.inf, np.zeros(o.shape[1])
    weights = np.isposinf(lse) * 1.0 if infinite else np.exp(lse - lse.max())
    return lse.max() + np.log(weights.sum()), weights @ o / weights.sum()


def main(states, columns, dtype, folder):
    lse, o = draw(int(states), int(columns))
    got_lse, got = run(lse, o, dtype, pathlib.Path(folder))
    wrong = 0
    for row in range(lse.shape[1]):
        want_lse, want = merge(lse[:, row], o[:, row])
        if not np.allclose(got_lse[row], want_lse, atol=1e-3, equal_nan=True):
            print(lse[:, row], "lse: expected", want_lse, "got", got_lse[row])
        elif not np.allclose(got[row], want, atol=2e-3, equal_nan=True):
            print(lse[:, row], "o: expected", want[:3], "got", got[row][:3])
        else:
            continue
        wrong += 1
    print(lse.shape[1], "rows,", wrong, "wrong")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
