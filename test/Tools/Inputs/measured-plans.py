"""Prints results of python -m attn.autotune for one problem, with made-up times."""

import json

problem = {
    "type": "f16", "out_type": "f16", "mask": "causal", "batch": 2, "heads": 16, "kv_heads": 16,
    "queries": 2048, "keys": 2048, "head_dim": 64, "value_dim": 64, "features": ["lse"],
}  # fmt: skip
candidates = [
    {"name": "00", "plan": "#attn.split_q<softmax = optimistic>", "estimate_us": 1.0, "measured_us": 90.0},
    {"name": "01", "plan": "#attn.split_q<block_m = 64>", "estimate_us": 1.0, "measured_us": 150.0},
    {"name": "02", "plan": "#attn.split_q<warps = 8>", "estimate_us": 1.0, "error": "wrong"},
]
result = {"version": 1, "name": "one", "chip": "sm_90a", "board": "NVIDIA H200", "problem": problem,
          "planned": "#attn.split_q<>", "candidates": candidates}  # fmt: skip
print(json.dumps({"version": 1, "results": [result, result | {"board": "another"}]}))
