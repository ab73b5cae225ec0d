#!/usr/bin/env python3
"""Times results of 8 and 4 bits that pass through an out_mod on the GPU, beside the kernel with
bf16 results and beside that kernel with a quantisation behind it.

    python3 python/tests/gpu_results.py --make FOLDER --chip=sm_90a   # with attn-compile
    PYTHONPATH=python python3 python/tests/gpu_results.py FOLDER      # on the GPU

Results that are quantised have the bits that numpy's arithmetic gives of the f32 results of the
same plan. Times are medians of replays of CUDA graphs over sets of inputs beyond the L2 cache.
Exit status 1 when something is wrong.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

#: Batch, query heads, key heads, queries, keys, and whether a causal mask hides some.
CELLS = {
    "prefill-4k": (1, 32, 8, 4096, 4096, True),
    "prefill-1k": (8, 32, 8, 1024, 1024, True),
    "decode-b64-4k": (64, 32, 8, 1, 4096, False),
    "decode-b256-1k": (256, 32, 8, 1, 1024, False),
}
DIM = 128
#: The type of o, the columns of it for each of v, the type of scales and their group.
KINDS = {
    "bf16": ("bf16", 1, None, 0),
    "f32": ("f32", 1, None, 0),
    "fp8": ("f8E4M3FN", 1, None, 0),
    "fp8-groups": ("f8E4M3FN", 1, "f32", 128),
    "nvfp4": ("i8", 2, "f8E4M3FN", 16),
}
#: What static results of 8 bits, and those of 4, are multiplied by.
SCALE = 32.0
#: Sets of inputs are larger than this together.
SET_BYTES = 192 << 20


def write_problem(cell: str, kind: str, has_hook: bool) -> str:
    batch, heads, kv_heads, queries, keys, is_causal = CELLS[cell]
    out_type, per_byte, scale_type, group = KINDS[kind]
    q = f"memref<{batch}x{heads}x{queries}x{DIM}xbf16>"
    k = f"memref<{batch}x{kv_heads}x{keys}x{DIM}xbf16>"
    o = f"memref<{batch}x{heads}x{queries}x{DIM // per_byte}x{out_type}>"
    arguments = [f"%q: {q}", f"%k: {k}", f"%v: {k}", f"%o: {o}"]
    attributes, scales, hook = [], "", ""
    if scale_type:
        s = f"memref<{batch}x{heads}x{queries}x{DIM // group}x{scale_type}>"
        arguments.append(f"%s: {s}")
        scales = f" out_scales(%s : {s})"
        attributes.append(f"out_group = {group} : i64")
    if kind in ("fp8", "nvfp4"):
        attributes.append(f"out_scale = {SCALE} : f32")
    if is_causal:
        attributes.append("mask = #attn.mask<kind = causal>")
    if has_hook:
        g = f"memref<{heads}x{DIM}xf32>"
        arguments.append(f"%gate: {g}")
        hook = f""" out_mod {{
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      %hi = arith.index_cast %h : i32 to index
      %ci = arith.index_cast %c : i32 to index
      %x = memref.load %gate[%hi, %ci] : {g}
      %y = arith.mulf %r, %x : f32
      attn.yield %y : f32
    }}"""
    return f"""func.func @results({", ".join(arguments)}) {{
  attn.attention ins(%q, %k, %v : {q}, {k}, {k})
    outs(%o : {o}){scales}{hook} {{{", ".join(attributes)}}}
  return
}}
"""


def list_kernels() -> list[tuple[str, str, bool]]:
    kernels = [(cell, "bf16", False) for cell in CELLS]
    return kernels + [(cell, kind, True) for cell in CELLS for kind in KINDS]


def get_name(cell: str, kind: str, has_hook: bool) -> str:
    return f"{cell}.{kind}{'.hook' if has_hook else ''}"


def make(options: argparse.Namespace) -> int:
    """All kernels of a cell have the plan that the bf16 one gets."""
    options.folder.mkdir(parents=True, exist_ok=True)
    good = True
    plans: dict[str, list[str]] = {}
    for cell, kind, has_hook in list_kernels():
        name = get_name(cell, kind, has_hook)
        command = [options.compile, "-", f"--chip={options.chip}", "--no-split-keys", "--json"]
        command += [
            "-o",
            "/dev/null",
            f"--bundle={options.folder / name}.attn",
            *plans.get(cell, []),
        ]
        done = subprocess.run(
            command,
            input=write_problem(cell, kind, has_hook),
            capture_output=True,
            text=True,
            check=False,
        )
        print(name, done.stderr.strip() or "made", flush=True)
        good &= done.returncode == 0
        if done.returncode == 0 and cell not in plans:
            schedule, _, body = (
                json.loads(done.stdout)["plan"][0].removeprefix("#attn.").partition("<")
            )
            settings = [
                part.strip().replace(" ", "") for part in body.rstrip(">").split(",") if part
            ]
            settings = [each for each in settings if not each.startswith("epilogue=")]
            plans[cell] = [f"--schedule={schedule}", *(f"--set={each}" for each in settings)]
    return int(not good)


def round_e4m3(torch, x):
    return x.clamp(max=448.0).to(torch.float8_e4m3fn)


def quantise(torch, kind: str, wide):
    """The stored results and scales of f32 results, as docs/Reference.md has them."""
    if kind == "fp8":
        return (wide * SCALE).clamp(-448, 448).to(torch.float8_e4m3fn), None
    group = KINDS[kind][3]
    parts = wide.unflatten(-1, (-1, group))
    most = parts.abs().amax(-1, keepdim=True)
    one = torch.ones((), device=wide.device)
    if kind == "fp8-groups":
        scale = torch.where(most > 0, most * (one / 448), one)
        narrow = (parts * (one / scale)).clamp(-448, 448).to(torch.float8_e4m3fn)
        return narrow.flatten(-2), scale.squeeze(-1)
    # Behind an out_mod, or where amax is wanted, the factor joins the scales.
    factor = one * SCALE
    scale = round_e4m3(torch, most * (factor * (one / 6)))
    exact = scale.float()
    inverse = torch.where(exact > 0, one / torch.where(exact > 0, exact, one), 0 * one)
    scaled = parts * (inverse * factor)
    size = scaled.abs().clamp(max=6)
    # The distance of neighbours is 0.5 up to 2, 1 up to 4, and 2.
    step = torch.where(size < 2, 0.5, torch.where(size < 4, 1.0, 2.0))
    size = torch.round(size / step) * step
    # Codes count the numbers 0, 0.5, 1, 1.5, 2, 3, 4 and 6.
    code = torch.where(size <= 2, 2 * size, torch.where(size <= 4, size + 2, size / 2 + 4)).to(
        torch.uint8
    )
    code = (code | (torch.signbit(scaled).to(torch.uint8) << 3)).flatten(-2)
    packed = code[..., 0::2] | (code[..., 1::2] << 4)
    return packed.view(torch.int8), scale.squeeze(-1)


def make_calls(torch, runtime, folder: pathlib.Path, name: str, sets: list, outputs: dict):
    """A function that launches the kernel on a set of inputs, and what it writes."""
    types = {
        "bf16": torch.bfloat16, "f32": torch.float32, "f8E4M3FN": torch.float8_e4m3fn, "i8": torch.int8,
    }  # fmt: skip
    kernel = runtime.load(folder / f"{name}.attn")
    written = {}
    for tensor in kernel.launch_record["tensors"]:
        if tensor["access"] != "read":
            written[tensor["name"]] = torch.zeros(
                tensor["shape"], dtype=types[tensor["dtype"]], device="cuda"
            )
    outputs[name] = written
    launches = []
    for each in sets:
        tensors = {n: {**each, **written}[n] for n in kernel.names}
        views = {n: runtime.device_tensors.view(n, t, 0) for n, t in tensors.items()}
        launches.append((kernel.prepare(views), [t.data_ptr() for t in tensors.values()]))

    def call(index: int) -> None:
        prepared, addresses = launches[index % len(launches)]
        prepared(addresses, torch.cuda.current_stream().cuda_stream)

    return call


def measure(torch, calls: dict, count: int, seconds: float) -> dict[str, float]:
    """Microseconds of a call: medians over replays of graphs, in turns and both orders."""
    graphs = {}
    for name, call in calls.items():
        call(0)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for index in range(count):
                call(index)
        graphs[name] = graph
    times: dict[str, list[float]] = {name: [] for name in calls}
    for order in (list(calls), list(reversed(calls)), list(calls), list(reversed(calls))):
        for name in order:
            end = time.monotonic() + seconds
            begin, done = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            graphs[name].replay()
            while time.monotonic() < end:
                begin.record()
                graphs[name].replay()
                done.record()
                done.synchronize()
                times[name].append(1e3 * begin.elapsed_time(done) / count)
    return {name: statistics.median(each) for name, each in times.items()}


def run_cell(torch, runtime, cell: str, options: argparse.Namespace) -> tuple[bool, dict]:
    batch, heads, kv_heads, queries, keys, _ = CELLS[cell]
    sizes = (batch * heads * queries + 2 * batch * kv_heads * keys) * DIM * 2
    count = max(2, -(-SET_BYTES // sizes))
    torch.manual_seed(options.seed)

    def draw(*shape: int):
        return torch.randn(shape, device="cuda").to(torch.bfloat16)

    gate = torch.randn(heads, DIM, device="cuda")
    sets = [
        {
            "q": draw(batch, heads, queries, DIM),
            "k": draw(batch, kv_heads, keys, DIM),
            "v": draw(batch, kv_heads, keys, DIM),
            "capture0": gate,
        }
        for _ in range(count)
    ]
    outputs: dict = {}
    calls = {}
    for kind, has_hook in [("bf16", False), *((each, True) for each in KINDS)]:
        name = get_name(cell, kind, has_hook)
        calls[f"{kind}{'.hook' if has_hook else ''}"] = make_calls(
            torch, runtime, options.folder, name, sets, outputs
        )
    good = True
    for call in calls.values():
        call(0)
    torch.cuda.synchronize()
    wide = outputs[get_name(cell, "f32", True)]["o"]
    for kind in ("fp8", "fp8-groups", "nvfp4"):
        own = outputs[get_name(cell, kind, True)]
        o, scales = quantise(torch, kind, wide)
        differ = int((own["o"].view(torch.int8) != o.view(torch.int8)).sum())
        if scales is not None:
            differ += int((own["o_scales"].float() != scales.float()).sum())
        print(f"{cell} {kind}: {differ} of {o.numel()} differ from quantising the f32 results")
        good &= differ == 0
    plain, narrow = outputs[get_name(cell, "bf16", False)]["o"], {}
    if options.compiled:
        # Compiled functions of other cells count against a limit.
        torch._dynamo.reset()
        for kind in ("fp8", "fp8-groups", "nvfp4"):
            narrow[kind] = torch.compile(
                lambda x, kind=kind: quantise(torch, kind, x.float() * gate[:, None, :])
            )
            narrow[kind](plain)

            def apart(index: int, kind: str = kind) -> None:
                calls["bf16"](index)
                narrow[kind](plain)

            calls[f"bf16, then {kind}"] = apart
    del calls["f32.hook"]
    return good, measure(torch, calls, count, options.seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument("--compile", default="build/bin/attn-compile")
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--compiled", action="store_true", help="also time torch.compile's quantisation"
    )
    parser.add_argument(
        "--cells", default="", metavar="PART", help="only cells with this in their names"
    )
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if options.make:
        return make(options)
    import torch

    from attn import runtime

    good, all_times = True, {}
    for cell in CELLS:
        if options.cells not in cell:
            continue
        right, times = run_cell(torch, runtime, cell, options)
        good &= right
        all_times[cell] = times
        for name, each in times.items():
            print(f"{cell} {name}: {each:.2f} us, {each / times['bf16']:.3f} of bf16", flush=True)
    if options.json:
        board = torch.cuda.get_device_name()
        options.json.write_text(json.dumps({"board": board, "us": all_times}, indent=1) + "\n")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
