"""FlashAttention-4's forward, by its own compile path, beside attention in float64.

    python3 on_stand_in.py --cute --chip=sm_100a sim/fa4_forward.py [--shape=1,300,4,2,128] [--causal]

Needs flash-attn-4. The shape is batch, rows, heads, heads of keys, columns. The status is 1 where O
is further than 4e-3 from what float64 gives.
"""

from __future__ import annotations

import argparse
import sys

import torch
from flash_attn.cute import flash_attn_func

MOST = 4e-3


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool) -> list[torch.Tensor]:
    """O and the logarithm of the sums, in float64."""
    repeats = q.shape[2] // k.shape[2]
    q, k, v = (each.double().transpose(1, 2) for each in (q, k, v))
    k, v = k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if is_causal:
        scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
    return [(scores.softmax(-1) @ v).transpose(1, 2), scores.logsumexp(-1)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", default="1,300,4,2,128")
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    batch, rows, heads, key_heads, columns = map(int, options.shape.split(","))
    print(f"seed {torch.seed() if options.seed is None else torch.manual_seed(options.seed).initial_seed()}")
    q, k, v = (
        torch.rand(batch, rows, count, columns, device="cuda").mul(2).sub(1).bfloat16()
        for count in (heads, key_heads, key_heads)
    )
    found = flash_attn_func(q, k, v, causal=options.causal, return_lse=True)
    errors = [
        (each.double() - right).abs().max().item()
        for each, right in zip(found[:2], attend(q, k, v, options.causal), strict=True)
    ]
    print(f"largest errors: O {errors[0]:.2e}, LSE {errors[1]:.2e}")
    # An error that is no number is no small one.
    return int(not max(errors) <= MOST)


if __name__ == "__main__":
    sys.exit(main())
