#!/usr/bin/env python3
"""Changes of one place in PTX, held against the proof of the kernel and run on the simulator.

The changes are those of mutate-ptx.py, and each synchronising statement behind the next one of its
straight line. `attn-sim --skeleton` compares what each thread does with what is proved; the
simulator by itself looks for races, deadlocks and misuse, in a random order with late writes and in
the usual one, and compares the results. What neither refuses gets a reason; the exit status is 1
where the simulator alone reports something, or nobody and no reason is known, or a kernel is refused
as it is.

usage: scripts/hold-ptx.py [--problem='FLAGS of attn-compile'...] [--standard] [--jobs=N]
The simulator may run on another machine, which needs attn-sim, this file and mutate-ptx.py alone:
       scripts/hold-ptx.py --standard --make=KERNELS.json.xz
       scripts/hold-ptx.py --judge=KERNELS.json.xz [--sim=FILE] [--json=VERDICTS.json]
"""

import argparse
import collections
import concurrent.futures
import importlib.util
import json
import lzma
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
# A row for each schedule and for each way to synchronise of docs/BarrierCheck.md, in small.
STANDARD = (
    "--q=1x2x256x64xf16 --kv-len=300 --chip=sm_90a",
    "--q=1x2x256x64xf16 --kv-len=300 --chip=sm_90a --set cluster=2",
    "--q=1x1x512x64xf16 --kv-len=300 --chip=sm_90a --set cluster=4",
    "--q=1x2x128x64xf8E4M3FN --kv-len=300 --chip=sm_90a",
    "--q=1x1x512x64xf16 --chip=sm_90a --causal --set cluster=2,dynamic=true",
    "--q=1x2x256x64xf16 --kv-len=300 --chip=sm_90a --window=100,0",
    "--q=1x2x256x64xf16 --kv-len=300 --chip=sm_90a --epilogue=tma",
    "--q=1x2x256x64xf16 --kv-len=300 --chip=sm_90a --set=turns=true,pv_behind=true",
    "--q=1x2x128x64xf16 --kv-len=300 --chip=sm_90a --schedule=self_load --epilogue=tma",
    "--q=1x1x512x64xf16 --kv-len=300 --chip=sm_100a --schedule=ws_tmem",
    "--q=1x1x64x264xf16 --kv-len=100 --chip=sm_90a --schedule=ws_columns",
    "--q=1x1x100x128xf16 --kv-len=100 --chip=sm_90a --schedule=ws_pair --set=block_n=64",
    "--q=1x2x64x64xf16 --kv-len=300 --chip=sm_80 --causal",
    "--q=1x1x4x64xf16 --kv-len=300 --chip=sm_80 --schedule=decode",
    "--q=1x16x1x96xf16 --rope-dim=32 --kv-len=70 --chip=sm_90a",
)
#: What a change does that no order of warps can show, by the statement.
REASONS = (
    (r"wgmma\.fence", "orders registers, which ptxas sees to, not memory"),
    (r"setmaxnreg", "moves registers, which orders nothing"),
    (r"fence\.mbarrier_init|mbarrier\.init.* behind fence\.mbarrier_init", "the barrier behind it releases as much"),
    # One to the same columns is a race, whose order both judges know.
    (r"tcgen05\.st.* behind tcgen05\.ld", "a store to tensor memory behind a load of other columns"),
)
#: Where a fence or a barrier is not the only one that orders.
ORDERS = r"fence|bar\.|barrier\.|wait_group|tcgen05\.(?:wait|fence)"


def load_mutate():
    spec = importlib.util.spec_from_file_location("mutate_ptx", HERE / "mutate-ptx.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutate_ptx"] = module
    spec.loader.exec_module(module)
    return module


def swaps_of(mutate, text: str) -> list:
    """Each statement behind the next one, where nothing branches between them."""
    clean = mutate.blank_comments(text)
    found = list(mutate.STATEMENT.finditer(clean))
    swaps = []
    for m, n in zip(found, found[1:]):
        # Between statements of their own, with braces closed.
        between = clean[m.end() : n.start()]
        if mutate.LABEL_OR_BRANCH.search(between) or re.search(r"[{}]", between):
            continue
        # Two copies, or two of the same for different barriers, have no order.
        alike = re.match(r"cp\.async\.c[ag]|cp\.async\.bulk\.tensor|mbarrier\.init|tcgen05\.(?:ld|st)", m["op"])
        if alike and n["op"].startswith(alike.group()):
            continue
        body = text[: m.start()] + text[m.end() : n.end()] + " " + text[m.start() : m.end()] + text[n.end() :]
        trap = text[: m.start()] + (m["guard"] or "") + "trap;" + text[m.end() :]
        line = text.count("\n", 0, m.start()) + 1
        what = f"{m['op']} {m['args'].strip()} behind {n['op']}"
        swaps.append(mutate.Mutant("behind the next", line, what, body, trap))
    return swaps


class Judge:
    def __init__(self, sim: str, folder: str, kernel: dict) -> None:
        self.sim, self.root, self.kernel, self.local = sim, pathlib.Path(folder), kernel, threading.local()
        self.record, self.skeleton = self.root / "launch.json", self.root / "skeleton.json"
        self.record.write_text(kernel["record"])
        self.skeleton.write_text(kernel["skeleton"])
        launch = json.loads(kernel["record"])
        all_tiles = json.loads(kernel["skeleton"])["all_tiles"]
        self.grid = [f"--grid={launch['cluster'][0]},1,1"] if all_tiles else []

    def run(self, text: str, *flags: str) -> tuple[int, dict]:
        if not hasattr(self.local, "path"):
            self.local.path = pathlib.Path(tempfile.mkdtemp(dir=self.root)) / "kernel.ptx"
        self.local.path.write_text(text)
        command = [self.sim, str(self.local.path), f"--launch={self.record}", "--json", "--jobs=1",
                   "--step-limit=3000000", "--profile=isa", "--assume=A1,A2,A4"]  # fmt: skip
        try:
            done = subprocess.run([*command, *flags], capture_output=True, text=True, timeout=100)
        except subprocess.TimeoutExpired:
            return -1, {}
        return done.returncode, json.loads(done.stdout) if done.stdout else {}

    def compare(self, text: str) -> tuple[str, str]:
        code, report = self.run(text, f"--skeleton={self.skeleton}")
        said = report.get("skeleton", {}).get("text", "")
        if code == 0:
            return "the same", said
        if "does not do what is proved" in said:
            return "refused", said
        if "has findings" in said:
            return "refused", said
        return ("not run" if code in (1, -1) else "invalid"), said

    def simulate(self, text: str) -> tuple[str, str]:
        for more in (["--schedule=random", "--seed=1", "--adversarial"], []):
            code, report = self.run(text, *self.grid, "--verify", "--lose-bets", *more)
            if code == 0:
                continue
            if code == 2:
                return "invalid", ""
            findings = report.get("run", report).get("findings", [])
            kinds = sorted({f["kind"] for f in findings if f["severity"] == "error"})
            kinds += [p[:60] for p in report.get("problems", [])]
            return ("reported" if kinds or code == -1 else "wrong values"), " ".join(kinds)
        return "clean", ""

    def finish(self, mutant) -> dict:
        entry = {"kernel": self.kernel["flags"], "kind": mutant.kind, "line": mutant.line, "what": mutant.what}
        entry["skeleton"], entry["said"] = self.compare(mutant.text)
        entry["simulator"], entry["found"] = ("not asked", "")
        if entry["skeleton"] != "invalid":
            entry["simulator"], entry["found"] = self.simulate(mutant.text)
        if entry["skeleton"] == "the same" and entry["simulator"] == "clean":
            entry["passes"] = self.explain(mutant)
        return entry

    def explain(self, mutant) -> str:
        if self.compare(mutant.probe)[0] == "the same" and self.simulate(mutant.probe)[0] == "clean":
            return "not reached by the problem"
        for pattern, reason in REASONS:
            if re.match(pattern, mutant.what):
                return reason
        if "fence.mbarrier_init" in mutant.text.split("\n")[mutant.line - 2]:
            return "the fence of the initialisations in front does as much"
        is_late_product = re.match(r"wgmma.mma_async.* behind wgmma.commit_group", mutant.what)
        if is_late_product and is_awaited_as_before(mutant.text.split("\n"), mutant.line):
            return "in the next group, which every wait for its own waits for"
        if mutant.kind in ("late", "behind the next") and re.match(ORDERS, mutant.what):
            return "more of what orders stands there than the proof needs"
        return "another one"


def make_kernels(options: argparse.Namespace) -> list[dict]:
    kernels = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for flags in options.problem:
            paths = [root / name for name in ("k.ptx", "k.json", "k.skeleton.json")]
            command = [str(options.bin / "attn-compile"), *flags.split(), "-o", str(paths[0])]
            command += [f"--launch-out={paths[1]}", f"--skeleton={paths[2]}"]
            subprocess.run(command, check=True)
            ptx, record, skeleton = (path.read_text() for path in paths)
            kernels.append({"flags": flags, "ptx": ptx, "record": record, "skeleton": skeleton})
    return kernels


def judge_kernel(options: argparse.Namespace, kernel: dict, pool) -> list[dict]:
    mutate = load_mutate()
    mutants = mutate.mutants_of(kernel["ptx"]) + swaps_of(mutate, kernel["ptx"])
    mutants = mutants[:: max(1, -(-len(mutants) // options.most))]
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(options.sim, folder, kernel)
        own = judge.compare(kernel["ptx"]), judge.simulate(kernel["ptx"])
        entries = list(pool.map(lambda m: judge.finish(m) if time.monotonic() < options.end else None, mutants))
    left = entries.count(None)
    if left:
        print(f"{kernel['flags']}: {left} of {len(mutants)} not run")
    (skeleton, said), (simulator, found) = own
    itself = {"kernel": kernel["flags"], "kind": "itself", "line": 0, "what": "the kernel itself", "said": said,
              "skeleton": skeleton, "simulator": simulator, "found": found}  # fmt: skip
    return [itself, *(entry for entry in entries if entry)]


def is_awaited_as_before(lines: list[str], moved: int) -> bool:
    """Whether the first wait for the group that lines[moved], a wgmma, was in is one for the next group too."""
    groups = 0
    for line in lines[moved + 1 :]:
        if "wgmma.commit_group" in line:
            groups += 1
        elif match := re.search(r"wgmma.wait_group\S* (\d+)", line):
            pending = int(match[1])
            # One group less than those behind the wgmma's former one is behind its present one.
            if groups >= pending:
                return groups - 1 >= pending
    return False


def is_hole(entry: dict) -> bool:
    """What wants a reason; a kernel that is refused itself, or all of its changes would be."""
    if entry["line"] == 0:
        return entry["skeleton"] != "the same" or entry["simulator"] != "clean"
    alone = entry["skeleton"] == "the same" and entry["simulator"] in ("reported", "wrong values")
    return alone or entry.get("passes") == "another one"


def print_tables(entries: list[dict]) -> None:
    columns = ("both", "skeleton", "simulator", "no run", "neither", "no kernel")

    def column(entry: dict) -> str:
        bad = entry["simulator"] in ("reported", "wrong values")
        if entry["skeleton"] == "invalid":
            return "no kernel"
        if entry["skeleton"] == "not run":
            return "no run"
        if entry["skeleton"] == "refused":
            return "both" if bad else "skeleton"
        return "simulator" if bad else "neither"

    for title in ("kernel", "kind"):
        rows: dict = collections.defaultdict(collections.Counter)
        for entry in entries:
            rows[entry[title]][column(entry)] += 1
            rows["all"][column(entry)] += title == "kind"
        print(f"| {title} | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
        for name, row in rows.items():
            if row.total():
                print(f"| {name} | " + " | ".join(str(row[c]) for c in columns) + " |")
    moved = [e for e in entries if e["kind"].startswith(("drop", "late", "behind"))]
    counts = collections.Counter(column(entry) for entry in moved)
    print(f"of {len(moved)} in which something was moved or lost: {dict(counts)}")
    for reason, count in collections.Counter(e["passes"] for e in entries if "passes" in e).most_common():
        print(f"{count:6} neither: {reason}")


def report(options: argparse.Namespace, entries: list[dict]) -> int:
    holes = 0
    for entry in entries:
        hole = is_hole(entry)
        holes += hole
        if options.list or hole:
            found = entry["found"] or entry.get("passes", "")
            print(f"{entry['kernel']}:{entry['line']}: {entry['kind']}: {entry['what']}")
            print(f"    skeleton: {entry['skeleton']}; simulator: {entry['simulator']} {found}")
    changes = [entry for entry in entries if entry["line"] != 0]
    print_tables(changes)
    print(f"{len(changes)} changes, {holes} that want a reason")
    if options.json:
        options.json.write_text(json.dumps(entries, indent=0))
    return 1 if holes else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problem", action="append", default=[], metavar="FLAGS")
    parser.add_argument("--standard", action="store_true", help="problems of all schedules")
    parser.add_argument("--bin", type=pathlib.Path, default=HERE.parent / "build/bin")
    parser.add_argument("--sim", help="attn-sim; default: that of --bin")
    parser.add_argument("--most", type=int, default=10**6, help="changes of a kernel at most")
    parser.add_argument("--jobs", "-j", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print every change")
    parser.add_argument("--json", type=pathlib.Path, help="write all verdicts")
    parser.add_argument("--time", type=float, default=1e9, help="seconds")
    parser.add_argument("--make", type=pathlib.Path, help="write what --judge reads, and end")
    parser.add_argument("--judge", type=pathlib.Path, help="run the simulator on what --make wrote")
    options = parser.parse_args()
    options.sim = options.sim or str(options.bin / "attn-sim")
    options.problem += STANDARD if options.standard else ()
    if not options.problem and not options.judge:
        parser.error("expected problems, got none")
    if options.judge:
        kernels = json.loads(lzma.decompress(options.judge.read_bytes()))
    else:
        kernels = make_kernels(options)
    if options.make:
        options.make.write_bytes(lzma.compress(json.dumps(kernels).encode()))
        return 0
    entries: list[dict] = []
    options.end = time.monotonic() + options.time
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for kernel in kernels:
            entries += judge_kernel(options, kernel, pool)
    return report(options, entries)


if __name__ == "__main__":
    sys.exit(main())
