#!/usr/bin/env python3
"""Decodes one token over selected keys of a long cache: launches, waits, memory and time.

128 query heads read one key head of 512 columns, 1024 selected keys of a cache of 8 thousand to
1 million keys, and the last 128 keys of the sequence beside them. Three ways: a call of
`attn.mla_decode` or `attn.decode` with `added`; the same in 1, 2 and 8 segments that one launch
merges; and the sequence of operators that it takes the place of, in torch: a loop of the host
over segments and tiles with a wait in each step and states merged by the host, or all keys
gathered and multiplied at once.

    here: PYTHONPATH=python python3 benchmarks/selected-decode.py FOLDER --prepare --chip=sm_90a
    GPU:  PYTHONPATH=python python3 benchmarks/selected-decode.py FOLDER [--json=FILE]

The first command compiles all kernels into FOLDER, and needs torch and no GPU; the second one
needs no compiler. Results are compared with float64 first. Launches, waits and copies to the host
are counted by torch's profiler, allocations by its allocator; times are those of a CUDA graph,
or of the host's clock where a way cannot be captured. The exit status is 1 when a result is wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python/tests"))

import attn  # noqa: E402
import attn.runtime  # noqa: E402
import torch  # noqa: E402
from gpu_calls import Checks, Stop  # noqa: E402

HEADS, DIM, SELECTED, WINDOW, PAGE = 128, 512, 1024, 128, 64
SCALE = DIM**-0.5
CACHES = {"8k": 8192, "128k": 131072, "1M": 1 << 20}
#: Segments and tiles of the loop of the host.
SEGMENTS, TILES = 8, 4
LAUNCHES = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx")
LAUNCHES += ("cudaGraphLaunch", "cuGraphLaunch")
WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")
WAITS += ("cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize")
#: Of o by norms, of an LSE by distances. Operators round scores and weights to bf16.
MOST_O, MOST_LSE, MOST_ROUNDED = 4e-3, 1e-3, 1e-2


class Case:
    """A cache of some length, what is selected of it, and what comes out."""

    def __init__(self, checks: Checks, keys: int, is_latent: bool) -> None:
        self.checks, self.is_latent = checks, is_latent
        make = torch.Generator(checks.device).manual_seed(keys)

        def draw(*shape: int) -> torch.Tensor:
            return torch.randn(
                shape, device=checks.device, dtype=torch.bfloat16, generator=make
            )  # fmt: skip

        pools = 1 if is_latent else 2
        kept = keys if checks.is_real else PAGE
        self.q = draw(1, HEADS, DIM)
        #: The cache in pages, and as a list of keys.
        self.pools = [draw(kept // PAGE, PAGE, 1, DIM) for _ in range(pools)]
        self.rows = [pool.view(-1, 1, 1, DIM) for pool in self.pools]
        used = keys - 37
        pages = torch.arange(keys // PAGE, dtype=torch.int32)
        self.table = pages[None].to(checks.device)
        self.lengths = checks.integers([used])
        ids = torch.randperm(used - WINDOW)[:SELECTED] if checks.is_real else torch.arange(SELECTED)
        # Some places of the list have no key.
        ids[::97] = -1
        self.list = ids[None].to(torch.int32).to(checks.device)
        self.listed = checks.integers([SELECTED])
        self.used = used
        self.out = torch.empty_like(self.q)
        self.lse = torch.empty(1, HEADS, device=checks.device)

    def call(self, **options: Any) -> Any:
        """The window and the list in one call, into memory that is there."""
        added = (*self.rows, self.list, self.listed)
        operands = (*self.pools, self.table, self.lengths)
        options |= {"added": added, "window": (WINDOW - 1, 0), "scale": SCALE}
        options |= {"out": self.out, "lse": self.lse}
        if self.is_latent:
            return attn.mla_decode(self.q, *operands, value_dim=DIM, **options)
        return attn.decode(self.q, *operands, **options)

    def get_keys(self) -> torch.Tensor:
        """The rows of the cache that the token sees."""
        kept = self.list[0][self.list[0] >= 0].long()
        recent = torch.arange(self.used - WINDOW, self.used, device=self.q.device)
        return torch.cat([kept, recent])

    def want(self) -> tuple[torch.Tensor, torch.Tensor]:
        ids = self.get_keys()
        k, v = (each.view(-1, DIM)[ids].double() for each in (self.rows[0], self.rows[-1]))
        s = self.q[0].double() @ k.T * SCALE
        return (torch.softmax(s, -1) @ v)[None], torch.logsumexp(s, -1)[None]

    def gather_once(self) -> torch.Tensor:
        """All keys at once, with what each operator makes in memory."""
        ids = self.get_keys()
        k, v = (each.view(-1, DIM)[ids] for each in (self.rows[0], self.rows[-1]))
        return torch.softmax((self.q[0] @ k.T).float() * SCALE, -1).to(v.dtype) @ v

    def loop_on_host(self) -> tuple[torch.Tensor, int]:
        """Segments and tiles one after the other; the host waits for each, and merges states."""
        merges = 0
        states: list[tuple[torch.Tensor, torch.Tensor]] = []
        for segment in self.get_keys().chunk(SEGMENTS):
            o, log = torch.zeros(HEADS, DIM), torch.full((HEADS, 1), -math.inf)
            for tile in segment.chunk(TILES):
                k, v = (each.view(-1, DIM)[tile] for each in (self.rows[0], self.rows[-1]))
                s = (self.q[0] @ k.T).float() * SCALE
                new_log = torch.logsumexp(s, -1, keepdim=True)
                new_o = (torch.exp(s - new_log).to(v.dtype) @ v).float()
                torch.cuda.synchronize()
                o, log = _merge(o, log, new_o.cpu(), new_log.cpu())
                merges += 1
            states.append((o, log))
        o, log = torch.zeros(HEADS, DIM), torch.full((HEADS, 1), -math.inf)
        for state in states:
            o, log = _merge(o, log, *state)
            merges += 1
        return o.to(self.q.device)[None], merges


def _merge(o: torch.Tensor, log: torch.Tensor, new_o: torch.Tensor, new_log: torch.Tensor) -> Any:
    joined = torch.logaddexp(log, new_log)
    return o * torch.exp(log - joined) + new_o * torch.exp(new_log - joined), joined


def count(call: Callable[[], Any]) -> dict[str, int]:
    """What a call asks of the driver, after one that has made what is kept."""
    call()
    torch.cuda.synchronize()
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    segments = torch.cuda.memory_stats()["segment.all.allocated"]
    with torch.profiler.profile(activities=kinds) as profile:
        call()
    after = torch.cuda.memory_stats()
    found = {each.key: each.count for each in profile.key_averages()}
    # The profiler waits for the device once at its own end.
    waits = sum(found.get(name, 0) for name in WAITS)
    kernels = sum(
        1 for each in profile.events()
        if each.device_type == torch.autograd.DeviceType.CUDA and "Mem" not in each.name
    )  # fmt: skip
    return {
        "launches": sum(found.get(name, 0) for name in LAUNCHES),
        "kernels": kernels,
        "waits": max(0, waits - 1),
        "copies": sum(n for name, n in found.items() if name.startswith(("cudaMemcpy", "cuMemcpy"))),
        "allocations": after["allocation.all.allocated"] - before,
        "device_allocations": after["segment.all.allocated"] - segments,
    }


def time_graph(call: Callable[[], Any]) -> float:
    """Median microseconds of a call among ten in a CUDA graph."""
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(10):
            call()
    times = []
    for _ in range(7):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 100)
    return statistics.median(times)


def time_host(call: Callable[[], Any]) -> float:
    """Median microseconds of a call that the host waits for."""
    times = []
    for _ in range(7):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


class Measures:
    """Rows of results, each of a way for a cache."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.wrong = 0

    def add(self, case: Case, cache: str, way: str, call: Callable[[], Any], **more: Any) -> None:
        """`call` leaves o and its LSE in the case's memory, or gives o alone."""
        case.out.view(torch.int16).fill_(0x7FFF)
        case.lse.fill_(math.nan)
        got = call()
        o, lse = case.want()
        own = got if isinstance(got, torch.Tensor) else case.out
        error = float((own.double() - o).norm() / o.norm())
        worst = 0.0 if own is not case.out else float((case.lse.double() - lse).abs().max())
        good = error <= (MOST_O if own is case.out else MOST_ROUNDED) and worst <= MOST_LSE
        self.wrong += not good
        form = "K = V" if case.is_latent else "K and V"
        row = {"cache": cache, "form": form, "way": way, "o": error, "lse": worst, "good": good}
        row |= count(call) | more
        row["us_host"] = time_host(call)
        if not row["waits"] and not isinstance(got, torch.Tensor):
            row["us"] = time_graph(call)
        self.rows.append(row)
        print(json.dumps(row), flush=True)


def get_bundle(folder: pathlib.Path, is_latent: bool, segments: int, cache: str) -> pathlib.Path:
    return folder / f"{'latent' if is_latent else 'pair'}-{segments}-{cache}.attn"


def make_bundles(folder: pathlib.Path, chip: str, compiler: str) -> bool:
    """One launch for each number of segments: the CTA that is last in a tile merges it."""
    good = True
    for is_latent in (True, False):
        for segments in (1, 2, 8):
            for cache, keys in CACHES.items():
                flags = [f"--q=1x{HEADS}x1x{DIM}xbf16", f"--chip={chip}", "--layout=bnhd"]
                flags += [f"--kv-lengths={keys}", f"--page-size={PAGE}", "--added-page-size=1"]
                flags += [f"--added-lengths={SELECTED}", f"--window={WINDOW - 1},0,bottom-right"]
                flags += [f"--kv-splits={segments}" if segments > 1 else "--no-split-keys"]
                flags += [f"--scale={SCALE}"]
                flags += ["--rope-dim=0", "--schedule=mla", "--set=score=shard"] * is_latent
                flags += ["--kv-heads=1", "--schedule=decode"] * (not is_latent)
                flags += ["--set=combine=launch"] * (segments > 1)
                path = get_bundle(folder, is_latent, segments, cache)
                command = [compiler, *flags, "-o", os.devnull, f"--bundle={path}"]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                good &= done.returncode == 0
                print(path.name, done.stderr.strip()[:300] or "made", flush=True)
    return good


def run_bundle(case: Case, path: pathlib.Path) -> Callable[[], Any]:
    """A launch of a bundle on the case's tensors, in its order of dimensions."""
    kernel = attn.runtime.load(path)
    shapes = {each["name"]: each["shape"] for each in kernel.launch_record["tensors"]}

    def fit(pool: torch.Tensor, name: str) -> torch.Tensor:
        # The record states how many pages the pool of a test has.
        pages = shapes[name][0]
        turned = pool.transpose(1, 2)
        room = torch.empty((pages, *turned.shape[1:]), device=pool.device, dtype=pool.dtype)
        room[: min(pages, len(turned))] = turned[:pages]
        return room

    tensors = {"q": case.q[:, :, None], "o": case.out[:, :, None], "lse": case.lse[:, :, None]}
    tensors |= {"page_table": case.table, "kv_lengths": case.lengths}
    tensors |= {"added_table": case.list, "added_lengths": case.listed}
    tensors["k"] = fit(case.pools[0], "k")
    if not case.is_latent:
        tensors["v"] = fit(case.pools[1], "v")
    # The list's ids are places in a pool of as many keys as the record states.
    pages = shapes["added_k"][0]
    kept = case.list[0].clamp(min=0).long()
    for name, rows in zip(("added_k", "added_v"), case.rows, strict=False):
        room = torch.zeros(pages, 1, 1, DIM, device=case.q.device, dtype=case.q.dtype)
        room[:SELECTED] = rows[kept]
        tensors[name] = room
    places = torch.arange(SELECTED, dtype=torch.int32, device=case.q.device)[None]
    tensors["added_table"] = torch.where(case.list < 0, case.list, places)
    return lambda: kernel(**tensors)


def prepare(options: argparse.Namespace) -> int:
    from attn import torch_serving

    checks = Checks(options.chip)
    # Tensors of the host stand for those of a GPU.
    torch_serving._is_on_host = lambda *_: False
    for is_latent in (True, False):
        for keys in CACHES.values():
            case = Case(checks, keys, is_latent)
            for splits in (None, 1, 2, 8):
                try:
                    case.call(kv_splits=splits)
                except Stop:
                    print("latent" if is_latent else "pair", keys, splits, "compiled", flush=True)
    return int(not make_bundles(options.folder, options.chip, options.compile))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--prepare", action="store_true", help="compile alone")
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument("--compile", default=str(ROOT / "build/bin/attn-compile"))
    parser.add_argument("--json", type=pathlib.Path, help="where the rows go, too")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    os.environ["ATTN_CACHE_DIR"] = str(options.folder / "cache")
    if options.prepare:
        return prepare(options)
    checks, measures = Checks(None), Measures()
    for cache, keys in CACHES.items():
        for is_latent in (True, False):
            case = Case(checks, keys, is_latent)
            for splits in (None, 1, 2, 8):
                way = "attn" if splits is None else f"attn, kv_splits={splits}"
                measures.add(case, cache, way, lambda n=splits: case.call(kv_splits=n))
            for segments in (1, 2, 8):
                path = get_bundle(options.folder, is_latent, segments, cache)
                call = run_bundle(case, path)
                measures.add(case, cache, f"one launch, {segments} segments", call)
            measures.add(case, cache, "torch, gathered at once", lambda: case.gather_once()[None])
            merges = case.loop_on_host()[1]
            call = lambda: case.loop_on_host()[0]  # noqa: E731
            measures.add(case, cache, "torch, loop of the host", call, merges=merges)
    if options.json:
        options.json.write_text(json.dumps(measures.rows, indent=1))
    print(f"{len(measures.rows) - measures.wrong} right, {measures.wrong} wrong")
    return int(measures.wrong != 0)


if __name__ == "__main__":
    sys.exit(main())
