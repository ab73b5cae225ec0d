#!/usr/bin/env python3
"""Compares partial results that the last CTA of a tile merges (combine = launch) with
those that a second kernel merges, on the GPU: the same bits, both right against
float64, and the times of both in CUDA graphs, in both orders.

    python3 python/tests/gpu_combine.py --make FOLDER --chip=sm_90a   # with attn-compile
    PYTHONPATH=python python3 python/tests/gpu_combine.py FOLDER      # on the GPU

Partial results and counters are memory of this script, so that graphs hold nothing but
the kernels. Each pair runs on --rounds sets of lengths on the same memory, one after
the other; at the end --replays replays of a graph of the one launch. Exit status 1 when
something is wrong.
"""

from __future__ import annotations

import argparse
import math
import pathlib
import subprocess
import sys
import time

import gpu_pages

#: Cells by name: sequences, keys, query heads, key heads, keys of a page, numbers of
#: runs, and whether lengths are drawn from 16 to the keys instead of being all of them.
CELLS = {
    "b64-s4k-32-8": (64, 4096, 32, 8, 16, (2,), False),
    "b256-s1k-32-8": (256, 1024, 32, 8, 16, (2,), False),
    "b16-s32k-64-8": (16, 32768, 64, 8, 16, (2, 4), False),
    "b1-s128k-64-8": (1, 131072, 64, 8, 16, (16, 33, 66), False),
    "b64-s4k-32-32": (64, 4096, 32, 32, 16, (2,), False),
    "b1-s4k-32-8": (1, 4096, 32, 8, 16, (4, 8, 16), False),
    "b1-s16k-32-8": (1, 16384, 32, 8, 16, (8, 16, 32), False),
    "b1-s32k-8-1": (1, 32768, 8, 1, 16, (16, 32, 64), False),
    "b4-s8k-32-8": (4, 8192, 32, 8, 16, (4, 8), False),
    "mixed64-32-8": (64, 32768, 32, 8, 16, (4, 8), True),
    "mixed64-16-2": (64, 32768, 16, 2, 16, (8,), True),
    "mixed64-8-1": (64, 32768, 8, 1, 16, (8, 12), True),
    "mixed16-32-8": (16, 32768, 32, 8, 16, (8, 12), True),
}  # fmt: skip
#: The same of latent attention, 512 + 64 columns and one key head.
LATENT_CELLS = {
    "mla-b64-s8k-h16": (64, 8192, 16, 1, (2, 4), False),
    "mla-b8-s32k-h16": (8, 32768, 16, 64, (8, 16, 33), False),
    "mla-mixed64-h16": (64, 1024, 16, 64, (3, 4), True),
    "mla-b1-s32k-h128": (1, 32768, 128, 64, (16, 66), False),
}
WAYS = ("kernel", "launch")


def list_cases() -> dict[str, tuple[list[str], int, bool]]:
    """Flags of attn-compile by name, the keys, and whether lengths are drawn."""
    cases = {}
    for cell, (batch, keys, heads, kv_heads, page, splits, mixed) in CELLS.items():
        shape = [f"--q={batch}x{heads}x1x128xbf16", f"--kv-heads={kv_heads}", "--schedule=decode"]
        for runs in splits:
            cases[f"{cell}-x{runs}"] = (batch, keys, page, runs, shape, mixed)
    for cell, (batch, keys, heads, page, splits, mixed) in LATENT_CELLS.items():
        shape = [f"--q={batch}x{heads}x1x576xbf16", "--rope-dim=64", "--schedule=mla"]
        # Scores of a warpgroup of their own have no such form.
        shape += ["--set=score=twice", "--set=wgmma=true"] if heads > 32 else ["--set=score=shard"]
        for runs in splits:
            cases[f"{cell}-x{runs}"] = (batch, keys, page, runs, shape, mixed)
    return {
        name: (
            [*shape, f"--page-size={page}", f"--kv-splits={runs}"]
            + ["--kv-lengths=" + ",".join([str(keys)] * batch)],
            keys,
            mixed,
        )
        for name, (batch, keys, page, runs, shape, mixed) in cases.items()
    }


def make(options: argparse.Namespace) -> int:
    options.folder.mkdir(parents=True, exist_ok=True)
    good = True
    for name, (flags, *_) in list_cases().items():
        for way in WAYS:
            path = options.folder / f"{name}.{way}.attn"
            command = [options.compile, *flags, f"--chip={options.chip}", f"--set=combine={way}"]
            command += ["-o", "/dev/null", f"--bundle={path}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            print(path.name, done.stderr.strip() or "made", flush=True)
            good &= done.returncode == 0
    return int(not good)


class Way:
    """One of the two forms on tensors that both share but for results."""

    def __init__(self, torch, runtime, path: pathlib.Path, shared: dict, gpu_check) -> None:
        self.kernel = runtime.load(path)
        record = self.kernel.launch_record
        self.tensors = dict(shared)
        for tensor in record["tensors"]:
            name = tensor["name"]
            if name not in self.tensors or name in ("o", "lse"):
                made = gpu_check.make_tensor(tensor, list(tensor["shape"]), padded=False)
                self.tensors[name] = made
        tensors = {name: self.tensors[name] for name in self.kernel.names}
        views = {name: runtime.device_tensors.view(name, each, 0) for name, each in tensors.items()}
        self.prepared = self.kernel.prepare(views)
        self.addresses = [each.data_ptr() for each in tensors.values()]
        # Counters start with zeros; all else is poison.
        self.memory = [
            torch.full(
                (max(size, 4) // 4,), 0 if each.zeroed else -1, dtype=torch.int32, device="cuda"
            )
            for size, each in zip(self.prepared.workspace_bytes, self.kernel.binder.workspaces)
        ]
        self.counters = [
            memory
            for memory, each in zip(self.memory, self.kernel.binder.workspaces)
            if each.restored
        ]
        self.places = [each.data_ptr() for each in self.memory]
        self.torch = torch

    def __call__(self) -> None:
        stream = self.torch.cuda.current_stream().cuda_stream
        self.prepared(self.addresses, stream, self.places)

    def poison(self, value: float) -> None:
        for name in ("o", "lse"):
            if name in self.tensors:
                self.tensors[name].fill_(value)

    def has_zero_counters(self) -> bool:
        return not any(bool(each.any()) for each in self.counters)


def draw_mixed(torch, batch: int, keys: int, generator) -> list[int]:
    drawn = torch.rand(batch, generator=generator)
    return [int(16 * math.exp(float(x) * math.log(keys / 16))) for x in drawn]


def measure_host(torch, call, calls: int = 500) -> float:
    """Microseconds of a call among many outside of a graph, the host's part among it."""
    call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e6 / calls


def check(torch, gpu_check, name: str, options: argparse.Namespace) -> bool:
    runtime = gpu_check.attn.runtime
    _, keys, mixed = list_cases()[name]
    paths = [options.folder / f"{name}.{way}.attn" for way in WAYS]
    first = Way(torch, runtime, paths[0], {}, gpu_check)
    second = Way(torch, runtime, paths[1], first.tensors, gpu_check)
    ways = (first, second)
    generator = torch.Generator().manual_seed(options.seed)
    batch = first.tensors["q"].shape[0]
    graphs = []
    gpu_pages.fill(torch, first.tensors, [keys] * batch, generator)
    for way in ways:
        way()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            way()
        graphs.append(graph)
    problem = first.kernel.launch_record["problem"]
    worst, worst_lse, same, zero = 0.0, 0.0, True, True
    for number in range(options.rounds):
        lengths = gpu_pages.draw_lengths(torch, batch, keys, generator)
        gpu_pages.fill(torch, first.tensors, lengths, generator)
        for way, graph in zip(ways, graphs):
            way.poison(gpu_check.POISON)
            graph.replay()
        torch.cuda.synchronize()
        same &= torch.equal(
            first.tensors["o"].view(torch.int16), second.tensors["o"].view(torch.int16)
        )
        if "lse" in second.tensors:
            same &= torch.equal(first.tensors["lse"], second.tensors["lse"])
        zero &= second.has_zero_counters()
        if number == 0:
            error = gpu_pages.compare(torch, gpu_check.attend, second.tensors, problem, lengths)
            worst, worst_lse = error
    lengths = draw_mixed(torch, batch, keys, generator) if mixed else [keys] * batch
    gpu_pages.fill(torch, first.tensors, lengths, generator)
    columns = sum(first.tensors[n].shape[3] for n in "kv" if n in first.tensors)
    read = sum(lengths) * first.tensors["k"].shape[1] * columns * 2
    for way in ways:
        gpu_pages.measure_cold(torch, way, read)
    times: list[list[float]] = [[], []]
    for order in ((0, 1), (1, 0), (0, 1), (1, 0)):
        for index in order:
            times[index].append(gpu_pages.measure_cold(torch, ways[index], read))
    medians = [sum(sorted(each)[1:3]) / 2 for each in times]
    eager = [measure_host(torch, way) for way in (*ways, *reversed(ways))]
    eager = [min(eager[0], eager[3]), min(eager[1], eager[2])]
    start = time.monotonic()
    for _ in range(options.replays):
        graphs[1].replay()
    torch.cuda.synchronize()
    took = time.monotonic() - start
    zero &= second.has_zero_counters()
    tolerance = gpu_check.TOLERANCES["bf16"]
    good = same and zero and worst <= tolerance and worst_lse <= gpu_check.LSE_TOLERANCE
    print(
        f"{name:24} kernel {medians[0]:8.2f} us  launch {medians[1]:8.2f} us  ratio "
        f"{medians[0] / medians[1]:.3f}  without graph {eager[0]:.1f} {eager[1]:.1f} us  O {worst:.1e}  LSE {worst_lse:.1e}  "
        f"bits {'same' if same else 'OTHER'}  counters {'0' if zero else 'NOT 0'}  "
        f"{options.replays} replays {took:.1f} s  {'right' if good else 'WRONG'}",
        flush=True,
    )
    return good


def main() -> int:
    parser = gpu_pages.make_parser(__doc__, "sm_90a")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--replays", type=int, default=2000)
    parser.add_argument(
        "--time", type=float, default=600, help="seconds after which no cell starts"
    )
    parser.add_argument("--only", default="", help="cells whose names begin with this")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.make:
        return make(options)
    import gpu_check
    import torch

    names = [name for name in list_cases() if name.startswith(options.only)]
    wrong = []
    start = time.monotonic()
    for number, name in enumerate(names):
        if time.monotonic() - start > options.time:
            print(f"out of time: {' '.join(names[number:])} not run")
            names = names[:number]
            break
        if not check(torch, gpu_check, name, options):
            wrong.append(name)
        torch.cuda.empty_cache()
    print(f"{len(names) - len(wrong)} right, {len(wrong)} wrong: {' '.join(wrong)}")
    return int(bool(wrong) or not names)


if __name__ == "__main__":
    sys.exit(main())
