#!/usr/bin/env python3
"""Compares the simulator's counters with those that ncu read on an H200.

usage: counters.py [--csv=FILE --timings=FILE] [--all]

ncu's values are in profile.json, which --csv and --timings write from what
`ncu --csv --page raw` printed for record.py, with METRICS, and for `record.py
--timings --repeat=2`. Prints a line for each kernel of COMPARED, or with --all for each
case, sectors included.
"""

import argparse
import csv
import json
import sys

import corpus

METRICS = {
    "conflicts_load": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "conflicts_store": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "tensor": "sm__inst_executed_pipe_tensor.sum",
    "sectors_load": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "sectors_store": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "instructions": "smsp__inst_executed.sum",
    "registers": "launch__registers_per_thread",
    "cycles": "sm__cycles_active.max",
}

#: Kernels that the suite compares, within TOLERANCE.
COMPARED = (
    "transpose_pad0", "transpose_pad1", "sgemm", "ldmatrix_all", "gemm_mma_pad0",
    "gemm_mma_pad16", "triton_sort_80", "triton_matmul_fp8_90", "triton_matmul_90",
    "triton_attention_90", "wgmma_f16", "gemm_wgmma", "attn_causal", "attn_sm90",
)  # fmt: skip
TOLERANCE = 0.02

LOADS, STORES = ("ld.shared", "ldmatrix"), ("st.shared", "stmatrix")


def read_csv(path, cases, repeat):
    """The least value of each metric over the launches of a case."""
    lines = [line for line in open(path) if line.startswith('"')]
    rows = list(csv.DictReader(lines))[1:]
    assert len(rows) == repeat * len(cases), (len(rows), len(cases))
    result = {}
    for index, case in enumerate(cases):
        launches = rows[repeat * index : repeat * (index + 1)]
        assert all(case.kernel in row["Kernel Name"] for row in launches), case.name
        result[case.name] = {
            name: min(round(float(row[metric].replace(",", ""))) for row in launches)
            for name, metric in METRICS.items()
        }
    return result


def count(case):
    counters = corpus.simulate(case, options={"sanitize": "false"}).counters
    shared = counters["shared"]
    return {
        "conflicts_load": sum(shared[name]["conflicts"] for name in LOADS if name in shared),
        "conflicts_store": sum(shared[name]["conflicts"] for name in STORES if name in shared),
        "tensor": counters["mma_instructions"],
        "sectors_load": counters["global_load_sectors"],
        "sectors_store": counters["global_store_sectors"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv")
    parser.add_argument("--timings")
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    path = corpus.HERE / "profile.json"
    if arguments.csv:
        profile = read_csv(arguments.csv, corpus.cases(), 1)
        profile |= read_csv(arguments.timings, corpus.timings(), 2)
        path.write_text(json.dumps(profile, indent=1) + "\n")
        return 0
    profile = json.loads(path.read_text())
    wrong = compared = 0
    for case in corpus.cases():
        if not arguments.all and case.name not in COMPARED:
            continue
        ours, theirs = count(case), profile[case.name]
        names = list(ours)
        if not arguments.all:
            # Copies with gaps in shared memory ask for some sectors twice.
            names = [name for name in names if not name.startswith("sectors")]
            # Without products ncu shows constants that HFMA2.MMA makes.
            names = [name for name in names if name != "tensor" or ours[name]]
        far = [
            f"{name} {ours[name]} for {theirs[name]}"
            for name in names
            if abs(ours[name] - theirs[name]) > TOLERANCE * theirs[name]
        ]
        compared += 1
        wrong += bool(far)
        print(f"{case.name}: {', '.join(far) or 'as ncu counts'}", flush=True)
    print(f"{compared} kernels, {wrong} differ")
    return int(wrong != 0)


if __name__ == "__main__":
    sys.exit(main())
