#!/usr/bin/env python3
"""Wrong copies of kernels on the channel rung, and who refuses them.

A kernel behind attn-expand-pipeline has channels, roles, cursors and tokens. Each op that says who
has which slot when is dropped, doubled, moved past a neighbour or given another channel, slot or
number of trips, one change at a time. attn-verify-tokens and attn-check-channels judge the copy
there, attn-check-barriers judges what becomes of it, and the simulator runs its PTX. The exit status
is 1 where a copy passes all checks and the simulator reports it. "channels alone" are copies that are
proved below for the numbers of this launch, and run as they should.

usage: scripts/mutate-channels.py [--problem='FLAGS of attn-compile'...] [--standard] [options]
"""

import argparse
import collections
import concurrent.futures
import importlib.util
import json
import pathlib
import random
import re
import sys
import tempfile

import ir_mutants

HERE = pathlib.Path(__file__).resolve().parent
STANDARD = (
    "--q=1x2x192x64xf16 --kv-len=300 --chip=sm_90a --set block_m=128 --set epilogue=tma",
    "--q=1x2x192x128xf8E4M3FN --kv-len=300 --kv-heads=1 --chip=sm_90a",
    "--q=1x2x256x64xf16 --kv-len=300 --chip=sm_90a --set cluster=2",
    "--q=1x1x192x64xf16 --kv-len=300 --chip=sm_90a --causal --set cluster=2 --set dynamic=true",
    "--q=1x2x192x64xf16 --kv-len=300 --chip=sm_90a --schedule=self_load",
    "--q=1x1x512x64xf16 --kv-len=300 --chip=sm_100a --schedule=ws_tmem",
    "--q=1x1x100x264xf16 --kv-len=200 --chip=sm_90a --schedule=ws_columns --causal",
)
TO_CHANNELS = "builtin.module(attn-verify-rung,attn-expand-arithmetic,attn-shard-cga,gpu.module(attn-verify-arch,attn-lower-tile-loops,attn-expand-pipeline))"
HELD = "builtin.module(gpu.module(attn-verify-tokens,attn-check-channels))"
FAULT = re.compile(r"error: (licence|balance|order): ")


def load_mutate_ir():
    spec = importlib.util.spec_from_file_location("mutate_ir", HERE / "mutate-ir.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutate_ir"] = module
    spec.loader.exec_module(module)
    return module


def others(name: str, names: list[str]) -> list[str]:
    return [other for other in names if other != name][:2]


def changes_of(line: str, lines: list[str], number: int) -> list[tuple[str, list[str]]]:
    """What becomes of one line."""
    above = "\n".join(lines[:number])
    channels = re.findall(r"(%\w+) = attn\.channel\.create", above)
    found = []
    if "attn.channel.release" in line:
        found += [("release dropped", []), ("release doubled", [line, line])]
    if match := re.search(r"attn\.channel\.acquire (%\w+)\[(%\w+)\]", line):
        again = re.sub(r"^(\s*)(%\w+), (%\w+) =", r"\1%mutant_i, %mutant_t =", line)
        found.append(("acquire doubled", [line, again]))
        for other in others(match.group(1), channels):
            found.append(("acquire of another channel", [line.replace(match.group(1) + "[", other + "[")]))
    if match := re.search(r"(%\w+) = attn\.cursor\.advance (%\w+) on (%\w+)", line):
        twice = line.replace(match.group(1) + " =", "%mutant =")
        found.append(("advance doubled", [twice, line.replace(f"advance {match.group(2)} ", "advance %mutant ")]))
    if match := re.search(r"attn\.slot %\S+\[(%\w+)", line):
        zero = "%mutant = arith.constant 0 : i32"
        found.append(("slot 0", [zero, line.replace(f"[{match.group(1)}", "[%mutant")]))
        indices = re.findall(r"(%\w+), %\w+ = attn\.channel\.acquire", above)[-3:]
        for other in others(match.group(1), indices):
            found.append(("slot of another acquire", [line.replace(f"[{match.group(1)}", f"[{other}")]))
    if match := re.search(r" token (%\w+)", line):
        tokens = re.findall(r"%\w+, (%\w+) = attn\.channel\.acquire", above)[-3:]
        for other in others(match.group(1), tokens):
            found.append(("token of another acquire", [line.replace(match.group(1), other)]))
    for name, change in (("pending + 1", lambda n: n + 1), ("pending - 1", lambda n: n - 1)):
        if "wait" in line and (changed := ir_mutants.renumbered(line, "pending", change)):
            found.append((name, [changed]))
    return found


def mutants_of(text: str) -> list[ir_mutants.Mutant]:
    lines, mutants = text.split("\n"), []

    def add(name: str, number: int, new: list[str], begin: int = -1, count: int = 1) -> None:
        begin = number if begin < 0 else begin
        body = "\n".join(lines[:begin] + new + lines[begin + count :])
        probe = "\n".join([*lines[:number], ir_mutants.TRAP, *lines[number:]])
        mutants.append(ir_mutants.Mutant(name, number + 1, body, probe))

    for number, line in enumerate(lines):
        if "scf.for" in line and "iter_args" in line:
            for name, ops in (("one more trip", ir_mutants.MORE), ("one trip less", ir_mutants.LESS)):
                if new := ir_mutants.with_operand(line, r"to (%\S+)", ops):
                    add(name, number, new)
        for name, new in changes_of(line, lines, number):
            add(name, number, new)
        if match := re.match(r"\s*(%\w+) = attn\.cursor\.advance (%\w+) on", line):
            # Uses end with the block, which a name of its own stands for.
            rest = [re.sub(re.escape(match.group(1)) + r"\b", match.group(2), at) for at in lines[number + 1 :]]
            if not re.search(re.escape(match.group(1)) + " =", "\n".join(rest)):
                mutants.append(ir_mutants.Mutant("advance dropped", number + 1, "\n".join(lines[:number] + rest), ""))
        if ir_mutants.CHANNEL.match(line):
            for step, name in ((1, "behind the next"), (-1, "before the last")):
                if moved := ir_mutants.move(lines, number, step, ir_mutants.CHANNEL):
                    add(name, number, moved[1], moved[0], moved[2])
    return mutants


def lower(tools, text: str) -> tuple[int, str, str]:
    """What becomes of a kernel on the barrier rung."""
    path, below = tools.folder / "above.mlir", tools.folder / "barriers.mlir"
    path.write_text(text)
    code, said = tools.run("attn-compile", str(path), "--emit=barrier", "--no-check-barriers", "-o", str(below))
    return code, said, below.read_text() if code == 0 else ""


def is_reached(tools, mutant: ir_mutants.Mutant) -> bool:
    """Whether the launch comes there at all: a trap in that place stops it."""
    code, _, text = lower(tools, mutant.probe) if mutant.probe else (1, "", "")
    verdict = tools.compile(text, "--no-check-barriers") if code == 0 else (1, "", "", "")
    return verdict[0] != 0 or tools.simulate(verdict[2], verdict[3])[0] != "clean"


def judge(tools, mutant: ir_mutants.Mutant) -> dict:
    """Who refuses a copy first, and what the simulator says of it."""
    path = tools.folder / "channels.mlir"
    path.write_text(mutant.text)
    code, said = tools.run("attn-opt", str(path), f"--pass-pipeline={HELD}", "-o", "/dev/null",
                           "--mlir-print-op-on-diagnostic=false")  # fmt: skip
    fault = FAULT.search(said)
    first = re.search(r"error: (.*)", said)
    entry = {"name": mutant.name, "line": mutant.line, "why": first.group(1) if first else "", "run": "none"}
    entry["above"] = "passed" if code == 0 else fault.group(1) if fault else "tokens or syntax"
    if entry["above"] == "tokens or syntax":
        return entry
    code, said, text = lower(tools, mutant.text)
    if code != 0:
        entry["below"] = "invalid"
        entry["why"] = entry["why"] or said[:200]
        return entry
    verdict = tools.check(text)
    entry["below"], entry["why"] = verdict["static"], entry["why"] or verdict["why"]
    if "ptx" in verdict:
        entry["run"], entry["reason"] = tools.simulate(verdict["ptx"], verdict["record"])
    # The channel rung speaks of all trip counts, the others of those of the launch.
    if mutant.line and column(entry) == "channels alone" and not is_reached(tools, mutant):
        entry["run"] = "not reached"
    return entry


def is_harmless(entry: dict) -> bool:
    return entry.get("below") == "proved" and entry["run"] == "clean"


def column(entry: dict) -> str:
    if entry["above"] == "tokens or syntax":
        return "tokens"
    if entry["above"] != "passed":
        return "channels alone" if is_harmless(entry) else "channels"
    return {"refused": "barriers", "invalid": "other passes", "unknown": "not checked"}.get(
        entry["below"], "reported" if entry["run"] == "reported" else "values" if entry["run"] == "wrong values" else "nobody"
    )


def is_wrong(entry: dict) -> bool:
    if entry["line"] == 0:
        return entry["above"] != "passed" or not is_harmless(entry)
    return column(entry) == "reported"


def work(options: argparse.Namespace, folder: str) -> int:
    tools, rng, entries = load_mutate_ir().Tools(options.bin, folder), random.Random(options.seed), []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for flags in options.problem:
            tile, text = pathlib.Path(folder) / "tile.mlir", pathlib.Path(folder) / "kernel.mlir"
            for command in (("attn-compile", *flags.split(), "--emit=tile", f"-o={tile}"),
                            ("attn-opt", str(tile), f"--pass-pipeline={TO_CHANNELS}", f"-o={text}")):  # fmt: skip
                code, said = tools.run(*command)
                if code != 0:
                    sys.exit(said)
            kernel = text.read_text()
            mutants = mutants_of(kernel)
            if options.sample:
                mutants = rng.sample(mutants, min(options.sample, len(mutants)))
            mutants = [ir_mutants.Mutant("the kernel itself", 0, kernel, ""), *mutants]
            lines = kernel.split("\n")
            for entry in pool.map(lambda m: judge(tools, m), mutants):
                entry |= {"kernel": flags, "op": lines[entry["line"] - 1].strip()[:150] if entry["line"] else ""}
                entries.append(entry)
                if options.list or is_wrong(entry):
                    print(f"{'WRONG: ' if is_wrong(entry) else ''}{flags}:{entry['line']}: {entry['name']}: {entry['op']}")
                    print(f"    {entry['above']}, {entry.get('below', '')}, {entry['run']}: {entry['why'][:200]}")
    columns = ("tokens", "channels", "channels alone", "other passes", "barriers", "not checked", "reported", "values", "nobody")
    rows = collections.defaultdict(collections.Counter)
    for entry in entries:
        if entry["line"]:
            rows[entry["name"]][column(entry)] += 1
            rows["all"][column(entry)] += 1
    print("| change | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for name, row in sorted(rows.items()):
        print(f"| {name} | " + " | ".join(str(row[c]) for c in columns) + " |")
    if options.json:
        options.json.write_text(json.dumps(entries, indent=0))
    wrong = sum(map(is_wrong, entries))
    print(f"{rows['all'].total()} copies, {wrong} holes")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problem", action="append", default=[], metavar="FLAGS")
    parser.add_argument("--standard", action="store_true", help="problems of all schedules with channels")
    parser.add_argument("--sample", type=int, default=0, help="copies of each kernel; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bin", type=pathlib.Path, default=HERE.parent / "build/bin")
    parser.add_argument("--jobs", "-j", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print every copy")
    parser.add_argument("--json", type=pathlib.Path, help="write all verdicts")
    options = parser.parse_args()
    options.problem += STANDARD if options.standard else ()
    if not options.problem:
        parser.error("expected problems, got none")
    with tempfile.TemporaryDirectory() as folder:
        return work(options, folder)


if __name__ == "__main__":
    sys.exit(main())
