#!/usr/bin/env python3
"""Runs the corpus on the simulator and compares with an H200.

usage: check.py [--expect=FILE.npz] [NAME...]

What the GPU computed is in expected.json (SHA-256 of results that have to be
the same to the bit) and expected.npz (the others). The sanitizer has to find nothing.
--expect writes both files from
record.py's output instead. Prints a line for each case.
"""

import argparse
import hashlib
import json
import sys

import corpus
import numpy as np

_ULPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23}


def to_float(array, dtype):
    if dtype == "bfloat16":
        return corpus.attn.arrays.from_bf16(array).astype(np.float64)
    return array.astype(np.float64)


def compare(how, result, expected):
    """The deviation as a share of what is accepted: above 1 is wrong."""
    kind = how[0]
    dtype = how[2] if kind == "sum" and result.dtype == np.uint16 else result.dtype.name
    r, e = to_float(result, dtype), to_float(expected, dtype)
    same = (r == e) | (np.isnan(r) & np.isnan(e))
    if not np.isfinite(r[~same]).all() or not np.isfinite(e[~same]).all():
        return np.inf
    distance = np.abs(np.where(same, 0, r - np.where(same, r, e)))
    largest = np.abs(e[np.isfinite(e)]).max()
    if kind == "sum":
        exponent = 2.0 ** np.floor(np.log2(largest))
        bound = how[1] * corpus.EPSILON * largest + _ULPS[how[2]] * exponent
    elif kind == "relative":
        bound = how[1] * largest
    elif kind == "absolute":
        bound = how[1]
    else:
        magnitude = np.maximum(np.abs(np.where(np.isfinite(e), e, 1)), 2.0**-126)
        bound = np.maximum(how[1] * 2.0**-23 * 2.0 ** np.floor(np.log2(magnitude)), 2.0**-21)
    return float((distance / bound).max())


def hash_of(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def write_expected(path):
    recorded, hashes, arrays = np.load(path), {}, {}
    for case in corpus.cases():
        for index, how in case.compare.items():
            name = f"{case.name}.{index}"
            if how == "exact":
                hashes[name] = hash_of(recorded[name])
            else:
                arrays[name] = recorded[name]
    (corpus.HERE / "expected.json").write_text(json.dumps(hashes, indent=1) + "\n")
    np.savez_compressed(corpus.HERE / "expected.npz", **arrays)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--expect")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if arguments.expect:
        write_expected(arguments.expect)
        return 0
    hashes = json.loads((corpus.HERE / "expected.json").read_text())
    arrays = np.load(corpus.HERE / "expected.npz")
    checked = failed = 0
    for case in corpus.cases():
        if arguments.names and case.name not in arguments.names:
            continue
        run = corpus.simulate(case)
        found = {finding["kind"] for finding in run.findings if finding["severity"] != "note"}
        verdicts = []
        if found:
            verdicts.append(f"WRONG findings\n{run.text}")
        for index, how in case.compare.items():
            name = f"{case.name}.{index}"
            if how == "exact":
                same = hash_of(run.outputs[index]) == hashes[name]
                verdicts.append("identical" if same else f"WRONG argument {index} differs")
            else:
                share = compare(how, run.outputs[index], arrays[name])
                verdicts.append(f"{'' if share <= 1 else 'WRONG '}{share:.3f} of the bound")
        checked += 1
        failed += any("WRONG" in verdict for verdict in verdicts)
        print(f"{case.name}: {', '.join(verdicts)}", flush=True)
    print(f"{checked} cases, {failed} wrong")
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
