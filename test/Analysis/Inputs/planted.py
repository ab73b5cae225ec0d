#!/usr/bin/env python3
"""Bugs planted in kernels of all schedules, none of which may be called proved.

Each is a change of one line of a kernel at the barrier rung. Prints what the check says of it,
or the simulator where no order is wrong, and at the end how many there are; the exit status is 1
if one is not refused for what it is.

usage: planted.py FOLDER [forms]     those of planted_forms.py
"""

import pathlib
import re
import subprocess
import sys

import planted_forms

KERNELS = {
    "tmem": "--q=1x1x512x64xf16 --kv-len=300 --chip=sm_100a --schedule=ws_tmem --causal",
    "columns": "--q=1x4x200x264xf16 --kv-len=300 --chip=sm_90a --schedule=ws_columns --causal",
    "depth": "--q=1x2x128x528xf16 --kv-len=300 --chip=sm_90a --schedule=ws_columns --causal"
    " --set=block_n=32",
    "decode": "--q=1x2x4x64xf16 --kv-len=600 --chip=sm_80 --schedule=decode",
    "taken": "--q=1x2x4x64xf16 --kv-len=600 --chip=sm_80 --schedule=decode --set=warps=8",
    "cluster": "--q=1x2x512x64xf16 --chip=sm_90a --set=cluster=2 --causal",
    "dealt": "--q=1x2x512x64xf16 --chip=sm_90a --causal --set=dynamic=true",
    "narrow": "--q=1x2x256x64xf8E4M3FN --chip=sm_90a --set=block_n=64",
    "self": "--q=1x2x512x64xf16 --chip=sm_90a --schedule=self_load --epilogue=tma",
    "turns": "--q=1x2x1024x128xf16 --chip=sm_90a --set=block_m=128 --set=epilogue=tma"
    " --set=turns=true",
    "split": "--q=1x2x256x64xf16 --chip=sm_80 --causal",
    "single": "--q=1x4x512x64xf16 --kv-len=64 --chip=sm_90a",
}
# The kernel, what is wrong, a line by what is in it and its number among these, what becomes of
# it (None: it is left out; "behind" a line it goes), and what has to be reported.
BUGS = (
    ("tmem", "scores are read without the fence behind their wait",
     r"tcgen05\.fence after", 0, None, "missing tensor fence"),
    ("tmem", "scores are handed back without the fence in front of the signal",
     r"tcgen05\.fence before", 0, None, "missing tensor fence"),
    ("tmem", "queries are never handed back",
     r"tcgen05\.commit %q\.mma", 0, None, "deadlock"),
    ("tmem", "one commit too few hands keys back",
     r"tcgen05\.commit %k\.mma", 1, None, "deadlock"),
    ("tmem", "one warp signals for four",
     r"mbarrier\.init %p0\.softmax0", 0, ("count = 4", "count = 1"), "signal in the wrong phase"),
    ("tmem", "the accumulator is always waited for at one parity",
     r"mbarrier\.wait %p0\.mma", 1, (r"parity %\w+", "parity %c0_i32"), "deadlock"),
    ("tmem", "half the columns are given back",
     r"tmem\.dealloc", 0, ("columns = 512", "columns = 256"), "lifetime"),
    ("tmem", "a commit goes to the other softmax",
     r"tcgen05\.commit %s1\.mma", 0, ("%s1.mma", "%s0.mma"), "signal in the wrong phase"),
    ("columns", "probabilities are overwritten while the other warpgroup reads them",
     r"mbarrier\.wait %p\.columns", 0, None, "phase slip"),
    ("columns", "values are handed back while products read them",
     r"attn\.wgmma\.wait \{pending = 1", -1, ("pending = 1", "pending = 4"), "race"),
    ("columns", "one load of four announces half its bytes",
     r"expect_tx %w\.load_w", 2, ("16384", "8192"), "wrong count"),
    ("columns", "factors are not waited for",
     r"mbarrier\.wait %scale\.softmax", 0, None, "phase slip"),
    ("columns", "one slice of keys is not handed back",
     r"mbarrier\.arrive %k\.softmax", 2, None, "deadlock"),
    ("depth", "scores are sent while the other CTA reads those before",
     r"mbarrier\.wait %s\.adder", 0, None, "signal in the wrong phase"),
    ("depth", "the other CTA's scores are added before they are there",
     r"mbarrier\.wait %s\.sender", 0, None, "signal in the wrong phase"),
    ("depth", "half of the scores' bytes are announced",
     r"expect_tx %s\.sender", 0, ("8192", "4096"), "wrong count"),
    ("depth", "scores are handed back to the own CTA alone",
     r"mbarrier\.arrive %s\.adder", 0, (r" \{ctas = 2 : i64\}", ""), "deadlock"),
    ("decode", "queries are read while they are copied",
     r"cp_async\.wait", 0, ("pending = 0", "pending = 1"), "race"),
    ("decode", "the copies of a block are in no group",
     r"cp_async\.commit", 2, None, "race"),
    ("decode", "a slot is overwritten under other threads' reads",
     r"team_barrier", 2, None, "race"),
    ("decode", "a state overwrites keys that other threads of the team read",
     r"team_barrier", -1, None, "race"),
    ("taken", "states are taken from a team that reads others'",
     r"team_take", 0, ("from 4", "from 2"), "race"),
    ("cluster", "a CTA exits while its peer signals to it",
     r"attn\.cluster_barrier", -1, None, "exit in flight"),
    ("cluster", "keys are handed back to one CTA of two",
     r"mbarrier\.arrive %k\.\w+\[.*ctas = 2", 0, (r" \{ctas = 2 : i64\}", ""), "deadlock"),
    ("cluster", "an arrival at the CTAs is lost",
     r"mbarrier\.arrive %v\.\w+\[.*ctas = 2", 0, None, "deadlock"),
    ("cluster", "mbarriers are published to the own CTA alone",
     r"attn\.cluster_barrier", 0, ("attn.cluster_barrier", "gpu.barrier"), "lifetime"),
    ("dealt", "the number of a tile is overwritten before it is read",
     r"mbarrier\.wait %tile\.consumer", 0, None, "phase slip"),
    ("narrow", "transposed values are overwritten while products read them",
     r"mbarrier\.wait %vt\.consumer", 0, None, "race"),
    ("narrow", "transposed values are read without a proxy fence",
     r"fence\.proxy_async", -1, None, "missing proxy fence"),
    ("self", "results are overwritten while a store reads them",
     r"attn\.tma\.wait", 0, None, "race"),
    ("turns", "a turn is not passed on",
     r"attn\.turn\.pass", 1, None, "deadlock"),
    ("turns", "results are stored without a proxy fence",
     r"fence\.proxy_async", -1, None, "missing proxy fence"),
    ("split", "a slot is overwritten under other warps' reads",
     r"gpu\.barrier", -1, None, "race"),
    ("split", "blocks are read while they are copied",
     r"cp_async\.wait", 1, ("pending = 0", "pending = 1"), "race"),
    ("single", "queries of the next tile overwrite those that are read, one block a tile",
     r"mbarrier\.wait %q\.consumer", 0, None, "signal in the wrong phase"),
)  # fmt: skip


def judge(path: pathlib.Path) -> str:
    done = subprocess.run([
        "attn-opt", str(path), "-o", "/dev/null", "-mlir-print-op-on-diagnostic=false",
        "--pass-pipeline=builtin.module(gpu.module(attn-check-barriers{require-proof}))",
    ], capture_output=True, text=True)  # fmt: skip
    said = re.search(r"error: ([^\n]*)", done.stderr)
    return said.group(1) if said else "proved" if done.returncode == 0 else done.stderr


def simulate(path: pathlib.Path) -> str:
    """What the simulator says of a kernel: "values", or the kind of what it finds."""
    ptx, record = path.with_suffix(".ptx"), path.with_suffix(".json")
    command = ["attn-compile", str(path), "--no-check-barriers", "-o", str(ptx)]
    done = subprocess.run([*command, f"--launch-out={record}"], capture_output=True, text=True)
    if done.returncode:
        return done.stderr
    command = ["attn-sim", str(ptx), f"--launch={record}", "--verify", "--sanitize"]
    done = subprocess.run([*command, "--schedule=random", "--jobs=1"], capture_output=True, text=True)
    said = re.search(r"error: (race|deadlock)", done.stdout + done.stderr)
    return said.group(1) if said else "values" if done.returncode else "passed"


def plant(text: str, pattern: str, number: int, change: tuple[str, str] | None) -> str:
    lines = text.split("\n")
    place = [i for i, line in enumerate(lines) if re.search(pattern, line)][number]
    if change and change[0] == "behind":
        behind = next(i for i in range(place, len(lines)) if re.search(change[1], lines[i]))
        return "\n".join([*lines[:place], *lines[place + 1 : behind + 1], lines[place], *lines[behind + 1 :]])
    new = [] if change is None else [re.sub(*change, lines[place])]
    assert new != [lines[place]], lines[place]
    return "\n".join([*lines[:place], *new, *lines[place + 1 :]])


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    texts, failures = {}, 0
    kernels, bugs = KERNELS, BUGS
    if sys.argv[2:] == ["forms"]:
        kernels, bugs = planted_forms.KERNELS, planted_forms.BUGS
    for name, flags in kernels.items():
        path = folder / f"{name}.mlir"
        subprocess.run(
            ["attn-compile", *flags.split(), "--emit=barrier", "-o", str(path)], check=True
        )
        texts[name] = path.read_text()
        if (verdict := judge(path)) != "proved":
            failures += 1
            print(f"FAILED {name}, as it is: {verdict}")
    for name, what, pattern, number, change, expected in bugs:
        path = folder / "planted.mlir"
        path.write_text(plant(texts[name], pattern, number, change))
        if expected.startswith("simulator: "):
            verdict = f"simulator: {simulate(path)}"
            is_refused = verdict == expected
        else:
            verdict = judge(path)
            # With lengths of the launch the kind stands at the end.
            is_refused = verdict.startswith(expected) or verdict.endswith(f"({expected})")
        failures += not is_refused
        print(f"{'refused' if is_refused else 'FAILED'} {name}, {what}: {verdict[:100]}")
    print(f"{len(bugs)} bugs in {len(kernels)} kernels, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
