#!/usr/bin/env python3
"""Wrong copies of kernels at the barrier rung, and who refuses them.

Each synchronising op is deleted, doubled, moved past its neighbours or given other numbers, one
change at a time (ir_mutants.py). attn-check-barriers judges the copy, and the simulator runs what
becomes of it: on one cluster, which does all tiles, in a random order with late writes. A copy that
the check passes and the simulator reports is a hole in the check, and the exit status is 1. Of a
copy that both pass it is asked whether a trap in that place is passed too, and whether its PTX is
the kernel's.

usage: scripts/mutate-ir.py KERNEL.mlir... [--sample=N] [--seed=N] [--bin=FOLDER] [--list]
       scripts/mutate-ir.py --problem='FLAGS of attn-compile'... [options]
       scripts/mutate-ir.py --standard [options]
The simulator may run on another machine, which needs attn-sim and this file alone:
       scripts/mutate-ir.py --standard --make=MUTANTS.json.xz
       scripts/mutate-ir.py --judge=MUTANTS.json.xz [--json=VERDICTS.json]
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import lzma
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

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
    "--q=1x1x512x64xf16 --kv-len=300 --chip=sm_100a --schedule=ws_tmem --set pair=true",
    "--q=1x1x300x256xf16 --kv-len=200 --chip=sm_100a --schedule=ws_tmem --causal --set pair=true",
    "--q=1x20x1x320xf16 --rope-dim=64 --kv-len=200 --no-split-keys --chip=sm_100a "
    "--schedule=ws_tmem --set pair=true",
    "--q=1x1x100x264xf16 --kv-len=200 --chip=sm_90a --schedule=ws_columns --causal",
    "--q=1x2x4x64xf16 --kv-len=600 --chip=sm_80 --schedule=decode",
    "--q=1x16x1x96xf16 --rope-dim=32 --kv-len=70 --chip=sm_90a",
    "--q=1x16x1x128xf16 --rope-dim=64 --kv-len=100 --chip=sm_80 --schedule=ws_mla "
    "--set=block_m=32,block_n=16,stages=2",
    "--q=1x1x70x320xf16 --kv-len=150 --chip=sm_80 --schedule=tiled_d --causal "
    "--set=block_m=32,block_n=32,warps_m=2,warps_n=2,slice=64,stages=3",
)
FAULTS = (
    "signal in the wrong phase", "wrong count", "phase slip", "early wait",
    "arrival in the wrong generation", "deadlock", "race", "missing proxy fence",
    "missing tensor fence", "result in flight", "lifetime",
    "unwritten tensor memory", "exit in flight",
)  # fmt: skip
#: Of a loop with another number of trips what the simulator may say that is no matter of order:
#: blocks that nobody has loaded, and rows in global memory that are other CTAs'.
TRIPS = ("one more trip", "one trip less")
VALUES = re.compile(
    r'error: (with scores that grow: )?(output "|relative error|LSE error|uninitialised-read: '
    r"|a (value|predicate) .* was never written|(race|out-of-bounds): .*\[global )"
)
PASSED = ("proved", "bounded", "unknown")
#: Why a copy that both pass is no bug, by the kind of change. What is in no row is printed.
REASONS = {
    "double": "said twice, which is as good as once",
    "delete": "something else orders the same",
    "pending - 1": "waits for more than it has to",
    "behind the next": "not ordered with that neighbour",
    "before the last": "not ordered with that neighbour",
}


class Tools:
    """Runs programs, each job of its own in a folder of its own."""

    def __init__(self, bins: pathlib.Path, folder: str) -> None:
        self.bins, self.root, self.local = bins, pathlib.Path(folder), threading.local()

    @property
    def folder(self) -> pathlib.Path:
        if not hasattr(self.local, "folder"):
            self.local.folder = pathlib.Path(tempfile.mkdtemp(dir=self.root))
        return self.local.folder

    def run(self, *command: str, limit: int = 60) -> tuple[int, str]:
        try:
            done = subprocess.run(
                [str(self.bins / command[0]), *command[1:]],
                capture_output=True, text=True, timeout=limit, errors="replace",
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return -1, "no end"
        return done.returncode, done.stdout + done.stderr

    def compile(self, text: str, *flags: str) -> tuple[int, str, str, str]:
        """attn-compile's status and what it says, with the PTX and the launch record."""
        path, ptx, record = (self.folder / f"kernel.{end}" for end in ("mlir", "ptx", "json"))
        path.write_text(text)
        code, said = self.run(
            "attn-compile", str(path), "-o", str(ptx), f"--launch-out={record}", *flags
        )
        return (code, said, ptx.read_text(), record.read_text()) if code == 0 else (code, said, "", "")

    def write_skeleton(self, text: str) -> str:
        """What each warp of a kernel does, or nothing where it is not proved."""
        path = self.folder / "skeleton.json"
        code = self.compile(text, f"--skeleton={path}")[0]
        return path.read_text() if code == 0 else ""

    def check(self, text: str) -> dict:
        """What the check says: refused, proved, bounded, unknown or invalid; and the PTX."""
        code, said, ptx, record = self.compile(text, "--remarks-filter=attn.check.*")
        if code == 0:
            verdict = "bounded" if "not proved" in said else "unknown"
            why = re.search(r"(?:cannot be checked|not-checked)[^\n]*", said)
            # Of the kernels of several steps all have to be.
            verdict = "proved" if "is proved for" in said and not why else verdict
            return {"static": verdict, "why": why.group(0) if why else "", "ptx": ptx, "record": record}
        message = re.search(r"error: (.*)", said)
        why = message.group(1) if message else said[:200]
        if why.split(":")[0] not in FAULTS:
            return {"static": "invalid", "why": why}
        code, said, ptx, record = self.compile(text, "--no-check-barriers")
        verdict = {"static": "refused", "why": why, "ptx": ptx, "record": record}
        return verdict if code == 0 else {"static": "invalid", "why": said[:200]}

    def does_the_same(self, entry: dict) -> bool:
        """Whether all threads do what the kernel without a change has them do."""
        names = ("same.ptx", "same.json", "same.skeleton.json")
        ptx, record, skeleton = (self.folder / name for name in names)
        for path, text in zip((ptx, record, skeleton), (entry["ptx"], entry["record"], entry["skeleton"])):
            path.write_text(text)
        command = ["attn-sim", str(ptx), f"--launch={record}", f"--skeleton={skeleton}", "--jobs=1"]
        return self.run(*command)[0] == 0

    def simulate(self, ptx_text: str, record_text: str, name: str = "") -> tuple[str, str]:
        """What the simulator says of a change: reported, clean, wrong values or invalid."""
        ptx, record = self.folder / "kernel.ptx", self.folder / "kernel.json"
        ptx.write_text(ptx_text)
        record.write_text(record_text)
        launch = json.loads(record_text)
        command = ["attn-sim", str(ptx), f"--launch={record}", "--profile=isa", "--assume=A1,A2,A4"]
        # A kernel written by hand has no reference and no tiles: it is asked for findings alone.
        is_planned = "problem" in launch
        verify = ["--verify", "--lose-bets"] if is_planned else []
        # Each of several steps has a grid of its own.
        is_persistent = is_planned and launch["target"]["chip"] != "sm_80" and "steps" not in launch
        grid = [f"--grid={launch['cluster'][0]},1,1"] if is_persistent else []
        if "clusterlaunchcontrol" in ptx_text:
            # Each tile has a CTA or cluster, one of which takes all over.
            grid = ["--started=1"]
        for more in (["--schedule=random", "--seed=1", "--adversarial"], []):
            code, text = self.run(*command, *grid, *verify, "--jobs=1", *more)
            if code == 1 and "findings:        none" in text:
                return "wrong values", ""
            errors = re.findall(r"error: (?:with scores that grow: )?([a-z]+)[^\n]*", text)
            # A block more than there are keys is no matter of order.
            if code == 1 and set(errors) in ({"out"}, {"out", "the"}) and "[global" in text:
                return "wrong values", "out of bounds of global memory"
            # Not the lines that say how large errors are.
            lines = re.findall(r"^(?:\S+: )?error: .*", text, re.M)
            if code == 1 and name in TRIPS and lines and all(map(VALUES.search, lines)):
                return "wrong values", "of what nobody has written, or other CTAs have"
            if code in (-1, 1):
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


def make_entries(options: argparse.Namespace, folder: str, pool) -> list[dict]:
    """What the check says of each kernel and of its copies."""
    from ir_mutants import Mutant, mutants_of

    tools, rng, entries = Tools(options.bin, folder), random.Random(options.seed), []
    for name, text in read_kernels(options, folder):
        mutants = mutants_of(text)
        if options.sample:
            mutants = rng.sample(mutants, min(options.sample, len(mutants)))
        mutants.sort(key=lambda mutant: (mutant.line, mutant.name))
        mutants.insert(0, Mutant("the kernel itself", 0, text, ""))
        verdicts = list(pool.map(lambda mutant: tools.check(mutant.text), mutants))
        skeleton = tools.write_skeleton(text)
        deleted = {mutant.line: mutant.text for mutant in mutants_of(text) if mutant.name == "delete"}
        probes = {m.probe for m, v in zip(mutants, verdicts) if v["static"] in PASSED and m.probe}
        probes = dict(zip(probes, pool.map(lambda text: tools.compile(text, "--no-check-barriers")[2], probes)))
        for mutant, verdict in zip(mutants, verdicts):
            line = text.split("\n")[mutant.line - 1].strip() if mutant.line else ""
            entry = {"kernel": name, "line": mutant.line, "name": mutant.name, "op": line, **verdict}
            if mutant.line and verdict["static"] in PASSED:
                entry["probe"] = probes.get(mutant.probe, "")
                if mutant.name not in REASONS:
                    entry["skeleton"] = skeleton
                    without = tools.check(deleted[mutant.line]) if mutant.line in deleted else {}
                    entry["is_needed"] = without.get("static") != "proved"
            if mutant.line and entry.get("ptx"):
                same = entry["ptx"] == verdicts[0].get("ptx")
                entry["is_same"] = same
            entries.append(entry)
    return entries


def finish(tools: Tools, entry: dict, end: float) -> None:
    """Adds what the simulator says, and why both may pass a copy."""
    entry["dynamic"], entry["reason"] = "not run", ""
    if entry["static"] == "invalid" or time.monotonic() > end:
        return
    entry["dynamic"], entry["reason"] = tools.simulate(
        entry["ptx"], entry["record"], entry["name"]
    )
    if entry["line"] == 0 or entry["static"] not in PASSED or entry["dynamic"] != "clean":
        return
    if entry["is_same"]:
        entry["passes"] = "the same PTX"
    elif entry["probe"] and tools.simulate(entry["probe"], entry["record"])[0] == "clean":
        entry["passes"] = "not reached by the problem"
    elif entry.get("skeleton") and tools.does_the_same(entry):
        entry["passes"] = "does what the kernel does in all that the problem reaches"
    elif not entry.get("is_needed", True):
        entry["passes"] = "changes an op without which the kernel is proved too"
    else:
        entry["passes"] = REASONS.get(entry["name"], "another one")


def is_hole(entry: dict) -> bool:
    if entry["line"] == 0:
        return entry["static"] not in ("proved", "bounded") or entry["dynamic"] != "clean"
    return entry["static"] in ("proved", "bounded") and entry["dynamic"] == "reported"


def print_table(entries: list[dict]) -> None:
    """A row for each kernel, then one for each kind of change, then the reasons."""
    columns = ("both", "check", "simulator", "values", "neither", "unknown", "no kernel")

    def column(entry: dict) -> str:
        if entry["static"] == "invalid" or entry["dynamic"] == "invalid":
            return "no kernel"
        if entry["static"] == "unknown":
            return "unknown"
        if entry["static"] == "refused":
            return "check" if entry["dynamic"] == "clean" else "both"
        return {"reported": "simulator", "wrong values": "values"}.get(entry["dynamic"], "neither")

    mutants = [entry for entry in entries if entry["line"]]
    kind = lambda entry: "other mbarrier" if " for %" in entry["name"] else entry["name"]  # noqa: E731
    for title, key in (("kernel", lambda entry: entry["kernel"]), ("change", kind)):
        rows = collections.defaultdict(collections.Counter)
        for entry in mutants:
            rows[key(entry)][column(entry)] += 1
            if title == "change":
                rows["all"][column(entry)] += 1
        print(f"| {title} | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
        for name, row in rows.items():
            print(f"| {name} | " + " | ".join(str(row[c]) for c in columns) + " |")
    reasons = collections.Counter(entry["passes"] for entry in mutants if "passes" in entry)
    for reason, count in reasons.most_common():
        print(f"{count:6} passed by both: {reason}")


def report(options: argparse.Namespace, entries: list[dict]) -> int:
    holes = 0
    for entry in entries:
        hole = is_hole(entry)
        holes += hole
        if options.list or hole or entry.get("passes") == "another one" or entry["dynamic"] == "wrong values":
            print(f"{'HOLE: ' if hole else ''}{entry['kernel']}:{entry['line']}: {entry['name']}: {entry['op'][:160]}")
            print(f"    check: {entry['static']} {entry['why'][:300]}")
            print(f"    simulator: {entry['dynamic']} {entry['reason'][:300]}")
    print_table(entries)
    print(f"{holes:6} holes")
    if options.json:
        kept = [{k: v for k, v in e.items() if k not in ("ptx", "probe", "record", "skeleton")} for e in entries]
        options.json.write_text(json.dumps(kept, indent=0))
    return 1 if holes else 0


def pack(entries: list[dict]) -> bytes:
    """Entries with each text once, as JSON, compressed."""
    texts: dict[str, str] = {}
    packed = []
    for entry in entries:
        entry = dict(entry)
        for key in ("ptx", "probe", "record", "skeleton"):
            if entry.get(key):
                digest = hashlib.sha256(entry[key].encode()).hexdigest()[:16]
                texts[digest] = entry[key]
                entry[key] = digest
        packed.append(entry)
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 26}]
    data = json.dumps({"texts": texts, "entries": packed}).encode()
    return lzma.compress(data, format=lzma.FORMAT_XZ, filters=filters)


def unpack(data: bytes) -> list[dict]:
    contents = json.loads(lzma.decompress(data))
    for entry in contents["entries"]:
        for key in ("ptx", "probe", "record", "skeleton"):
            if entry.get(key):
                entry[key] = contents["texts"][entry[key]]
    return contents["entries"]


def work(options: argparse.Namespace, folder: str) -> int:
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        if options.judge:
            entries = unpack(options.judge.read_bytes())
        else:
            entries = make_entries(options, folder, pool)
        if options.make:
            options.make.write_bytes(pack(entries))
            counts = collections.Counter(entry["static"] for entry in entries)
            print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
            return 0
        tools = Tools(options.bin, folder)
        end = time.monotonic() + options.time
        # What there is no time for is any of them.
        order = random.Random(0).sample(entries, len(entries))
        list(pool.map(lambda entry: finish(tools, entry, end), order))
    left = [entry for entry in entries if entry["static"] != "invalid" and entry["dynamic"] == "not run"]
    if left:
        print(f"{len(left)} of {len(entries)} not run in {options.time:.0f} s")
    return report(options, [entry for entry in entries if entry not in left] if left else entries)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kernels", nargs="*", type=pathlib.Path)
    parser.add_argument("--problem", action="append", default=[], metavar="FLAGS")
    parser.add_argument("--sample", type=int, default=0, help="mutants of each kernel; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--jobs", "-j", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print every mutant")
    parser.add_argument("--standard", action="store_true", help="problems of all schedules")
    parser.add_argument("--json", type=pathlib.Path, help="write all verdicts")
    parser.add_argument("--time", type=float, default=1e9, help="seconds for the simulator")
    parser.add_argument("--make", type=pathlib.Path, help="write what --judge reads, and end")
    parser.add_argument("--judge", type=pathlib.Path, help="run the simulator on what --make wrote")
    options = parser.parse_args()
    options.problem += STANDARD if options.standard else ()
    if not options.kernels and not options.problem and not options.judge:
        parser.error("expected kernels or problems, got none")
    with tempfile.TemporaryDirectory() as folder:
        return work(options, folder)


if __name__ == "__main__":
    sys.exit(main())
