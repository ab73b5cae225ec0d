#!/usr/bin/env python3
"""Which changes of PTX the comparison with a proof refuses.

Each mutant of scripts/mutate-ptx.py differs from the kernel in one place. It is *refused* when
attn-sim --skeleton says that a thread does not do what is proved, *not run to its end* when the
run stops before there is something to compare, *not executed* when a trap in its place is not
noticed either, and *passed* otherwise; those are listed.

usage: skeleton.py MUTATE-PTX.py KERNEL.ptx RECORD.json SKELETON.json MOST [KIND]
"""

import concurrent.futures
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile


def judge(text: str, record: str, skeleton: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "mutant.ptx"
        path.write_text(text)
        command = ["attn-sim", str(path), f"--launch={record}", f"--skeleton={skeleton}", "--jobs=1"]
        done = subprocess.run(
            [*command, "--step-limit=3000000"], capture_output=True, text=True, check=False, timeout=300
        )
    if "does not do what is proved" in done.stdout:
        return "refused"
    if done.returncode != 0:
        return "not run to its end"
    return "passed"


def main() -> int:
    script, kernel, record, skeleton, most, *kinds = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("mutate_ptx", script)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutate_ptx"] = module
    spec.loader.exec_module(module)
    mutants = module.mutants_of(pathlib.Path(kernel).read_text())
    mutants = [mutant for mutant in mutants if not kinds or mutant.kind in kinds]
    count = min(int(most), len(mutants))
    chosen = [mutants[i * len(mutants) // count] for i in range(count)]
    counts = {"refused": 0, "not run to its end": 0, "not executed": 0, "passed": 0}

    def verdict_of(mutant) -> str:
        verdict = judge(mutant.text, record, skeleton)
        if verdict == "passed" and mutant.probe and judge(mutant.probe, record, skeleton) == "passed":
            return "not executed"
        return verdict

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        verdicts = list(pool.map(verdict_of, chosen))
    for mutant, verdict in zip(chosen, verdicts):
        counts[verdict] += 1
        if verdict == "passed":
            print(f"passed: line {mutant.line}: {mutant.what} ({mutant.kind})")
    print(", ".join(f"{number} {name}" for name, number in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
