#!/usr/bin/env python3
"""Draws problems, and verifies the kernel that the planner chooses for each.

Chips, element types, extents, masks, where keys lie, kinds of results and of runs are drawn
together, also such as nobody would write. attn-compile plans, checks and runs each on the
simulator (--verify, a part of them with --corners). A problem is good if its kernel passes or
if it is refused before a plan is taken. Every other end is a failure: a wrong result, a
finding, an error after planning, a crash, or no end within the time limit.

usage: scripts/random-problems.py [--first=N] [--count=N] [--limit=SECONDS] [--workers=N]
           [--set] [--bin=build/bin] [--json=FILE] [--show=N]
  --first    number of the first problem: the same number gives the same problem
  --count    how many problems
  --limit    start none after this time
  --set      name a schedule in each problem, and fix parameters of its plan
  --json     keep the failures there, a line of JSON each
  --show     print the command line of problem N, and run nothing

attn-compile holds LLVM: with it and this script alone
the sweep runs on another machine too. The last line is "N passed, N refused, N failed". The
exit status is 1 when a problem failed.
"""

import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS = 120
MOST_ELEMENTS = 180_000
CHIPS = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_90a", "sm_100a", "sm_100a", "sm_103a", "sm_120"]
# Chips without instructions for 8-bit floats.
WIDE_ONLY = ("sm_80", "sm_86")
SCHEDULES = {
    "sm_90a": ["ws_wgmma", "self_load", "ws_columns", "ws_pair", "split_q", "decode", "mla",
               "ws_mla", "tiled_d"],
    "sm_100a": ["ws_tmem", "split_q", "decode", "tiled_d"],
    "sm_103a": ["ws_tmem", "split_q", "decode", "tiled_d"],
}  # fmt: skip
NARROW = ["f8E4M3FN", "f8E5M2"]
# Refusals of a plan name the op or the flags, and an epilogue that was asked for its store; what
# other ops say came after it.
REFUSED = re.compile(r"'attn.attention' op|'attn.combine' op (cannot|expected)|^attn-compile: error: --"
                     r"|'attn.store_result' op expected .* for a \w+ result", re.M)

# What a parameter without listed values may be set to: usual numbers, and wrong ones.
INTEGERS = [0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 48, 64, 80, 96, 128, 192, 256]

PLANNED = re.compile(r"kernel attn|gave up on plan|to give its kernel")

# Flags that say how a problem is compiled and tried, not what it is.
MEANS = re.compile(r"--(chip|schedule|set|corners|seed|no-split-keys)\b")

# What functions of a problem compute from a score or a result %x at batch %b, head %h, query %i
# and key or column %j. The last value is what they give.
SCORES = [
    "%d = arith.subi %j, %i : i32\n%f = arith.sitofp %d : i32 to f32\n"
    "%c = arith.constant 0.03 : f32\n%r = math.fma %f, %c, %x : f32",
    "%c = arith.constant -0.5 : f32\n%r = arith.mulf %x, %c : f32",
    "%c = arith.constant 7 : i32\n%d = arith.remsi %j, %c : i32\n"
    "%e = arith.cmpi eq, %d, %h : i32\n%m = arith.constant 0xFF800000 : f32\n"
    "%r = arith.select %e, %m, %x : f32",
    "%t = math.tanh %x : f32\n%f = arith.sitofp %h : i32 to f32\n%r = arith.addf %t, %f : f32",
]
MASKS = [
    "%c = arith.constant 3 : i32\n%s = arith.addi %i, %j : i32\n%d = arith.remsi %s, %c : i32\n"
    "%r = arith.cmpi ne, %d, %b : i32",
    "%c = arith.constant 20 : i32\n%s = arith.addi %i, %c : i32\n%r = arith.cmpi sle, %j, %s : i32",
    "%c = arith.constant 33 : i32\n%r = arith.cmpi slt, %j, %c : i32",
    "%c = arith.constant 40 : i32\n%k = arith.divui %i, %c : i32\n%l = arith.divui %j, %c : i32\n"
    "%r = arith.cmpi eq, %k, %l : i32",
    "%d = arith.subi %i, %j : i32\n%c = arith.constant 50 : i32\n%z = arith.constant 0 : i32\n"
    "%p = arith.cmpi sge, %d, %z : i32\n%n = arith.cmpi sle, %d, %c : i32\n"
    "%q = arith.cmpi eq, %j, %h : i32\n%a = arith.andi %p, %n : i1\n%r = arith.ori %a, %q : i1",
]
OUTS = [
    "%f = arith.sitofp %h : i32 to f32\n%r = arith.addf %x, %f : f32",
    "%c = arith.constant 2 : i32\n%d = arith.remsi %j, %c : i32\n%f = arith.sitofp %d : i32 to f32\n"
    "%r = arith.mulf %x, %f : f32",
]


class Problem:
    """The flags of one drawn problem, and the functions in it."""

    def __init__(self, number: int, parameters: dict[str, dict[str, list[str]]]) -> None:
        self.draw = random.Random(f"problem {number}")
        self.parameters = parameters
        self.flags: list[str] = []
        self.chip = self.draw.choice(CHIPS)
        self.draw_type()
        self.draw_extents()
        latent = self.head_dim >= 96 and not self.narrow and self.chance(0.08)
        if latent:
            self.draw_latent()
        if self.heads != self.kv_heads or self.chance(0.1):
            self.flags.append(f"--kv-heads={self.kv_heads}")
        self.packed, self.has_lengths = not latent and self.chance(0.25), False
        if self.packed:
            self.draw_packed()
        elif self.chance(0.4):
            self.draw_lengths()
        elif self.keys != self.queries:
            self.flags.append(f"--kv-len={self.keys}")
        self.draw_mask()
        self.draw_results()
        self.draw_form()
        self.functions = {}
        for name, share, forms in (("score_mod", 0.08, SCORES), ("mask_mod", 0.08, MASKS),
                                   ("out_mod", 0.05, OUTS)):  # fmt: skip
            # Of what a launch gives, a file's problem would need each size.
            if self.chance(share) and not {"--dynamic", "--layout=strided"} & set(self.flags):
                self.functions[name] = self.draw.choice(forms)

    def chance(self, share: float) -> bool:
        return self.draw.random() < share

    def draw_type(self) -> None:
        types = ["f16", "bf16"] if self.chip in WIDE_ONLY else ["f16", "bf16"] * 2 + NARROW
        self.type = self.draw.choice(types)
        self.narrow = self.type in NARROW
        self.step = 16 if self.narrow else 8

    def draw_extents(self) -> None:
        draw = self.draw
        usual = [32, 64, 64, 96, 128, 128, 192, 256]
        odd = [draw.randrange(self.step, 257, self.step) for _ in range(2)]
        self.head_dim = self.value_dim = draw.choice(usual + odd + [512] * (not self.narrow))
        is_decode = self.chance(0.4)
        few, many = [1, 1, 1, 2, 3, 5, 8, 16, 33], [64, 128, 129, 256, 300]
        self.queries = draw.choice(few if is_decode else [*many, *draw.sample(range(1, 400), 3)])
        self.batch = draw.choice([1, 1, 2, 3])
        self.kv_heads = draw.choice([1, 1, 2])
        group = draw.choice([1, 1, 2, 3, 4, 8, 16])
        while self.batch * self.kv_heads * group * self.queries * self.head_dim > MOST_ELEMENTS:
            if group > 1:
                group //= 2
            elif self.batch > 1:
                self.batch -= 1
            else:
                self.queries //= 2
        self.heads = self.kv_heads * group
        self.keys = draw.choice([self.queries, 64, 128, 256, *draw.sample(range(1, 500), 3)])
        if self.queries < 20 and self.chance(0.2):
            self.keys = draw.randrange(500, 700)  # so that a run has some blocks
        if not self.narrow and self.chip != "sm_80" and self.chance(0.12):
            self.flags.append(f"--kv-type={draw.choice(NARROW)}")
            if self.chance(0.5):
                self.flags.append("--descales")
        if self.narrow and self.chance(0.6):
            self.flags.append("--descales")
        if self.narrow and self.chance(0.1):
            self.flags.append("--v-transposed")
        elif (self.narrow or "--descales" in self.flags) and self.chance(0.1):
            self.flags.append(f"--scale-group={draw.choice([16, 32, 64, 128])}")
        if self.chance(0.1):
            self.value_dim = draw.randrange(self.step, 257, self.step)
            self.flags.append(f"--dv={self.value_dim}")

    def draw_latent(self) -> None:
        rope = self.draw.choice([0, 32, 64])
        self.flags = [f"--rope-dim={rope}"]
        self.head_dim = self.draw.choice([96, 192, 320, 576])
        self.value_dim = self.head_dim - rope
        self.kv_heads, self.heads = 1, self.draw.choice([1, 8, 16, 24])
        self.queries, self.batch = self.draw.choice([1, 1, 2, 4]), min(self.batch, 2)
        if rope and self.chance(0.3):
            self.flags.append("--rope-apart")
        if self.chance(0.2):
            self.flags += [f"--kv-type={NARROW[0]}", "--descales"]

    def draw_parts(self, total: int, parts: int) -> list[int]:
        lengths = [self.draw.randrange(2 * total // parts + 1) for _ in range(parts)]
        if self.chance(0.15):
            lengths[self.draw.randrange(parts)] = 0
        return lengths if any(lengths) else [1] * parts

    def draw_packed(self) -> None:
        parts = self.draw.choice([1, 2, 3])
        queries = self.draw_parts(self.queries, parts)
        keys = self.draw_parts(self.keys, parts) if self.chance(0.6) else queries
        self.batch, self.queries = 1, sum(queries)
        flag = "--varlen=q:" + ",".join(map(str, queries))
        if keys != queries or self.chance(0.3):
            flag += "/k:" + ",".join(map(str, keys))
            if self.chance(0.25):
                self.flags.append(f"--page-size={self.draw.choice([1, 4, 16, 48, 64])}")
        self.flags.append(flag)

    def draw_lengths(self) -> None:
        lengths = [self.draw.randrange(self.keys + 1) for _ in range(self.batch)]
        if self.chance(0.15):
            lengths[self.draw.randrange(self.batch)] = 0
        if not any(lengths) and self.chance(0.7):
            lengths = [5] * self.batch
        self.has_lengths = True
        self.flags.append("--kv-lengths=" + ",".join(map(str, lengths)))
        if self.chance(0.3):
            self.flags.append(f"--kv-len={max(self.keys, *lengths)}")
        elif self.chance(0.7):
            self.flags.append(f"--page-size={self.draw.choice([1, 2, 8, 16, 32, 48, 64, 128])}")
            if self.chance(0.1):
                added = [self.draw.randrange(80) for _ in range(self.batch)]
                self.flags += [f"--added-page-size={self.draw.choice([1, 16, 64])}",
                               "--added-lengths=" + ",".join(map(str, added))]
            for flag in ("--page-indptr", "--selected"):
                if self.chance(0.2):
                    self.flags.append(flag)
        if self.chance(0.1):
            expected = [self.draw.randrange(self.keys + 1) for _ in range(self.batch)]
            self.flags.append("--expected-keys=" + ",".join(map(str, expected)))

    def draw_mask(self) -> None:
        draw = self.draw
        if self.chance(0.3):
            self.flags.append(draw.choice(["--causal", "--causal=bottom-right"]))
        elif self.chance(0.2):
            left, right = draw.choice([0, 10, 63, 100]), draw.choice([-1, 0, 5, 64])
            self.flags.append(f"--window={left},{right}{draw.choice(['', ',bottom-right'])}")
        if self.chance(0.2):
            self.flags.append("--sinks")
        if self.chance(0.15):
            self.flags.append(f"--softcap={draw.choice([5, 30])}")

    def draw_results(self) -> None:
        draw = self.draw
        groups = [n for n in (16, 32, 64, 128, self.value_dim) if self.value_dim % n == 0]
        kinds = [
            (0.10, lambda: [f"--out-type={draw.choice(['f32', 'bf16', 'f16'])}"]),
            (0.10, lambda: [f"--out-type={draw.choice(NARROW)}",
                            f"--out-scale={draw.choice([1, 20, 64])}"]),
            (0.08, lambda: [f"--out-type={draw.choice(NARROW)}",
                            f"--out-group={draw.choice(groups)}"]),
            (0.06, lambda: ["--out-type=f4E2M1FN", "--out-group=16"]),
            (0.03, lambda: [f"--out-type={draw.choice(NARROW)}",
                            f"--out-group={draw.choice(groups)}",
                            "--out-scale-type=f8E8M0FNU"]),
            (0.03, lambda: ["--out-type=f4E2M1FN", "--out-group=16", "--out-scale-tiles"]),
        ]  # fmt: skip
        chosen = draw.random()
        for share, kind in kinds:
            if 0 <= chosen < share:
                self.flags += kind()
            chosen -= share
        if not self.packed and self.chance(0.15):
            self.flags.append(f"--kv-splits={draw.choice([2, 3, 4])}")
        elif not self.packed and self.chance(0.08):
            self.flags.append(f"--run-keys={draw.choice([64, 128, 256])}")
        elif self.chance(0.3):
            self.flags.append("--no-split-keys")
        if self.chance(0.06):
            self.flags.append("--row-state")
        if self.chance(0.08):
            self.flags.append("--amax")
        if self.chance(0.05):
            rows, keys = draw.choice([32, 64, 128]), draw.choice([32, 64, 128])
            # Lists name whole blocks of keys; of a launch's own number the verified run says so.
            if self.keys % keys == 0:
                self.flags += [f"--block-rows={rows}", f"--block-keys={keys}"]

    def draw_dealt_runs(self) -> None:
        """Runs that all sequences have together, of which each has up to four."""
        draw, cuts = self.draw, re.compile(r"--(kv-splits|run-keys|no-split-keys)")
        self.flags = [flag for flag in self.flags if not cuts.match(flag)]
        runs = self.batch + draw.randrange(1, 3 * self.batch + 1)
        schedules = ["decode", *(["ws_tmem"] * 2 if self.chip.startswith("sm_10") else [])]
        if any(flag.startswith("--rope-dim") for flag in self.flags):
            schedules = ["mla", *schedules[1:]]
        self.flags += [f"--kv-splits={draw.choice([2, 3, 4])}", f"--set=dealt_runs={runs}",
                       f"--schedule={draw.choice(schedules)}"]  # fmt: skip

    def draw_form(self) -> None:
        if self.chance(0.2):
            self.flags.append("--dynamic")
        elif self.chance(0.25):
            self.flags.append(f"--layout={self.draw.choice(['bnhd', 'strided'])}")
        if self.chance(0.08):
            self.flags.append("--init-state")
        if self.chance(0.1):
            self.flags.append("--no-lse")
        if self.has_lengths and self.chance(0.15):
            self.draw_dealt_runs()
        elif self.parameters or self.chance(0.25):
            schedules = SCHEDULES.get(self.chip, ["split_q", "decode", "tiled_d"])
            schedule = self.draw.choice(schedules)
            self.flags.append(f"--schedule={schedule}")
            known = self.parameters.get(schedule, {})
            for name in self.draw.sample(sorted(known), min(len(known), self.draw.randrange(4))):
                self.flags.append(f"--set={name}={self.draw.choice(known[name])}")
        if self.chance(0.2):
            self.flags.append("--corners")
        extents = f"{self.batch}x{self.heads}x{self.queries}x{self.head_dim}x{self.type}"
        seed = self.draw.randrange(1000)
        self.flags = [f"--chip={self.chip}", f"-q={extents}", *self.flags, f"--seed={seed}"]


def listed_parameters(compiler: pathlib.Path) -> dict[str, dict[str, list[str]]]:
    """Values that each parameter of each schedule may be set to, from attn-compile."""
    command = [str(compiler), "--list-parameters"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    schedules: dict[str, dict[str, list[str]]] = {}
    for line in text.splitlines():
        if found := re.match(r"(\w+):$", line):
            schedules[found[1]] = {}
        elif found := re.match(r"  (\w+) = \w+ \((.*)\)$", line):
            values = re.sub(r"^one of ", "", found[2]).replace(" or ", ", ").split(", ")
            numbers = [str(number) for number in INTEGERS]
            schedules[list(schedules)[-1]][found[1]] = values if values[1:] else numbers
    return schedules


def with_functions(ir: str, functions: dict[str, str]) -> str:
    """The problem with functions: of scores in its attention, of results in its last op."""
    lines = ir.splitlines()
    ops = [i for i, line in enumerate(lines) if re.match(r" *attn\.(attention|combine) ", line)]
    for name in ("score_mod", "mask_mod", "out_mod"):
        if name not in functions or not ops:
            continue
        place = ops[-1] if name == "out_mod" else ops[0]
        head, attributes = re.fullmatch(r"(.*?[)}])( \{[^\n{}]*\})?", lines[place], re.S).groups()
        kind = "i1" if name == "mask_mod" else "f32"
        region = (f" {name} {{\n^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32):\n"
                  f"{functions[name]}\nattn.yield %r : {kind}\n}}")  # fmt: skip
        lines[place] = head + region + (attributes or "")
    return "\n".join(lines) + "\n"


def run(compiler: pathlib.Path, problem: Problem) -> tuple[str, list[str], str]:
    """How the problem ends, its flags and functions, and what was printed."""
    flags, ir = [*problem.flags, "--verify"], None
    given = dict(capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False)
    try:
        if problem.functions:
            what = [flag for flag in problem.flags if not MEANS.match(flag)]
            chip = next(flag for flag in flags if flag.startswith("--chip"))
            asked = [str(compiler), *what, chip, "--emit=problem", "-o", "-"]
            done = subprocess.run(asked, **given)
            if done.returncode == 1:
                return "refused", flags, done.stderr
            ir = with_functions(done.stdout, problem.functions)
            flags = ["-", *(flag for flag in flags if MEANS.match(flag)), "--verify"]
        command = [str(compiler), "--verify-each", *flags, "-o", os.devnull]
        done = subprocess.run(command, input=ir, **given)
    except subprocess.TimeoutExpired:
        return "no end", problem.flags, ""
    text = done.stdout + done.stderr
    if ir:
        flags = [*problem.flags, *problem.functions]
        text = ir + text
    if done.returncode == 0 and re.search(r"^passed$", text, re.M):
        return "passed", flags, text
    refused = REFUSED.search(text) and not PLANNED.search(text)
    if done.returncode == 1 and refused:
        return "refused", flags, text
    return ("failed" if done.returncode == 1 else f"status {done.returncode}"), flags, text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--limit", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--set", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--show", type=int, metavar="N")
    options = parser.parse_args()
    compiler = options.bin / "attn-compile"
    parameters = listed_parameters(compiler) if options.set else {}
    if options.show is not None:
        print(" ".join(["attn-compile", *Problem(options.show, parameters).flags, "--verify"]))
        return 0
    end = time.monotonic() + options.limit if options.limit else float("inf")
    counts: collections.Counter[str] = collections.Counter()
    numbers = iter(range(options.first, options.first + options.count))
    lines = []
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        running: dict = {}
        while True:
            free = 2 * options.workers - len(running) if time.monotonic() < end else 0
            for number in itertools.islice(numbers, free):
                running[pool.submit(run, compiler, Problem(number, parameters))] = number
            if not running:
                break
            done, _ = concurrent.futures.wait(
                running, return_when=concurrent.futures.FIRST_COMPLETED
            )
            for future in done:
                number = running.pop(future)
                kind, flags, text = future.result()
                good = kind in ("passed", "refused")
                counts[kind if good else "failed"] += 1
                if good:
                    continue
                errors = [line for line in text.splitlines() if "error:" in line] or [kind]
                print(f"{number}: {kind}: {' '.join(flags)}\n  {errors[0][:300]}", flush=True)
                lines.append(json.dumps({"number": number, "end": kind, "flags": " ".join(flags),
                                         "text": text[-3000:]}))  # fmt: skip
    if options.json:
        options.json.write_text("".join(line + "\n" for line in lines))
    print(", ".join(f"{counts[kind]} {kind}" for kind in ("passed", "refused", "failed")))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
