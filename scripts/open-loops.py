#!/usr/bin/env python3
"""Draws kernels whose loops only the launch knows, and asks the check of barriers about each.

A kernel walks tiles, computes with the number of its tile and two sizes of the launch, runs
loops with such bounds, and waits under such conditions for what never comes: for an mbarrier
that nobody signals, or at a named barrier to which the other partition does not go. Which
launches of small sizes wait so is computed here. The check must prove none of those kernels;
it need not prove the others.

usage: scripts/open-loops.py [--count=400] [--seed=N] [--workers=2] [--bin=build/bin]
           [--keep=FOLDER]
  --seed  the same one gives the same kernels; drawn, and printed, without
  --keep  where kernels stay that were proved and are wrong (default: build/open-loops)

The last line is "N kernels: N wrong and refused, N right and proved, N right and refused, N
proved and wrong". The exit status is 1 if one is proved and wrong.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import pathlib
import random
import re
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
PASSES = "--pass-pipeline=builtin.module(gpu.module(attn-check-barriers{require-proof}))"
#: Sizes of the launches that are tried, each up to this one.
MOST_N, MOST_M = 26, 7
COMPARED = {
    "slt": lambda a, b: a < b, "sle": lambda a, b: a <= b, "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}  # fmt: skip
#: Of two numbers; divui and remui take them without a sign.
COMPUTED = {
    "muli": lambda a, b: a * b, "subi": lambda a, b: a - b, "addi": lambda a, b: a + b,
    "minsi": min, "maxsi": max,
    "divui": lambda a, b: (a % 2**32) // (b % 2**32),
    "remui": lambda a, b: (a % 2**32) % (b % 2**32),
    "ceildivui": lambda a, b: -(-(a % 2**32) // (b % 2**32)),
}  # fmt: skip
#: What the check says of a kernel that it does not prove.
REFUSED = "the synchronisation of|not proved|deadlock"
NAMED = "attn.named_barrier %k1 {threads = 256}"
WALK = """%block = gpu.block_id x
%begin = arith.index_cast %block : index to i32
%blocks = gpu.grid_dim x
%step = arith.index_cast %blocks : index to i32
scf.for %i = %begin to %n step %step : i32 {
"""
SIGNAL = """%never = attn.mbarrier.alloc {name = "never", offset = 0} : !attn.mbarriers<1>
attn.elect {
attn.mbarrier.init %never {count = 1} : !attn.mbarriers<1>
attn.mbarrier.fence_init
}
gpu.barrier
"""
TENSOR = """{access = "read", dtype = "f32", name = "x", shape = array<i64: -1, -1>,
strides = array<i64: 64, 1>}"""
ARGUMENTS = ", ".join(
    f'{{dim = {dim} : i64, kind = "size", tensor = "x", type = "i32"}}' for dim in (0, 1)
)


class Launch(NamedTuple):
    n: int
    m: int
    i: int


class Value(NamedTuple):
    name: str
    get: Callable[[Launch], int]


class Kernel:
    """A kernel as it is drawn: the numbers of a tile, loops, and where it waits."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.constants = {0, 1}
        self.values = [Value("%i", lambda at: at.i), Value("%n", lambda at: at.n)]
        self.values += [Value("%m", lambda at: at.m)]
        for _ in range(rng.choice([1, 2, 2, 3])):
            self.draw_number()
        self.loops = [self.draw_loop() for _ in range(rng.choice([1, 1, 2]))]
        least = rng.choice([0, 1, 2, 3, 5])
        number = rng.choice(self.values)
        self.conditions = [("sge", number, self.constant(least)),
                           ("sle", number, self.constant(least + rng.choice([0, 1, 3, 6, 12])))]  # fmt: skip
        if rng.random() < 0.3:
            other = self.constant(rng.choice([0, 1, 2, 4, 8, 12]))
            self.conditions.append((rng.choice(list(COMPARED)), rng.choice(self.values), other))

    def constant(self, number: int) -> Value:
        self.constants.add(number)
        return Value(f"%k{number}", lambda at: number)

    def compute(self, op: str, a: Value, b: Value) -> Value:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = arith.{op} {a.name}, {b.name} : i32")
        value = Value(name, lambda at: COMPUTED[op](a.get(at), b.get(at)))
        self.values.append(value)
        return value

    def draw_number(self) -> None:
        rng = self.rng
        a, b = rng.choice(self.values), rng.choice(self.values)
        small = self.constant(rng.choice([1, 2, 2, 3, 4]))
        large = self.constant(rng.choice([16, 20, 30, 40]))
        kind = rng.choice(["less", "falling", "rest", "quotient", *COMPUTED])
        if kind == "less":
            self.compute("subi", large, a)
        elif kind == "falling":
            self.compute("subi", large, self.compute("muli", a, small))
        elif kind in ("rest", "quotient"):
            by = self.compute("maxsi", b, self.constant(1))
            quotient = self.compute("divui", a, by)
            if kind == "rest":
                self.compute("subi", a, self.compute("muli", quotient, by))
        elif kind in ("minsi", "maxsi"):
            self.compute(kind, a, large if kind == "minsi" else small)
        elif kind in ("muli", "subi"):
            self.compute(kind, a, rng.choice([b, small]))
        else:
            self.compute(kind, a, small)

    def draw_loop(self) -> tuple[Value, Value, Value]:
        """The bounds of a loop, which may be empty, and its step."""
        rng = self.rng
        lower, upper = rng.choice(self.values), rng.choice(self.values)
        kind = rng.random()
        if kind < 0.5:
            upper = self.constant(rng.choice([20, 30, 40]))
        elif kind < 0.8:
            lower = self.constant(0)
        return lower, upper, self.constant(rng.choice([1, 1, 1, 2, 3]))

    def waits(self, at: Launch) -> bool:
        """Whether the tile waits, and no number of it overflows."""
        if not all(-(2**31) <= value.get(at) < 2**31 for value in self.values):
            return False
        return all(COMPARED[op](a.get(at), b.get(at)) for op, a, b in self.conditions)

    def is_wrong(self) -> bool:
        return any(
            self.waits(Launch(n, m, i))
            for n in range(MOST_N) for m in range(MOST_M) for i in range(n)
        )  # fmt: skip

    def print_tile(self, meeting: str, wait: str) -> str:
        lines = list(self.lines)
        for place, (lower, upper, step) in enumerate(self.loops):
            bounds = f"{lower.name} to {upper.name} step {step.name}"
            lines += [f"scf.for %j{place} = {bounds} : i32 {{", meeting, "}"]
        if wait:
            for place, (op, a, b) in enumerate(self.conditions):
                lines.append(f"%c{place} = arith.cmpi {op}, {a.name}, {b.name} : i32")
                lines.append(f"scf.if %c{place} {{")
            lines += [wait, *"}" * len(self.conditions)]
        return WALK + "\n".join(lines) + "\n}\n"

    def print(self) -> str:
        if self.rng.random() < 0.5:
            threads = 256
            parts = [("a", self.print_tile(NAMED, "")), ("b", self.print_tile(NAMED, NAMED))]
            body = "attn.warp_specialize\n" + "".join(
                f'partition "{name}" warps 4 registers 24 {{\n{tile}}}\n' for name, tile in parts
            )
        else:
            threads = 128
            wait = "attn.mbarrier.wait %never[%k0] parity %k0 : !attn.mbarriers<1>"
            body = SIGNAL + self.print_tile("gpu.barrier", wait)
        constants = "".join(f"%k{n} = arith.constant {n} : i32\n" for n in sorted(self.constants))
        return f"""gpu.module @kernels [#attn.target<chip = "sm_90a">]
  attributes {{attn.rung = "barrier"}} {{
gpu.func @drawn(%n: i32, %m: i32) kernel attributes {{nvvm.minctasm = 1 : i32,
  known_block_size = array<i32: {threads}, 1, 1>, attn.shared_bytes = 1024 : i64,
  attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["1", "1", "1"],
    block = [{threads}, 1, 1], tensors = [{TENSOR}], args = [{ARGUMENTS}]>}} {{
{constants}{body}gpu.return
}}
}}
"""


def judge(tool: pathlib.Path, seed: str) -> tuple[str, str]:
    """What became of a kernel, and its text."""
    kernel = Kernel(random.Random(seed))
    text = kernel.print()
    done = subprocess.run([tool, PASSES, "-o", "/dev/null"], input=text, capture_output=True,
                          text=True, check=False, timeout=120)  # fmt: skip
    if done.returncode and not re.search(REFUSED, done.stderr):
        raise SystemExit(f"seed {seed}: {done.stderr[:400]}")
    is_proved = done.returncode == 0
    if kernel.is_wrong():
        return ("proved and wrong" if is_proved else "wrong and refused"), text
    return ("right and proved" if is_proved else "right and refused"), text


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--keep", type=pathlib.Path, default=ROOT / "build/open-loops")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    print(f"--seed={seed}")
    ends: collections.Counter[str] = collections.Counter()
    names = [f"{seed}-{number}" for number in range(options.count)]
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        results = pool.map(lambda name: judge(options.bin / "attn-opt", name), names)
        for name, (end, text) in zip(names, results, strict=True):
            ends[end] += 1
            if end == "proved and wrong":
                options.keep.mkdir(parents=True, exist_ok=True)
                path = options.keep / f"{name}.mlir"
                path.write_text(text, encoding="utf-8")
                print(f"proved and wrong: {path}")
    kinds = ("wrong and refused", "right and proved", "right and refused", "proved and wrong")
    print(f"{ends.total()} kernels: " + ", ".join(f"{ends[kind]} {kind}" for kind in kinds))
    return 1 if ends["proved and wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
