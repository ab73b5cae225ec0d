#!/usr/bin/env python3
"""Checks whole steps of serving on the GPU: graphs of all layers with the plan in them,
the wrappers of attn.compat.flashinfer, and the example server.

    PYTHONPATH=python python3 python/tests/gpu_serve.py --prepare FOLDER --chip sm_90a
    PYTHONPATH=python python3 python/tests/gpu_serve.py FOLDER

The first command compiles all kernels into a cache folder and needs torch, but no GPU;
the second one needs no compiler where the folder is filled. A graph of a step is captured
once and replayed with other lengths, pages and numbers of sequences, each compared with
float64; then thousands of times while another stream has matrix products to do. Launches,
waits and allocations of a step are counted by torch's profiler. Exit status 1 when
something is wrong, 0 without a GPU. --small is for the stand-in driver.
"""

from __future__ import annotations

import argparse
import collections
import functools
import math
import os
import pathlib
import sys
import time

import attn
from attn.launch import cuda_driver, device_tensors, host_arrays
from attn.serving import decode_launch, decode_plan, decode_problem
from attn.compat import flashinfer
from attn.record import TensorView

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "serve"))
import serve  # noqa: E402

LAYERS, BATCH, KEYS, SETS = 61, 64, 1024, 100
#: True on the stand-in driver: it runs only kernels of this package in graphs, and times nothing.
IS_SMALL = False
#: Steps: options of a plan.
STEPS = {
    "mla": {"heads": 16, "dim": 576, "value_dim": 512, "latent": True, "page_size": 64,
            "scale": 192**-0.5},
    "gqa": {"heads": 32, "kv_heads": 8, "dim": 128, "page_size": 16, "page_stride": 2 * 16 * 8 * 128},
    "runs": {"heads": 16, "dim": 576, "value_dim": 512, "latent": True, "page_size": 64,
             "scale": 192**-0.5, "kv_splits": 4},
}  # fmt: skip


def shrink() -> None:
    """Makes steps ones that a simulator runs in seconds."""
    global LAYERS, BATCH, KEYS, SETS, IS_SMALL
    LAYERS, BATCH, KEYS, SETS, IS_SMALL = 2, 4, 256, 4, True


def make_plan(options: dict, device) -> attn.DecodePlan:
    pages = KEYS // options["page_size"]
    return attn.DecodePlan(batch=BATCH, max_pages=pages, dtype="bfloat16", device=device, **options)


def make_batch(torch, page: int, generator, padded: bool):
    """Lengths with evenly spread logarithms and a table of random pages on the host; padded
    sequences are anywhere."""
    width = KEYS // page
    draws = torch.rand(BATCH, generator=generator)
    lengths = torch.exp(draws * math.log(KEYS)).int().clamp(1, KEYS)
    if padded:
        lengths[torch.rand(BATCH, generator=generator) < torch.rand(1, generator=generator)] = 0
    table = torch.randperm(BATCH * width, generator=generator).int().view(BATCH, width)
    unused = torch.arange(width) >= ((lengths + page - 1) // page)[:, None]
    return lengths, table.masked_fill(unused, -1)


def attend(torch, q, k, v, table, lengths, scale: float):
    """float64 and its natural LSE; pools are (page, key, head, dim)."""
    keys, values = (pool[table.clamp(min=0).long()].flatten(1, 2).double() for pool in (k, v))
    groups = q.double().unflatten(1, (k.shape[2], -1))
    scores = torch.einsum("bgrd,bngd->bgrn", groups, keys) * scale
    hidden = torch.arange(keys.shape[1], device=q.device) >= lengths[:, None]
    scores = scores.masked_fill(hidden[:, None, None], -torch.inf)
    lse = scores.logsumexp(-1)
    weights = torch.exp(scores - lse[..., None]).masked_fill((lengths == 0)[:, None, None, None], 0)
    o = torch.einsum("bgrn,bngd->bgrd", weights, values)
    return o.flatten(1, 2), lse.flatten(1, 2)


class Worst:
    """Largest differences of o and LSE."""

    def __init__(self) -> None:
        self.o = self.lse = 0.0
        self.good, self.count = 0, 0

    def add(self, torch, got, want, base: float = 1.0) -> None:
        o = float((got[0] - want[0]).abs().max())
        log, expected = got[1].double() / base, want[1]
        same = torch.where(
            log.isinf() | expected.isinf(), (log != expected).double() * 1e9, log - expected
        )
        lse = float(same.abs().max())
        self.o, self.lse = max(self.o, o), max(self.lse, lse)
        self.count += 1
        self.good += o < 1.6e-2 and lse < 2e-4

    def show(self) -> str:
        return f"{self.good} of {self.count} right, O {self.o:.1e}, LSE {self.lse:.1e}"


class Step:
    """A step of all layers in a graph."""

    def __init__(self, torch, options: dict) -> None:
        self.torch, self.options = torch, options
        self.page, pages = options["page_size"], BATCH * KEYS // options["page_size"]
        heads, dim = options["heads"], options["dim"]
        self.scale = options.get("scale", dim**-0.5)
        shape = (LAYERS, pages, self.page, dim)
        if not options.get("latent"):
            shape = (LAYERS, pages, 2, self.page, options["kv_heads"], dim)
        on = {"dtype": torch.bfloat16, "device": "cuda"}
        self.pool = torch.empty(shape, **on).normal_()
        self.q = torch.empty(LAYERS, BATCH, heads, dim, **on).normal_()
        self.o = torch.empty(LAYERS, BATCH, heads, options.get("value_dim", dim), **on)
        self.lse = torch.empty(LAYERS, BATCH, heads, device="cuda")
        self.lengths = torch.zeros(BATCH, dtype=torch.int32, device="cuda")
        self.table = torch.zeros(BATCH, KEYS // self.page, dtype=torch.int32, device="cuda")
        self.plan = make_plan(options | {"lse": True}, 0)
        self.graph = torch.cuda.CUDAGraph()
        self.run()
        torch.cuda.synchronize()
        with torch.cuda.graph(self.graph):
            self.run()

    def get_pools(self, layer: int):
        pool = self.pool[layer]
        return (pool, None) if self.options.get("latent") else (pool[:, 0], pool[:, 1])

    def run(self) -> None:
        self.plan.plan(self.lengths, self.table)
        for layer in range(LAYERS):
            pools = self.get_pools(layer)
            self.plan.run(self.q[layer], *pools, out=self.o[layer], lse=self.lse[layer])

    def load(self, batch) -> None:
        self.lengths.copy_(batch[0])
        self.table.copy_(batch[1])

    def check(self, worst: Worst, layers) -> None:
        for layer in layers:
            k, v = self.get_pools(layer)
            if v is None:
                k = k[:, :, None]
                v = k[..., : self.options["value_dim"]]
            want = attend(self.torch, self.q[layer], k, v, self.table, self.lengths, self.scale)
            worst.add(self.torch, (self.o[layer], self.lse[layer]), want)


def count_events(torch, call) -> collections.Counter:
    """Calls of the driver and what ran on the device, by name."""
    from torch.profiler import ProfilerActivity, profile, record_function

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        with record_function("the step"):
            call()
        torch.cuda.synchronize()
    events = profiler.events()
    mark = next(
        each for each in events if each.name == "the step" and "CPU" in str(each.device_type)
    )
    found: collections.Counter = collections.Counter()
    for each in events:
        on_device = "CUDA" in str(each.device_type)
        inside = mark.time_range.start <= each.time_range.start <= mark.time_range.end
        if on_device and each.name != "the step":
            found[f"device: {each.name.split('(')[0][:60]}"] += 1
        elif not on_device and inside and each.name.startswith("cu"):
            found[each.name] += 1
    return found


def measure(torch, step: Step, rounds: int) -> tuple[float, float]:
    """us of the host for each `run` outside of a graph, and of the device for each layer."""
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        step.run()
        times.append((time.perf_counter() - start) / LAYERS * 1e6)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(rounds):
        step.graph.replay()
    end.record()
    torch.cuda.synchronize()
    return sorted(times)[rounds // 2], begin.elapsed_time(end) * 1000 / rounds / LAYERS


def replay_beside(torch, step: Step, batches, count: int) -> tuple[float, bool]:
    """Many replays while another stream has products to do; the last one is compared."""
    other = torch.cuda.Stream()
    a, b = (torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in "ab")
    start = time.perf_counter()
    for number in range(count):
        if number % 10 == 0:
            step.load(batches[number // 10 % len(batches)])
            with torch.cuda.stream(other):
                for _ in range(8):
                    torch.mm(a, b)
        step.graph.replay()
        if number % 500 == 499:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    worst = Worst()
    step.check(worst, range(LAYERS))
    return seconds, worst.good == worst.count


def check_step(torch, name: str, replays: int) -> bool:
    start = time.perf_counter()
    step, worst = Step(torch, STEPS[name]), Worst()
    generator = torch.Generator().manual_seed(1)
    batches = [make_batch(torch, step.page, generator, number % 4 != 0) for number in range(SETS)]
    for number, batch in enumerate(batches):
        step.load(batch)
        step.graph.replay()
        layers = range(LAYERS) if number % 10 == 0 else range(number % 7, LAYERS, 7)
        step.check(worst, layers)
    good = worst.good == worst.count
    print(f"{name:5} {LAYERS} layers, {SETS} batches: {worst.show()}", flush=True)
    if IS_SMALL:
        print("skipped: counts of torch's profiler, times, products of torch's beside replays")
        return good
    stats = torch.cuda.memory_stats()
    eager = count_events(torch, step.run)
    now = torch.cuda.memory_stats()
    made = now["allocation.all.allocated"] - stats["allocation.all.allocated"]
    host, device = measure(torch, step, 20)
    print(
        f"{name:5} a step without a graph: {dict(eager)}, {made} allocations of torch; host {host:.1f} us "
        f"a run; {device:.1f} us of the device a layer in the graph, {step.plan.splits} runs of keys"
    )
    print(
        f"{name:5} a step in the graph: {dict(count_events(torch, step.graph.replay))}", flush=True
    )
    seconds, right = replay_beside(torch, step, batches, replays)
    print(
        f"{name:5} {replays} replays beside products in another stream: {seconds:.1f} s, the last one "
        f"{'right' if right else 'WRONG'}; {time.perf_counter() - start:.0f} s in all",
        flush=True,
    )
    return good and right


#: Of the wrappers' checks: sequences, pages of each, heads, key heads, columns, keys of a page.
SIZE = (8, 12, 8, 2, 128, 16)
LATENT = (16, 512, 64)


def make_lists(torch, lengths, device: str):
    """Random pages of a batch as FlashInfer's lists, and as a table."""
    page, width = SIZE[5], SIZE[1]
    counts = (lengths + page - 1) // page
    table = torch.randperm(SIZE[0] * width).int().view(SIZE[0], width)
    indptr = torch.cat([torch.zeros(1), counts.cumsum(0)]).int()
    indices = torch.cat([row[:n] for row, n in zip(table, counts.tolist(), strict=True)])
    last = torch.where(lengths > 0, lengths - (counts - 1) * page, 0).int()
    return [each.to(device) for each in (indptr, indices, last, table, lengths)]


def make_graph_buffers(torch, device: str):
    sizes = (SIZE[0] + 1, SIZE[0] * SIZE[1], SIZE[0])
    return [torch.zeros(size, dtype=torch.int32, device=device) for size in sizes]


def run_call(torch, is_graph: bool, call):
    """A call, or a replay of it."""
    if not is_graph:
        return call
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()

    def replay():
        graph.replay()
        return result

    return replay


def check_wrappers(torch, device: str, is_graph: bool) -> list[Worst]:
    """Decode of both layouts and of 8-bit pools, MLA and prefill on three batches each."""
    batch, width, heads, kv_heads, dim, page = SIZE
    on = {"device": device, "dtype": torch.bfloat16}
    pool = torch.randn(batch * width, 2, page, kv_heads, dim, **on)
    turned = pool.transpose(2, 3).contiguous()
    narrow = pool.to(torch.float8_e4m3fn)
    scales = {"k_scale": 0.5, "v_scale": 0.25}
    latent = torch.randn(batch * width, page, sum(LATENT[1:]), **on)
    q, wide = (
        torch.randn(batch, heads, dim, **on),
        torch.randn(batch, LATENT[0], sum(LATENT[1:]), **on),
    )
    rows = torch.randn(40, heads, dim, **on)
    buffers = make_graph_buffers(torch, device) if is_graph else [None] * 3
    workspace = torch.empty(8, device=device)
    options = {"max_pages": width} if is_graph else {}
    decode = {
        order: flashinfer.BatchDecodeWithPagedKVCacheWrapper(
            workspace, order, is_graph, True, *buffers, **options
        )
        for order in ("NHD", "HND")
    }
    decode["e4m3"] = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
        workspace, "NHD", is_graph, True, *buffers, **options
    )
    counts = torch.arange(batch + 1, dtype=torch.int32, device=device) if is_graph else None
    mla = flashinfer.BatchMLAPagedAttentionWrapper(workspace, is_graph, counts, *buffers, **options)
    prefill = flashinfer.BatchPrefillWithPagedKVCacheWrapper(
        workspace, "NHD", is_graph, counts, *buffers, **options
    )
    many = {"NHD": (pool, {}), "HND": (turned, {}), "e4m3": (narrow, scales)}
    values = LATENT[1]
    calls = {
        name: lambda n=name, each=each, more=more: decode[n].run(q, each, return_lse=True, **more)
        for name, (each, more) in many.items()
    }
    calls["MLA"] = lambda: mla.run(
        wide[..., :values],
        wide[..., values:],
        latent[..., :values],
        latent[..., values:],
        return_lse=True,
    )
    calls["prefill"] = lambda: prefill.run(rows, pool, return_lse=True)
    ready, results = {}, [Worst() for _ in calls]
    for seed in range(3):
        torch.manual_seed(seed)
        lengths = torch.randint(8, width * page, (batch,)).int()
        lengths[seed] = 0
        queries = torch.randint(0, 6, (batch,)).clamp(max=lengths.cpu()).int()
        ends = torch.cat([torch.zeros(1), queries.cumsum(0)]).int().to(device)
        *lists, table, lengths = make_lists(torch, lengths, device)
        shape = (heads, kv_heads, dim, page)
        for name, each in decode.items():
            kind = torch.float8_e4m3fn if name == "e4m3" else torch.bfloat16
            each.plan(*lists, *shape, q_data_type=torch.bfloat16, kv_data_type=kind)
        some = torch.arange(batch + 1, dtype=torch.int32, device=device)
        mla.plan(
            some, *lists[:2], lengths, *LATENT, page, False, 0.07, torch.bfloat16, torch.bfloat16
        )
        prefill.plan(
            ends, *lists, *shape, causal=True, q_data_type=torch.bfloat16, max_token_per_sequence=8
        )
        for name, call in calls.items():
            if name not in ready:
                ready[name] = run_call(torch, is_graph and device == "cuda", call)
        got = {name: call() for name, call in ready.items()}
        if device != "cuda":
            continue
        base = 1 / math.log(2)
        k, v = pool[:, 0], pool[:, 1]
        want = attend(torch, q, k, v, table, lengths, dim**-0.5)
        for worst, name in zip(results, ("NHD", "HND"), strict=False):
            worst.add(torch, got[name], want, base)
        wide8 = [narrow[:, at].float() * scale for at, scale in enumerate(scales.values())]
        results[2].add(
            torch, got["e4m3"], attend(torch, q, *wide8, table, lengths, dim**-0.5), base
        )
        keys = latent[:, :, None]
        results[3].add(
            torch,
            got["MLA"],
            attend(torch, wide, keys, keys[..., :values], table, lengths, 0.07),
            base,
        )
        for row in range(batch):
            for at in range(int(ends[row]), int(ends[row + 1])):
                seen = lengths[row : row + 1] - (int(ends[row + 1]) - 1 - at)
                one = attend(torch, rows[at : at + 1], k, v, table[row : row + 1], seen, dim**-0.5)
                results[4].add(torch, [each[at : at + 1] for each in got["prefill"]], one, base)
    return results


def check_all_wrappers(torch) -> bool:
    good = True
    if IS_SMALL:
        print("skipped: wrappers in graphs, which hold torch's own kernels")
    for is_graph in (False,) if IS_SMALL else (False, True):
        results = check_wrappers(torch, "cuda", is_graph)
        for name, worst in zip(
            ("decode NHD", "decode HND", "e4m3", "MLA", "prefill"), results, strict=True
        ):
            good &= worst.good == worst.count
            print(
                f"wrapper {name:10} {'in graphs' if is_graph else 'eager    '}: {worst.show()}",
                flush=True,
            )
    return good


class _Prepared:
    """In the place of a loaded kernel: fills the cache and launches nothing."""

    def __init__(self, kernel) -> None:
        self.names = [each["name"] for each in kernel.launch["tensors"]]
        print(kernel.name, len(kernel.cubin), flush=True)

    def prepare(self, _views):
        return lambda *_: None


class _Memory:
    address = 1

    def __init__(self, *_: object) -> None:
        pass


class _Machine(serve.Gpu):
    """torch on the host, whose tensors stand for a GPU's."""

    def __init__(self, torch) -> None:
        super().__init__(torch)
        self.device = 0

    def to(self, array):
        return self.torch.from_numpy(array)


def pretend(chip: str) -> None:
    """torch tensors of the host stand for a GPU's from now on; nothing is launched."""

    def view(_name, tensor, _stream):
        dtype = device_tensors._TORCH_DTYPES[str(tensor.dtype)]
        return TensorView(dtype, tuple(tensor.shape), tensor.stride(), tensor.data_ptr(), 0)

    device_tensors.view = view
    decode_launch.get_chip_of = lambda *_: chip
    decode_launch.get_stream = lambda *_: 0
    cuda_driver.is_capturing = lambda *_: False
    decode_problem.load = functools.cache(_Prepared)
    decode_plan.Memory = _Memory
    attn.DecodePlan._copy = lambda *_: None


def prepare(chip: str) -> int:
    """Every kernel, from tensors of the host."""
    import numpy as np
    import torch

    pretend(chip)
    for options in STEPS.values():
        print(make_plan(options | {"lse": True}, 0))
    for is_graph in (False, True):
        check_wrappers(torch, "cpu", is_graph)
    shape = serve.LARGE
    for drafts in (False, True):
        server = serve.Server(shape, _Machine(torch), drafts)
        table, lengths = server._make_table(), np.zeros(shape.batch, np.int32)
        counts = np.zeros(shape.batch + 1, np.int32)
        for count, call in ((shape.rows, "chunks"), (shape.batch * server.width, "step")):
            zeros = np.zeros(count, np.int64)
            extra = (zeros,) if call == "step" else ()
            inputs = (zeros, zeros, *extra, lengths, table, counts)
            getattr(server, f"_compute_{call}")(*map(torch.from_numpy, inputs))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", help="the cache folder")
    parser.add_argument("--prepare", action="store_true", help="fill the folder instead")
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument("--replays", type=int, default=10000)
    parser.add_argument("--only", choices=[*STEPS, "wrappers", "server"], action="append")
    parser.add_argument("--small", action="store_true", help="few layers, keys and sequences")
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

    torch.backends.cuda.matmul.allow_tf32 = False
    wanted, good = options.only or [*STEPS, "wrappers", "server"], []
    if "wrappers" in wanted:
        good.append(check_all_wrappers(torch))
    if options.small:
        print("skipped: the server, whose graphs hold torch's own kernels")
    elif "server" in wanted:
        machine = functools.partial(serve.Gpu, torch)
        good += [serve.run(serve.LARGE, machine(), 100, drafts) for drafts in (False, True)]
    for name in STEPS:
        if name in wanted:
            good.append(check_step(torch, name, options.replays))
            torch.cuda.empty_cache()
    print(f"{sum(good)} right, {len(good) - sum(good)} wrong")
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
