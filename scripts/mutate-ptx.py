#!/usr/bin/env python3
"""Breaks the synchronisation of PTX kernels and looks whether attn-sim notices.

Every mutant differs from the kernel in one place: a wait, fence, arrival, commit
or barrier is dropped, a count, a number of bytes or a parity is changed, or what
orders comes after the signal. A mutant is *reported* when the
simulator's findings make the run fail, *wrong* when only the result shows it,
*not executed* when not even a trap in its place would be noticed; those that
pass every corner of the schedules as well survive and are listed. One that
exceeds --limit is *timed out*, which says nothing: a kernel that never ends is
reported at the step limit (-- --step-limit=N).

usage: mutate-ptx.py --recorded=DIR [options]
       mutate-ptx.py KERNEL.ptx --launch=RECORD.json [options] [-- attn-sim options]
       mutate-ptx.py --twins FILE...
With --twins each file is a kernel with the mutants that must be reported, see
test/Simulator/twins/README.md; the exit status is 1 when one behaves otherwise.
"""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# guard, opcode, operands of one statement.
STATEMENT = re.compile(
    r"(?P<guard>@!?[\w$%]+\s+)?"
    r"(?P<op>(?:mbarrier|bar|barrier|fence|cp\.async|tcgen05|wgmma|setmaxnreg)\.[\w:.]+)"
    r"(?P<args>[^;]*);"
)
LABEL_OR_BRANCH = re.compile(r"^\s*[\w$]+:|\b(?:bra|brx\.idx|ret|exit|call)\b", re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*")

# What orders, and what it has to come before.
ORDERS = r"fence|tcgen05\.(?:wait|fence)|bar\.warp|cp\.async\.(?:bulk\.)?wait"
SIGNALS = r"mbarrier\.arrive|tcgen05\.commit|bar\.|barrier\.|cp\.async\.bulk\.(?:tensor|global)"

# What is dropped, by the name that the table shows.
DROPS = {
    "wait": r"mbarrier\.(?:try|test)_wait",
    "wait group": r"(?:cp\.async|cp\.async\.bulk|wgmma)\.wait_(?:group|all)",
    "tmem wait": r"tcgen05\.wait",
    "commit": r"(?:cp\.async|cp\.async\.bulk|wgmma)\.commit_group|tcgen05\.commit",
    "arrive": r"mbarrier\.arrive|cp\.async\.mbarrier\.arrive",
    "expect": r"mbarrier\.expect_tx",
    "fence": r"fence\.|wgmma\.fence|tcgen05\.fence",
    "cta barrier": r"(?:bar|barrier)\.(?:cta\.)?(?:sync|arrive|red)",
    "warp barrier": r"bar\.warp\.sync",
    "cluster barrier": r"barrier\.cluster",
    "init": r"mbarrier\.init",
    "tmem": r"tcgen05\.(?:alloc|dealloc)",
    "registers": r"setmaxnreg",
}


@dataclasses.dataclass
class Mutant:
    kind: str
    line: int
    what: str
    text: str
    probe: str = ""  # the kernel with a trap in this place


def blank_comments(text: str) -> str:
    return COMMENT.sub(lambda m: " " * len(m.group()), text)


def split_args(args: str) -> list[str]:
    parts, depth = [""], 0
    for c in args:
        depth += (c in "[{(") - (c in "]})")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts]


def changed_operand(m: re.Match, index: int, op: str, amount: int) -> str:
    """The statement with `amount` combined into operand `index`."""
    args = split_args(m["args"])
    value = args[index]
    if re.fullmatch(r"-?\d+", value):
        number = int(value)
        args[index] = str(number + amount if op == "add.s32" else number ^ amount)
        return f"{m['guard'] or ''}{m['op']} {', '.join(args)};"
    args[index] = "%mutated"
    return (
        f"{{ .reg .b32 %mutated; {op} %mutated, {value}, {amount}; "
        f"{m['guard'] or ''}{m['op']} {', '.join(args)}; }}"
    )


def dropped(m: re.Match) -> str:
    """What stands in place of a statement that is gone."""
    if re.match(r"mbarrier\.(?:try|test)_wait", m["op"]):
        flag = split_args(m["args"])[0]
        return f"{m['guard'] or ''}setp.eq.b32 {flag}, 0, 0;"
    return "{ }"


def mutants_of(text: str) -> list[Mutant]:
    clean = blank_comments(text)
    found = list(STATEMENT.finditer(clean))
    result = []

    def add(kind: str, m: re.Match, new: str, what: str) -> None:
        body = text[: m.start()] + new + text[m.end() :]
        trap = text[: m.start()] + (m["guard"] or "") + "trap;" + text[m.end() :]
        line = text.count("\n", 0, m.start()) + 1
        result.append(Mutant(kind, line, what, body, trap))

    for i, m in enumerate(found):
        op, args = m["op"], split_args(m["args"])
        shown = f"{op} {m['args'].strip()}"
        for name, pattern in DROPS.items():
            if re.match(pattern, op) and not op.startswith("mbarrier.inval"):
                add("drop " + name, m, dropped(m), shown)
                break
        if op.startswith("mbarrier.init"):
            add("count + 1", m, changed_operand(m, 1, "add.s32", 1), shown)
            if args[1] != "1":
                add("count - 1", m, changed_operand(m, 1, "add.s32", -1), shown)
        if "expect_tx" in op:
            add("bytes + 16", m, changed_operand(m, -1, "add.s32", 16), shown)
            add("bytes - 16", m, changed_operand(m, -1, "add.s32", -16), shown)
        if re.match(r"mbarrier\.(?:try|test)_wait\.parity", op):
            add("parity", m, changed_operand(m, 2, "xor.b32", 1), shown)
        if re.match(r"(?:cp\.async|cp\.async\.bulk|wgmma)\.wait_group", op):
            add("group + 1", m, changed_operand(m, 0, "add.s32", 1), shown)
        if re.match(ORDERS, op):
            # Too late: behind the last signal of the straight line.
            last = None
            for n in found[i + 1 :]:
                if LABEL_OR_BRANCH.search(clean[m.end() : n.start()]):
                    break
                if re.match(SIGNALS, n["op"]):
                    last = n
            if last:
                new = text[m.end() : last.end()] + " " + text[m.start() : m.end()]
                body = text[: m.start()] + new + text[last.end() :]
                line = text.count("\n", 0, m.start()) + 1
                trap = text[: m.start()] + "trap;" + text[m.end() :]
                what = f"{shown} after {last['op']}"
                result.append(Mutant("late", line, what, body, trap))
    return result


class Runner:
    def __init__(self, sim: str, limit: float, extra: list[str]) -> None:
        self.sim, self.limit, self.extra = sim, limit, extra

    def run(self, command: list[str]) -> tuple[str, list[str]]:
        """'clean', 'reported', 'wrong', 'timed out' or 'invalid', with the kinds of errors."""
        try:
            done = subprocess.run(
                [self.sim, *command, "--json", *self.extra],
                capture_output=True, text=True, timeout=self.limit,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return "timed out", []
        if done.returncode == 2 or not done.stdout:
            return "invalid", [done.stderr.strip()]
        report = json.loads(done.stdout)
        findings = report.get("run", report).get("findings", [])
        kinds = [f["kind"] for f in findings if f["severity"] == "error"]
        kinds += [p for p in report.get("problems", []) if p.startswith("under ")]
        if kinds:
            return "reported", kinds
        return ("clean" if done.returncode == 0 else "wrong"), []


def survey(args: argparse.Namespace, runner: Runner) -> int:
    with tempfile.TemporaryDirectory() as folder:
        if args.recorded:
            source = pathlib.Path(args.recorded)
            for item in source.iterdir():
                if item.name != "kernel.ptx":
                    os.symlink(item.resolve(), pathlib.Path(folder) / item.name)
            original = (source / "kernel.ptx").read_text()
            ptx, command = pathlib.Path(folder) / "kernel.ptx", [f"--recorded={folder}"]
        else:
            original = pathlib.Path(args.kernel).read_text()
            ptx = pathlib.Path(folder) / "mutant.ptx"
            command = [str(ptx), f"--launch={args.launch}"]

        def verdict(text: str, *options: str) -> tuple[str, list[str]]:
            ptx.write_text(text)
            return runner.run([*command, *options])

        first = verdict(original)
        if first[0] != "clean":
            print(f"error: expected a kernel without errors, got {first}", file=sys.stderr)
            return 2
        all_mutants = mutants_of(original)
        mutants = all_mutants[:: max(1, -(-len(all_mutants) // args.most))]
        table: dict = collections.defaultdict(collections.Counter)
        survivors = []
        for mutant in mutants:
            outcome, kinds = verdict(mutant.text)
            if outcome == "clean" and verdict(mutant.probe)[0] == "clean":
                outcome = "not executed"
            elif outcome == "clean":
                outcome, kinds = verdict(mutant.text, "--corners")
                if outcome == "clean":
                    outcome = "survived"
                    survivors.append(mutant)
            table[mutant.kind][outcome] += 1
            if args.progress:
                found = " ".join(sorted(set(kinds)))
                print(f"line {mutant.line}: {mutant.kind}: {outcome} {found}", file=sys.stderr)
    names = ["reported", "wrong", "survived", "not executed", "timed out", "invalid"]
    print(f"{len(mutants)} of {len(all_mutants)} mutants")
    print(f"{'mutation':22}" + "".join(f"{n:>14}" for n in names))
    total: collections.Counter = collections.Counter()
    for kind in sorted(table):
        print(f"{kind:22}" + "".join(f"{table[kind][n]:>14}" for n in names))
        total.update(table[kind])
    print(f"{'all':22}" + "".join(f"{total[n]:>14}" for n in names))
    for s in survivors:
        print(f"survived: line {s.line}: {s.kind}: {s.what}")
    return 0


def record_of(options: dict, kernel: str) -> dict:
    """A launch record for a twin: `q` holds zeros or numbers, `o` the results.

    With `zeroed` a third argument has so many bytes that are zero at first.
    """
    words = int(options.get("words", 1024))
    tensor = {"dtype": "f32", "shape": [words], "strides": [1]}
    ctas = int(options.get("ctas", 1))
    cluster = int(options.get("cluster", 1))
    workspace = [{"bytes": options["zeroed"], "zeroed": True}] if "zeroed" in options else []
    return {
        "version": 1, "kernel": kernel,
        "target": {"chip": options.get("chip", "sm_100a"), "ptx": 88},
        "grid": [str(ctas), "1", "1"], "block": [int(options.get("threads", 64)), 1, 1],
        "cluster": [cluster, 1, 1], "shared_bytes": int(options.get("shared", 16384)),
        "tensors": [{"name": "q", **tensor, "access": "read"},
                    {"name": "o", **tensor, "access": "write"}],
        "args": [{"kind": "pointer", "tensor": "q"}, {"kind": "pointer", "tensor": "o"},
                 *({"kind": "workspace", "index": i} for i in range(len(workspace)))],
        "workspace": workspace,
    }  # fmt: skip


def read_twins(text: str) -> tuple[dict, str, list[tuple[int, str, str, str]]]:
    """The launch's options, the kernel's name, and (line, comment, kinds of
    errors, PTX) of the kernel without errors and of its wrong copies."""
    options = dict(re.findall(r"(\w+)=(\S+)", re.search(r"^// launch:(.*)$", text, re.M)[1]))
    kernel = re.search(r"\.visible \.entry (\w+)", text)[1]
    lines = text.split("\n")
    twins = [(0, "", "clean", text)]
    for i, line in enumerate(lines):
        for m in re.finditer(r"//! (drop|becomes|swap|below) ?(.*?) ?-> ([\w|-]+)", line):
            new = list(lines)
            if m[1] == "swap":
                new[i], new[i + 1] = new[i + 1], new[i]
            elif m[1] == "below":
                new.insert(i + int(m[2]), new.pop(i))
            else:
                new[i] = m[2] if m[1] == "becomes" else ""
            twins.append((i + 1, m[0], m[3], "\n".join(new)))
    return options, kernel, twins


def check_twins(path: pathlib.Path, runner: Runner) -> list[str]:
    """Problems of one file of twins."""
    options, kernel, twins = read_twins(path.read_text())
    # Far more steps than a twin needs, and soon over for one that never ends.
    profile = [f"--profile={options.get('profile', 'hw')}", "--step-limit=1000000"]
    if "assume" in options:
        profile.append(f"--assume={options['assume']}")
    problems = []
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        launch, ptx = pathlib.Path(folder) / "launch.json", pathlib.Path(folder) / "twin.ptx"
        launch.write_text(json.dumps(record_of(options, kernel)))
        schedules = [["--schedule=random", "--seed=1", "--adversarial"], ["--writes=issue"],
                     [], ["--reads=completion"]]  # fmt: skip
        for line, what, want, body in twins:
            ptx.write_text(body)
            for schedule in schedules if want == "clean" else schedules[:2]:
                got, kinds = runner.run([str(ptx), f"--launch={launch}", *profile, *schedule])
                if want == "clean" and got != "clean":
                    problems.append(f"{path}: expected no error, got {got} {kinds} {schedule}")
                elif want != "clean" and not set(want.split("|")) & set(kinds):
                    problems.append(
                        f"{path}:{line}: {what}: expected {want}, got {got} {kinds} {schedule}"
                    )
                count += 1
    print(f"{path.name}: {len(twins) - 1} bad twins, {count} runs, {len(problems)} problems")
    return problems


def main() -> int:
    argv, extra = sys.argv[1:], []
    if "--" in argv:
        extra = argv[argv.index("--") + 1 :]
        argv = argv[: argv.index("--")]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernel", nargs="?")
    parser.add_argument("--launch")
    parser.add_argument("--recorded")
    parser.add_argument("--twins", nargs="+", type=pathlib.Path)
    parser.add_argument("--sim", default=shutil.which("attn-sim") or "build/bin/attn-sim")
    parser.add_argument("--limit", type=float, default=120, help="seconds a run")
    parser.add_argument("--most", type=int, default=10**6, help="mutants at most")
    parser.add_argument("--progress", action="store_true", help="each mutant on stderr")
    args = parser.parse_args(argv)
    runner = Runner(args.sim, args.limit, extra)
    if args.twins:
        problems = [p for path in args.twins for p in check_twins(path, runner)]
        print("\n".join(problems), end="\n" if problems else "")
        return 1 if problems else 0
    if not args.recorded and not (args.kernel and args.launch):
        parser.error("expected --recorded, a kernel with --launch, or --twins")
    return survey(args, runner)


if __name__ == "__main__":
    sys.exit(main())
