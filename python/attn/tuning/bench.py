"""What `python -m attn bench` does: one attention, its plan and its speed beside torch's SDPA."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping
from typing import Any

from ..calls import call_signatures
from ..compiler import builds
from ..errors import ArgumentError
from ..kernel import Kernel
from ..launch import host_arrays
from ..options.problem_table import KINDS

#: The time that the planner expects, in its remark.
_EXPECTED = re.compile(r"plan for \w+: .*?>: ([\d.]+) us")
_ROUNDS = 15


def read_options(words: list[str]) -> dict[str, Any]:
    """Options of `attn.compile` from flags as attn-compile has them, --name or --name=value.
    Raises ArgumentError for words that are no flags."""
    options: dict[str, Any] = {}
    for word in words:
        found = re.fullmatch(r"--([a-z][a-z-]*)(?:=(.*))?", word)
        if found is None:
            raise ArgumentError(
                f"bench: expected flags such as --causal or --window=512,0, got {word!r}"
            )
        value: Any = True if found[2] is None else found[2]
        if isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value):
            value = float(value) if "." in value else int(value)
        options[found[1].replace("-", "_")] = value
    if "q" not in options:
        raise ArgumentError("bench: expected --q, such as --q=4x32x4096x128xbf16, got none")
    return options


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


def _time(call: Callable[[], object]) -> float:
    """The median of the milliseconds that a call takes on the GPU."""
    import torch

    times = []
    for number in range(_ROUNDS + 2):
        event: Any = torch.cuda.Event
        begin, end = (event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        if number > 1:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


def _is_of_sdpa(options: Mapping[str, Any]) -> bool:
    """Whether torch's function computes the same: extents, and a causal mask from the first key."""
    causal = options.get("causal", False)
    extents = {name for name, kind in KINDS.items() if kind in ("shape", "size")}
    return causal in (False, True, "top-left") and not set(options) - extents - {"causal", "chip"}


def _measure(kernel: Kernel, options: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Milliseconds of the kernel and, where it computes the same, of SDPA."""
    import torch

    types = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
    tensors = {}
    for each in kernel.launch["tensors"]:
        if each["dtype"] not in types:
            raise ArgumentError(
                f'bench: tensor "{each["name"]}" has elements of {each["dtype"]}, which it does '
                "not make"
            )
        tensors[each["name"]] = torch.randn(
            each["shape"], dtype=types[each["dtype"]], device="cuda"
        )
    loaded = kernel.load()
    found = [("attn", _time(lambda: loaded(**tensors)))]
    if _is_of_sdpa(options):
        q, k, v = (tensors[name] for name in "qkv")
        attend = torch.nn.functional.scaled_dot_product_attention
        causal = bool(options.get("causal", False))
        found.append(
            (
                "SDPA",
                _time(
                    lambda: attend(q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])
                ),
            )
        )
    return found


def run(words: list[str]) -> None:
    """Prints the plan, and what it is worth."""
    options = read_options(words)
    kernel = call_signatures.compile(**{"chip": "native", "lse": False, **options})
    work = count_operations(kernel) * (0.5 if options.get("causal") else 1.0)
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
