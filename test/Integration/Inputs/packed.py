"""Packed q, k and v as files, with NaN in all rows that some sequences own and
in all that no sequence owns.

usage: packed.py FOLDER TYPE HEADS KV_HEADS ROWS D LENGTHS SICK
LENGTHS and SICK are numbers with commas between; SICK counts sequences from 0.
"""

import pathlib
import sys

import numpy as np

NAN = {"f16": 0x7E00, "bf16": 0x7FC0, "e4m3": 0x7F, "e5m2": 0x7F}


def draw(random: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Normal numbers, or of 8 bits magnitudes between 1/8 and 2, as integers."""
    if kind == "f16":
        return random.standard_normal(shape).astype(np.float16).view(np.uint16)
    if kind == "bf16":
        return (random.standard_normal(shape).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    low, high = (0x20, 0x40) if kind == "e4m3" else (0x30, 0x40)
    return (random.integers(low, high, shape) | random.integers(0, 2, shape) << 7).astype(np.uint8)


def main() -> None:
    folder, kind = pathlib.Path(sys.argv[1]), sys.argv[2]
    heads, kv_heads, rows, d = map(int, sys.argv[3:7])
    starts = np.cumsum([0, *map(int, sys.argv[7].split(","))]).astype(np.int32)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "cu.npy", starts)
    random = np.random.default_rng(0)
    for name, count in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
        values = draw(random, kind, (1, count, rows, d))
        values[:, :, starts[-1] :] = NAN[kind]
        for index in filter(None, sys.argv[8].split(",")):
            values[:, :, starts[int(index)] : starts[int(index) + 1]] = NAN[kind]
        np.save(folder / f"{name}.npy", values.view(np.float16) if kind == "f16" else values)


main()
