#!/usr/bin/env python3
"""What servers ask for, as cases of `sim-grid.py --serving`: pages and their tables,
lengths of sequences, heads of a group, few queries, runs of keys, latent attention.

What no option of attn-compile says is written into the problem: this program reads
one as attn-compile prints it and prints another one. There the launch draws the
lengths.

usage: attn-compile ... --emit=problem | scripts/served_cases.py CHANGE... | attn-compile - ...
  combined      K and V of a page lie behind each other, as if in one pool
  mask_mod      hides keys by a region, as drafts in a tree do
  scales=tensor  one descale for all of K, one for all of V
  scales=head    one for each key head
"""

import re
import shlex
import sys

from grid_cases import TOLERANCE, Case

#: How long sequences are, from the size of a page; 1 where there are none.
SERVED_LENGTHS = {
    "none": lambda page: [0, 0],
    "one": lambda page: [1, 0],
    "page-1": lambda page: [page - 1, page],
    "page": lambda page: [page, page + 1],
    "page+1": lambda page: [page + 1, 1],
    "block-1": lambda page: [63, 64],
    "block+1": lambda page: [65, 2],
    "long": lambda page: [300, 299],
    "mixed": lambda page: [17, 0, 300, 64, 129],
    "wrong": lambda page: [-5, 2**31 - 1, 70],
}
SERVED_MASKS = {
    "none": [],
    "causal-br": ["--causal=bottom-right"],
    "window": ["--window=40,8,bottom-right"],
    "mask_mod": ["--causal=bottom-right"],
}
#: Keys and values: of the queries' type, or of 8 bits, with descales of each sequence and
#: head, of each head, or of a tensor, or scales of rows.
SERVED_KEYS = {
    "q": ("", ""),
    "e4m3": ("f8E4M3FN", ""),
    "e4m3-head": ("f8E4M3FN", "scales=head"),
    "e4m3-tensor": ("f8E4M3FN", "scales=tensor"),
    "e4m3-rows": ("f8E4M3FN", ""),
    "e5m2": ("f8E5M2", ""),
}
#: Outputs: of the queries' type, of 8 bits with a factor, and with scales of groups of columns.
SERVED_OUTPUTS = {
    "q": [],
    "e4m3": ["--out-type=f8E4M3FN", "--out-scale=50"],
    "e5m2": ["--out-type=f8E5M2", "--out-scale=50"],
    "groups": ["--out-type=f8E4M3FN", "--out-group=32"],
}
SERVED_AXES = {
    "dtype": tuple(TOLERANCE),
    "d": (64, 128, 256, 512),
    "mask": tuple(SERVED_MASKS),
    "sinks": (False, True),
    "nq": (1, 2, 5, 16),
    # 0: keys are not in pages.
    "page": (0, 1, 2, 8, 16, 64, 128, 256),
    "table": ("rows", "list"),
    "layout": ("bhnd", "bnhd", "combined"),
    "group": (1, 3, 4, 8, 16),
    "lengths": tuple(SERVED_LENGTHS),
    # Runs of keys, "fixed" ones of RUN_KEYS each.
    "splits": (1, 2, 3, 5, "fixed"),
    "dynamic": (False, True),
    # The planner's plan of a schedule, with these warps if they are given.
    "plan": ("split_q", "decode", "decode-2", "decode-4", "ws_wgmma"),
    # Columns of latent attention that are not values; 0: values of their own.
    "rope": (0, 64),
    "kv": tuple(SERVED_KEYS),
    "chip": ("sm_80", "sm_89", "sm_90a"),
    # Entries of a table without a mask that hide their keys.
    "selected": (False, True),
    # Results of other keys to go on from.
    "init": (False, True),
    "out": tuple(SERVED_OUTPUTS),
    # Rotated columns as tensors of their own.
    "apart": (False, True),
}
#: Keys of fixed runs: a multiple of the blocks that plans have.
RUN_KEYS = 64
#: Largest relative errors of outputs of 8 bits, most of them their rounding.
OUTPUT_TOLERANCE = {"q": 0, "e4m3": 4e-2, "e5m2": 8e-2, "groups": 4e-2}
#: Columns of 8-bit latent keys that have a ring.
LATENT_GROUP = 128
#: Columns that share a scale of their row.
SCALE_GROUP = 64
#: Query heads of latent attention in place of groups.
LATENT_HEADS = {1: 16, 3: 24, 4: 32, 8: 64, 16: 128}
#: Most query rows that share keys in `decode`, most columns of its heads, and most
#: rows of latent attention that a simulator has the time for.
DECODE_ROWS, DECODE_COLUMNS, LATENT_ROWS = 32, 256, 128
#: The smallest page that TMA copies.
TMA_PAGE = 16


class ServedCase(Case):
    """One point of the grid of lengths and pages, on a chip of its own."""

    def __init__(self, values):
        for name, value in zip(SERVED_AXES, values, strict=True):
            setattr(self, name, value)
        self.names = [str(value) for value in values]
        # So rare if it were left to chance that no sample had one.
        if self.takes_wgmma or (self.plan == "ws_wgmma" and self.rope):
            self.chip, self.init, self.dynamic = "sm_90a", False, False
            self.splits = self.splits if self.rope else 1

    @property
    def name(self):
        return "-".join(
            f"{axis}={name}" for axis, name in zip(SERVED_AXES, self.names, strict=True)
        )

    def choose_schedule(self):
        """Schedule and parameters; what one does not take is another case of the
        one that does."""
        schedule, _, warps = self.plan.partition("-")
        if self.takes_wgmma:
            return "ws_wgmma", []
        if schedule == "ws_wgmma":
            schedule = "split_q"
        if self.rope:
            words = [f"warps_n={warps}"] if warps else []
            if schedule == "decode" and warps == "4":
                words += ["score=shard", "softmax=exact"]
            elif schedule == "decode":
                words.append("score=twice")
            if self.has_own_scores:
                words = ["score=own"]
            return "mla", words
        is_few = not self.is_open and self.nq * self.group <= DECODE_ROWS
        if self.d > DECODE_COLUMNS and schedule == "decode" and is_few:
            return "decode", [f"warps={warps or 8}", f"warps_n={warps or 8}"]
        if self.d > DECODE_COLUMNS:
            return "tiled_d", []
        if not is_few:
            schedule, warps = "split_q", ""
        return schedule, [f"warps={warps}"] if warps else []

    def get_shape(self, batch):
        """Flags of the queries and of what shares keys."""
        if not self.rope:
            return [f"--q={batch}x{2 * self.group}x{self.nq}x{self.d}x{self.dtype}", "--kv-heads=2"]
        heads = LATENT_HEADS[self.group]
        queries = max(1, min(self.nq, LATENT_ROWS // heads))
        columns = self.d + self.rope
        flags = [f"--q={batch}x{heads}x{queries}x{columns}x{self.dtype}", f"--rope-dim={self.rope}"]
        return flags + ["--rope-apart"] * self.apart

    def get_output(self, schedule):
        """Flags of the output; who has whole rows knows the largest of a group."""
        is_whole = schedule in ("split_q", "ws_wgmma")
        is_whole |= schedule == "decode" and self.d <= DECODE_COLUMNS
        if self.out == "groups" and (not is_whole or self.splits != 1):
            return SERVED_OUTPUTS["e4m3"]
        return SERVED_OUTPUTS[self.out]

    def get_changes(self, schedule):
        """What is written into the problem."""
        changes = []
        if self.layout == "combined" and self.page and not self.rope and not self.is_open:
            changes.append("combined")
        if self.mask == "mask_mod":
            changes.append("mask_mod")
        if self.takes_narrow(schedule):
            changes += [SERVED_KEYS[self.kv][1]]
        return [change for change in changes if change]

    @property
    def tolerance(self):
        return max(super().tolerance, OUTPUT_TOLERANCE[self.out])

    @property
    def is_open(self):
        """Sizes are the launch's; attn-compile knows which only of its own problems."""
        return self.dynamic and self.mask != "mask_mod"

    @property
    def has_own_scores(self):
        """Whether the plan of latent attention is one whose scores have a warpgroup of theirs."""
        takes = self.chip == "sm_90a" and not self.is_open and not self.init
        # Some of the others' cases as well, so that each grid has one.
        return takes and (self.plan in ("decode", "ws_wgmma") or self.sinks or self.selected)

    @property
    def takes_wgmma(self):
        """Whether the plan is one of ws_wgmma, whose blocks TMA copies."""
        is_plain = not self.rope and self.d <= DECODE_COLUMNS and self.kv != "e4m3-rows"
        has_pages = self.page == 0 or self.page >= TMA_PAGE
        return self.plan == "ws_wgmma" and is_plain and has_pages

    def takes_narrow(self, schedule):
        takes = schedule in ("decode", "split_q", "ws_wgmma") and self.d <= DECODE_COLUMNS
        if schedule == "mla":
            # Rows of 8 bits throughout, in plans that have fragments of them.
            takes = self.plan in ("decode-2", "split_q") and self.kv != "e4m3-rows"
            takes &= self.d % LATENT_GROUP == 0 and not self.apart and not self.has_own_scores
        return self.kv != "q" and takes and not self.is_open

    def command(self, tool, chip):
        lengths = SERVED_LENGTHS[self.lengths](max(1, self.page))
        schedule, words = self.choose_schedule()
        problem = [
            *self.get_shape(len(lengths)),
            "--kv-lengths=" + ",".join(map(str, lengths)),
            f"--layout={'bhnd' if self.layout == 'bhnd' else 'bnhd'}",
            *SERVED_MASKS[self.mask],
        ]
        if self.sinks:
            problem.append("--sinks")
        if self.lengths == "wrong":
            problem.append("--kv-len=90")
        if self.page:
            problem.append(f"--page-size={self.page}")
            if self.table == "list":
                problem.append("--page-indptr")
            if self.selected and self.mask == "none":
                problem.append("--selected")
        if self.init:
            problem.append("--init-state")
        if self.splits == "fixed":
            problem.append(f"--run-keys={RUN_KEYS}")
        elif self.splits > 1:
            problem.append(f"--kv-splits={self.splits}")
            if self.splits > 2 and schedule in ("decode", "mla") and "score=own" not in words:
                words = [*words, "combine=launch"]
            # As many beside one of each sequence, which are dealt.
            if self.splits == 5 and schedule == "decode" and not self.is_open:
                words = [*words, f"dealt_runs={len(lengths) + self.splits}"]
        if self.is_open:
            problem.append("--dynamic")
        if self.takes_narrow(schedule):
            problem += [f"--kv-type={SERVED_KEYS[self.kv][0]}", "--descales"]
            problem += [f"--scale-group={SCALE_GROUP}"] * (self.kv == "e4m3-rows")
        problem += self.get_output(schedule)
        # What a plan that may spill computes is checked all the same.
        words = ["spills=allow", *words] if words else []
        plan = [f"--schedule={schedule}"] + [f"--set={word}" for word in words]
        run = [f"--chip={self.chip}", *plan, "--verify", "--corners", "--json"]
        changes = self.get_changes(schedule)
        if not changes:
            return [tool, *problem, *run]
        stages = (
            [tool, *problem, f"--chip={self.chip}", "--emit=problem"],
            [sys.executable, __file__, *changes],
            [tool, "-", *run],
        )
        return ["bash", "-c", "set -o pipefail; " + " | ".join(map(shlex.join, stages))]


#: Hides every third key of a row, another one of each row.
MASK_MOD = """ mask_mod {
    ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
      %third = arith.constant 3 : i32
      %sum = arith.addi %i, %j : i32
      %rest = arith.remui %sum, %third : i32
      %none = arith.constant 1 : i32
      %keep = arith.cmpi ne, %rest, %none : i32
      attn.yield %keep : i1
    }"""


def rename_type(text, name, change):
    """The problem with another type of an argument wherever the operation names it."""
    old = re.search(rf"{name}: (memref<(?:[^<>]|<[^<>]*>)*>)", text)[1]
    new = change(old)
    text = text.replace(f"{name}: {old}", f"{name}: {new}", 1)

    def retype(match):
        names, types = match[2].split(", "), split_types(match[3])
        types = [new if each == name else each_type for each, each_type in zip(names, types)]
        return f"{match[1]}({', '.join(names)} : {', '.join(types)})"

    return re.sub(r"\b(ins|descales)\((%[^:]*) : ((?:[^()]|\([^()]*\))*)\)", retype, text)


def split_types(text):
    """Types between commas that stand in no brackets."""
    return re.findall(r"memref<(?:[^<>]|<[^<>]*>)*>", text)


def combine(type_text):
    """A pool's type with pages twice as far apart."""
    shape, element = re.match(r"memref<([\dx]+)x(\w+)", type_text).groups()
    extents = [int(each) for each in shape.split("x")]
    found = re.search(r"strided<\[([\d, ]+)\]", type_text)
    strides = [extents[1] * extents[2] * extents[3], extents[2] * extents[3], extents[3], 1]
    if found:
        strides = [int(each) for each in found[1].split(",")]
    strides[0] *= 2
    return f"memref<{shape}x{element}, strided<{strides}>>"


def change_problem(text, change):
    if change == "combined":
        for name in ("%arg1", "%arg2"):
            text = rename_type(text, name, combine)
        return text
    if change == "mask_mod":
        return re.sub(r"(\n *attn\.attention [^\n]*?)( \{[^\n]*\})?\n", rf"\1{MASK_MOD}\2\n", text, 1)
    strides = {"scales=tensor": "0, 0", "scales=head": "0, 1"}[change]
    for name in re.search(r"descales\((%\w+), (%\w+)", text).groups():
        text = rename_type(
            text, name, lambda old: old.replace("xf32>", f"xf32, strided<[{strides}]>>")
        )
    return text


def main():
    text = sys.stdin.read()
    for change in sys.argv[1:]:
        text = change_problem(text, change)
    print(text, end="")


if __name__ == "__main__":
    main()
