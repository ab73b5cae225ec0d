#!/usr/bin/env python3
"""Checks attn.decode, attn.DecodePlan and attn.merge_states on the GPU against
float64, eager and in CUDA graphs, and measures the host's time of a call.

    PYTHONPATH=python python3 python/tests/gpu_decode.py --prepare FOLDER --chip sm_90a
    PYTHONPATH=python python3 python/tests/gpu_decode.py FOLDER

The first command compiles all kernels into a cache folder and needs no GPU; the
second one needs no compiler where the folder is filled. Exit status 1 when
something is wrong, 0 without a GPU. --small is for the stand-in driver.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import sys
import time

import attn
from attn.launch import device_tensors, host_arrays
from attn.serving import decode_launch, decode_problem
from attn.record import TensorView

#: Options of a plan by name; the pool has all pages that the table can name.
CASES = {
    "gqa": {"batch": 8, "heads": 32, "kv_heads": 8, "dim": 128, "dtype": "bfloat16"},
    "hnd": {"batch": 8, "heads": 16, "kv_heads": 2, "dim": 64, "layout": "hnd"},
    "mtp": {"batch": 5, "heads": 12, "kv_heads": 2, "dim": 128, "queries": 4},
    "window": {"batch": 6, "heads": 8, "kv_heads": 8, "dim": 128, "window": (100, 0)},
    "one": {"batch": 1, "heads": 8, "kv_heads": 1, "dim": 128, "dtype": "bfloat16"},
    "runs": {"batch": 7, "heads": 8, "kv_heads": 2, "dim": 256, "kv_splits": 5},
    "softcap": {"batch": 4, "heads": 8, "kv_heads": 4, "dim": 64, "softcap": 20.0, "kv_splits": 1},
    "e4m3": {"batch": 8, "heads": 32, "kv_heads": 8, "dim": 128, "dtype": "bfloat16",
             "kv_dtype": "float8_e4m3fn", "scales": "head"},
    "e5m2": {"batch": 5, "heads": 8, "kv_heads": 2, "dim": 64, "queries": 2,
             "kv_dtype": "float8_e5m2", "scales": "tensor", "layout": "hnd"},
}  # fmt: skip
#: Element types as the compiler calls them.
TYPES = {"float16": "f16", "bfloat16": "bf16", "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2"}
PAGE, MAX_PAGES = 16, 128
STATES = (4, 33, 8, 128)
#: Calls that go on from a state: shape of q, key heads, its type, and that of the state.
INITS = [((6, 32, 1, 128), 8, "bfloat16", "float32"), ((5, 12, 3, 64), 2, "float16", "float16")]
INIT_PAGES = 40
#: Runs whose host time is measured.
TIMED = 200


def shrink() -> None:
    """Makes the cases ones that a simulator runs in seconds."""
    global MAX_PAGES, INIT_PAGES, TIMED
    MAX_PAGES, INIT_PAGES, TIMED = 10, 6, 2
    for options in CASES.values():
        options["batch"] = min(options["batch"], 3)


def complete(options: dict) -> dict:
    defaults = {"dtype": "float16", "page_size": PAGE, "max_pages": MAX_PAGES, "lse": True}
    return {**defaults, **options}


def make_problem(options: dict, device: int) -> decode_problem.DecodeProblem:
    """What attn.decode compiles for tensors of such a plan."""
    batch, heads, kv_heads, dim = (options[n] for n in ("batch", "heads", "kv_heads", "dim"))
    queries, layout = options.get("queries", 1), options.get("layout", "nhd")
    dtype = TYPES[options.get("dtype", "float16")]
    pool_dtype = TYPES[options["kv_dtype"]] if "kv_dtype" in options else dtype
    pool = (*decode_problem.make_pool_strides(layout, kv_heads, PAGE, dim, None), 1)
    q = ((batch, heads, queries, dim), (heads * queries * dim, queries * dim, dim, 1))
    views = {
        "q": TensorView(dtype, *q, 0, device),
        "o": TensorView(dtype, *q, 0, device),
        "page_table": TensorView("i32", (batch, MAX_PAGES), (MAX_PAGES, 1), 0, device),
    }
    for name in "kv":
        views[name] = TensorView(pool_dtype, (1, kv_heads, PAGE, dim), pool, 0, device)
        if "scales" in options:
            shape = (1,) if options["scales"] == "tensor" else (kv_heads,)
            views[f"{name}_scale"] = TensorView("f32", shape, (1,), 0, device)
    decode_launch.turn_scales(views)
    given = {n: options.get(n) for n in ("window", "softcap", "scale", "kv_splits")}
    settings = decode_launch.Settings.read(layout=layout, **given)
    return decode_launch.make_problem(views, settings, True)


def prepare(chip: str) -> int:
    """Fills the cache: a plan's kernels, those of calls, and the merging one."""
    decode_launch.get_chip_of = lambda *_: chip
    for name, options in CASES.items():
        plan = attn.DecodePlan(**complete(options), device="host")
        call = decode_launch.get_runner(make_problem(options, 0), 0)
        print(f"{name:8} {plan.splits} runs, {len(plan.kernel.cubin)} {len(call.kernel.cubin)}")
    for dtype in ("f32", "f16"):
        print("merge   ", len(decode_problem.compile_merge(STATES[-1], dtype, chip).cubin))
    prepare_init()
    return 0


class _Prepared:
    """In the place of a loaded kernel: fills the cache and launches nothing."""

    def __init__(self, kernel) -> None:
        self.names = [each["name"] for each in kernel.launch["tensors"]]
        print("init    ", kernel.plan.splitlines()[0], len(kernel.cubin), flush=True)

    def prepare(self, _views):
        return lambda *_: None


def prepare_init() -> None:
    """The kernels of INITS, from shapes that stand for a GPU's tensors."""
    decode_problem.load = functools.cache(_Prepared)
    decode_launch.get_stream = lambda *_: 0
    device_tensors.view = lambda _name, tensor, _device: tensor
    for (batch, heads, queries, dim), kv_heads, dtype, state in INITS:

        def view(dtype: str, *shape: int) -> TensorView:
            strides = [1]
            for extent in reversed(shape[1:]):
                strides.insert(0, strides[0] * extent)
            return TensorView(TYPES.get(dtype, "f32"), shape, tuple(strides), 0, 0)

        rows = (batch, heads, queries)
        pool = view(dtype, batch * INIT_PAGES, PAGE, kv_heads, dim)
        tensors = {
            "q": view(dtype, *rows, dim), "k_cache": pool, "v_cache": pool, "o": view(dtype, *rows, dim),
            "page_table": view(dtype, batch, INIT_PAGES)._replace(dtype="i32"),
            "kv_lengths": view(dtype, batch)._replace(dtype="i32"), "lse": view("", *rows),
            "init_o": view(state, *rows, dim), "init_lse": view("", *rows),
        }  # fmt: skip
        decode_launch.launch_decode(tensors, decode_launch.Settings.read(), None)


def check_init(torch, pages, gpu_check, case) -> bool:
    """attn.decode that goes on from a state, of which some rows are absent, in a call, in a
    graph, and its fake kernel."""
    (batch, heads, queries, dim), kv_heads, dtype, state = case
    dtype, state = getattr(torch, dtype), getattr(torch, state)
    options = {"batch": batch, "heads": heads, "kv_heads": kv_heads, "dim": dim, "queries": queries}
    made = Batch(torch, options | {"dtype": str(dtype).partition(".")[2]}, INIT_PAGES)
    generator = torch.Generator().manual_seed(int(time.time()))
    worst, shapes = [0.0, 0.0], True

    def call():
        return attn.decode(made.q, *made.pools, made.table, made.lengths, init=(o, lse), lse=True)

    o = torch.empty(batch, heads, queries, dim, device="cuda", dtype=state)
    lse = torch.empty(batch, heads, queries, device="cuda")
    pages.fill(torch, made.tensors, [PAGE * INIT_PAGES] * batch, generator)
    o.normal_(), lse.normal_()
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        replayed = call()
    for _ in range(10):
        lengths = pages.draw_lengths(torch, batch, PAGE * INIT_PAGES, generator)
        pages.fill(torch, made.tensors, lengths, generator)
        o.normal_(), lse.normal_().add_(4)
        absent = torch.rand(lse.shape, device="cuda") < 0.3
        o[absent], lse[absent] = torch.nan, -torch.inf
        graph.replay()
        for got_o, got_lse in (call(), replayed):
            for row, length in enumerate(lengths):
                k, v = (
                    pages.gather(torch, made.tensors | {"o": got_o}, n, row, length) for n in "kv"
                )
                want, log = gpu_check.attend(made.q[row], k, v, made.problem, None)
                total = torch.logaddexp(log, lse[row].double())
                safe = total.masked_fill(total.isinf(), 0)
                part = torch.where(absent[row, ..., None], 0, o[row].double())
                want = torch.exp(log - safe)[..., None] * want
                want = want + torch.exp(lse[row].double() - safe)[..., None] * part
                distance = (got_o[row] - want).abs() / want.abs().clamp(min=1)
                worst[0] = max(worst[0], float(distance.max()))
                same = got_lse[row] == total
                distance = (got_lse[row] - total).abs().masked_fill(same, 0)
                worst[1] = max(worst[1], float(distance.nan_to_num(1e9).max()))
    meta = [each.to("meta") for each in (made.q, *made.pools, made.table, made.lengths, o, lse)]
    fake_o, fake_lse = torch.ops.attn.decode_lse(*meta[:5], init_o=meta[5], init_lse=meta[6])
    shapes = fake_o.shape == made.q.shape and fake_lse.shape == made.q.shape[:3]
    good = worst[0] < 1.6e-2 and worst[1] < 1e-3 and shapes
    print(
        f"init     {dtype} from {state}, {queries} queries  O {worst[0]:.2e}  LSE {worst[1]:.2e}  fake "
        f"{list(fake_o.shape)}  {'right' if good else 'WRONG'}",
        flush=True,
    )
    return good


class Batch:
    """Tensors of a case, of which `tensors` has views in the kernel's order."""

    def __init__(self, torch, options: dict, max_pages: int) -> None:
        batch, heads, kv_heads, dim = (options[n] for n in ("batch", "heads", "kv_heads", "dim"))
        queries, dtype = options.get("queries", 1), getattr(torch, options.get("dtype", "float16"))
        self.is_nhd = options.get("layout", "nhd") == "nhd"
        order = (PAGE, kv_heads) if self.is_nhd else (kv_heads, PAGE)

        def empty(*shape, dtype=dtype):
            return torch.zeros(shape, device="cuda", dtype=dtype)

        pages = batch * max_pages + 3
        pool_dtype = getattr(torch, options["kv_dtype"]) if "kv_dtype" in options else dtype
        self.pools = [empty(pages, *order, dim, dtype=pool_dtype) for _ in "kv"]
        self.q = torch.randn(batch, heads, queries, dim, device="cuda").to(dtype)
        self.table = empty(batch, max_pages, dtype=torch.int32)
        self.lengths = empty(batch, dtype=torch.int32)
        k, v = (pool.transpose(1, 2) if self.is_nhd else pool for pool in self.pools)
        self.tensors = {"q": self.q, "k": k, "v": v}
        self.tensors |= {"page_table": self.table, "kv_lengths": self.lengths}
        #: What `run` and attn.decode take beside the pools.
        self.scales = {}
        if "scales" in options:
            count = 1 if options["scales"] == "tensor" else kv_heads
            self.scales = {f"{n}_scale": torch.rand(count, device="cuda") + 0.5 for n in "kv"}
            for name, scale in self.scales.items():
                self.tensors[f"{name[0]}_descale"] = scale.expand(batch, kv_heads)
        left, right = options.get("window") or (-1, -1)
        mask = {"kind": "window" if left >= 0 else "none", "left": left, "right": right}
        if queries > 1:
            mask["kind"] = "causal"
        self.problem = {
            "mask": {**mask, "align": "bottom_right"},
            "scale": dim**-0.5,
            "softcap": options.get("softcap", 0),
            "heads": heads,
            "kv_heads": kv_heads,
        }


def check_case(torch, pages, gpu_check, name: str, options: dict, rounds: int) -> bool:
    batch = Batch(torch, options, MAX_PAGES)
    generator = torch.Generator().manual_seed(1)
    capacity = PAGE * MAX_PAGES
    plan = attn.DecodePlan(**complete(options))
    outputs = {
        "o": torch.empty_like(batch.q),
        "lse": torch.empty(batch.q.shape[:-1], device="cuda"),
    }
    tolerance = gpu_check.TOLERANCES["bf16" if "dtype" in options else "f16"]
    worst = [0.0, 0.0]

    def compare(o, lse, lengths) -> None:
        got = {**batch.tensors, "o": o, "lse": lse}
        errors = pages.compare(torch, gpu_check.attend, got, batch.problem, lengths)
        worst[:] = [max(pair) for pair in zip(worst, errors, strict=True)]

    def run() -> None:
        plan.run(batch.q, *batch.pools, **batch.scales, out=outputs["o"], lse=outputs["lse"])

    def plan_and_run() -> None:
        plan.plan(batch.lengths, batch.table)
        run()

    pages.fill(torch, batch.tensors, [capacity] * len(batch.lengths), generator)
    plan_and_run()
    torch.cuda.synchronize()
    graphs = []
    for call in (run, plan_and_run):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
        graphs.append(graph)
    given = {"layout": "nhd" if batch.is_nhd else "hnd", "lse": True, **batch.scales}
    given |= {n: options[n] for n in ("window", "softcap", "kv_splits") if n in options}
    for _ in range(rounds):
        lengths = pages.draw_lengths(torch, len(batch.lengths), capacity, generator)
        pages.fill(torch, batch.tensors, lengths, generator)
        for graph in graphs:
            for tensor in outputs.values():
                tensor.fill_(gpu_check.POISON)
            if graph is graphs[0]:
                plan.plan(batch.lengths, batch.table)
            graph.replay()
            compare(outputs["o"], outputs["lse"], lengths)
        compare(*attn.decode(batch.q, *batch.pools, batch.table, batch.lengths, **given), lengths)
    before = torch.cuda.memory_stats()["allocation.all.allocated"], torch.cuda.mem_get_info()[0]
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(TIMED):
        run()
    host = (time.perf_counter() - start) / TIMED * 1e6
    torch.cuda.synchronize()
    after = torch.cuda.memory_stats()["allocation.all.allocated"], torch.cuda.mem_get_info()[0]
    good = worst[0] <= tolerance and worst[1] <= gpu_check.LSE_TOLERANCE and before == after
    print(
        f"{name:8} {plan.splits:3} runs  O {worst[0]:.2e}  LSE {worst[1]:.2e}  host {host:.1f} us of "
        f"run  {'no' if before == after else 'SOME'} allocations  {'right' if good else 'WRONG'}",
        flush=True,
    )
    return good


def check_merge(torch) -> bool:
    o, lse = torch.randn(STATES, device="cuda"), torch.randn(STATES[:-1], device="cuda")
    lse[1, 3], lse[:, 4] = -torch.inf, -torch.inf
    total = torch.logsumexp(lse.double(), 0)
    weights = torch.exp(lse.double() - torch.where(total.isinf(), 0.0, total))
    want = (weights[..., None] * o.double()).sum(0)
    good = True
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float16, 2e-3)):
        got, got_lse = attn.merge_states(o, lse, dtype=dtype)
        error = float((got.double() - want).abs().max())
        finite = total.isfinite()
        log_error = float((got_lse.double() - total)[finite].abs().max())
        good &= error <= tolerance and log_error <= 1e-5 and bool((got_lse.isinf() != finite).all())
        print(f"merge    {dtype}  O {error:.2e}  LSE {log_error:.2e}", flush=True)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", help="the cache folder")
    parser.add_argument("--prepare", action="store_true", help="fill the folder instead")
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--filter", default="", metavar="REGEX", help="of names of cases")
    parser.add_argument("--small", action="store_true", help="few keys and sequences")
    options = parser.parse_args()
    if options.small:
        shrink()
    os.environ["ATTN_CACHE_DIR"] = os.path.abspath(options.folder)
    if options.prepare:
        return prepare(options.chip)
    if not host_arrays.has_device():
        print("no GPU")
        return 0
    import gpu_check
    import gpu_pages
    import torch

    good = [
        check_case(torch, gpu_pages, gpu_check, name, case, options.rounds)
        for name, case in CASES.items()
        if re.search(options.filter, name)
    ]
    if re.search(options.filter, "init"):
        good += [check_init(torch, gpu_pages, gpu_check, case) for case in INITS]
    if re.search(options.filter, "merge"):
        good.append(check_merge(torch))
    print(f"{sum(good)} right, {len(good) - sum(good)} wrong")
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
