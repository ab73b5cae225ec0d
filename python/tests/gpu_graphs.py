#!/usr/bin/env python3
"""Checks calls on torch tensors that `torch.cuda.graph` captures: attention, packed sequences,
decoding and prefill of a paged cache.

    PYTHONPATH=python python3 python/tests/gpu_graphs.py [--only=REGEX]

Each is captured twice: behind a call of the same shapes, and as the first call of its shapes,
which compiles and loads the kernel inside of the capture. A replay on other contents has to give
what a call gives, to the bit, and float64's results. The last line is "all right" or not.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from typing import Any

import attn
import torch

PAGE = 16
#: Shapes of a case: the second one's have not been called when they are captured.
DIMS = {"warm": 64, "cold": 128}


def make(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float32).to(dtype).cuda()


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool) -> torch.Tensor:
    """(heads, queries, dim) in float64; the last query is at the last key."""
    group = q.shape[0] // k.shape[0]
    keys, values = (each.double().repeat_interleave(group, 0) for each in (k, v))
    scores = q.double() @ keys.transpose(-1, -2) / q.shape[-1] ** 0.5
    if is_causal:
        hidden = torch.ones_like(scores).triu(1 + keys.shape[1] - q.shape[1]).bool()
        scores = scores.masked_fill(hidden, -torch.inf)
    return torch.softmax(scores, -1) @ values


class Dense:
    """attn.attention of a batch."""

    def __init__(self, dim: int) -> None:
        self.q, self.k, self.v = make(2, 4, 80, dim), make(2, 2, 80, dim), make(2, 2, 80, dim)
        self.contents = [self.q, self.k, self.v]

    def call(self) -> torch.Tensor:
        o: torch.Tensor = attn.attention(self.q, self.k, self.v, causal=True)
        return o

    def compute(self) -> torch.Tensor:
        each = zip(self.q, self.k, self.v, strict=True)
        return torch.stack([attend(*operands, True) for operands in each])


class Packed:
    """attn.attention of packed sequences."""

    def __init__(self, dim: int) -> None:
        self.q, self.k, self.v = make(90, 4, dim), make(90, 2, dim), make(90, 2, dim)
        self.ends = [0, 30, 30, 90]
        self.lengths = torch.tensor(self.ends, dtype=torch.int32).cuda()
        self.contents = [self.q, self.k, self.v]

    def call(self) -> torch.Tensor:
        lists = {"cu_seqlens_q": self.lengths, "cu_seqlens_k": self.lengths, "max_seqlen_q": 60}
        o: torch.Tensor = attn.attention(self.q, self.k, self.v, causal=True, **lists)
        return o

    def compute(self) -> torch.Tensor:
        parts = []
        for begin, end in zip(self.ends, self.ends[1:], strict=False):
            rows = [each[begin:end].transpose(0, 1) for each in (self.q, self.k, self.v)]
            parts.append(attend(*rows, True).transpose(0, 1))
        return torch.cat(parts)


class Decode:
    """attn.decode of a paged cache, two queries a sequence."""

    def __init__(self, dim: int) -> None:
        self.q = make(3, 4, 2, dim)
        self.pools = [make(12, PAGE, 2, dim) for _ in range(2)]
        self.table = torch.randperm(12).to(torch.int32).reshape(3, 4).cuda()
        self.counts = [50, 17, 64]
        self.lengths = torch.tensor(self.counts, dtype=torch.int32).cuda()
        self.contents = [self.q, *self.pools]

    def call(self) -> torch.Tensor:
        o: torch.Tensor = attn.decode(self.q, *self.pools, self.table, self.lengths)
        return o

    def gather(self, row: int) -> list[torch.Tensor]:
        """Keys and values of a sequence, (key heads, keys, dim)."""
        pages = self.table[row].long()
        flat = [pool[pages].flatten(0, 1)[: self.counts[row]] for pool in self.pools]
        return [each.transpose(0, 1) for each in flat]

    def compute(self) -> torch.Tensor:
        return torch.stack([attend(self.q[row], *self.gather(row), True) for row in range(3)])


class Prefill(Decode):
    """attn.prefill of a paged cache."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.ends = [0, 20, 25, 57]
        self.q = make(57, 4, dim)
        self.new = torch.tensor(self.ends, dtype=torch.int32).cuda()
        self.contents[0] = self.q

    def call(self) -> torch.Tensor:
        lists = (self.table, self.lengths, self.new)
        o: torch.Tensor = attn.prefill(self.q, *self.pools, *lists, max_seqlen_q=32)
        return o

    def compute(self) -> torch.Tensor:
        parts = []
        for row, (begin, end) in enumerate(zip(self.ends, self.ends[1:], strict=False)):
            rows = self.q[begin:end].transpose(0, 1)
            parts.append(attend(rows, *self.gather(row), True).transpose(0, 1))
        return torch.cat(parts)


def check(case: Any, is_warm: bool) -> tuple[bool, str]:
    """Captures a case's call and replays it."""
    if is_warm:
        case.call()
        torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o = case.call()
    worst = 0.0
    for _ in range(3):
        for tensor in case.contents:
            tensor.copy_(make(*tensor.shape))
        o.fill_(torch.nan)
        graph.replay()
        torch.cuda.synchronize()
        if not torch.equal(o, case.call()):
            return False, "a replay differs from a call"
        want = case.compute()
        worst = max(worst, ((o.double() - want).norm() / want.norm()).item())
    return worst < 2e-3, f"{worst:.1e}"


def run(name: str, action: Callable[[], tuple[bool, str]]) -> bool:
    try:
        good, text = action()
    except Exception as error:
        good, text = False, f"{type(error).__name__}: {error}"
    print(f"{name:16} {text[:400]}  {'right' if good else 'WRONG'}", flush=True)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", default="", help="cases whose names match")
    options = parser.parse_args()
    good = True
    for case in (Dense, Packed, Decode, Prefill):
        for how, dim in DIMS.items():
            name = f"{case.__name__.lower()} {how}"
            if re.search(options.only, name):
                good &= run(name, lambda: check(case(dim), how == "warm"))  # noqa: B023
    print("all right" if good else "something is wrong")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
