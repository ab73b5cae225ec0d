#!/usr/bin/env python3
"""Compares the cycle model with times of an H200 in profile.json.

usage: estimates.py [--fast] [NAME...]

Needs ptxas. --fast takes only the launches that the suite checks. Prints a table, then the mean and largest
error of the launches that the model was not fitted to.
"""

import argparse
import json
import sys

import corpus

#: The model's latencies were chosen with these.
FITTED = {
    "time_gemm_mma_pad16", "time_gemm_wgmma_16", "time_softmax", "time_transpose_pad0",
    "time_integer32", "time_triton_matmul_80", "time_triton_attention_90", "time_attn_d64",
}  # fmt: skip
#: These take seconds, not minutes, to simulate.
FAST = {
    "time_transpose_pad0", "time_transpose_pad1", "time_triton_matmul_90",
    "time_special_functions", "time_triton_attention_90",
}  # fmt: skip
#: Beyond this the suite fails.
ACCEPTED = 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    profile = json.loads((corpus.HERE / "profile.json").read_text())
    errors, wrong = [], 0
    print("| launch | used for | H200 | model | error |\n|---|---|---|---|---|")
    for case in corpus.timings():
        # All CTAs add to one place, which the model knows nothing of.
        if case.name == "time_bulk_copy":
            continue
        if arguments.fast and case.name not in FAST:
            continue
        if arguments.names and case.name not in arguments.names:
            continue
        run = corpus.simulate(
            case, options={"estimate": "true", "chip": "sm_90a", "sanitize": "false"}
        )
        model, measured = run.report["estimate"]["cycles"], profile[case.name]["cycles"]
        error = model / measured - 1
        is_fitted = case.name in FITTED
        if not is_fitted:
            errors.append(abs(error))
        wrong += abs(error) > ACCEPTED
        name = case.name.removeprefix("time_")
        use = "fitting" if is_fitted else "comparison"
        print(f"| {name} | {use} | {measured} | {model:.0f} | {error:+.0%} |", flush=True)
    if errors:
        print(f"\nmean error {sum(errors) / len(errors):.0%}, largest {max(errors):.0%}")
    print(f"{wrong} beyond {ACCEPTED:.0%}")
    return int(wrong != 0)


if __name__ == "__main__":
    sys.exit(main())
