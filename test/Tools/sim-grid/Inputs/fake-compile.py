#!/usr/bin/env python3
"""Stands for attn-compile: answers as the head dimension in its flags says."""

import json
import sys

flags = " ".join(sys.argv[1:])
if "x16xf16" in flags:
    print("error: head dimension 16 is not to be", file=sys.stderr)
    sys.exit(1)
findings = []
conflicts = 0
error = 1e-4
if "x40xf16" in flags:
    findings = [{"kind": "race", "severity": "error", "message": "two writes"}]
if "x64xf16" in flags:
    conflicts = 7
if "x96xf16" in flags:
    error = "inf"
# What scores of f16 do where scores grow.
problems = []
if "accumulate_s=f16" in flags:
    lse = "LSE error {}, accepted 1.00e-02; largest at [0, 3]: expected -100.0, got {}"
    output = "relative error {}, accepted 2.00e-03; largest at [0, 3, 5]: expected 1.0, got {}"
    messages = {
        "x64xf16": lse.format("1.90e-01", "-99.81"),
        "x128xf16": lse.format("3.00e-01", "-99.7"),
        "x256xf16": output.format("2.00e-02", "1.02"),
        "x320xf16": lse.format("nan", "nan"),
        "x384xf16": output.format("9.00e-03", "1.2"),
        "x512xf16": "the kernel executed a trap",
    }
    problems = [f"with scores that grow: {t}" for d, t in messages.items() if d in flags]
    conflicts = 0
passed = not findings and not problems and error != "inf"
json.dump(
    {
        "passed": passed,
        "problems": problems,
        "output": {"error": error},
        "lse": {"error": 1e-6},
        "run": {
            "completed": True,
            "findings": findings,
            "counters": {"shared": {"ldmatrix": {"conflicts": conflicts}}},
        },
    },
    sys.stdout,
)
sys.exit(0 if passed else 1)
