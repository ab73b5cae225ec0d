#!/usr/bin/env python3
"""Makes a recording of a launch of naive-attention.ptx.

usage: make-recording.py FOLDER q.npy k.npy v.npy o.npy lse.npy

The arrays are those that attn-sim wrote for one launch without open strides.
"""

import ast
import json
import pathlib
import struct
import sys


def read(path):
    data = pathlib.Path(path).read_bytes()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return list(ast.literal_eval(data[10:start].decode())["shape"]), data[start:]


def write(path, descr, shape, data):
    header = repr({"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    size = struct.pack("<H", len(header))
    path.write_bytes(b"\x93NUMPY\x01\x00" + size + header.encode() + data)


def main():
    folder = pathlib.Path(sys.argv[1])
    (folder / "data").mkdir(parents=True, exist_ok=True)
    source = pathlib.Path(__file__).parent / "naive-attention.ptx"
    (folder / "kernel.ptx").write_text(source.read_text())
    names = ["q", "k", "v", "o", "lse"]
    arrays = dict(zip(names, map(read, sys.argv[2:7])))
    tensors, params = {}, []
    for name, (shape, data) in arrays.items():
        dtype = "float32" if name == "lse" else "float16"
        tensors[name] = {"shape": shape, "dtype": dtype}
        if name == "o":
            count = len(data) // 2
            data = struct.pack(f"<{count}f", *struct.unpack(f"<{count}e", data))
        descr = "<f4" if name in ("o", "lse") else "<i2"
        write(folder / "data" / f"{name}.npy", descr, shape, data)
        pointer = {"at": 0, "tensor": name, "offset": 0}
        params.append({"size": 8, "hex": "00" * 8, "pointers": [pointer]})

    def add(form, value):
        data = struct.pack(form, value)
        params.append({"size": len(data), "hex": data.hex()})

    batch, heads, queries, d = arrays["q"][0]
    kv_heads, keys, dv = arrays["v"][0][1:]
    for value in (queries, keys, d, dv, heads // kv_heads):
        add("<i", value)
    add("<f", 0.25)
    add("<i", 0)
    for name in names:
        shape = arrays[name][0]
        strides = [1]
        for extent in reversed(shape[1:]):
            strides.insert(0, strides[0] * extent)
        for stride in strides[:-1]:
            add("<q", stride)
    launch = {
        "kernel": "attn_fwd",
        "chip": "sm_80",
        "grid": [-(-queries // 32), heads, batch],
        "block": [32, 1, 1],
        "cluster": [1, 1, 1],
        "dynamic_shared_bytes": 0,
        "tensors": tensors,
        "params": params,
    }
    (folder / "launch.json").write_text(json.dumps(launch))


main()
