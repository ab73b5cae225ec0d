"""What `python -m attn bench` does: one attention, its plan and its speed beside torch's SDPA."""

from __future__ import annotations

import argparse
import re
import statistics
from collections.abc import Callable
from typing import Any

from ..calls import call_signatures
from ..compiler import builds
from ..kernel import Kernel
from ..launch import host_arrays

#: The time that the planner expects, in its remark.
_EXPECTED = re.compile(r'plan for \w+: .*?>: ([\d.]+) us')
_ROUNDS = 15


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags, by the names of attn-compile's."""
    parser.add_argument("--q", required=True, help="such as 4x32x4096x128xbf16")
    parser.add_argument("--kv-heads", type=int)
    parser.add_argument("--kv-len", type=int)
    parser.add_argument("--dv", type=int)
    parser.add_argument("--causal", nargs="?", const="top-left", help="top-left or bottom-right")
    parser.add_argument("--window", help="LEFT,RIGHT")
    parser.add_argument("--softcap", type=float)
    parser.add_argument("--chip", default="native")
    parser.add_argument("--rounds", type=int, default=_ROUNDS)


def count_operations(kernel: Kernel) -> float:
    """Floating point operations of both products, half of them for a causal mask of as many keys
    as queries, as is usual."""
    shapes = {each["name"]: each["shape"] for each in kernel.launch["tensors"]}
    batch, heads, queries, dim = shapes["q"]
    _, _, keys, dv = shapes["v"]
    return 2.0 * batch * heads * queries * keys * (dim + dv)


def find_expected(kernel: Kernel) -> float | None:
    """Microseconds that the planner expects."""
    found = [_EXPECTED.search(each.message) for each in kernel.remarks]
    return next((float(each[1]) for each in found if each), None)


def _time(call: Callable[[], object], rounds: int) -> float:
    """The median of the milliseconds that a call takes on the GPU."""
    import torch

    times = []
    for number in range(rounds + 2):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        if number > 1:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


def _measure(kernel: Kernel, options: argparse.Namespace) -> list[tuple[str, float]]:
    """Milliseconds of the kernel and, where it computes the same, of SDPA."""
    import torch

    shapes = {each["name"]: each["shape"] for each in kernel.launch["tensors"]}
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[options.q.rpartition("x")[2]]
    q, k, v = (torch.randn(shapes[name], dtype=dtype, device="cuda") for name in "qkv")
    causal, window = options.causal or False, options.window
    sides = None if window is None else [int(side) for side in window.split(",")]
    settings: dict[str, Any] = {"causal": causal, "window": sides, "softcap": options.softcap}
    found = [("attn", _time(lambda: call_signatures.attention(q, k, v, **settings), options.rounds))]
    if sides is None and options.softcap is None and causal in (False, "top-left"):
        attend = torch.nn.functional.scaled_dot_product_attention
        call = lambda: attend(q, k, v, is_causal=bool(causal), enable_gqa=q.shape[1] != k.shape[1])  # noqa: E731
        found.append(("SDPA", _time(call, options.rounds)))
    return found


def run(options: argparse.Namespace) -> None:
    """Prints the plan, and what it is worth."""
    kernel = call_signatures.compile(
        q=options.q, kv_heads=options.kv_heads, kv_len=options.kv_len, dv=options.dv,
        causal=options.causal or False, window=options.window, softcap=options.softcap, lse=False,
        chip=options.chip,
    )  # fmt: skip
    work = count_operations(kernel) * (0.5 if options.causal else 1.0)
    print(f"chip      {kernel.chip}")
    print(f"plan      {kernel.plan}")
    for note in kernel.plan_notes:
        print(f"note      {note}")
    expected = find_expected(kernel)
    if expected is not None:
        print(f"expected  {expected:.1f} us, {work / expected / 1e6:.0f} TFLOP/s")
    if not host_arrays.has_device() or builds.get_native_chip() != kernel.chip:
        print("measured  nothing: there is no GPU of this chip")
        return
    try:
        rows = _measure(kernel, options)
    except ImportError:
        print("measured  nothing: that needs torch")
        return
    for name, milliseconds in rows:
        print(f"{name:<9} {1e3 * milliseconds:.1f} us, {work / milliseconds / 1e9:.0f} TFLOP/s")
    if expected is not None:
        print(f"measured  {1e3 * rows[0][1] / expected:.2f} of the expected time")
