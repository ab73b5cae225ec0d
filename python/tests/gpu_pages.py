#!/usr/bin/env python3
"""Launches bundles of paged problems on the GPU, with random lengths and pages, and
compares with float64.

Needs torch and this package's sources, no compiler and no toolkit:

    scripts: python3 python/tests/gpu_pages.py --make FOLDER      # here, with attn-compile
    GPU:     PYTHONPATH=python python3 python/tests/gpu_pages.py FOLDER

With --serving the bundles are those of CELLS under each of PLANS, for --chip, with
--narrow as well those of 8-bit keys and values; with --latent those of LATENT_CELLS
under their plans.

For each bundle --rounds sets of lengths (0, 1 and the longest among them) and of
permuted pages; what no sequence owns is NaN, entries of the table behind a length
are -1 or beyond the pool, and outputs are poisoned. The launch is captured in a CUDA
graph once and replayed for every set. Prints a table with the times of one launch and
the bytes of K and V a second; exit status 1 when a result is wrong.
"""

from __future__ import annotations

import argparse
import itertools
import math
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

#: Flags of attn-compile by name. The first lengths of a sequence say how many keys
#: its part of the table holds.
CASES = {
    "gqa": ["--q=64x32x1x128x{t}", "--kv-heads=8", "--page-size={p}"],
    "mha": ["--q=16x8x1x64x{t}", "--page-size={p}"],
    "mtp": ["--q=32x24x4x128x{t}", "--kv-heads=8", "--page-size={p}", "--causal=bottom-right"],
    "nhd": ["--q=64x32x1x128x{t}", "--kv-heads=8", "--page-size={p}", "--layout=bnhd"],
    "list": ["--q=64x32x1x128x{t}", "--kv-heads=8", "--page-size={p}", "--page-indptr"],
    "split": ["--q=8x32x1x128x{t}", "--kv-heads=8", "--page-size={p}", "--kv-splits=8"],
    "apart": ["--q=64x32x1x128x{t}", "--kv-heads=8", "--page-size={p}", "--set=pack_heads=false"],
    "chunk": ["--q=4x32x512x128x{t}", "--kv-heads=8", "--page-size={p}", "--causal=bottom-right"],
    "window": ["--q=16x32x1x128x{t}", "--kv-heads=4", "--page-size={p}", "--window=500,0,bottom-right"],
    "sinks": ["--q=16x64x1x64x{t}", "--kv-heads=8", "--page-size={p}", "--sinks"],
    "d256": ["--q=16x16x1x256x{t}", "--kv-heads=2", "--page-size={p}"],
}  # fmt: skip
PAGES = {"gqa": (1, 16, 64, 256), "split": (1, 16, 64)}


#: What servers ask for: batch, keys, query heads, key heads, and into how many runs
#: the keys of a tile may be split.
CELLS = {
    "b64-s4k-32-8": (64, 4096, 32, 8, (0, 2)),
    "b256-s1k-32-8": (256, 1024, 32, 8, (0,)),
    "b16-s32k-64-8": (16, 32768, 64, 8, (0, 2, 8)),
    "b1-s128k-64-8": (1, 131072, 64, 8, (33, 66, 132)),
    "b64-s4k-32-32": (64, 4096, 32, 32, (0,)),
}
#: Plans by name: a schedule and its parameters.
PLANS = {
    "w4n16s3c2": "decode warps=4 block_n=16 stages=3 ctas_per_sm=2",
    "w8n16s3c1": "decode warps=8 block_n=16 stages=3 ctas_per_sm=1",
    "w2n16s3c4": "decode warps=2 block_n=16 stages=3 ctas_per_sm=4",
    "w4n32s3c1": "decode warps=4 block_n=32 stages=3 ctas_per_sm=1",
    "w2n32s3c2": "decode warps=2 block_n=32 stages=3 ctas_per_sm=2",
    "split": "split_q",
    "planner": "",
}
#: Plans for keys and values of 8 bits.
NARROW_PLANS = {
    "w4n32s3c2": "decode warps=4 block_n=32 stages=3 ctas_per_sm=2",
    "w8n32s3c1": "decode warps=8 block_n=32 stages=3 ctas_per_sm=1",
    "w2n32s3c4": "decode warps=2 block_n=32 stages=3 ctas_per_sm=4",
    "w4n64s3c1": "decode warps=4 block_n=64 stages=3 ctas_per_sm=1",
    "w8n16s4c1": "decode warps=8 block_n=16 stages=4 ctas_per_sm=1",
    "planner": "",
}


#: Plans of `mla` by name: rows, warps along rows x columns, keys, slots, CTAs of an SM.
LATENT_PLANS = {
    "m16w1x8n64s2": "block_m=16 warps_m=1 warps_n=8 block_n=64 stages=2 ctas_per_sm=1",
    "m16w1x8n64s2q": "block_m=16 warps_m=1 warps_n=8 block_n=64 stages=2 ctas_per_sm=1 q_in_regs=true",
    "m16w1x4n64s2": "block_m=16 warps_m=1 warps_n=4 block_n=64 stages=2 ctas_per_sm=1",
    "m16w1x4n32s5": "block_m=16 warps_m=1 warps_n=4 block_n=32 stages=5 ctas_per_sm=1",
    "m16w1x4n32s2c2": "block_m=16 warps_m=1 warps_n=4 block_n=32 stages=2 ctas_per_sm=2",
    "m16w1x4n32s2c2t": "block_m=16 warps_m=1 warps_n=4 block_n=32 stages=2 ctas_per_sm=2 score=twice",
    "m16w1x4n64s1c2": "block_m=16 warps_m=1 warps_n=4 block_n=64 stages=1 ctas_per_sm=2",
    "m16w1x2n64s1c2": "block_m=16 warps_m=1 warps_n=2 block_n=64 stages=1 ctas_per_sm=2",
    "m16w1x2n16s3c3": "block_m=16 warps_m=1 warps_n=2 block_n=16 stages=3 ctas_per_sm=3",
    "m32w2x4n64s2": "block_m=32 warps_m=2 warps_n=4 block_n=64 stages=2 ctas_per_sm=1",
    "m32w1x8n64s2": "block_m=32 warps_m=1 warps_n=8 block_n=64 stages=2 ctas_per_sm=1",
    "m32w2x4n32s4": "block_m=32 warps_m=2 warps_n=4 block_n=32 stages=4 ctas_per_sm=1",
    "m32w2x2n64s2": "block_m=32 warps_m=2 warps_n=2 block_n=64 stages=2 ctas_per_sm=1",
    "m32w2x2n32s2c2": "block_m=32 warps_m=2 warps_n=2 block_n=32 stages=2 ctas_per_sm=2",
    "m64w4x2n64s1": "block_m=64 warps_m=4 warps_n=2 block_n=64 stages=1 ctas_per_sm=1",
    "m64w4x2n32s3": "block_m=64 warps_m=4 warps_n=2 block_n=32 stages=3 ctas_per_sm=1",
    "m64w2x4n32s3": "block_m=64 warps_m=2 warps_n=4 block_n=32 stages=3 ctas_per_sm=1",
    "p16w1x2n64s1c2": "block_m=16 warps_m=1 warps_n=2 block_n=64 stages=1 ctas_per_sm=2 softmax=exact",
    "p32w2x2n64s1c2": "block_m=32 warps_m=2 warps_n=2 block_n=64 stages=1 ctas_per_sm=2 softmax=exact",
    "p32w1x4n64s1c2": "block_m=32 warps_m=1 warps_n=4 block_n=64 stages=1 ctas_per_sm=2 softmax=exact",
    "p64w2x4n64s2": "block_m=64 warps_m=2 warps_n=4 block_n=64 stages=2 ctas_per_sm=1 softmax=exact",
    "p64w4x2n64s2": "block_m=64 warps_m=4 warps_n=2 block_n=64 stages=2 ctas_per_sm=1 softmax=exact",
    "g64n64s2": "block_m=64 warps_m=4 warps_n=2 block_n=64 stages=2 ctas_per_sm=1 score=twice wgmma=true",
    "g64n32s4": "block_m=64 warps_m=4 warps_n=2 block_n=32 stages=4 ctas_per_sm=1 score=twice wgmma=true",
    "o64n64s2": "block_m=64 warps_m=4 warps_n=2 block_n=64 stages=2 ctas_per_sm=1 score=own wgmma=true",
    "o64n32s4": "block_m=64 warps_m=4 warps_n=2 block_n=32 stages=4 ctas_per_sm=1 score=own wgmma=true",
}
#: Plans of `ws_mla`: rows, keys, slots of keys, slots of scores and of probabilities.
ROLE_PLANS = {
    "r16n64s2": "block_m=16 block_n=64 stages=2 s_stages=2 p_stages=2",
    "r16n32s3": "block_m=16 block_n=32 stages=3 s_stages=2 p_stages=2",
    "r16n32s4": "block_m=16 block_n=32 stages=4 s_stages=2 p_stages=2",
    "r32n64s2": "block_m=32 block_n=64 stages=2 s_stages=1 p_stages=1",
    "r32n32s3": "block_m=32 block_n=32 stages=3 s_stages=1 p_stages=1",
    "r32n32s4": "block_m=32 block_n=32 stages=4 s_stages=2 p_stages=2",
}
#: Latent attention, 512 + 64 columns: batch, keys, query heads, keys of a page, and plans
#: with the number of runs that the keys of a tile are split into.
LATENT_CELLS = {
    "b768-s1k-h16": (768, 1024, 16, 64, {p: 0 for p in (*LATENT_PLANS, *ROLE_PLANS) if "16" in p[:3]}),
    "b768-s2k-h16": (768, 2048, 16, 64, {"m16w1x8n64s2": 0, "m16w1x4n32s2c2": 0, "m16w1x4n64s1c2": 0}),
    "b768-s1k-h32": (768, 1024, 32, 64, {p: 0 for p in (*LATENT_PLANS, *ROLE_PLANS) if "32" in p[:3]}
                     | {"o64n64s2": 0, "o64n32s4": 0}),
    "b768-s1k-h64": (768, 1024, 64, 64, {p: 0 for p in LATENT_PLANS if "64" in p[:3]}
                     | {"m32w2x4n64s2": 0, "m32w2x2n32s2c2": 0, "r32n64s2": 0, "r32n32s3": 0}),
    "b128-s4k-h128": (128, 4096, 128, 64, {p: 0 for p in LATENT_PLANS if "64" in p[:3]}
                      | {"m32w2x4n64s2": 0, "m32w2x2n32s2c2": 0}),
    "b64-s8k-h16-page1": (64, 8192, 16, 1, {"m16w1x8n64s2": 2, "m16w1x4n32s2c2": 4, "m16w1x4n64s1c2": 4}),
    "b8-s32k-h16": (8, 32768, 16, 64, {"m16w1x8n64s2": 16, "m16w1x4n32s2c2": 33, "m16w1x4n64s1c2": 33}),
    "b1-s32k-h128": (1, 32768, 128, 64, {"m64w4x2n32s3": 66, "m64w2x4n32s3": 66, "m32w2x2n32s2c2": 66,
                                         "m32w2x4n64s2": 33, "g64n64s2": 66, "g64n32s4": 66,
                                         "o64n64s2": 66, "o64n32s4": 66}),
}  # fmt: skip


def make_latent(options: argparse.Namespace) -> int:
    """Bundles of all cells of latent attention under their plans."""
    options.folder.mkdir(parents=True, exist_ok=True)
    good = True
    for cell, (batch, keys, heads, page, plans) in LATENT_CELLS.items():
        for plan, splits in plans.items():
            flags = [f"--q={batch}x{heads}x1x576xbf16", "--rope-dim=64", f"--page-size={page}"]
            flags += ["--kv-lengths=" + ",".join([str(keys)] * batch), f"--chip={options.chip}"]
            flags += [f"--kv-splits={splits}"] * (splits > 0)
            if plan in ROLE_PLANS:
                flags.append("--schedule=ws_mla")
                words = {"softmax": "threshold"}
            else:
                flags.append("--schedule=mla")
                words = {
                    "score": "shard",
                    "q_in_regs": "false",
                    "softmax": "optimistic",
                    "wgmma": "false",
                }
            words |= dict(each.split("=") for each in (LATENT_PLANS | ROLE_PLANS)[plan].split())
            flags += [f"--set={name}={value}" for name, value in words.items()]
            good &= compile_one(options, f"{cell}-{plan}" + f"-x{splits}" * (splits > 0), flags)
    return int(not good)


def compile_one(options: argparse.Namespace, name: str, flags: list[str]) -> bool:
    path = options.folder / f"{name}.attn"
    command = [options.compile, *flags, "-o", "/dev/null", f"--bundle={path}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(path.name, done.stderr.strip() or "made", flush=True)
    return done.returncode == 0


def make_serving(options: argparse.Namespace) -> int:
    """Bundles of all cells and plans, for pages of 16 and 64."""
    options.folder.mkdir(parents=True, exist_ok=True)
    good = True
    kinds = [("", plan, words) for plan, words in PLANS.items()]
    if options.narrow:
        kinds += [("f8E4M3FN", plan, words) for plan, words in NARROW_PLANS.items()]
    for cell, (batch, keys, heads, kv_heads, all_splits) in CELLS.items():
        for page, splits, (kind, plan, words) in itertools.product((16, 64), all_splits, kinds):
            flags = [f"--q={batch}x{heads}x1x128xbf16", f"--kv-heads={kv_heads}"]
            flags += [f"--page-size={page}", "--kv-lengths=" + ",".join([str(keys)] * batch)]
            flags += [f"--kv-splits={splits}"] * (splits > 0) + [f"--chip={options.chip}"]
            flags += [f"--schedule={schedule}" for schedule in words.split()[:1]]
            flags += [f"--set={each}" for each in words.split()[1:]]
            flags += [f"--kv-type={kind}", "--descales"] * bool(kind)
            plan += "-narrow" * bool(kind)
            name = f"{cell}-page{page}-{plan}" + f"-x{splits}" * (splits > 0)
            good &= compile_one(options, name, flags)
    return int(not good)


def make(options: argparse.Namespace) -> int:
    options.folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name, words in CASES.items():
        for dtype in ("f16", "bf16"):
            for page in PAGES.get(name, (16,)):
                flags = [word.format(t=dtype, p=page) for word in words]
                batch = int(flags[0].split("=")[1].split("x")[0])
                flags.append("--kv-lengths=" + ",".join([str(options.keys)] * batch))
                flags.append(f"--chip={options.chip}")
                failed += not compile_one(options, f"{name}-{dtype}-page{page}", flags)
    return int(failed != 0)


def draw_lengths(torch, batch: int, capacity: int, generator) -> list[int]:
    """Lengths of a round, log-uniform, with the ends among them."""
    drawn = torch.rand(batch, generator=generator)
    lengths = [int(math.exp(float(x) * math.log(capacity + 1))) for x in drawn]
    if batch == 1:
        return [capacity - lengths[0] // 2]
    for place, length in enumerate((0, 1, capacity)):
        if place < batch:
            lengths[place] = length
    return lengths


def fill(torch, tensors: dict, lengths: list[int], generator) -> None:
    """Lengths, a table of permuted pages, and random keys in what they own."""
    k, v, table = tensors["k"], tensors.get("v"), tensors["page_table"]
    pages, page = k.shape[0], k.shape[2]
    order = torch.randperm(pages, generator=generator).tolist()
    entries = torch.full(table.shape, -1, dtype=torch.int32)
    entries.view(-1)[::3] = pages + 5
    owned = torch.zeros(pages, page, dtype=torch.bool)
    first, counts = 0, [0]
    for index, length in enumerate(lengths):
        used = -(-length // page)
        ids = [order.pop() for _ in range(used)]
        place = entries[index] if table.dim() == 2 else entries[first:]
        place[:used] = torch.tensor(ids, dtype=torch.int32)
        first += used
        counts.append(first)
        full = length // page
        owned[torch.tensor(ids[:full], dtype=torch.long)] = True
        for number in ids[full:]:
            owned[number, : length % page] = True
    for pool in [each for each in (k, v, tensors.get("k_rope")) if each is not None]:
        values = torch.randn(pool.shape, device="cuda", dtype=torch.float32)
        values.masked_fill_(~owned.to("cuda")[:, None, :, None], math.nan)
        if pool.element_size() == 1:
            pool.view(torch.uint8).copy_(values.to(pool.dtype).view(torch.uint8))
        else:
            pool.copy_(values)
    for name in ("k_scales", "v_scales"):
        if name in tensors:
            values = torch.rand(tensors[name].shape, device="cuda") * 1.5 + 0.5
            values.masked_fill_(~owned.to("cuda")[:, None, :, None], math.nan)
            tensors[name].copy_(values)
    for name in ("k_descale", "v_descale"):
        # One number for several is the caller's.
        if name in tensors and 0 not in tensors[name].stride():
            tensors[name].uniform_(0.5, 2)
    table.copy_(entries)
    tensors["kv_lengths"].copy_(torch.tensor(lengths, dtype=torch.int32))
    if "page_indptr" in tensors:
        tensors["page_indptr"].copy_(torch.tensor(counts, dtype=torch.int32))


def gather(torch, tensors: dict, name: str, index: int, length: int):
    """The keys or values of a sequence, (heads, length, dim)."""
    # Latent attention: values are the first columns of the keys.
    pool = tensors[name] if name in tensors else tensors["k"][..., : tensors["o"].shape[-1]]
    table = tensors["page_table"]
    page = pool.shape[2]
    start = int(tensors["page_indptr"][index]) if "page_indptr" in tensors else 0
    row = table[start:] if table.dim() == 1 else table[index]
    ids = row[: -(-length // page)].long()
    # Not every operator takes 8-bit floats.
    taken = pool[ids] if pool.element_size() > 1 else pool.view(torch.uint8)[ids].view(pool.dtype)
    rows = taken.double()
    scales = tensors.get(f"{name}_scales" if name in tensors else "k_scales")
    if scales is not None:
        rows = rows * scales[ids].double().repeat_interleave(
            pool.shape[3] // scales.shape[3], dim=3
        )
    if name == "k" and "k_rope" in tensors:
        rows = torch.cat([rows, tensors["k_rope"][ids].double()], dim=3)
    keys = rows.permute(1, 0, 2, 3).reshape(pool.shape[1], -1, rows.shape[3])[:, :length]
    if f"{name}_descale" in tensors:
        keys = keys * tensors[f"{name}_descale"][index].double()[:, None, None]
    return keys


def compare(torch, attend, tensors: dict, problem: dict, lengths: list[int]) -> tuple[float, float]:
    difference = norm = worst = 0.0
    # Of a large batch every so many sequences, and the first ones, whose lengths are ends.
    step = max(1, len(lengths) // MOST_COMPARED)
    for index, length in enumerate(lengths):
        if index % step and index > 2:
            continue
        k, v = (gather(torch, tensors, name, index, length) for name in "kv")
        q = tensors["q"][index]
        if "q_rope" in tensors:
            q = torch.cat([q, tensors["q_rope"][index]], dim=-1)
        reference, reference_lse = attend(q, k, v, problem, tensors.get("sinks"))
        got, got_lse = tensors["o"][index].double(), tensors["lse"][index].double()
        difference += float(((got - reference) ** 2).sum())
        norm += float((reference**2).sum())
        same = got_lse == reference_lse
        distance = (got_lse - reference_lse).abs().masked_fill(same, 0)
        worst = max(worst, float(distance.nan_to_num(math.inf).max()))
    error = math.sqrt(difference / norm) if norm else math.sqrt(difference)
    return (math.inf if math.isnan(error) else error), worst


#: Sequences of a batch whose results are compared, about.
MOST_COMPARED = 128
#: Keys of fewer bytes might still be in L2 when the next launch reads them.
COLD_BYTES = 400e6


def measure_cold(torch, call, bytes_read: int) -> float:
    """The same with what a launch read before gone from L2."""
    if bytes_read >= COLD_BYTES:
        return measure(torch, call)
    other = torch.empty(128 << 20, dtype=torch.uint8, device="cuda")

    def both() -> None:
        other.zero_()
        call()

    return measure(torch, both) - measure(torch, other.zero_)


def measure(torch, call, calls: int = 10, repeats: int = 5) -> float:
    """Median microseconds of a launch among several of a CUDA graph, so that the
    host's share does not count."""
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    graph.replay()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1000 / calls)
    return sorted(times)[repeats // 2]


def check(torch, gpu_check, path: pathlib.Path, options: argparse.Namespace) -> bool:
    kernel = gpu_check.attn.runtime.load(path)
    record = kernel.launch_record
    problem = record["problem"]
    tensors = {
        tensor["name"]: gpu_check.make_tensor(tensor, list(tensor["shape"]), padded=False)
        for tensor in record["tensors"]
    }
    generator = torch.Generator().manual_seed(options.seed)
    batch, page = tensors["q"].shape[0], tensors["k"].shape[2]
    capacity = tensors["page_table"].shape[-1] * page
    if "page_indptr" in tensors:
        capacity //= batch

    def call() -> None:
        kernel(**tensors)

    fill(torch, tensors, [capacity] * batch, generator)
    keys = batch * capacity * tensors["k"].shape[1]
    columns = sum(tensors[name].shape[3] for name in "kv" if name in tensors)
    bytes_read = keys * columns * tensors["k"].element_size()
    time = measure_cold(torch, call, bytes_read)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    tolerance = max(
        gpu_check.TOLERANCES[t["dtype"]] for t in record["tensors"] if t["name"] in "qo"
    )
    largest, largest_lse = 0.0, 0.0
    for _ in range(options.rounds):
        lengths = draw_lengths(torch, batch, capacity, generator)
        fill(torch, tensors, lengths, generator)
        tensors["o"].fill_(gpu_check.POISON)
        tensors["lse"].fill_(gpu_check.POISON)
        graph.replay()
        torch.cuda.synchronize()
        error, lse_error = compare(torch, gpu_check.attend, tensors, problem, lengths)
        largest, largest_lse = max(largest, error), max(largest_lse, lse_error)
    good = largest <= tolerance and largest_lse <= gpu_check.LSE_TOLERANCE
    print(
        f"{path.stem:36} {time:9.1f} us {bytes_read / time / 1000:7.0f} GB/s  O {largest:.2e}  "
        f"LSE {largest_lse:.2e}  {'right' if good else 'WRONG'}",
        flush=True,
    )
    return good


def run_check(torch, gpu_check, path: pathlib.Path, options: argparse.Namespace) -> bool:
    """Checks a bundle; one that cannot be checked does not end the others."""
    try:
        return check(torch, gpu_check, path, options)
    except Exception as error:  # noqa: BLE001
        print(f"{path.stem:36} {type(error).__name__}: {error}  WRONG", flush=True)
        return False


def make_parser(description: str, chip: str) -> argparse.ArgumentParser:
    """What scripts ask for whose bundles are made here and run elsewhere."""
    parser = argparse.ArgumentParser(description=description.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--make", action="store_true", help="compile the bundles instead")
    parser.add_argument("--chip", default=chip)
    parser.add_argument("--compile", default=ROOT / "build/bin/attn-compile")
    return parser


def main() -> int:
    parser = make_parser(__doc__, "sm_80")
    parser.add_argument("--serving", action="store_true", help="the cells of servers")
    parser.add_argument("--narrow", action="store_true", help="these with 8-bit keys as well")
    parser.add_argument("--latent", action="store_true", help="the cells of latent attention")
    parser.add_argument("--keys", type=int, default=1024, help="longest sequence")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.make and options.latent:
        return make_latent(options)
    if options.make:
        return make_serving(options) if options.serving else make(options)
    import gpu_check
    import torch

    bundles = sorted(options.folder.glob("*.attn"))
    wrong = [path for path in bundles if not run_check(torch, gpu_check, path, options)]
    print(f"{len(bundles) - len(wrong)} right, {len(wrong)} wrong")
    return int(bool(wrong) or not bundles)


if __name__ == "__main__":
    sys.exit(main())
