#!/usr/bin/env python3
"""attn.prefill with run_keys on a GPU: the bits of attn.decode, and what they cost.

Compares each cell with float64, its first sequence in two chunks and its last queries one by one
through attn.decode bit for bit, and times it beside a call without run_keys. Needs torch and the
compiler.

usage: PYTHONPATH=python python/tests/gpu_prefill_runs.py [--json=FILE] [--rounds=N]
"""

import argparse
import json
import pathlib
import statistics
import sys

import attn
import torch

PAGE, RUN = 64, 1024
#: Name: keys of each sequence, its new queries, heads, key heads, head dimension.
CELLS = {
    "chunk of 512 of 8192": ([8192], [512], 32, 8, 128),
    "chunk of 2048 of 2048": ([2048], [2048], 32, 8, 128),
    "8 sequences, 1 to 512 queries": (
        [8192, 700, 4096, 33, 16384, 2500, 64, 5000],
        [512, 1, 77, 33, 256, 5, 64, 130],
        32,
        8,
        128,
    ),
    "D 64, 3 sequences": ([5000, 1024, 90], [300, 200, 90], 16, 4, 64),
}


def make(cell: tuple) -> dict[str, torch.Tensor]:
    """Queries, pools, a table of pages in no order, lengths and where queries begin."""
    keys, queries, heads, kv_heads, dim = cell
    pages = [-(-count // PAGE) for count in keys]
    order = torch.randperm(sum(pages), device="cuda").int()
    table = torch.zeros((len(keys), max(pages)), dtype=torch.int32, device="cuda")
    for row, part in zip(table, order.split(pages), strict=True):
        row[: len(part)] = part
    pool = (sum(pages), PAGE, kv_heads, dim)
    starts = torch.tensor([0, *queries]).cumsum(0)
    return {
        "q": torch.randn((sum(queries), heads, dim), device="cuda").bfloat16(),
        "k": torch.randn(pool, device="cuda").bfloat16(),
        "v": torch.randn(pool, device="cuda").bfloat16(),
        "table": table,
        "lengths": torch.tensor(keys, dtype=torch.int32, device="cuda"),
        "starts": starts.to("cuda", torch.int32),
    }


def prefill(on: dict[str, torch.Tensor], most: int, **options):
    return attn.prefill(
        on["q"], on["k"], on["v"], on["table"], on["lengths"], on["starts"],
        max_seqlen_q=most, **options,
    )  # fmt: skip


def find_error(on: dict[str, torch.Tensor], cell: tuple, o: torch.Tensor) -> float:
    """Returns the largest error of a result beside float64."""
    keys, queries, heads, kv_heads, dim = cell
    error, first = 0.0, 0
    for number, (length, count) in enumerate(zip(keys, queries, strict=True)):
        pages = on["table"][number, : -(-length // PAGE)].long()
        k, v = (
            on[name][pages].flatten(0, 1)[:length].double().repeat_interleave(heads // kv_heads, 1)
            for name in "kv"
        )
        # Some queries are enough: they go through the same kernel as the others.
        rows = torch.arange(count, device="cuda")[:: max(1, count // 64)]
        scores = torch.einsum("qhd,khd->hqk", on["q"][first + rows].double(), k) * dim**-0.5
        seen = torch.arange(length, device="cuda") <= (length - count + rows)[:, None]
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        want = torch.einsum("hqk,khd->qhd", weights, v)
        error = max(error, (o[first + rows].double() - want).abs().max().item())
        first += count
    return error


def count_other_bits(on: dict[str, torch.Tensor], cell: tuple, whole: tuple) -> dict[str, int]:
    """Returns how many numbers differ in two chunks of the first sequence, and query by query
    through attn.decode for the last ones of each."""
    keys, queries = cell[:2]
    options = {"run_keys": RUN, "lse": True}
    differ = {"chunks": 0, "tokens": 0}
    half = queries[0] // 2
    for first, end in ((0, half), (half, queries[0])):
        part = on | {
            "q": on["q"][first:end],
            "table": on["table"][:1],
            "lengths": on["lengths"][:1] - (queries[0] - end),
            "starts": torch.tensor([0, end - first], dtype=torch.int32, device="cuda"),
        }
        got = prefill(part, end - first, **options)
        differ["chunks"] += sum(
            (one != all_[first:end]).sum().item() for one, all_ in zip(got, whole, strict=True)
        )
    row = 0
    for number, count in enumerate(queries):
        row += count
        for behind in range(min(count, 12)):
            at = row - 1 - behind
            got = attn.decode(
                on["q"][at][None], on["k"], on["v"], on["table"][number : number + 1],
                on["lengths"][number : number + 1] - behind, **options,
            )  # fmt: skip
            differ["tokens"] += sum(
                (one[0] != all_[at]).sum().item() for one, all_ in zip(got, whole, strict=True)
            )
    return differ


def time_call(call, rounds: int) -> float:
    """Returns microseconds of a call in a row of them, copies of queries included."""
    for _ in range(3):
        call()
    times = []
    for _ in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(10):
            call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 100)
    return statistics.median(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    torch.manual_seed(torch.seed() % 2**32)
    results, is_right = [], True
    for name, cell in CELLS.items():
        on, most = make(cell), max(cell[1])
        whole = prefill(on, most, run_keys=RUN, lse=True)
        error = find_error(on, cell, whole[0])
        differ = count_other_bits(on, cell, whole)
        is_right &= error < 0.03 and not any(differ.values())
        runs = time_call(lambda on=on, most=most: prefill(on, most, run_keys=RUN), options.rounds)
        free = time_call(lambda on=on, most=most: prefill(on, most), options.rounds)
        results.append(
            {"name": name, "error": error, "differ": differ, "runs_us": runs, "free_us": free}
        )
        print(
            f"{name}: error {error:.4f}, other bits {differ}, runs of {RUN} {runs:.1f} us, "
            f"free choice {free:.1f} us ({runs / free:.2f})",
            flush=True,
        )
        if options.json:
            options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    print("right" if is_right else "WRONG")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
