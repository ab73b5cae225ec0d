#!/usr/bin/env python3
"""Wrong copies of kernels at the barrier rung, and who refuses them.

Each synchronising op is deleted, doubled, moved past its neighbours or given other numbers, one
change at a time. attn-check-barriers judges the copy, and the simulator runs what becomes of
it: on one cluster, which does all tiles, in a random order with late writes. A copy that the
check passes and the simulator reports is a hole in the check, and the exit status is 1.

usage: scripts/mutate-ir.py KERNEL.mlir... [--sample=N] [--seed=N] [--bin=FOLDER] [--list]
       scripts/mutate-ir.py --problem='FLAGS of attn-compile'... [options]
       scripts/mutate-ir.py --standard [options]
"""

import argparse
import collections
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What --standard takes: each schedule, with its own ways to synchronise.
STANDARD = (
    "--q=1x2x192x64xf16 --kv-len=300 --chip=sm_90a --set block_m=128 --set epilogue=tma",
    "--q=1x2x192x128xf8E4M3FN --kv-len=300 --kv-heads=1 --chip=sm_90a",
    "--q=1x2x256x64xf16 --kv-len=300 --chip=sm_90a --set cluster=2",
    "--q=1x1x192x64xf16 --kv-len=300 --chip=sm_90a --causal --set cluster=2 --set dynamic=true",
    "--q=1x2x192x64xf16 --kv-len=300 --chip=sm_90a --schedule=self_load",
    "--q=1x1x64x64xf16 --kv-len=300 --chip=sm_80",
    "--q=1x1x512x64xf16 --kv-len=300 --chip=sm_100a --schedule=ws_tmem",
    "--q=1x1x512x64xf16 --kv-len=300 --chip=sm_100a --schedule=ws_tmem --causal",
    "--q=1x1x100x264xf16 --kv-len=200 --chip=sm_90a --schedule=ws_columns --causal",
    "--q=1x2x4x64xf16 --kv-len=600 --chip=sm_80 --schedule=decode",
    "--q=1x1x70x320xf16 --kv-len=150 --chip=sm_80 --schedule=tiled_d --causal "
    "--set=block_m=32,block_n=32,warps_m=2,warps_n=2,slice=64,stages=3",
)
SYNC = re.compile(
    r"^\s*(?:%\S+ = )?(attn\.mbarrier\.(?:wait|arrive|expect_tx|init)|attn\.fence\.proxy_async"
    r"|attn\.named_barrier|attn\.team_barrier|attn\.cluster_barrier|attn\.turn\.\w+|attn\.wgmma\.wait|attn\.tma\.wait"
    r"|attn\.tma\.commit|attn\.cp_async\.(?:wait|commit)|gpu\.barrier|attn\.tcgen05\.(?:commit|fence)"
    r"|attn\.tmem\.(?:wait|store_wait|dealloc))\b"
)
ACCESS = re.compile(
    r"^\s*(?:%\S+ = )?attn\.(wgmma|tma\.load|tma\.store|local_\w+|scalar_\w+|cp_async|mma|copy_out"
    r"|tcgen05\.mma|tmem\.load|tmem\.store)\b"
)
FAULTS = (
    "signal in the wrong phase", "wrong count", "phase slip", "early wait",
    "arrival in the wrong generation", "deadlock", "race", "missing proxy fence",
    "missing tensor fence", "result in flight", "lifetime", "exit in flight",
)  # fmt: skip

Mutant = collections.namedtuple("Mutant", "name line text")


def renumbered(line: str, key: str, change) -> str | None:
    """The line with another number in place of `key = N`."""
    match = re.search(rf"\b{key} = (\d+)", line)
    if not match:
        return None
    value = change(int(match.group(1)))
    return line[: match.start(1)] + str(value) + line[match.end(1) :] if value >= 0 else None


def with_operand(line: str, pattern: str, ops: list[str]) -> list[str] | None:
    """The line behind `ops`, which compute %mutant from the operand that `pattern` finds."""
    match = re.search(pattern, line)
    if not match:
        return None
    value = match.group(1)
    changed = line[: match.start(1)] + "%mutant" + line[match.end(1) :]
    return [op.replace("VALUE", value) for op in ops] + [changed]


XOR = ["%mutant_c = arith.constant 1 : i32", "%mutant = arith.xori VALUE, %mutant_c : i32"]
ZERO = ["%mutant = arith.constant 0 : i32"]
MORE = ["%mutant_c = arith.constant 1 : i32", "%mutant = arith.addi VALUE, %mutant_c : i32"]
LESS = ["%mutant_c = arith.constant 1 : i32", "%mutant = arith.subi VALUE, %mutant_c : i32"]


def changes_of(line: str) -> list[tuple[str, list[str]]]:
    """What becomes of one line."""
    found = [("double", [line, line])] if " = " not in line.split("attn.")[0] else []
    if " = " not in line.split("attn.")[0]:
        found.append(("delete", []))
    for key, name, change in (
        ("count", "count + 1", lambda n: n + 1),
        ("count", "count - 1", lambda n: n - 1),
        ("bytes", "half the bytes", lambda n: n // 2),
        ("threads", "threads - 32", lambda n: n - 32),
        ("pending", "pending + 1", lambda n: n + 1),
        ("pending", "pending - 1", lambda n: n - 1),
    ):
        if changed := renumbered(line, key, change):
            found.append((name, [changed]))
    if "parity" in line and (lines := with_operand(line, r"parity (%\w+)", XOR)):
        found.append(("other parity", lines))
    if ("mbarrier." in line or "tcgen05.commit" in line) and (lines := with_operand(line, r"\[(%\w+)\]", ZERO)):
        found.append(("slot 0", lines))
    if " {ctas = " in line:
        found.append(("own CTA", [re.sub(r" \{ctas = \d+ : i64\}", "", line)]))
    if " {leader}" in line:
        found.append(("own CTA", [line.replace(" {leader}", "")]))
    return found


def mutants_of(text: str) -> list[Mutant]:
    lines = text.split("\n")
    mutants = []

    def add(name: str, number: int, new: list[str], count: int = 1) -> None:
        body = lines[:number] + new + lines[number + count :]
        mutants.append(Mutant(name, number + 1, "\n".join(body)))

    for number, line in enumerate(lines):
        if "scf.for" in line and "to %" in line and "iter_args" in line:
            for name, ops in (("one more trip", MORE), ("one trip less", LESS)):
                if new := with_operand(line, r"to (%\w+)", ops):
                    add(name, number, new)
        if not SYNC.match(line):
            continue
        for name, new in changes_of(line):
            add(name, number, new)
        indent = len(line) - len(line.lstrip())
        for step, name in ((1, "behind the next"), (-1, "before the last")):
            other = number + step
            while 0 <= other < len(lines):
                near = lines[other]
                if len(near) - len(near.lstrip()) < indent or near.lstrip().startswith("}"):
                    break
                is_here = len(near) - len(near.lstrip()) == indent
                if is_here and (SYNC.match(near) or ACCESS.match(near)):
                    low, high = min(number, other), max(number, other)
                    between = lines[low + 1 : high]
                    moved = (
                        [*between, lines[high], lines[low]] if step == 1
                        else [lines[high], lines[low], *between]
                    )  # fmt: skip
                    add(name, low, moved, high - low + 1)
                    break
                other += step
    return mutants


class Judge:
    def __init__(self, bins: pathlib.Path, folder: str) -> None:
        self.bins, self.folder = bins, pathlib.Path(folder)

    def run(self, *command: str, limit: int = 60) -> tuple[int, str]:
        try:
            done = subprocess.run(
                [str(self.bins / command[0]), *command[1:]],
                capture_output=True, text=True, timeout=limit, errors="replace",
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return -1, "no end"
        return done.returncode, done.stdout + done.stderr

    def check(self, path: pathlib.Path) -> tuple[str, str]:
        """What the check says: refused, proved, bounded, unknown or invalid."""
        code, text = self.run(
            "attn-opt", str(path), "-o", "/dev/null", "-mlir-print-op-on-diagnostic=false",
            "--pass-pipeline=builtin.module(gpu.module(attn-check-barriers))",
        )  # fmt: skip
        for line in text.split("\n"):
            if match := re.search(r"error: (.*)", line):
                message = match.group(1)
                is_fault = message.split(":")[0] in FAULTS
                return ("refused" if is_fault else "invalid"), message
        if code != 0:
            return "invalid", text[:200]
        if "cannot be checked" in text:
            return "unknown", re.search(r"cannot be checked: (.*)", text).group(1)
        return ("bounded", "") if "not proved" in text else ("proved", "")

    def simulate(self, path: pathlib.Path, cluster: int) -> tuple[str, str]:
        """What the simulator says: reported, clean or invalid."""
        ptx, record = self.folder / "kernel.ptx", self.folder / "kernel.json"
        code, text = self.run(
            "attn-compile", str(path), "--no-check-barriers", "-o", str(ptx), f"--launch-out={record}",
        )  # fmt: skip
        if code != 0:
            return "invalid", text[:200]
        command = ["attn-sim", str(ptx), f"--launch={record}", "--profile=isa", "--assume=A1,A2,A4"]
        grid = [] if "sm_80" in path.read_text() else [f"--grid={cluster},1,1"]
        for more in (["--schedule=random", "--seed=1", "--adversarial"], []):
            code, text = self.run(*command, *grid, "--verify", "--lose-bets", *more)
            if code == 1 and "findings:        none" in text:
                return "wrong values", ""
            if code == -1 or code == 1:
                found = re.search(r"(error|race|deadlock)[^\n]*", text)
                return "reported", found.group(0) if found else text[:80]
            if code != 0:
                return "invalid", text[:200]
        return "clean", ""


def read_kernels(options: argparse.Namespace, folder: str) -> list[tuple[str, str]]:
    kernels = [(path.name, path.read_text()) for path in options.kernels]
    for number, flags in enumerate(options.problem):
        out = pathlib.Path(folder) / f"problem{number}.mlir"
        command = [str(options.bin / "attn-compile"), *flags.split(), "--emit=barrier", f"-o={out}"]
        subprocess.run(command, check=True)
        kernels.append((flags, out.read_text()))
    return kernels


def judge_all(options: argparse.Namespace, folder: str) -> int:
    judge = Judge(options.bin, folder)
    rng = random.Random(options.seed)
    table: collections.Counter = collections.Counter()
    holes = 0
    for name, text in read_kernels(options, folder):
        size = re.search(r"known_cluster_size = array<i32: (\d+)", text)
        cluster = int(size.group(1)) if size else 1
        mutants = mutants_of(text)
        if options.sample:
            mutants = rng.sample(mutants, min(options.sample, len(mutants)))
        mutants.sort(key=lambda mutant: (mutant.line, mutant.name))
        for mutant in [Mutant("the kernel itself", 0, text), *mutants]:
            path = pathlib.Path(folder) / "mutant.mlir"
            path.write_text(mutant.text)
            static, why = judge.check(path)
            if static == "invalid":
                table["no kernel"] += 1
                continue
            dynamic, reason = ("not run", "")
            if not options.check_only:
                dynamic, reason = judge.simulate(path, cluster)
            table[f"{static}, {dynamic}"] += 1
            is_hole = static in ("proved", "bounded") and dynamic == "reported"
            if mutant.line == 0:
                is_hole = static not in ("proved", "bounded") or dynamic == "reported"
            holes += is_hole
            if options.list or is_hole:
                line = text.split("\n")[mutant.line - 1].strip() if mutant.line else ""
                print(f"{'HOLE: ' if is_hole else ''}{name}:{mutant.line}: {mutant.name}: {line}")
                print(f"    check: {static} {why}\n    simulator: {dynamic} {reason}", flush=True)
    for verdicts, count in sorted(table.items()):
        print(f"{count:6} {verdicts}")
    print(f"{holes:6} holes")
    return 1 if holes else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kernels", nargs="*", type=pathlib.Path)
    parser.add_argument("--problem", action="append", default=[], metavar="FLAGS")
    parser.add_argument("--sample", type=int, default=0, help="mutants of each kernel; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--check-only", action="store_true", help="without the simulator")
    parser.add_argument("--list", action="store_true", help="print every mutant")
    parser.add_argument("--standard", action="store_true", help="problems of all schedules")
    options = parser.parse_args()
    options.problem += STANDARD if options.standard else ()
    if not options.kernels and not options.problem:
        parser.error("expected kernels or problems, got none")
    with tempfile.TemporaryDirectory() as folder:
        return judge_all(options, folder)


if __name__ == "__main__":
    sys.exit(main())
