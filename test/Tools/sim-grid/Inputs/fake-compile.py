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
passed = not findings and error != "inf"
json.dump(
    {
        "passed": passed,
        "problems": [],
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
