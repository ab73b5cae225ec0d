#!/usr/bin/env python3
"""One source as the kernel of clusters of several sizes: each is proved, and computes what numpy does.

usage: clusters.py KERNEL FOLDER

KERNEL is examples/by-hand/gemm-cluster.mlir. Prints the table of attn-shard-cga for each cluster, and
what the runs say.
"""

import pathlib
import re
import subprocess
import sys

import numpy as np

SIM = "--profile=isa --assume=A1,A2,A4"
CORNERS = ("", "--schedule=random --seed=1 --adversarial")


def sized(text, ctas):
    """The kernel in clusters of that many CTAs."""
    text = re.sub(r"known_cluster_size = array<i32: \d+", f"known_cluster_size = array<i32: {ctas}", text)
    return re.sub(r"cluster = \[\d+", f"cluster = [{ctas}", text)


def squared(text):
    """In clusters of four, two by two CTAs: pairs share columns of C, CTAs of equal number rows."""
    rows = """%n2 = arith.constant 2 : i32
    %n4 = arith.constant 4 : i32
    %group = arith.divui %bi, %n4 : i32
    %twice = arith.muli %group, %n2 : i32
    %even = arith.remui %bi, %n2 : i32
    %block = arith.addi %twice, %even : i32
    %row = arith.muli %block, %c128 : i32
    %rank = arith.remui %bi, %n4 : i32
    %pair = arith.divui %rank, %n2 : i32
    %col = arith.muli %pair, %c128 : i32"""
    for old, new in (
        ("%row = arith.muli %bi, %c128 : i32", rows),
        ("%bmap[%c0, %k]", "%bmap[%col, %k]"),
        ("%off = arith.constant 0 : i64", "%off = arith.extui %col : i32 to i64"),
        ("%stride = arith.constant 128 : i64", "%stride = arith.constant 256 : i64"),
        ("%rows = arith.constant 1024", "%rows = arith.constant 512"),
        ('name = "a", shape = array<i64: 1024, 256>', 'name = "a", shape = array<i64: 512, 256>'),
        ('name = "b", shape = array<i64: 128, 256>', 'name = "b", shape = array<i64: 256, 256>'),
        ('name = "c", shape = array<i64: 1024, 128>, strides = array<i64: 128, 1>',
         'name = "c", shape = array<i64: 512, 256>, strides = array<i64: 256, 1>'),
    ):  # fmt: skip
        assert old in text, old
        text = text.replace(old, new)
    return sized(text, 4)


def turned(text):
    """In clusters of four, with B of K x N: the columns of C are those of a slot."""
    for old, new in (
        ("!ring =", """!bmap = !attn.tensor_map<64x64xf16, swizzle = 128>
!bring = !attn.buffer<2x64x128xf16, #attn.auto, shared>
!btile = !attn.buffer<64x128xf16, #attn.auto, shared>
!ring ="""),
        ("%bmap: !map", "%bmap: !bmap"),
        ('%b = attn.alloc {name = "b"} : !ring', '%b = attn.alloc {name = "b"} : !bring'),
        ("%bs = attn.slot %b[%idxb] : !ring -> !tile", "%bs = attn.slot %b[%idxb] : !bring -> !btile"),
        ("%bt = attn.transpose %bs : !tile -> !tileT", ""),
        ("%as, %bt, %d accumulate %more : !tile, !tileT, !d",
         "%as, %bs, %d accumulate %more : !tile, !btile, !d"),
        ("%bmap[%c0, %k], %bs token %tokb : !map, !tile", "%bmap[%k, %c0], %bs token %tokb : !bmap, !btile"),
        ('name = "b", shape = array<i64: 128, 256>, strides = array<i64: 256, 1>',
         'name = "b", shape = array<i64: 256, 128>, strides = array<i64: 128, 1>'),
        ('array<i64: 64, 128>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "b"',
         'array<i64: 64, 64>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "b"'),
    ):  # fmt: skip
        assert old in text, old
        text = text.replace(old, new)
    return sized(text, 4)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-2000:])
    return done


def check(name, text, folder, shapes, rng, turn=False):
    path, ptx, launch = (folder / f"{name}.{end}" for end in ("mlir", "ptx", "json"))
    path.write_text(text)
    done = run("attn-compile", str(path), "--require-proof", "-o", str(ptx),
               f"--launch-out={launch}", "--remarks-filter=attn.shard-cga")  # fmt: skip
    if done.returncode:
        return 1
    found = re.search(r"Remark=\"(\d+ CTAs in pairs.*?)\"", done.stderr, re.S)
    print(f"{name}: {found[1] if found else 'no pairs'}")
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in shapes)
    np.save(folder / "a.npy", a)
    np.save(folder / "b.npy", b)
    expected = a.astype(np.float64) @ (b if turn else b.T).astype(np.float64)
    failures = 0
    for corner in CORNERS:
        done = run("attn-sim", str(ptx), f"--launch={launch}", *f"{SIM} {corner}".split(),
                   f"--in=a={folder}/a.npy", f"--in=b={folder}/b.npy", f"--out=c={folder}/c.npy")  # fmt: skip
        if done.returncode:
            return 1
        error = np.abs(np.load(folder / "c.npy") - expected).max() / np.abs(expected).max()
        (folder / "c.npy").unlink()
        failures += error > 1e-3
        print("right" if error < 1e-3 else f"wrong by {error}")
    return failures


def main():
    text, folder = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng()
    failures = 0
    for ctas in (1, 2, 4, 8):
        failures += check(f"ctas{ctas}", sized(text, ctas), folder, ((1024, 256), (128, 256)), rng)
    failures += check("square", squared(text), folder, ((512, 256), (256, 256)), rng)
    failures += check("turned", turned(text), folder, ((1024, 256), (256, 128)), rng, turn=True)
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
