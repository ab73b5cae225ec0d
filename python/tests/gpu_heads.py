#!/usr/bin/env python3
"""Launches bundles of wide heads on the GPU: a sample of rows against float64, and
the speed beside torch's own attention.

Needs torch and this package's sources, no compiler and no toolkit:

    PYTHONPATH=python python3 python/tests/gpu_heads.py FOLDER [--filter=REGEX]

Times are of launches in a row, after as many that warm the board up. Prints a line for
each bundle; exit status 1 when a kernel is wrong or does not launch.
"""

from __future__ import annotations

import argparse
import math
import pathlib
import re
import sys

import attn
import attn.runtime
import torch

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
#: Largest error of O and LSE.
TOLERANCES = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
LSE_TOLERANCE = 1e-3
#: Rows of a sampled head that are compared.
ROWS = 16
#: Milliseconds that a kernel is timed for.
SUSTAINED = 400


def make_tensors(launch: dict) -> dict[str, torch.Tensor]:
    """The tensors of the record: normal inputs, outputs full of NaN."""
    tensors = {}
    for tensor in launch["tensors"]:
        dtype = DTYPES[tensor["dtype"]]
        if tensor["access"] == "read":
            values = torch.randn(tensor["shape"], device="cuda", dtype=torch.float32).to(dtype)
        else:
            values = torch.full(tensor["shape"], math.nan, device="cuda", dtype=dtype)
        tensors[tensor["name"]] = values
    return tensors


def find_errors(tensors: dict[str, torch.Tensor], causal: bool) -> tuple[float, float]:
    """Largest errors of O and LSE in rows of the first, a middle and the last head."""
    q, k, v, o = (tensors[name] for name in "qkvo")
    batch, heads, queries, dim = q.shape
    group = heads // k.shape[1]
    worst_o = worst_lse = 0.0
    for b, h in {(0, 0), (batch // 2, heads // 2), (batch - 1, heads - 1)}:
        rows = torch.randint(0, queries, (ROWS,), device="cuda")
        rows[0], rows[1] = 0, queries - 1
        keys, values = k[b, h // group].double(), v[b, h // group].double()
        s = q[b, h, rows].double() @ keys.T / math.sqrt(dim)
        if causal:
            hidden = torch.arange(keys.shape[0], device="cuda") > rows[:, None]
            s.masked_fill_(hidden, -math.inf)
        expected = torch.softmax(s, -1) @ values
        worst_o = max(worst_o, (o[b, h, rows].double() - expected).abs().max().item())
        if "lse" in tensors:
            difference = tensors["lse"][b, h, rows].double() - torch.logsumexp(s, -1)
            worst_lse = max(worst_lse, difference.abs().max().item())
    if o.isnan().any().item():
        worst_o = math.nan
    return worst_o, worst_lse


def measure(call) -> float:
    """Milliseconds of a call, sustained."""
    call()
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    call()
    end.record()
    torch.cuda.synchronize()
    count = max(3, math.ceil(SUSTAINED / max(start.elapsed_time(end), 0.01)))
    for _ in range(2):
        start.record()
        for _ in range(count):
            call()
        end.record()
        torch.cuda.synchronize()
    return start.elapsed_time(end) / count


def measure_torch(tensors: dict[str, torch.Tensor], causal: bool) -> float:
    """Milliseconds of torch's attention on the same inputs; NaN where it has none."""
    q, k, v = (tensors[name] for name in "qkv")
    try:
        return measure(
            lambda: torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1]
            )
        )
    except RuntimeError:
        return math.nan


def measure_ffpa(tensors: dict[str, torch.Tensor], causal: bool) -> float:
    """Milliseconds of ffpa-attn's CuTe kernel on the same inputs, which it has to be
    right for; NaN where it takes none."""
    # Its compiler is found by a .pth file of the folder that it was unpacked to.
    import site

    for folder in list(sys.path):
        site.addsitedir(folder)
    from ffpa_attn import CuTeDSLBackend, ffpa_attn_func

    q, k, v = (tensors[name] for name in "qkv")
    backend = {"forward_backend": CuTeDSLBackend(), "backward_backend": CuTeDSLBackend()}

    @torch.no_grad()
    def call() -> torch.Tensor:
        return ffpa_attn_func(
            q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1], **backend
        )

    try:
        error = find_errors({**tensors, "o": call()}, causal)[0]
    except (RuntimeError, NotImplementedError):
        return math.nan
    return measure(call) if error <= TOLERANCES[q.dtype] else math.nan


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--filter", default="")
    parser.add_argument("--no-torch", action="store_true", help="without torch's attention")
    parser.add_argument("--ffpa", action="store_true", help="with ffpa-attn, on Python's path")
    options = parser.parse_args()
    failures = 0
    peers: dict[tuple, tuple[float, float]] = {}
    for path in sorted(options.folder.glob("*.attn")):
        if not re.search(options.filter, path.name):
            continue
        try:
            kernel = attn.runtime.load(path)
            torch.manual_seed(0)
            tensors = make_tensors(kernel.launch_record)
            causal = "-causal" in path.name
            kernel(**tensors)
            torch.cuda.synchronize()
            error, lse_error = find_errors(tensors, causal)
            milliseconds = measure(lambda: kernel(**tensors))
        except Exception as problem:  # noqa: BLE001
            failures += 1
            print(f"{path.stem:60} FAILED {problem}", flush=True)
            continue
        q, k, v = (tensors[name] for name in "qkv")
        batch, heads, queries, dim = q.shape
        pairs = queries * k.shape[2] * (0.5 if causal else 1)
        flop = 2 * batch * heads * pairs * (dim + v.shape[3])
        cell = (tuple(q.shape), tuple(k.shape), tuple(v.shape), str(q.dtype), causal)
        if cell not in peers:
            peers[cell] = (
                math.nan if options.no_torch else measure_torch(tensors, causal),
                measure_ffpa(tensors, causal) if options.ffpa else math.nan,
            )
        of_torch, of_ffpa = (flop / each / 1e9 for each in peers[cell])
        good = error <= TOLERANCES[q.dtype] and lse_error <= LSE_TOLERANCE
        failures += not good
        print(
            f"{path.stem:60} {milliseconds * 1e3:9.1f} us {flop / milliseconds / 1e9:7.1f} TFLOP/s"
            f"  torch {of_torch:7.1f}"
            + (f"  FFPA {of_ffpa:7.1f}" if options.ffpa else "")
            + f"  O {error:.2e}  LSE {lse_error:.2e}"
            f"  {'right' if good else 'WRONG'}",
            flush=True,
        )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
