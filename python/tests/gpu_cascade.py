#!/usr/bin/env python3
"""Checks attn.cascade on the GPU against float64 and shows where a shared prefix pays.

    PYTHONPATH=python python3 python/tests/gpu_cascade.py --prepare FOLDER --chip sm_90a
    PYTHONPATH=python python3 python/tests/gpu_cascade.py FOLDER

The first command compiles all kernels into a cache folder and needs torch, but no GPU;
the second one needs no compiler where the folder is filled. A row of its table is a
batch whose sequences share a prefix and have OWN keys each: attn.decode over tables
that repeat the prefix's pages, and attn.cascade, in us of a CUDA graph. Exit status 1
when something is wrong, 0 without a GPU. --small is for the stand-in driver.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys

import attn
from attn.launch import device_tensors, host_arrays
from attn.serving import decode_launch, decode_problem
from attn.record import TensorView

HEADS, KV_HEADS, DIM, PAGE, OWN = 32, 8, 128, 16, 512
BATCHES = (4, 16, 64)
PREFIXES = (512, 2048, 8192, 32768)
#: Launches of a graph, and replays that are timed.
LAUNCHES, REPLAYS = 5, 9


def shrink() -> None:
    """Makes the cells ones that a simulator runs in seconds."""
    global HEADS, KV_HEADS, OWN, BATCHES, PREFIXES, LAUNCHES, REPLAYS
    HEADS, KV_HEADS, OWN, LAUNCHES, REPLAYS = 8, 2, 64, 1, 1
    BATCHES, PREFIXES = (4,), (32, 160)


def make_cell(torch, batch: int, prefix: int, device: str):
    """Tensors of a batch; what no sequence owns is NaN on a GPU."""
    shared, own = prefix // PAGE, OWN // PAGE
    pages = shared + batch * own
    shape = (pages, 2, PAGE, KV_HEADS, DIM)
    pool = torch.empty(shape, dtype=torch.bfloat16, device=device)
    q = torch.empty(batch, HEADS, DIM, dtype=torch.bfloat16, device=device)
    if device == "cuda":
        pool.normal_()
        q.normal_()
    ids = torch.randperm(pages, device=device).int()
    head, tail = ids[None, :shared].contiguous(), ids[shared:].view(batch, own).contiguous()
    whole = torch.cat([head.expand(batch, shared), tail], dim=1).contiguous()
    counts = torch.full((batch,), OWN, dtype=torch.int32, device=device)
    counts -= torch.arange(batch, device=device).int() % 64
    count = torch.full((1,), prefix, dtype=torch.int32, device=device)
    for row, length in enumerate(counts.tolist() if device == "cuda" else ()):
        last = int(tail[row, (length - 1) // PAGE])
        pool[last, :, (length - 1) % PAGE + 1 :] = torch.nan
        pool[tail[row, -(-length // PAGE) :].long()] = torch.nan
    levels = [attn.Level(head, count, batch), attn.Level(tail, counts)]
    ends = torch.tensor([0, batch], dtype=torch.int32, device=device)
    packed = [attn.Level(head, count, ends), levels[1]]
    return q, pool[:, 0], pool[:, 1], whole, counts + prefix, levels, packed


def make_calls(cell):
    """The ways to compute a cell, each gives o and its LSE."""
    q, k, v, whole, lengths, levels, packed = cell
    return {
        "decode": lambda: attn.decode(q, k, v, whole, lengths, lse=True),
        "cascade": lambda: attn.cascade(q, k, v, levels, lse=True),
        "packed": lambda: attn.cascade(q, k, v, packed, lse=True),
    }


class _Prepared:
    """In the place of a loaded kernel: fills the cache and launches nothing."""

    def __init__(self, kernel) -> None:
        self.names = [each["name"] for each in kernel.launch["tensors"]]
        print(kernel.name, len(kernel.cubin), flush=True)

    def prepare(self, _views):
        return lambda *_: None


def prepare(chip: str) -> int:
    """Every kernel of every cell, from tensors of the host that stand for a GPU's."""
    import torch

    decode_launch.get_chip_of = lambda *_: chip
    decode_launch.get_stream = lambda *_: 0
    decode_problem.load = functools.cache(_Prepared)

    def view(_name, tensor, _stream):
        dtype = device_tensors._TORCH_DTYPES[str(tensor.dtype)]
        return TensorView(dtype, tuple(tensor.shape), tensor.stride(), tensor.data_ptr(), 0)

    device_tensors.view = view
    for batch in BATCHES:
        for prefix in PREFIXES:
            for call in make_calls(make_cell(torch, batch, prefix, "cpu")).values():
                call()
    return 0


def attend(torch, cell, row: int):
    """float64 of one sequence."""
    q, k, v, whole, lengths, *_ = cell
    length = int(lengths[row])
    ids = whole[row, : -(-length // PAGE)].long()
    keys, values = (
        pool[ids].flatten(0, 1)[:length].double().repeat_interleave(HEADS // KV_HEADS, 1)
        for pool in (k, v)
    )
    scores = torch.einsum("hd,nhd->hn", q[row].double(), keys) * DIM**-0.5
    return torch.einsum("hn,nhd->hd", scores.softmax(-1), values), scores.logsumexp(-1)


def measure(torch, call) -> float:
    """The median us of a launch in a graph."""
    graph = torch.cuda.CUDAGraph()
    call()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            call()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(REPLAYS + 1)]
    graph.replay()
    for event in events:
        event.record()
        graph.replay()
    torch.cuda.synchronize()
    times = [a.elapsed_time(b) for a, b in zip(events[:-1], events[1:], strict=True)]
    return sorted(times)[REPLAYS // 2] * 1000 / LAUNCHES


def check_cell(torch, batch: int, prefix: int) -> bool:
    cell = make_cell(torch, batch, prefix, "cuda")
    calls = make_calls(cell)
    worst = [0.0, 0.0]
    for call in calls.values():
        o, lse = call()
        for row in {0, batch - 1}:
            want, log = attend(torch, cell, row)
            worst[0] = max(worst[0], float((o[row] - want).abs().max()))
            worst[1] = max(worst[1], float((lse[row] - log).abs().max()))
    is_right = worst[0] < 8e-3 and worst[1] < 1e-4
    # Both orders, so that neither has the warmer board.
    times = {name: measure(torch, call) for name, call in calls.items()}
    for name, call in reversed(calls.items()):
        times[name] = min(times[name], measure(torch, call))
    shown = "  ".join(f"{name} {each:8.1f}" for name, each in times.items())
    print(
        f"{batch:4} x {prefix:6} + {OWN}  {shown}  ratio {times['decode'] / times['cascade']:5.2f}"
        f"  errors {worst[0]:.1e} {worst[1]:.1e} {'right' if is_right else 'WRONG'}",
        flush=True,
    )
    return is_right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", help="the cache folder")
    parser.add_argument("--prepare", action="store_true", help="fill the folder instead")
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument("--small", action="store_true", help="few keys, heads and sequences")
    options = parser.parse_args()
    if options.small:
        shrink()
    os.environ["ATTN_CACHE_DIR"] = os.path.abspath(options.folder)
    if options.prepare:
        return prepare(options.chip)
    if not host_arrays.has_device():
        print("no GPU")
        return 0
    import torch

    good = [check_cell(torch, batch, prefix) for batch in BATCHES for prefix in PREFIXES]
    print(f"{sum(good)} right, {len(good) - sum(good)} wrong")
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
