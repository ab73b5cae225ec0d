#!/usr/bin/env python3
"""Channels of a kernel in clusters that end too early: the consumer of the results arrives for the last
time, leaves and ends its barriers while another CTA still owes an arrival, a commit or bytes. The check
refuses each, with notes, and with the check off the simulator finds it where signals come late. Each
repaired copy is accepted by both.

usage: s0.py KERNEL FOLDER

KERNEL is the program of one CTA, from which attn-shard-cga makes those of clusters.
"""

import pathlib
import re
import subprocess
import sys

import pairs


def sized(text, ctas):
    text = re.sub(r"known_cluster_size = array<i32: \d+", f"known_cluster_size = array<i32: {ctas}", text)
    text = re.sub(r"cluster = \[\d+", f"cluster = [{ctas}", text)
    text = re.sub(r'grid = \["\d+"', f'grid = ["{ctas}"', text)
    return text.replace("1024", str(128 * ctas))


def no_tail(text):
    """The loaders do not wait at their end for what hands the slots of b back."""
    waits = list(re.finditer(r"(?m)^.*attn\.mbarrier\.wait %b\.mma.*\n", text))[1:]
    for wait in reversed(waits):
        text = text[: wait.start()] + text[wait.end() :]
    return text


def branch(text):
    """The loaders load under a condition, so that a branch yields their last cursors. Each slot is filled
    once: a tail at the first cursors would wait for nothing."""
    text = text.replace("%steps = arith.constant 4", "%steps = arith.constant 2")
    loop, ends = text.rindex("%last:2 = scf.for"), "scf.yield %next, %nextb : !attn.cursor, !attn.cursor\n"
    end = text.index("}\n", text.index(ends, loop)) + 2
    return (
        text[:loop] + "%gx = gpu.grid_dim x\n%one = arith.constant 1 : index\n"
        "%some = arith.cmpi ugt, %gx, %one : index\n"
        "%end:2 = scf.if %some -> (!attn.cursor, !attn.cursor) {\n"
        + text[loop:end] + "scf.yield %last#0, %last#1 : !attn.cursor, !attn.cursor\n} else {\n"
        "scf.yield %first, %firstb : !attn.cursor, !attn.cursor\n}\n" + text[end:]
    )  # fmt: skip


def half_mask(text):
    """A slot of b is handed back to the pair that multiplied, and not to the CTAs that hold copies."""
    return re.sub(r"(commit %b\.mma\[%\w+\]) \{ctas = 4 : i64, pair\}",
                  r"\1 {ctas = 2 : i64, pair, rank_bits = 1 : i64}", text)  # fmt: skip


def both(*changes):
    def apply(text):
        for each in changes:
            text = each(text)
        return text

    return apply


def same(text):
    return text


# What is owed, of how many CTAs, how the source changes, the bug and its repair.
TWINS = (
    ("an arrival", 2, same, pairs.ends("%d.store", "before"), pairs.ends("%d.store", "behind")),
    ("a commit", 4, same, both(no_tail, pairs.ends("%b.mma", "before")), pairs.ends("%b.mma", "before")),
    ("bytes", 2, same, pairs.ends("%b.load", "rank 0 of load"), pairs.ends("%b.load", "behind")),
    ("a commit to a CTA that exits", 4, same, no_tail, same),
    ("a commit behind a branch", 4, branch, no_tail, same),
    ("a commit to two CTAs of four", 4, same, half_mask, same),
)  # fmt: skip


def explain(path):
    """The error of the check, and its notes."""
    done = subprocess.run(
        ["attn-opt", str(path), "-o", "/dev/null", "-mlir-print-op-on-diagnostic=false",
         "--pass-pipeline=builtin.module(gpu.module(attn-check-barriers{require-proof}))"],
        capture_output=True, text=True)  # fmt: skip
    return re.findall(r"(?:error|note): [^\n]*", done.stderr)


def main():
    kernel, folder = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    source, good, path = (folder / f"{name}.mlir" for name in ("source", "good", "twin"))
    failures = 0
    for owed, ctas, change, plant, repair in TWINS:
        source.write_text(change(sized(kernel, ctas)))
        subprocess.run(["attn-compile", str(source), "--emit=barrier", "-o", str(good)], check=True)
        for name, change in (("bad", plant), ("repaired", repair)):
            path.write_text(change(good.read_text()))
            said, found = pairs.check(path), pairs.simulate(path)
            print(f"{owed}, {name}:", *explain(path), f"simulator: {found}", sep="\n  ")
            failures += (said == "accepted") != (name == "repaired")
            failures += (found == "accepted") != (name == "repaired")
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
