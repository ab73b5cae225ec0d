"""The error of powers of two that a kernel computed.

usage: powers.py make FOLDER CHIP      writes x.npy and launch.json
       powers.py check FOLDER          compares y.npy with float64
       powers.py places FOLDER OTHER   where two results differ, by their place in every 16
"""

import json
import pathlib
import sys

import numpy as np

SIDE = 128


def make(folder: pathlib.Path, chip: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(1)
    x = random.uniform(-126, 127.99, SIDE * SIDE)
    # Where probabilities are.
    x[: SIDE * SIDE // 2] = random.uniform(-30, 9, SIDE * SIDE // 2)
    # Each special value in each of 16 places.
    special = [-np.inf, np.nan, np.inf, 128, 200, 1e30, -127, -200, -1e30, 0, -1, 1, -126.5, 127.5]
    x[: len(special) * 16] = np.repeat(special, 16)
    np.save(folder / "x.npy", x.astype(np.float32).reshape(SIDE, SIDE))
    tensors = [
        {"name": n, "dtype": "f32", "shape": [SIDE, SIDE], "strides": [SIDE, 1], "access": a}
        for n, a in (("x", "read"), ("y", "write"))
    ]
    args = [{"kind": "pointer", "tensor": n} for n in "xy"]
    args.append({"kind": "size", "tensor": "x", "dim": 0, "type": "i32"})
    record = {
        "version": 1, "kernel": "powers", "target": {"chip": chip, "ptx": 86 if chip == "sm_100a" else 80},
        "grid": ["1", "1", "1"], "block": [SIDE, 1, 1], "cluster": [1, 1, 1], "shared_bytes": 0,
        "tensors": tensors, "args": args, "workspace": [],
    }  # fmt: skip
    (folder / "launch.json").write_text(json.dumps(record))


def check(folder: pathlib.Path) -> None:
    x = np.load(folder / "x.npy").astype(np.float64)
    y = np.load(folder / "y.npy").astype(np.float64)
    with np.errstate(over="ignore"):
        right = np.exp2(x)
    right[x >= 128] = np.inf
    right[x <= -127] = 0
    assert np.array_equal(np.isnan(y), np.isnan(right)), "NaN"
    assert np.array_equal(np.isinf(y), np.isinf(right)), "infinity"
    # What is smaller is flushed to 0 or has few digits.
    tiny = np.finfo(np.float32).tiny
    normal = np.isfinite(right) & (right >= tiny)
    assert np.all(np.abs(y - right)[right < tiny] <= tiny), "subnormal numbers"
    error = np.max(np.abs(y[normal] / right[normal] - 1))
    print(f"largest relative error: {error:.1e}")
    assert error <= 1e-4


def places(folder: pathlib.Path, other: pathlib.Path) -> None:
    a, b = (np.load(f / "y.npy").view(np.uint32).reshape(-1, 16) for f in (folder, other))
    print("differ at", *np.flatnonzero(np.any(a != b, axis=0)))


command, folder, *rest = sys.argv[1:]
if command == "make":
    make(pathlib.Path(folder), rest[0])
elif command == "check":
    check(pathlib.Path(folder))
else:
    places(pathlib.Path(folder), pathlib.Path(rest[0]))
