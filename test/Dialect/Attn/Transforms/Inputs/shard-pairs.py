"""Kernels whose products are of pairs or are not: what attn-shard-cga says of each.

usage: shard-pairs.py EXAMPLES ATTN-OPT [OPTION..]

EXAMPLES has gemm-cluster.mlir, the program of one CTA, and gemm-pair.mlir, one of a pair. Each row is a
change of one of them. Prints the table, the reason or the error with its notes.
"""

import pathlib
import re
import subprocess
import sys

RANK = """%x = gpu.cluster_block_id x
%z = arith.constant 0 : index
%own = arith.cmpi eq, %x, %z : index
"""


def sized(text, ctas, grid):
    text = re.sub(r"known_cluster_size = array<i32: \d+", f"known_cluster_size = array<i32: {ctas}", text)
    text = re.sub(r"cluster = \[\d+", f"cluster = [{ctas}", text)
    return re.sub(r'grid = \["\d+"', f'grid = ["{grid or 2 * ctas}"', text)


def rows():
    """A name, the kernel, its CTAs, its grid, and what becomes what."""
    a_load = "attn.tma.load %amap[%row, %k], %as token %tok : !map, !tile\n"
    b_load = "attn.tma.load %bmap[%key, %k], %bs token %tok : !bmap, !b\n"
    by_rank = RANK + "scf.if %own {\n" + a_load + "} else {\n" + a_load + "}\n"
    one_cta = RANK + "scf.if %own {\n" + b_load + "}\n"
    last = "attn.elect {\n        attn.channel.release %dch, %dt"
    b_alloc = '%b = attn.alloc {name = "b"'
    d_alloc = '%d = attn.tmem_alloc {name = "d"'
    one, pair = "gemm-cluster", "gemm-pair"
    for ctas in (1, 2, 4, 8):
        yield f"{ctas} CTAs", one, ctas, None
    yield "columns of C by rank", one, 2, None, ("%amap[%row, %k]", "%amap[%c0, %k]"), (
        "%bmap[%c0, %k]", "%bmap[%row, %k]")  # fmt: skip
    yield "rows that are the same", one, 2, None, ("%amap[%row, %k]", "%amap[%c0, %k]")
    yield "columns that differ", one, 2, None, ("%bmap[%c0, %k]", "%bmap[%row, %k]")
    yield "rows by a branch", one, 2, None, (a_load, by_rank)
    yield "5 CTAs", one, 5, None
    yield "16 CTAs", one, 16, None
    yield "CTAs along y", one, 2, None, ("array<i32: 2, 1, 1>", "array<i32: 1, 2, 1>"), (
        "cluster = [2, 1, 1]", "cluster = [1, 2, 1]"), ('grid = ["4", "1"', 'grid = ["4", "2"')  # fmt: skip
    yield "a sum by the CTA", one, 2, None, (
        "%more = arith.cmpi ne, %i, %c0", "%more = arith.cmpi ne, %row, %c0")  # fmt: skip
    yield "a map of both", one, 2, None, ("%bmap[%c0, %k]", "%amap[%c0, %k]")
    yield "a partition that prefetches", one, 2, None, (last, "attn.tma.prefetch %amap : !map\n" + last)
    yield "no whole grid", one, 2, 7
    yield "a layout of 4 CTAs", one, 2, None, (b_alloc, b_alloc + ", cga = #attn.cga<[[0, 0], [0, 0]]>")
    yield "a layout of others", one, 2, None, (b_alloc, b_alloc + ", cga = #attn.cga<[[1, 0]]>")
    yield "that layout", one, 2, None, (b_alloc, b_alloc + ", cga = #attn.cga<[[0, 0]]>")
    yield "sums of others", one, 2, None, (d_alloc, d_alloc + ", cga = #attn.cga<[[0, 1]]>")
    yield "sums of 4 CTAs", one, 2, None, (d_alloc, d_alloc + ", cga = #attn.cga<[[1, 0], [2, 0]]>")
    yield "these sums", one, 2, None, (d_alloc, d_alloc + ", cga = #attn.cga<[[1, 0]]>")
    yield "sums of each CTA", one, 2, None, (d_alloc, d_alloc + ", cga = #attn.cga<[[0, 1]]>"), (
        last, "attn.tma.prefetch %amap : !map\n" + last)  # fmt: skip
    yield "a given pair", pair, 2, 2
    yield "a given pair's sums", pair, 2, 2, (d_alloc, d_alloc + ", cga = #attn.cga<[[0, 0]]>")
    yield "a given pair's layout", pair, 2, 2, (b_alloc, b_alloc + ", cga = #attn.cga<[[0, 1]]>")
    yield "a given pair of the same rows", pair, 2, 2, ("%amap[%row, %k]", "%amap[%c0, %k]")
    yield "a given pair of the same columns", pair, 2, 2, ("%bmap[%key, %k]", "%bmap[%column, %k]")
    yield "a given pair of other halves", pair, 2, 2, (
        "%half = arith.muli %rank, %c64", "%half = arith.muli %rank, %c128")  # fmt: skip
    yield "a given pair of 5 CTAs", pair, 5, 5
    yield "a given pair with bytes in one CTA", pair, 2, 2, (b_load, one_cta)


def main():
    examples, attn_opt = pathlib.Path(sys.argv[1]), sys.argv[2:]
    for name, kernel, ctas, grid, *changes in rows():
        text = sized((examples / f"{kernel}.mlir").read_text(), ctas, grid)
        for old, new in changes:
            assert old in text, (name, old)
            text = text.replace(old, new)
        done = subprocess.run(
            [*attn_opt, "--attn-shard-cga", "--remarks-filter=attn.shard-cga",
             "-mlir-print-op-on-diagnostic=false"],
            input=text, capture_output=True, text=True)  # fmt: skip
        said = done.stderr
        table = re.search(r'Remark="(\d+ CTAs in pairs.*?)"', said, re.S)
        reason = re.search(r'\[Analysis\] own-products.*?Reason="(.*?)"', said, re.S)
        faults = re.findall(r"<stdin>:\d+:\d+: (error|note): (.*)", said)
        what = table[1] if table else reason[1] if reason else "nothing"
        if faults:
            what = "\n".join(f"  {kind}: {text}" for kind, text in faults)
        print(f"{name}: {what}" if not faults else f"{name}:\n{what}")
        assert bool(faults) == bool(done.returncode), (name, said)


if __name__ == "__main__":
    sys.exit(main())
