#!/usr/bin/env python3
"""Makes a recording of a launch of examples/foreign/saxpy.ptx.

usage: make-saxpy.py FOLDER FACTOR

The kernel multiplies by 3; FACTOR is what the expected result is computed with.
"""

import json
import pathlib
import struct
import sys

COUNT = 64


def write(path, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({COUNT},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    data = struct.pack(f"<{COUNT}f", *values)
    size = struct.pack("<H", len(header))
    path.write_bytes(b"\x93NUMPY\x01\x00" + size + header.encode() + data)


def main():
    folder, factor = pathlib.Path(sys.argv[1]), float(sys.argv[2])
    (folder / "data").mkdir(parents=True, exist_ok=True)
    source = pathlib.Path(__file__).parents[4] / "examples" / "foreign" / "saxpy.ptx"
    (folder / "kernel.ptx").write_text(source.read_text())
    x = [float(i) for i in range(COUNT)]
    write(folder / "data" / "x.npy", x)
    write(folder / "data" / "y.npy", [1.0] * COUNT)
    write(folder / "data" / "y.after.npy", [factor * each + 1 for each in x])
    pointers = [
        {"size": 8, "hex": "00" * 8, "pointers": [{"at": 0, "tensor": name, "offset": 0}]}
        for name in ("x", "y")
    ]
    launch = {
        "kernel": "saxpy",
        "chip": "sm_80",
        "grid": [1, 1, 1],
        "block": [COUNT, 1, 1],
        "cluster": [1, 1, 1],
        "dynamic_shared_bytes": 0,
        "tensors": {
            "x": {"shape": [COUNT], "dtype": "float32", "access": "read"},
            "y": {"shape": [COUNT], "dtype": "float32", "access": "update"},
        },
        "params": [{"integer": COUNT}, {"number": 3.0}, *pointers],
    }
    (folder / "launch.json").write_text(json.dumps(launch))


main()
