#!/usr/bin/env python3
"""Decoding beside torch on the GPU: scaled_dot_product_attention with each of its backends and
FlexAttention, dense and in pages, against kernels of this compiler with pages of 16, 64 and 128
keys and without.

    python3 python/tests/gpu_decode_peers.py --make FOLDER         # here, with attn-compile
    PYTHONPATH=python python3 python/tests/gpu_decode_peers.py FOLDER      # on the GPU

All contestants of a cell see the same numbers. Each is compared with float64 first, then timed in
CUDA graphs of 10 launches in turned orders; where keys might stay in L2, 128 MB are written or
read in front of each launch and their time is taken off. What a backend refuses is said. A script
that knows other kernels may add to PEERS. Exit status 1 when something is wrong, 0 without a GPU.
"""

from __future__ import annotations

import argparse
import functools
import gc
import pathlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import gpu_pages

CALLS, ROUNDS = 10, 16
#: A launch that takes longer than this is not timed, in us.
SLOWEST = 20000
#: Keys of a block of FlexAttention's masks, and a number of runs beside its own choice.
FLEX_BLOCK, FLEX_RUNS = 128, 4
#: What the pools of attn-compile have beside the pages that tables name.
SPARE_PAGES = 3
#: Largest relative error of O in bf16.
TOLERANCE = 1.6e-2


class Cell(NamedTuple):
    """Full lengths of `keys`; latent keys where `value_dim` is another than `dim`; a window of
    `window` keys where that is not 0. Several queries see keys up to their own place."""

    batch: int
    keys: int
    heads: int
    kv_heads: int
    dim: int = 128
    value_dim: int = 128
    queries: int = 1
    window: int = 0

    @property
    def latent(self) -> bool:
        return self.dim != self.value_dim

    @property
    def bytes_read(self) -> int:
        columns = self.dim if self.latent else 2 * self.dim
        return 2 * self.batch * min(self.keys, self.window or self.keys) * self.kv_heads * columns


CELLS = {
    "b64-s4k-32-8": Cell(64, 4096, 32, 8),
    "b256-s1k-32-8": Cell(256, 1024, 32, 8),
    "b16-s32k-64-8": Cell(16, 32768, 64, 8),
    "b1-s128k-64-8": Cell(1, 131072, 64, 8),
    "b64-s4k-32-32": Cell(64, 4096, 32, 32),
    "d64-b64-s4k-32-8": Cell(64, 4096, 32, 8, 64, 64),
    "d256-b64-s4k-16-2": Cell(64, 4096, 16, 2, 256, 256),
    "window-b16-s32k-64-8": Cell(16, 32768, 64, 8, window=1024),
    "q4-b64-s4k-32-8": Cell(64, 4096, 32, 8, queries=4),
    "mla-b128-s4k-h128": Cell(128, 4096, 128, 1, 576, 512),
    "mla-b768-s1k-h64": Cell(768, 1024, 64, 1, 576, 512),
    "mla-b768-s1k-h32": Cell(768, 1024, 32, 1, 576, 512),
    "mla-b768-s1k-h16": Cell(768, 1024, 16, 1, 576, 512),
    "mla-b1-s32k-h128": Cell(1, 32768, 128, 1, 576, 512),
}
#: Keys of a page by the form of a bundle, 0 where keys are dense.
FORMS = {"page16": 16, "page64": 64, "page128": 128, "dense": 0}
LATENT_FORMS = {"page64": [], "page64-bf16": ["--partials=bf16"]}


def list_bundles(name: str, cell: Cell) -> dict[str, list[str]]:
    """Flags of attn-compile by the form of a bundle; dense keys are all there are."""
    flags = [f"--q={cell.batch}x{cell.heads}x{cell.queries}x{cell.dim}xbf16"]
    lengths = ["--kv-lengths=" + ",".join([str(cell.keys)] * cell.batch)]
    if cell.latent:
        flags += [*lengths, f"--rope-dim={cell.dim - cell.value_dim}", "--page-size=64"]
        return {form: flags + more for form, more in LATENT_FORMS.items()}
    flags.append(f"--kv-heads={cell.kv_heads}")
    if cell.window:
        flags.append(f"--window={cell.window - 1},0,bottom-right")
    elif cell.queries > 1:
        flags.append("--causal=bottom-right")
    return {
        form: [*flags, *([f"--page-size={page}", *lengths] if page else [f"--kv-len={cell.keys}"])]
        for form, page in FORMS.items()
    }


def make(options: argparse.Namespace) -> int:
    options.folder.mkdir(parents=True, exist_ok=True)
    good = True
    for name, cell in CELLS.items():
        for form, flags in list_bundles(name, cell).items():
            flags = [*flags, f"--chip={options.chip}"]
            good &= gpu_pages.compile_one(options, f"{name}.{form}", flags)
    return int(not good)


class Data:
    """The numbers of a cell, dense and in pools of permuted pages."""

    def __init__(self, torch, cell: Cell, folder: pathlib.Path, name: str) -> None:
        self.torch, self.cell, self.folder, self.name = torch, cell, folder, name
        make = functools.partial(torch.randn, device="cuda", dtype=torch.bfloat16)
        self.q = make(cell.batch, cell.heads, cell.queries, cell.dim)
        self.k = make(cell.batch, cell.kv_heads, cell.keys, cell.dim)
        self.v = self.k[..., : cell.value_dim] if cell.latent else torch.randn_like(self.k)
        self.scale = cell.dim**-0.5
        self.lengths = torch.full((cell.batch,), cell.keys, dtype=torch.int32, device="cuda")
        self.get_pools = functools.cache(self.make_pools)

    def make_pools(self, page: int) -> tuple:
        """Pools (pages, heads, keys of a page, columns) of k and v, and the table. What no
        sequence owns is NaN."""
        torch, cell = self.torch, self.cell
        count = cell.keys // page
        order = torch.randperm(cell.batch * count + SPARE_PAGES, device="cuda")
        table = order[: cell.batch * count].view(cell.batch, count)
        pools = []
        for dense in (self.k,) if cell.latent else (self.k, self.v):
            paged = dense.unflatten(2, (count, page)).transpose(1, 2).flatten(0, 1)
            shape = (len(paged) + SPARE_PAGES, *paged.shape[1:])
            pool = torch.full(shape, torch.nan, dtype=paged.dtype, device="cuda")
            pool[table.flatten()] = paged
            pools.append(pool)
        return pools[0], pools[-1], table.to(torch.int32)

    def see(self, query, key):
        """Which keys a query sees, of indices that broadcast."""
        at = query + self.cell.keys - self.cell.queries
        window = self.cell.window or self.cell.keys
        return (key <= at) & (key > at - window)

    def list_compared(self) -> list[int]:
        return sorted({0, self.cell.batch // 2, self.cell.batch - 1})

    @functools.cached_property
    def reference(self) -> list:
        """O and LSE of some sequences in float64."""
        torch, cell, results = self.torch, self.cell, []
        indices = [torch.arange(n, device="cuda") for n in (cell.queries, cell.keys)]
        seen = self.see(indices[0][:, None], indices[1])
        for index in self.list_compared():
            q = self.q[index].double().unflatten(0, (cell.kv_heads, -1))
            scores = torch.einsum("hgqd,hnd->hgqn", q, self.k[index].double()) * self.scale
            scores.masked_fill_(~seen, -torch.inf)
            lse = scores.logsumexp(dim=-1)
            weights = (scores - lse[..., None]).exp()
            o = torch.einsum("hgqn,hnd->hgqd", weights, self.v[index].double())
            results.append((o.flatten(0, 1), lse.flatten(0, 1)))
        return results

    def compare(self, o, lse=None) -> tuple[float, float]:
        """The relative error of O and the largest one of LSE."""
        error = norm = worst = 0.0
        for index, (want, want_lse) in zip(self.list_compared(), self.reference):
            error += float((o[index].double() - want).square().sum())
            norm += float(want.square().sum())
            if lse is not None:
                worst = max(worst, float((lse[index].double() - want_lse).abs().max()))
        return (error / norm) ** 0.5, worst


#: A contestant: its name, what launches it and gives O, and its LSE where it has one.
Contestant = tuple[str, Callable, object]


def list_own(data: Data) -> Iterator[Contestant]:
    """All bundles of the cell in the folder, whoever put them there."""
    import attn.runtime
    import gpu_check
    import gpu_combine
    from attn.launch import planned_steps

    for path in sorted(data.folder.glob(f"{data.name}.*.attn")):
        record = attn.runtime.load(path).launch_record
        shapes = {tensor["name"]: tensor["shape"] for tensor in record["tensors"]}
        tensors = {"q": data.q, "kv_lengths": data.lengths, "k": data.k, "v": data.v}
        if "page_table" in shapes:
            tensors["k"], tensors["v"], tensors["page_table"] = data.get_pools(shapes["k"][2])
        way = gpu_combine.Way(data.torch, attn.runtime, path, tensors, gpu_check)
        way()
        call = way
        planned = planned_steps.count_planned(
            way.kernel.launch_record, {"kv_lengths", "page_table"}
        )
        if planned:
            # What plan() of a DecodePlan launches is done; what run() launches counts.
            rest = planned_steps.split(way.kernel, planned)[1]
            named = {name: way.tensors[name] for name in rest.kernel.names}
            views = {n: attn.runtime.device_tensors.view(n, each, 0) for n, each in named.items()}
            prepared, places = rest.kernel.prepare(views), rest.pick(way.places)
            addresses = [each.data_ptr() for each in named.values()]
            call = functools.partial(launch, data.torch, prepared, addresses, places)
        way.poison(gpu_check.POISON)
        form, lse = path.stem.partition(".")[2], way.tensors["lse"]
        # The way holds the memory that launches work in.
        yield f"ours, {form}", lambda call=call, way=way: (call(), way.tensors["o"])[1], lse


def launch(torch, prepared, addresses: list[int], places: list[int]) -> None:
    prepared(addresses, torch.cuda.current_stream().cuda_stream, places)


def list_sdpa(data: Data) -> Iterator[Contestant]:
    """Dense keys, with heads of a group as they are and, for one query, as queries of one."""
    torch, cell = data.torch, data.cell
    from torch.nn.attention import SDPBackend, sdpa_kernel

    attend = torch.nn.functional.scaled_dot_product_attention
    mask = None
    if cell.queries > 1 or cell.window:
        indices = [torch.arange(n, device="cuda") for n in (cell.queries, cell.keys)]
        mask = data.see(indices[0][:, None], indices[1])
    packed = data.q.view(cell.batch, cell.kv_heads, -1, cell.dim)
    forms = {"": (data.q, cell.heads != cell.kv_heads)}
    if cell.heads != cell.kv_heads and cell.queries == 1:
        forms[", packed"] = (packed, False)
    for backend in ("FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION"):
        for form, (q, grouped) in forms.items():

            def call(backend=backend, q=q, grouped=grouped):
                if backend == "FLASH_ATTENTION" and cell.queries > 1:
                    # Its mask is aligned at the bottom right, which attend has no word for.
                    operator = torch.ops.aten._scaled_dot_product_flash_attention
                    return operator(q, data.k, data.v, 0.0, True, False, scale=data.scale)[0]
                with sdpa_kernel([getattr(SDPBackend, backend)]):
                    return attend(q, data.k, data.v, mask, scale=data.scale, enable_gqa=grouped)

            yield f"sdpa {backend.split('_')[0].lower()}{form}", call, None


def list_flex(data: Data, mode: str | None = None) -> Iterator[Contestant]:
    """FlexAttention, dense and over pages of 128 keys through its block mask, in as many runs of
    keys as it takes and in `FLEX_RUNS`."""
    torch, cell = data.torch, data.cell
    from torch.nn.attention import flex_attention as flex

    count = cell.keys // FLEX_BLOCK
    offset, window = cell.keys - cell.queries, cell.window or cell.keys
    ones = torch.ones(cell.batch, 1, 1, dtype=torch.int32, device="cuda")

    def cut(b, h, query, key):
        return (key <= query + offset) & (key > query + offset - window)

    if cell.queries > 1 or cell.window:
        mask = flex.create_block_mask(cut, None, None, cell.queries, cell.keys)
    else:
        # Without a mask it does not cut the keys.
        ids = torch.arange(count, dtype=torch.int32, device="cuda")[None, None, None]
        few = ones[:1]
        mask = flex.BlockMask.from_kv_blocks(
            few * 0, ids, few * count, ids, FLEX_BLOCK, seq_lengths=(cell.queries, cell.keys)
        )
    forms = {"flex": (data.k, data.v, mask)}
    if not (cell.window or cell.queries > 1 or cell.latent):
        k, v, table = data.get_pools(FLEX_BLOCK)
        k, v = (each.transpose(0, 1).flatten(1, 2).unsqueeze(0) for each in (k, v))
        pages, lengths = k.shape[2] // FLEX_BLOCK, data.lengths
        logical = torch.zeros(pages, dtype=torch.int32, device="cuda")
        places = torch.arange(count, device="cuda", dtype=torch.int32)
        logical[table.flatten().long()] = places.repeat(cell.batch)

        def see(b, h, query, key):
            return logical[key // FLEX_BLOCK] * FLEX_BLOCK + key % FLEX_BLOCK < lengths[b]

        # All pages but a sequence's last one are full.
        ids = torch.zeros(cell.batch, 1, 1, pages, dtype=torch.int32, device="cuda")
        ids[:, 0, 0, :count] = table
        last = torch.zeros_like(ids)
        last[:, 0, 0, 0] = table[:, -1]
        blocks = flex.BlockMask.from_kv_blocks(
            ones, last, ones * (count - 1), ids, FLEX_BLOCK, see, (cell.queries, k.shape[2])
        )
        forms[f"flex, page{FLEX_BLOCK}"] = (k, v, blocks)
    more = {"scale": data.scale, "enable_gqa": cell.heads != cell.kv_heads}
    for form, (k, v, mask) in forms.items():
        for runs in (0, FLEX_RUNS):
            options = {"SPLIT_KV": runs} if runs else None
            compiled = torch.compile(flex.flex_attention, dynamic=False, mode=mode)
            call = functools.partial(
                compiled, data.q, k, v, block_mask=mask, kernel_options=options, **more
            )
            yield form + f", {runs} runs" * (runs > 0) + ", tuned" * (mode is not None), call, None


PEERS: list[Callable[[Data], Iterator[Contestant]]] = [list_own, list_sdpa, list_flex]


def capture(torch, call: Callable):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    return graph


def replay(torch, graph) -> float:
    """Microseconds of a launch."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1000 / CALLS


def measure(torch, calls: dict[str, Callable], bytes_read: int) -> dict[str, dict[str, float]]:
    """Microseconds of each call by what is done in front of it."""
    other = torch.zeros(128 << 20, dtype=torch.uint8, device="cuda")
    words, sink = other.view(torch.int32), torch.zeros((), dtype=torch.int64, device="cuda")
    fronts = {"": None}
    if bytes_read < gpu_pages.COLD_BYTES:
        fronts = {"written": other.zero_, "read": lambda: torch.sum(words, dim=0, out=sink)}
    results = {}
    for front, clear in fronts.items():
        graphs = {}
        for name, call in calls.items():
            both = call if clear is None else lambda call=call, clear=clear: (clear(), call())
            try:
                graphs[name] = capture(torch, both)
            except RuntimeError as failure:
                print(f"{name}: no graph: {failure}")
        if clear:
            graphs["clear"] = capture(torch, clear)
        names = list(graphs)
        for name in names * 2:
            graphs[name].replay()
        times: dict[str, list[float]] = {name: [] for name in names}
        for number in range(ROUNDS):
            for name in names if number % 2 == 0 else reversed(names):
                times[name].append(replay(torch, graphs[name]))
        half = ROUNDS // 2
        middle = {n: sum(sorted(t)[half - 1 : half + 1]) / 2 for n, t in times.items()}
        base = middle.pop("clear", 0.0)
        results[front] = {name: each - base for name, each in middle.items()}
    return results


def run(torch, name: str, cell: Cell, folder: pathlib.Path) -> bool:
    import torch._dynamo

    torch._dynamo.reset()
    data = Data(torch, cell, folder, name)
    calls, notes, good = {}, {}, True
    for peer in PEERS:
        contestants = peer(data)
        while True:
            title = f"next of {peer.__name__}"
            try:
                title, call, lse = next(contestants)
                o = call().reshape(*data.q.shape[:3], -1)
                torch.cuda.synchronize()
                start = time.monotonic()
                call()
                torch.cuda.synchronize()
                took = (time.monotonic() - start) * 1e6
                error, worst = data.compare(o, lse)
                notes[title] = f"O {error:.1e}" + (f" LSE {worst:.1e}" if lse is not None else "")
                if not error < TOLERANCE or not worst < 1e-3:
                    notes[title] += " WRONG"
                    good &= not title.startswith("ours")
                if took < SLOWEST:
                    calls[title] = call
                else:
                    print(f"{name:22} {title:26} {took:9.1f} us, not timed  {notes[title]}")
            except StopIteration:
                break
            except Exception as failure:  # Whatever a peer gives for what it does not take.
                text = " ".join(str(failure).split())[:160]
                print(f"{name:22} {title:26} refused: {type(failure).__name__}: {text}", flush=True)
                if title.startswith("next") or title.startswith("ours"):
                    good &= peer is not list_own
                    break
    for front, times in measure(torch, calls, cell.bytes_read).items():
        best = min((t for n, t in times.items() if n.startswith("ours")), default=float("nan"))
        for title, each in times.items():
            rate = cell.bytes_read / each / 1000
            print(
                f"{name:22} {title:26} {front:8} {each:9.1f} us {rate:6.0f} GB/s  by our best "
                f"{each / best:6.3f}  {notes[title]}",
                flush=True,
            )
    return good


def main() -> int:
    parser = gpu_pages.make_parser(__doc__, "sm_90a")
    parser.add_argument("--only", default="", help="cells whose names begin so")
    parser.add_argument("--time", type=float, default=600, help="seconds until no cell starts")
    options = parser.parse_args()
    if options.make:
        return make(options)
    import torch

    if not torch.cuda.is_available():
        print("no GPU")
        return 0
    torch.set_grad_enabled(False)
    # What a backend refuses is said in one line.
    warnings.simplefilter("ignore")
    torch.manual_seed(time.time_ns() % 2**31)
    print(torch.cuda.get_device_name(), "torch", torch.__version__, flush=True)
    good, start = True, time.monotonic()
    for name, cell in CELLS.items():
        if not any(name.startswith(word) for word in options.only.split(",")):
            continue
        if time.monotonic() - start > options.time:
            print(f"out of time: {name} not run")
            continue
        good &= run(torch, name, cell, options.folder)
        gc.collect()
        torch.cuda.empty_cache()
        print(f"-- {name} {time.monotonic() - start:.0f} s", flush=True)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
