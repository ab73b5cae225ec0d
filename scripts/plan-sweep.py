#!/usr/bin/env python3
"""Compiles and assembles what the planner chooses, for all head dimensions.

Every pair of head dimensions in steps of 8 from 16 to 256, for each chip and
element type at three lengths; in steps of 16 for 8-bit types, whose rows have to
be multiples of 16 bytes; for sm_90a equal ones up to 512 too. Chips with tensor
memory have more lengths and masks up to 128: without a mask the blocks of keys are
a known number, of few of which ptxas makes other code. A cell fails when
something after the planner refuses its plan, when shared memory is not what the
plan's sum says, when ptxas warns, or when a loop that runs once for each block of
keys has spill instructions, in any role of warps, rare paths excepted. Where ptxas
spills, attn-lint-sass reads the machine code and says where; spills elsewhere are
reported and refuse nothing. Without nvdisasm nobody knows where, and the cell fails.

Each cell is compiled to PTX. Kernels are assembled once whose PTX is equal but
for names that make no difference to ptxas 13.0:
  sm_100a, sm_100f  48 of 48 kernels of random problems got the same machine code
  sm_86, sm_89      48 of 48 the same machine code, with PTX 8.0 and 8.4 too
  f16, bf16         120 of 120 pairs the same registers, stack and spills
  e4m3, e5m2        100 of 100 pairs the same registers, stack and spills
sm_103a is no such name: its machine code was always another one than that of
sm_100a. One in 32 of the cells that take over a verdict is assembled all the
same; it fails if ptxas takes other registers, stack or spills.

usage: scripts/plan-sweep.py [--features | --problems] [--others=N] [--only=REGEX] [--limit=SECONDS]
           [--from=N] [--count=N] [--workers=2] [--bin=build/bin] [--state=build/plan-sweep.jsonl]
           [--list] [--again]
  --features other cells: each feature that takes registers (masks, caps, packed
             sequences, pages, 8-bit keys, regions of a problem, ...) at the head
             dimensions up to 1024 at which plans change, those of servers and of
             latent attention among them; an order that is no order
  --problems other cells: the 3072 problems of sim-grid.py --whole on each of their chips.
             Here kernels are compiled once that differ in constants alone: of one plan,
             mask and heads, with one block of keys, two or many, full or not, one query,
             two tiles or more. One in 32 of the others is compiled all the same
  --others   in place of the plan that is taken, N plans of each cell that are not, drawn by
             its name; their spills fail no cell. scripts/fit-registers.py learns from them
             where spills begin
  --only     cells whose names match
  --limit    start none after this time
  --from     leave out this many cells, the most telling ones
  --count    take this many cells, the most telling ones first
  --list     print the names of the cells, and nothing else
  --again    forget what the state says

What is done stays in the state, a line of JSON each, so that the next call goes
on there; lines of another attn-compile are done again, but what ptxas said of a
kernel stays true. At its end each call adds a line that says which cells it was
asked for and how many of them it left: --from and --count part a sweep among
machines, and their states put one behind the other are that of the whole. A cell
takes about 0.4 s of a core, all of them 6 hours. Where kernels spill outside of
those loops, a line says how many. The last line is "N cells (A to
B of all): N good, N refused by the planner, N failed, N left". The exit status is
1 when a cell failed.

On a machine without LLVM, say one of 16 cores: copy the folder scripts/, and
build/bin/attn-compile and build/bin/attn-lint-sass, which hold LLVM and need glibc
2.36, zlib and zstd. Put ptxas on the PATH, and nvdisasm, which PyPI has as
nvidia-cuda-nvdisasm (scripts/requirements-sass.txt has the version). There
  python3 scripts/plan-sweep.py --bin=FOLDER --workers=16 --state=sweep.jsonl
does all cells in about 25 minutes, --features and --problems after it into files of
their own. Bring the states back, and scripts/ptxas-data.py makes rows of them.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from sweep_cells import (
    Cell,
    FeatureCell,
    GridCell,
    make_cells,
    make_feature_cells,
    make_grid_cells,
)
from tool_util import add_nvdisasm, find_ptxas, open_lines, progress

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: Chips for which ptxas makes the same code.
SAME_CODE = {"sm_100f": "sm_100a", "sm_89": "sm_86"}
#: Types that take as many registers.
SAME_TYPE = ((rb"\bf16", b"bf16"), (rb"\be5m2", b"e4m3"))
#: One in this many of the kernels that are taken to be equal is assembled.
PROBE = 32


class OtherPlan:
    """A cell with a plan that the planner does not take."""

    def __init__(self, cell: Cell | FeatureCell | GridCell, number: int) -> None:
        self.cell, self.number = cell, number
        self.chip, self.name = cell.chip, f"{cell.name}+{number}"
        self.source = ""

    def flags(self) -> list[str]:
        return [f"--chip={self.chip}", "--set=spills=allow"] if self.source else self.cell.flags()

    def choose(self, compiler: pathlib.Path) -> bool:
        """Makes the source of a plan; false if the planner has no more."""
        done = subprocess.run(
            [compiler, *(["-"] if self.cell.source else []), *self.cell.flags(), "--emit=plan",
             "--print-plan=all", "--no-shipped-plans", "-o", "-"],
            input=self.cell.source.encode(), capture_output=True, check=False,
        )  # fmt: skip
        text = done.stdout.decode()
        plans = re.findall(r"note: (#attn\.\w+<[^>]*>)", done.stderr.decode())[1:]
        taken = re.search(r"plan = (#attn\.(?!combine)\w+<[^>]*>)", text)
        plans.sort(key=lambda plan: digest(f"{self.cell.name} {plan}".encode()))
        if done.returncode or not taken or self.number >= len(plans):
            return False
        self.source = text.replace(taken[1], plans[self.number], 1)
        return True


AnyCell = Cell | FeatureCell | GridCell | OtherPlan


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


class State:
    """What is known, in a file that only grows."""

    def __init__(self, path: pathlib.Path, compiler: str, assembler: str, again: bool) -> None:
        self.cells: dict[str, dict] = {}
        self.kernels: dict[str, dict] = {}
        self.structures: dict[str, dict] = {}
        self.marks = {"compiler": compiler, "assembler": assembler}
        lines, self.file = open_lines(path, again)
        for line in lines:
            self._take(line)

    def _take(self, line: dict) -> None:
        if "sweep" in line:
            return  # for readers
        if "cell" in line:
            # States of before may have cells whose spills nobody placed.
            placed = not line.get("kernel") or line["kernel"] in self.kernels
            if line["compiler"] == self.marks["compiler"] and placed:
                self.cells[line["cell"]] = line
                if "structure" in line:
                    self.structures.setdefault(line["structure"], line)
        elif line["assembler"] == self.marks["assembler"] and (
            "loops" in line or not (line["spills"] or line["stack"])
        ):
            self.kernels[line["kernel"]] = line

    def add(self, line: dict) -> None:
        mark = "assembler" if "registers" in line else "compiler"
        line[mark] = self.marks[mark]
        self._take(line)
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()


class Sweep:
    def __init__(self, options: argparse.Namespace, state: State, ptxas: str | None) -> None:
        self.compiler = options.bin / "attn-compile"
        self.lint = options.bin / "attn-lint-sass"
        self.places = add_nvdisasm() and self.lint.exists()
        self.state = state
        self.ptxas = ptxas
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="plan-sweep-"))

    def assemble(self, ptx: bytes, cell: AnyCell) -> tuple[dict, str]:
        """What ptxas says of the kernel that stands for this one, and in what it
        differs from this one."""
        arch = SAME_CODE.get(cell.chip, cell.chip)
        text = re.sub(rb"(?m)^\.target .*$", f".target {arch}".encode(), ptx)
        text = re.sub(rb"(?m)^\.version .*$", b".version", text)
        for pattern, name in SAME_TYPE:
            text = re.sub(pattern, name, text)
        key, own = digest(text), digest(ptx)
        known = self.state.kernels.get(key)
        if known is None:
            return self.say(ptx, cell) | {"kernel": key, "own": own}, ""
        if known.get("own") != own and int(own[:8], 16) % PROBE == 0:
            probe = self.say(ptx, cell)
            for what in ("registers", "stack", "spills"):
                if probe[what] != known[what]:
                    return known, f"{what} {probe[what]}, and {known[what]} for {known['from']}"
        return known, ""

    def say(self, ptx: bytes, cell: AnyCell) -> dict:
        """What ptxas says: bytes of spills, registers, warnings."""
        done = subprocess.run(
            [str(self.ptxas), f"-arch={cell.chip}", "-v", "-", "-o", "/dev/null"],
            input=ptx, capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode < 0:
            raise RuntimeError(f"ptxas ended by signal {-done.returncode} at {cell.name}")
        log = (done.stdout + done.stderr).decode()
        # A launch has several kernels where another one merges partial results.
        spills = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores", log)
        registers = [int(count) for count in re.findall(r"Used (\d+) registers", log)]
        warnings = [line for line in log.splitlines() if "warning" in line or "C75" in line]
        said = {
            "from": cell.name,
            "status": done.returncode,
            "stack": sum(int(stack) for stack, _ in spills) if spills else -1,
            "spills": sum(int(stores) for _, stores in spills) if spills else -1,
            "registers": max(registers, default=0),
            "warnings": warnings[:2],
        }
        if not done.returncode and (said["spills"] or said["stack"]) and self.places:
            said["loops"] = self.place(ptx, cell)
        return said

    def place(self, ptx: bytes, cell: AnyCell) -> list[dict]:
        """The loops that run for each block of keys and have spill instructions."""
        path = self.scratch / f"{cell.name}.ptx"
        path.write_bytes(ptx)
        found = []
        for kernel in re.findall(rb"\.entry (\w+)", ptx):
            done = subprocess.run(
                [self.lint, path, f"--kernel={kernel.decode()}", "--json"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode > 1:
                raise RuntimeError(f"{cell.name}: attn-lint-sass failed: {done.stderr.strip()}")
            for loop in json.loads(done.stdout)["block_loops"]:
                if count := loop["spill_stores"] + loop["spill_loads"]:
                    found.append({"kernel": kernel.decode(), "work": loop["work"], "spills": count})
        path.unlink()
        return found

    def compile(
        self, cell: AnyCell, *more: str
    ) -> tuple[subprocess.CompletedProcess[bytes], re.Match[str] | None]:
        """The compiler's run, and the plan's bytes of shared memory and its text."""
        done = subprocess.run(
            [self.compiler, *(["-"] if cell.source else []), *cell.flags(), "--print-plan", *more],
            input=cell.source.encode(), capture_output=True, check=False,
        )  # fmt: skip
        log = done.stderr.decode()
        if isinstance(cell, OtherPlan):
            # The remark on a plan that was given.
            return done, re.search(r"()plan = (#attn\.(?!combine)\w+<[^>]*>)", cell.source)
        # The plan that was taken is the first one of the table.
        return done, re.search(r"  plan\n.* (\d+) +\d+  (#attn.*>)", log)

    def run(self, cell: AnyCell) -> tuple[dict, dict | None]:
        """The state's line of a cell, and that of its kernel."""
        line: dict = {"cell": cell.name}
        if isinstance(cell, OtherPlan) and not cell.choose(self.compiler):
            return line | {"plan": "", "verdict": "refused", "why": "no other plan"}, None
        if isinstance(cell, GridCell):
            _, planned = self.compile(cell, "--emit=plan", "-o", "/dev/null")
            code = SAME_CODE.get(cell.chip, cell.chip)
            line["structure"] = cell.structure(code, planned[2] if planned else cell.name)
            known = self.state.structures.get(line["structure"])
            if known and int(digest(cell.name.encode()), 16) % PROBE:
                return known | {"cell": cell.name, "same": known["cell"]}, None
        record = self.scratch / f"{cell.name}.json"
        done, planned = self.compile(cell, f"--launch-out={record}", "-o", "-")
        log = done.stderr.decode()
        line["plan"] = planned[2] if planned else ""
        if done.returncode:
            line["verdict"] = "failed" if planned else "refused"
            errors = [text for text in log.splitlines() if "error" in text]
            line["why"] = (errors or ["no message"])[0][:300]
            return line, None
        launch = json.loads(record.read_text(encoding="utf-8"))
        # Kernels in front of the plan's and behind it have less, or none.
        shared = max(step["shared_bytes"] for step in launch.get("steps", [launch]))
        record.unlink()
        kernel, differs = self.assemble(done.stdout, cell) if self.ptxas else (None, "")
        line["kernel"] = kernel["kernel"] if kernel else ""
        planned_bytes = shared if isinstance(cell, OtherPlan) else int(planned[1]) if planned else 0
        line["why"] = self.judge(planned_bytes, shared, kernel) or differs
        if isinstance(cell, OtherPlan) and kernel and not kernel["status"]:
            line["why"] = ""
        line["verdict"] = "failed" if line["why"] else "good"
        if kernel and kernel["from"] != cell.name:
            line["same"] = kernel["from"]
        return line, kernel

    @staticmethod
    def judge(planned: int, shared: int, kernel: dict | None) -> str:
        """What is wrong with a kernel; empty for nothing."""
        if planned != shared:
            return f"expected the plan's {planned} bytes of shared memory, got {shared}"
        if kernel is None:
            return ""
        if kernel["status"]:
            return f"ptxas fails with status {kernel['status']}"
        spilled = f"ptxas spills {kernel['spills']} bytes, {kernel['stack']} of stack"
        if (kernel["spills"] or kernel["stack"]) and "loops" not in kernel:
            return f"{spilled}; nothing says where, for lack of nvdisasm or attn-lint-sass"
        if kernel.get("loops"):
            loops = ", ".join(f"{loop['work']} {loop['spills']}" for loop in kernel["loops"])
            return f"{spilled}, spill instructions in loops over blocks: {loops}"
        return kernel["warnings"][0] if kernel["warnings"] else ""


def sweep(
    options: argparse.Namespace, cells: Sequence[AnyCell], state: State, ptxas: str | None
) -> None:
    """Does what the state does not know yet."""
    worker, start = Sweep(options, state, ptxas), time.monotonic()
    waiting = iter([cell for cell in cells if cell.name not in state.cells])
    total = sum(cell.name not in state.cells for cell in cells)
    finished = failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        running: set[concurrent.futures.Future] = set()
        while True:
            while len(running) < options.workers and time.monotonic() - start < options.limit:
                if (cell := next(waiting, None)) is None:
                    break
                running.add(pool.submit(worker.run, cell))
            if not running:
                break
            done, running = concurrent.futures.wait(
                running, return_when=concurrent.futures.FIRST_COMPLETED
            )
            for future in done:
                line, kernel = future.result()
                if kernel and kernel["kernel"] not in state.kernels:
                    state.add(kernel)
                state.add(line)
                finished += 1
                if line["verdict"] == "failed":
                    failed += 1
                    print(f"{line['cell']}: {line['why']}; {line['plan']}", flush=True)
                rate = finished / max(time.monotonic() - start, 1e-9)
                progress(finished, total, f"{failed} failed, {rate:.1f}/s")
    worker.scratch.rmdir()


def summarise(cells: Sequence[AnyCell], span: str, state: State, seconds: float) -> int:
    """Prints why cells were refused, and the counts; how many failed."""
    known = [state.cells[cell.name] for cell in cells if cell.name in state.cells]
    refused: dict[str, int] = {}
    for line in known:
        if line["verdict"] == "refused":
            reason = re.sub(r"^.*?error: ", "", line["why"])
            refused[reason] = refused.get(reason, 0) + 1
    for reason, count in sorted(refused.items(), key=lambda item: -item[1])[:5]:
        print(f"refused {count} times: {reason}")
    verdicts = [line["verdict"] for line in known]
    kernels = len({line["kernel"] for line in known if line.get("kernel")})
    same = sum("same" in line for line in known)
    failed = verdicts.count("failed")
    outside = {
        kernel["kernel"]: kernel["spills"]
        for line in known
        if (kernel := state.kernels.get(line.get("kernel", ""))) and kernel.get("loops") == []
    }
    if outside:
        print(
            f"{len(outside)} kernels spill outside of loops over blocks, "
            f"{max(outside.values())} bytes at most: reported, and no failure"
        )
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{kernels} different kernels, {same} cells took over a verdict, {seconds:.0f} s, "
        f"{usage.ru_utime + usage.ru_stime:.0f} s of a core"
    )
    print(
        f"{len(cells)} cells{span}: {verdicts.count('good')} good, {verdicts.count('refused')} refused "
        f"by the planner, {failed} failed, {len(cells) - len(known)} left"
    )
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--limit", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--from", type=int, default=0, metavar="N", dest="first")
    parser.add_argument("--count", type=int, metavar="N")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--state", type=pathlib.Path, default=ROOT / "build/plan-sweep.jsonl")
    parser.add_argument("--features", action="store_true")
    parser.add_argument("--problems", action="store_true")
    parser.add_argument("--others", type=int, default=0, metavar="N")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    every: Sequence[AnyCell] = make_cells()
    if options.features:
        every = make_feature_cells()
    if options.problems:
        every = make_grid_cells()
    named = [cell for cell in every if re.search(options.only, cell.name)]
    if options.first < 0 or (options.count is not None and options.count < 0):
        parser.error(f"expected --from and --count of at least 0, got {options.first} and {options.count}")
    cells = named[options.first :][: options.count]
    if options.others:
        cells = [OtherPlan(cell, number) for cell in cells for number in range(options.others)]
    if options.list:
        print("\n".join(cell.name for cell in cells))
        return 0
    ptxas = find_ptxas()
    version = ""
    if ptxas is None:
        print("ptxas was not found: kernels are not assembled")
    else:
        text = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True).stdout
        version = text.splitlines()[-1]
    compiler = digest((options.bin / "attn-compile").read_bytes())
    state = State(options.state, compiler, version, options.again)
    start = time.monotonic()
    try:
        sweep(options, cells, state, ptxas)
    except KeyboardInterrupt:
        print("interrupted; the state is kept")
        return 130
    finally:
        left = sum(cell.name not in state.cells for cell in cells)
        last = options.first + len(cells)
        covered = {"only": options.only, "from": options.first, "to": last, "of": len(named)}
        state.add({"sweep": covered | {"left": left}})
    part = len(cells) < len(named) and cells
    span = f" ({options.first + 1} to {last} of {len(named)})" if part else ""
    return 1 if summarise(cells, span, state, time.monotonic() - start) else 0


if __name__ == "__main__":
    sys.exit(main())
