#!/usr/bin/env python3
"""Times decoding with 16 to 256 query rows that share keys, after each kernel was
compared with float64.

    here, with attn-compile: python3 python/tests/gpu_rows.py FOLDER --make
    GPU:                     PYTHONPATH=python python3 python/tests/gpu_rows.py FOLDER

FOLDER has the bundles of all plans of CELLS and `cells.json`. Rows are heads of a
group times queries of a draft. Without --make it needs torch and this package's
sources, no compiler; beside FlashInfer if that can be imported. Prints a line of JSON
for each cell and plan, and writes all to --out. Exit status 1 when a result is wrong.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

#: Plans by name beside the planner's: a schedule and parameters that are fixed.
PLANS = {
    "decode": "decode",
    "split": "split_q",
    "wgmma": "ws_wgmma",
    "tiled": "tiled_d",
    "columns": "ws_columns",
}


@dataclasses.dataclass(frozen=True)
class Cell:
    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    dim: int
    page: int
    plans: tuple[str, ...]
    kv_type: str = "bf16"

    @property
    def name(self) -> str:
        form = f"p{self.page}" if self.page else "dense"
        kind = "" if self.kv_type == "bf16" else "-f8"
        return (f"b{self.batch}-h{self.heads}-{self.kv_heads}-n{self.queries}-s{self.keys}"
                f"-d{self.dim}-{form}{kind}")  # fmt: skip

    @property
    def rows(self) -> int:
        return self.heads // self.kv_heads * self.queries

    def flags(self) -> list[str]:
        flags = [
            f"--q={self.batch}x{self.heads}x{self.queries}x{self.dim}xbf16",
            f"--kv-heads={self.kv_heads}", f"--kv-len={self.keys}", "--layout=bnhd",
        ]  # fmt: skip
        if self.queries > 1:
            flags.append("--causal=bottom-right")
        if self.page:
            lengths = ",".join([str(self.keys)] * self.batch)
            flags += [f"--page-size={self.page}", f"--kv-lengths={lengths}"]
        if self.kv_type != "bf16":
            flags.append(f"--kv-type={self.kv_type}")
        return flags


def list_cells() -> list[Cell]:
    all_three = ("decode", "split", "wgmma")
    cells = [Cell(8, rows, 1, 1, 8192, 128, 16, all_three if rows > 32 else ("decode",))
             for rows in (16, 32, 33, 40, 64, 80, 128)]  # fmt: skip
    cells += [Cell(16, 64, 8, n, 8192, 128, 16, all_three if n > 4 else ("decode",))
              for n in (1, 4, 5, 8, 16)]  # fmt: skip
    cells += [
        Cell(64, 64, 8, 8, 4096, 128, 16, all_three),
        Cell(8, 64, 8, 8, 32768, 128, 16, all_three),
        Cell(32, 64, 8, 5, 4096, 64, 16, all_three),
        Cell(8, 64, 1, 1, 8192, 64, 16, all_three),
        Cell(16, 64, 1, 1, 8192, 256, 16, all_three),
        Cell(16, 16, 2, 8, 8192, 256, 16, all_three),
        Cell(8, 32, 1, 1, 8192, 512, 0, ("decode", "tiled")),
        Cell(8, 33, 1, 1, 8192, 512, 0, ("decode", "tiled", "columns")),
        Cell(8, 64, 1, 1, 8192, 512, 0, ("decode", "tiled", "columns")),
        Cell(8, 128, 1, 1, 8192, 512, 0, ("decode", "tiled", "columns")),
        Cell(8, 64, 1, 1, 8192, 128, 0, all_three),
        Cell(16, 64, 8, 8, 8192, 128, 64, all_three, "f8E4M3FN"),
    ]
    return cells


def make(options: argparse.Namespace) -> int:
    options.folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for cell in list_cells():
        for plan in ("planner", *cell.plans):
            if not re.search(options.only, f"{cell.name}/{plan}"):
                continue
            path = options.folder / f"{cell.name}+{plan}.attn"
            command = [options.compile, *cell.flags(), f"--chip={options.chip}",
                       f"--board={options.board}", "--no-lse", f"--bundle={path}", "--json", "-o",
                       "/dev/null"]  # fmt: skip
            if plan != "planner":
                schedule, *values = PLANS[plan].split()
                command += [f"--schedule={schedule}", *(f"--set={v}" for v in values)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{cell.name} {plan}: {done.stderr.strip().splitlines()[-1]}")
                continue
            plans = json.loads(done.stdout)["plan"]
            if plan != "planner" and any(
                e["cell"] == dataclasses.asdict(cell) and e["plans"] == plans for e in entries
            ):
                path.unlink()
                continue
            print(f"{path.stem}: {' '.join(plans)}", flush=True)
            entries.append({"file": path.name, "plan": plan, "plans": plans,
                            "cell": dataclasses.asdict(cell)})  # fmt: skip
    (options.folder / "cells.json").write_text(json.dumps(entries, indent=1) + "\n")
    return 0


#: Largest difference from float64 of results of bf16.
TOLERANCE = 2e-2


class Problem:
    """The tensors of a cell, and what is right."""

    def __init__(self, torch, cell: Cell, record: dict) -> None:
        self.torch, self.cell = torch, cell
        torch.manual_seed(cell.batch + cell.keys + cell.heads)
        options = {"dtype": torch.bfloat16, "device": "cuda"}
        stored = torch.bfloat16 if cell.kv_type == "bf16" else torch.float8_e4m3fn
        # (batch, queries, heads, columns) in memory.
        self.rows = torch.randn(cell.batch, cell.queries, cell.heads, cell.dim, **options)
        self.out = torch.empty_like(self.rows)
        if cell.page:
            count = cell.batch * cell.keys // cell.page
            pages = next(t["shape"][0] for t in record["tensors"] if t["name"] == "k")
            shape = (pages, cell.page, cell.kv_heads, cell.dim)
            order = torch.randperm(pages, device="cuda")[:count]
            self.table = order.int().reshape(cell.batch, -1)
        else:
            shape = (cell.batch, cell.keys, cell.kv_heads, cell.dim)
            self.table = None
        self.k, self.v = (torch.randn(shape, **options).to(stored) for _ in range(2))

    def tensors(self, record: dict) -> dict:
        swap = {"q": self.rows, "o": self.out, "k": self.k, "v": self.v}
        result = {name: tensor.transpose(1, 2) for name, tensor in swap.items()}
        for tensor in record["tensors"]:
            name = tensor["name"]
            if name == "page_table":
                result[name] = self.table
            elif name == "kv_lengths":
                result[name] = self.torch.full((self.cell.batch,), self.cell.keys,
                                               dtype=self.torch.int32, device="cuda")  # fmt: skip
            elif name not in result:
                raise ValueError(f"tensor {name} of {self.cell.name}")
        return result

    def keys_of(self, pool, batch: int, head: int):
        # Of bytes, since not all operators take 8-bit floats.
        raw = pool.view(self.torch.uint8) if pool.element_size() == 1 else pool
        if self.table is not None:
            rows = raw[self.table[batch].long(), :, head].reshape(-1, self.cell.dim)
        else:
            rows = raw[batch, :, head].contiguous()
        return rows.view(pool.dtype).float().double()

    def largest_error(self) -> float:
        """Of the first and the last sequence, all heads."""
        torch, cell = self.torch, self.cell
        group = cell.heads // cell.kv_heads
        last = torch.arange(cell.keys, device="cuda")[None, None, :]
        seen = cell.keys - cell.queries + torch.arange(cell.queries, device="cuda")[:, None, None]
        largest = 0.0
        for batch in {0, cell.batch - 1}:
            for head in range(cell.kv_heads):
                q = self.rows[batch, :, head * group : (head + 1) * group].double()
                k, v = (self.keys_of(pool, batch, head) for pool in (self.k, self.v))
                scores = torch.einsum("qgd,kd->qgk", q, k) / math.sqrt(cell.dim)
                scores = scores.masked_fill(last > seen, -math.inf)
                right = torch.einsum("qgk,kd->qgd", scores.softmax(-1), v)
                got = self.out[batch, :, head * group : (head + 1) * group].double()
                error = (got - right).abs().max().item()
                largest = max(largest, error if math.isfinite(error) else math.inf)
        return largest


class Clock:
    """Microseconds of a call whose tensors L2 does not hold."""

    def __init__(self, torch) -> None:
        self.torch = torch
        self.flush = torch.empty(64 << 20, dtype=torch.int32, device="cuda")

    def capture(self, call):
        """The call as a graph, so that the host takes no part in its time."""
        call()
        self.torch.cuda.synchronize()
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            call()
        return graph.replay

    def measure(self, call, repetitions: int) -> float:
        for _ in range(3):
            call()
        pairs = []
        for _ in range(repetitions):
            self.flush.zero_()
            start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call()
            end.record()
            pairs.append((start, end))
        self.torch.cuda.synchronize()
        return 1000 * statistics.median(a.elapsed_time(b) for a, b in pairs)


def make_peers(torch, problem: Problem) -> dict:
    """FlashInfer's kernels on the same tensors: calls by name."""
    try:
        import flashinfer
    except ImportError:
        return {}
    cell = problem.cell
    page = cell.page or 16
    if cell.kv_type != "bf16" or cell.dim > 256:
        return {}
    pools = [x.reshape(-1, page, cell.kv_heads, cell.dim) for x in (problem.k, problem.v)]
    count = cell.keys // page
    ends = torch.arange(cell.batch + 1, device="cuda", dtype=torch.int32)
    pages = (problem.table.flatten() if problem.table is not None
             else torch.arange(cell.batch * count, device="cuda", dtype=torch.int32))  # fmt: skip
    last = torch.full((cell.batch,), page, device="cuda", dtype=torch.int32)
    rows = problem.rows.reshape(-1, cell.heads, cell.dim)
    out = problem.out.view(rows.shape)
    peers = {}
    for backend in ("fa2", "fa3"):
        try:
            space = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
            wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(space, "NHD", backend=backend)
            wrapper.plan(ends * cell.queries, ends * count, pages, last, cell.heads, cell.kv_heads,
                         cell.dim, page, causal=cell.queries > 1, q_data_type=torch.bfloat16,
                         kv_data_type=torch.bfloat16)  # fmt: skip
            wrapper.run(rows, tuple(pools), out=out)
            torch.cuda.synchronize()
            peers[f"flashinfer-{backend}"] = lambda w=wrapper: w.run(rows, tuple(pools), out=out)
        except Exception as error:  # noqa: BLE001, what a peer cannot do is no failure
            print(json.dumps({"cell": cell.name, "peer": backend, "error": repr(error)[:200]}))
    if cell.queries == 1:
        try:
            space = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
            decode = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
                space, "NHD", use_tensor_cores=True
            )
            decode.plan(ends * count, pages, last, cell.heads, cell.kv_heads, cell.dim, page,
                        q_data_type=torch.bfloat16, kv_data_type=torch.bfloat16)  # fmt: skip
            decode.run(rows, tuple(pools), out=out)
            torch.cuda.synchronize()
            peers["flashinfer-decode"] = lambda w=decode: w.run(rows, tuple(pools), out=out)
        except Exception as error:  # noqa: BLE001
            print(json.dumps({"cell": cell.name, "peer": "decode", "error": repr(error)[:200]}))
    return peers


def run(options: argparse.Namespace) -> int:
    import torch

    import attn.bundle
    import attn.runtime

    entries = json.loads((options.folder / "cells.json").read_text())
    names = list(dict.fromkeys(json.dumps(e["cell"]) for e in entries))
    clock, lines, wrong = Clock(torch), [], 0

    def note(**values) -> None:
        lines.append(values)
        print(json.dumps(values), flush=True)
        options.out.write_text(json.dumps(lines, indent=1) + "\n")

    note(device=torch.cuda.get_device_name(), torch=torch.__version__)
    for name in names:
        fields = json.loads(name)
        cell = Cell(**{**fields, "plans": tuple(fields["plans"])})
        if not re.search(options.only, cell.name):
            continue
        own = [e for e in entries if e["cell"] == fields]
        first = attn.bundle.read(options.folder / own[0]["file"]).launch
        problem = Problem(torch, cell, first)
        size = 2 if cell.kv_type == "bf16" else 1
        read = 2 * cell.batch * cell.kv_heads * cell.keys * cell.dim * size
        calls = {}
        for entry in own:
            key = {"cell": cell.name, "rows": cell.rows, "plan": entry["plan"],
                   "plans": entry["plans"]}  # fmt: skip
            try:
                path = options.folder / entry["file"]
                kernel = attn.runtime.load(path)
                tensors = problem.tensors(attn.bundle.read(path).launch)
                problem.out.fill_(math.nan)
                kernel(**tensors)
                torch.cuda.synchronize()
                error = problem.largest_error()
            except Exception as failure:  # noqa: BLE001, the other cells are to run
                wrong += 1
                note(**key, error=repr(failure)[:300])
                continue
            if not error <= TOLERANCE:
                wrong += 1
                note(**key, error=f"wrong by {error}")
                continue
            calls[entry["plan"]] = (lambda k=kernel, t=tensors: k(**t)), {**key, "largest": error}
        peers = make_peers(torch, problem)
        for peer, call in peers.items():
            problem.out.fill_(math.nan)
            call()
            torch.cuda.synchronize()
            calls[peer] = call, {"cell": cell.name, "rows": cell.rows, "plan": peer,
                                 "largest": problem.largest_error()}  # fmt: skip
        # In turns, so that clocks change for all.
        times = {plan: [] for plan in calls}
        graphs = {plan: clock.capture(call) for plan, (call, _) in calls.items()}
        for _ in range(options.rounds):
            for plan, replay in graphs.items():
                times[plan].append(clock.measure(replay, options.repetitions))
        for plan, (_, key) in calls.items():
            time = statistics.median(times[plan])
            note(**key, us=round(time, 2), gbs=round(read / time / 1e3, 1))
        del problem, calls, peers, graphs
        torch.cuda.empty_cache()
    print(f"{len(lines) - 1} lines, {wrong} wrong")
    return int(wrong != 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--make", action="store_true", help="compile the bundles instead")
    parser.add_argument("--only", default="", help="cells whose names match")
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument("--board", default="h200")
    parser.add_argument("--compile", default=ROOT / "build/bin/attn-compile")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("rows.json"))
    options = parser.parse_args()
    return make(options) if options.make else run(options)


if __name__ == "__main__":
    sys.exit(main())
