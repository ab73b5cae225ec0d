#!/usr/bin/env python3
"""Launches every bundle of a folder on the GPU and compares with float64.

Needs torch and this package's sources, no compiler and no toolkit:

    PYTHONPATH=python python3 python/tests/gpu_check.py FOLDER

Sizes that a record leaves open get --batch, --queries, --keys and --sequences.
With --graph each launch is captured in a CUDA graph too, which is replayed on
other contents of q, k and v.
Prints a table; exit status 1 when a kernel is wrong or does not launch.
"""

from __future__ import annotations

import argparse
import math
import pathlib
import sys
import time

import attn
import attn.runtime
import torch

DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E5M2": torch.float8_e5m2,
    "i32": torch.int32,
    "i64": torch.int64,
}
#: Largest relative error of O, by the coarser type of q and o; and of LSE. Tensor cores add 8-bit
#: products up with fewer bits than f32 has: torch's `_scaled_mm` was off by up to 3.3e-3 of a
#: score of 256 columns on an H100, and a row of few keys has that in its LSE.
TOLERANCES = {"f16": 2e-3, "f32": 2e-3, "bf16": 1.6e-2, "f8E4M3FN": 8e-2, "f8E5M2": 8e-2}
LSE_TOLERANCE, NARROW_LSE_TOLERANCE = 1e-3, 4e-3
#: Fills outputs and gaps, so that elements that nobody wrote are seen.
POISON = -77.0


def choose_shape(tensor: dict, options: argparse.Namespace, packed: bool) -> list[int]:
    """The record's shape with the open sizes chosen; packed sequences have
    batch size 1."""
    name, shape = tensor["name"], list(tensor["shape"])
    rows = options.keys if name in ("k", "v") else options.queries
    chosen = [1 if packed else options.batch, None, rows, None]
    if name.startswith("cu_seqlens"):
        chosen = [options.sequences + 1]
    for axis, extent in enumerate(shape):
        if extent == -1:
            if axis >= len(chosen) or chosen[axis] is None:
                raise ValueError(f"tensor {name}: no value for dimension {axis}")
            shape[axis] = chosen[axis]
    return shape


def make_tensor(tensor: dict, shape: list[int], padded: bool) -> torch.Tensor:
    """A tensor with the record's strides; open ones are row-major, with gaps
    between the rows of the outermost dimension when `padded`."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
        if padded and axis == 0 and len(shape) == 4:
            strides[axis] += 64
    # What the record fixes counts; the open ones have to lie above it.
    fixed = tensor["strides"]
    if any(stride != -1 for stride in fixed[:-1]):
        strides = [s if f == -1 else f for s, f in zip(strides, fixed)]
    dtype = DTYPES[tensor["dtype"]]
    extent = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))
    wide = torch.full((max(extent, 1),), POISON, device="cuda", dtype=torch.float32)
    storage = wide.to(dtype)
    view = storage.as_strided(shape, strides)
    if tensor["access"] == "read" and dtype.is_floating_point:
        values = torch.randn(shape, device="cuda", dtype=torch.float32)
        if tensor["name"].endswith("_descale"):
            values = 0.5 + torch.rand_like(values)
        # fp8 has no strided copy kernels: through the bytes.
        if dtype.itemsize == 1:
            view.view(torch.uint8).copy_(values.to(dtype).view(torch.uint8))
        else:
            view.copy_(values)
    return view


def fill_lengths(tensors: dict[str, torch.Tensor], bound: int) -> None:
    """Random cumulative lengths, some sequences empty."""
    generator = torch.Generator().manual_seed(1)
    for side, packed in (("q", "q"), ("k", "k")):
        lengths = tensors[f"cu_seqlens_{side}"]
        rows, count = tensors[packed].shape[2], len(lengths) - 1
        cuts = sorted(torch.randint(0, rows + 1, (count - 1,), generator=generator).tolist())
        cuts = [0, *cuts, rows]
        if bound and side == "q":
            for index in range(1, count + 1):
                cuts[index] = min(cuts[index], cuts[index - 1] + bound)
        lengths.copy_(torch.tensor(cuts, dtype=lengths.dtype))


def attend(q, k, v, problem: dict, sinks) -> tuple[torch.Tensor, torch.Tensor]:
    """One batch entry in float64: q (H, Nq, D), k and v (H', Nk, D). Rows
    without keys have 0 and -inf."""
    queries, keys = q.shape[1], k.shape[1]
    mask = problem["mask"]
    offset = keys - queries if mask.get("align") == "bottom_right" else 0
    i = torch.arange(queries, device=q.device)[:, None] + offset
    j = torch.arange(keys, device=q.device)[None, :]
    seen = torch.ones(queries, keys, dtype=torch.bool, device=q.device)
    if mask["kind"] == "causal":
        seen = j <= i
    elif mask["kind"] == "window":
        if mask["left"] >= 0:
            seen &= j >= i - mask["left"]
        if mask["right"] >= 0:
            seen &= j <= i + mask["right"]
    outputs, lses = [], []
    group = problem["heads"] // problem["kv_heads"]
    for head in range(q.shape[0]):
        scores = problem["scale"] * (q[head].double() @ k[head // group].double().T)
        softcap = problem.get("softcap", 0)
        if softcap > 0:
            scores = softcap * torch.tanh(scores / softcap)
        scores = scores.masked_fill(~seen, -math.inf)
        lse = torch.full((queries,), -math.inf, dtype=torch.float64, device=q.device)
        if keys:
            lse = torch.logsumexp(scores, -1)
        if sinks is not None:
            lse = torch.logaddexp(lse, sinks[head].double().expand_as(lse))
        weights = torch.exp(scores - lse[:, None]).masked_fill(~seen, 0)
        outputs.append(weights @ v[head // group].double())
        lses.append(lse)
    return torch.stack(outputs), torch.stack(lses)


def widen(tensors: dict[str, torch.Tensor], name: str) -> torch.Tensor:
    """Returns an operand in its unit: (batch, heads, rows, columns)."""
    if f"{name}_descale" not in tensors:
        return tensors[name]
    unit = tensors[f"{name}_descale"].double()[:, :, None, None]
    return tensors[name].double() * unit


def compare(tensors: dict[str, torch.Tensor], problem: dict) -> tuple[float, float | None]:
    """Relative error of O and absolute error of LSE."""
    q, k, v = (widen(tensors, name) for name in "qkv")
    o = tensors["o"]
    lse, sinks = tensors.get("lse"), tensors.get("sinks")
    init_o, init_lse = tensors.get("init_o"), tensors.get("init_lse")
    if problem.get("varlen"):
        cu_q, cu_k = (tensors[f"cu_seqlens_{side}"].tolist() for side in "qk")
        pieces = [
            (0, slice(cu_q[n], cu_q[n + 1]), slice(cu_k[n], cu_k[n + 1]))
            for n in range(len(cu_q) - 1)
        ]
    else:
        pieces = [(b, slice(None), slice(None)) for b in range(q.shape[0])]
    difference = norm = worst = 0.0
    for b, rows, columns in pieces:
        if q[b, :, rows].shape[1] == 0:
            continue
        reference, reference_lse = attend(
            q[b, :, rows], k[b, :, columns], v[b, :, columns], problem, sinks
        )
        if init_o is not None:
            start = init_lse[b, :, rows].double()
            both = torch.logaddexp(reference_lse, start)
            reference = (
                torch.exp(reference_lse - both)[..., None] * reference
                + torch.exp(start - both)[..., None] * init_o[b, :, rows].double()
            )
            reference_lse = both
        got = o[b, :, rows].double()
        difference += float(((got - reference) ** 2).sum())
        norm += float((reference**2).sum())
        if lse is not None:
            got_lse = lse[b, :, rows].double()
            same = got_lse == reference_lse
            distance = (got_lse - reference_lse).abs().masked_fill(same, 0)
            worst = max(worst, float(distance.nan_to_num(math.inf).max()))
    error = math.sqrt(difference / norm) if norm else math.sqrt(difference)
    return error, worst if lse is not None else None


def measure(call, repeats: int) -> float:
    """Median microseconds of a launch on the GPU."""
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1000)
    return sorted(times)[len(times) // 2]


def measure_host(call, calls: int = 200) -> float:
    """Microseconds of one call on the host."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    elapsed = (time.perf_counter() - start) / calls * 1e6
    torch.cuda.synchronize()
    return elapsed


def compare_replay(
    call, tensors: dict[str, torch.Tensor], problem: dict
) -> tuple[float, float | None]:
    """The errors of a graph of the launch on contents that it was not captured
    with."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    for name in "qkv":
        tensor = tensors[name]
        values = torch.randn(tensor.shape, device="cuda", dtype=torch.float32).to(tensor.dtype)
        if tensor.dtype.itemsize == 1:
            tensor.view(torch.uint8).copy_(values.view(torch.uint8))
        else:
            tensor.copy_(values)
    # A second replay finds what the first one left.
    graph.replay()
    graph.replay()
    torch.cuda.synchronize()
    return compare(tensors, problem)


def check(path: pathlib.Path, options: argparse.Namespace) -> tuple[bool, list[str]]:
    """Whether the kernel is right, and its row of the table."""
    kernel = attn.runtime.load(path)
    record = kernel.launch_record
    problem = record.get("problem")
    packed = bool(problem and problem.get("varlen"))
    tensors = {
        tensor["name"]: make_tensor(tensor, choose_shape(tensor, options, packed), options.padded)
        for tensor in record["tensors"]
    }
    if packed:
        fill_lengths(tensors, problem.get("max_seqlen_q", 0))
    image = kernel.bundle.pick(*torch.cuda.get_device_capability())

    def call() -> None:
        kernel(**tensors)

    call()
    torch.cuda.synchronize()
    row = [path.name, f"{image.kind} {image.chip}", "x".join(map(str, tensors["q"].shape))]
    if not problem or problem.get("score_mod") or problem.get("mask_mod"):
        return True, [*row, "-", "-", "", "", "no reference"]
    error, lse_error = compare(tensors, problem)
    types = [tensor["dtype"] for tensor in record["tensors"] if tensor["name"] in ("q", "o")]
    tolerance = max(TOLERANCES[dtype] for dtype in types)
    narrow = any(t["name"] == "q" and t["dtype"].startswith("f8") for t in record["tensors"])
    lse_tolerance = NARROW_LSE_TOLERANCE if narrow else LSE_TOLERANCE
    good = error <= tolerance and (lse_error is None or lse_error <= lse_tolerance)
    first = {name: tensors[name].clone() for name in ("o", "lse") if name in tensors}
    call()
    torch.cuda.synchronize()
    repeatable = all(
        torch.equal(first[name].view(torch.uint8), tensors[name].clone().view(torch.uint8))
        for name in first
    )
    good &= repeatable
    if options.graph:
        replayed, replayed_lse = compare_replay(call, tensors, problem)
        good &= replayed <= tolerance and (replayed_lse is None or replayed_lse <= lse_tolerance)
        error = max(error, replayed)
    times = ["-", "-"]
    if options.repeats:
        times = [f"{measure(call, options.repeats):.1f}", f"{measure_host(call):.1f}"]
    verdict = "ok" if good else "WRONG" if repeatable else "NOT REPEATABLE"
    lse_text = "-" if lse_error is None else f"{lse_error:.1e}"
    return good, [*row, f"{error:.1e}", lse_text, *times, verdict]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--sequences", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=20, help="0 takes no times")
    parser.add_argument("--graph", action="store_true", help="replay a CUDA graph of it too")
    parser.add_argument("--padded", action="store_true", help="leave gaps between batch entries")
    options = parser.parse_args()
    paths = sorted(options.folder.glob("*.attn"))
    if not paths:
        print(f"{options.folder}: no bundles", file=sys.stderr)
        return 1
    torch.manual_seed(0)
    rows = [["bundle", "image", "q", "O error", "LSE error", "GPU us", "host us", ""]]
    failures = 0
    for path in paths:
        try:
            good, row = check(path, options)
        except (attn.AttnError, ValueError, RuntimeError) as error:
            good, row = (
                False,
                [path.name, "", "", "", "", "", "", f"{type(error).__name__}: {error}"],
            )
        failures += not good
        rows.append(row)
        print(f"\r{len(rows) - 1}/{len(paths)} {path.name:40.40}", end="", file=sys.stderr)
    print(file=sys.stderr)
    widths = [max(len(row[column]) for row in rows) for column in range(7)]
    for row in rows:
        print("  ".join([*(cell.ljust(w) for cell, w in zip(row, widths)), row[7]]).rstrip())
    print(f"{len(paths) - failures} of {len(paths)} right on {torch.cuda.get_device_name()}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
