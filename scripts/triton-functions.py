#!/usr/bin/env python3
"""Functions of public libraries of Triton kernels, on the simulator: each, with its gradients,
against torch in float64, and checked for races.

Runs in an interpreter with triton, torch, liger-kernel and fla-core (pip install triton==3.9.0
torch liger-kernel==0.8.5 fla-core==0.6.0), this one or $ATTN_TRITON_PYTHON; libraries that it
lacks are left out. Without triton and torch the status is 2.

usage: scripts/triton-functions.py [--chip=sm_90a] [--only=REGEX] [--list] [--json=FILE]
  --chip   whose code Triton makes; several with commas, one after the other
  --only   functions whose name matches
  --list   print their names
  --json   write the results

Prints one line for each. Fails when fewer than nine of ten agree, or where something was found
that EXPLAINED does not name.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("ATTN_DRIVER", str(ROOT / "build/lib/driver"))
# Fused multiply-adds make lanes of a reduction differ in the last bit.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "0")

#: Findings that are real, by function: what the kernel does.
EXPLAINED: dict[str, str] = {}
#: Largest deviation, relative to the largest element, by the type that products have.
EXACT, PRODUCTS = 1e-5, 2e-2


@dataclasses.dataclass
class Case:
    """A function, what it should compute, and its inputs. Gradients are taken of those that
    are floats."""

    name: str
    function: Callable[..., Any]
    reference: Callable[..., Any]
    inputs: list[Any]
    tolerance: float = EXACT
    has_gradients: bool = True
    #: Of the floats of the library's call.
    dtype: str = "float32"


def first(value: Any) -> Any:
    """The result of a function that returns it with others."""
    return value[0] if isinstance(value, (tuple, list)) else value


def make_liger_cases(torch: Any) -> list[Case]:
    """Functions of Liger-Kernel, as its own users call them."""
    ops = importlib.import_module("liger_kernel.transformers.functional")
    rand, f = torch.randn, torch.nn.functional
    rows, labels = rand(8, 128), torch.randint(0, 128, (8,))
    weight, bias = rand(128), rand(128)

    def jsd(x: Any, y: Any) -> Any:
        m = (x.exp() + y.exp()) / 2
        kl = lambda a: (a.exp() * (a - m.log())).sum()  # noqa: E731
        return (kl(x) + kl(y)) / 2 / x.shape[0]

    def poly(x: Any, w: Any, b: Any) -> Any:
        norm = lambda a: a * (a.square().mean(-1, keepdim=True) + 1e-6).rsqrt()  # noqa: E731
        return w[0] * norm(x**3) + w[1] * norm(x**2) + w[2] * norm(x) + b

    def rotate(x: Any, cos: Any, sin: Any) -> Any:
        half = x.shape[-1] // 2
        turned = torch.cat((-x[..., half:], x[..., :half]), -1)
        return x * cos[:, None].to(x) + turned * sin[:, None].to(x)

    def sparsemax(x: Any) -> Any:
        ordered = x.sort(-1, descending=True).values
        sums = ordered.cumsum(-1) - 1
        count = torch.arange(1, x.shape[-1] + 1).to(x)
        support = (ordered * count > sums).sum(-1, keepdim=True)
        return (x - sums.gather(-1, support - 1) / support).clamp(min=0)

    def group_norm(x: Any, w: Any, b: Any) -> Any:
        return f.group_norm(x, 4, w, b, 1e-6)

    angles = torch.outer(torch.arange(8.0), 1e4 ** -(torch.arange(0, 64, 2) / 64.0))
    cos, sin = (fn(torch.cat((angles, angles), -1))[None] for fn in (torch.cos, torch.sin))
    log_p, log_q = (rand(8, 128).log_softmax(-1) for _ in range(2))
    p, q = rand(8, 128).softmax(-1), rand(8, 128).softmax(-1)
    wide, classes = rand(8, 64), rand(256, 64) / 8
    return [
        Case("liger rms_norm", lambda x, w: ops.liger_rms_norm(x, w, 1e-6),
             lambda x, w: f.rms_norm(x, (128,), w, 1e-6), [rows, weight]),
        Case("liger layer_norm", lambda x, w, b: ops.liger_layer_norm(x, w, b, 1e-6),
             lambda x, w, b: f.layer_norm(x, (128,), w, b, 1e-6), [rows, weight, bias]),
        Case("liger fused_add_rms_norm", lambda x, r, w: first(ops.liger_fused_add_rms_norm(x, r, w, 1e-6)),
             lambda x, r, w: f.rms_norm(x + r, (128,), w, 1e-6), [rows, rand(8, 128), weight]),
        Case("liger poly_norm", ops.liger_poly_norm, poly, [rows, rand(3), rand(())]),
        Case("liger group_norm, 64 columns", lambda x, w, b: first(ops.liger_group_norm(x, w, b, 8, 4, 1e-6)),
             group_norm, [rand(2, 8, 64), rand(8), rand(8)]),
        Case("liger group_norm, 512 columns", lambda x, w, b: first(ops.liger_group_norm(x, w, b, 8, 4, 1e-6)),
             group_norm, [rand(2, 8, 512), rand(8), rand(8)]),
        Case("liger dyt", ops.liger_dyt, lambda x, a, g, b: g * torch.tanh(a * x) + b,
             [rows, rand(1), weight, bias]),
        Case("liger swiglu", ops.liger_swiglu, lambda a, b: f.silu(a) * b, [rows, rand(8, 128)]),
        Case("liger geglu", ops.liger_geglu, lambda a, b: f.gelu(a, approximate="tanh") * b,
             [rows, rand(8, 128)]),
        Case("liger relu_squared", ops.liger_relu_squared, lambda x: f.relu(x).square(), [rows]),
        Case("liger softmax", ops.liger_softmax, lambda x: f.softmax(x, -1), [rows]),
        Case("liger sparsemax", ops.liger_sparsemax, sparsemax, [rows]),
        Case("liger cross_entropy", lambda x, t: first(ops.liger_cross_entropy(x, t)), f.cross_entropy,
             [rand(8, 128), labels]),
        Case("liger cross_entropy, wide", lambda x, t: first(ops.liger_cross_entropy(x, t)),
             f.cross_entropy, [rand(4, 4096), torch.randint(0, 4096, (4,))]),
        Case("liger cross_entropy, smoothed",
             lambda x, t: first(ops.liger_cross_entropy(x, t, label_smoothing=0.1)),
             lambda x, t: f.cross_entropy(x, t, label_smoothing=0.1), [rand(8, 256), labels]),
        Case("liger fused_linear_cross_entropy",
             lambda x, w, t: first(ops.liger_fused_linear_cross_entropy(x, w, t)),
             lambda x, w, t: f.cross_entropy(x @ w.T, t), [wide, classes, labels]),
        Case("liger kl_div", lambda x, y: ops.liger_kl_div(x, y, reduction="batchmean"),
             lambda x, y: f.kl_div(x, y.detach(), reduction="batchmean"), [log_p, Fixed(q)]),
        Case("liger jsd", lambda x, y: ops.liger_jsd(x, y), lambda x, y: jsd(x, y.detach()),
             [log_p, Fixed(log_q)]),
        Case("liger tvd", lambda x, y: ops.liger_tvd(x, y, reduction="batchmean"),
             lambda x, y: (x - y.detach()).abs().sum() / 2 / 8, [p, Fixed(q)]),
        Case("liger rope", lambda x, y: ops.liger_rope(x, y, cos, sin)[0],
             lambda x, y: rotate(x, cos, sin), [rand(1, 4, 8, 64), rand(1, 4, 8, 64)]),
        Case("liger rope, keys", lambda x, y: ops.liger_rope(x, y, cos, sin)[1],
             lambda x, y: rotate(y, cos, sin), [rand(1, 4, 8, 64), rand(1, 2, 8, 64)]),
    ]


@dataclasses.dataclass
class Fixed:
    """An input without a gradient."""

    tensor: Any


def recur(torch: Any, q: Any, k: Any, v: Any, decay: Any, beta: Any = None, scale: float | None = None) -> Any:
    """Linear attention with a state: (batch, time, head, dim), decay's logarithm for each key's
    dimension; with `beta` the delta rule."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    state = torch.zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[3]).to(q)
    rows = []
    for t in range(q.shape[1]):
        state = state * decay[:, t].exp()[..., None]
        value = v[:, t]
        if beta is not None:
            value = beta[:, t, :, None] * (value - torch.einsum("bhk,bhkv->bhv", k[:, t], state))
        state = state + torch.einsum("bhk,bhv->bhkv", k[:, t], value)
        rows.append(torch.einsum("bhk,bhkv->bhv", q[:, t], state) * scale)
    return torch.stack(rows, 1)


def make_fla_cases(torch: Any) -> list[Case]:
    """Functions of flash-linear-attention, on one sequence and two heads."""
    time_, heads, dim = 64, 2, 32
    f = torch.nn.functional

    def op(path: str, name: str) -> Callable[..., Any]:
        return getattr(importlib.import_module(f"fla.ops.{path}"), name)

    def tokens() -> Any:
        return torch.randn(1, time_, heads, dim)

    def norm(x: Any) -> Any:
        return f.normalize(x, dim=-1)

    def attend(q: Any, k: Any, v: Any) -> Any:
        heads_first = (x.transpose(1, 2) for x in (q, k, v))
        return f.scaled_dot_product_attention(*heads_first, is_causal=True).transpose(1, 2)

    gate = f.logsigmoid(torch.randn(1, time_, heads))
    gates = f.logsigmoid(tokens())
    beta = torch.rand(1, time_, heads)
    wide = lambda g: g[..., None].expand(1, time_, heads, dim)  # noqa: E731
    none = lambda q: torch.zeros_like(q)  # noqa: E731
    slopes = (1 - 2.0 ** (-5 - torch.arange(heads))).log()
    qkv = [tokens(), norm(tokens()), tokens()]

    def hgrn(x: Any, g: Any) -> Any:
        rows, state = [], torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            state = g[:, t].exp() * state + x[:, t]
            rows.append(state)
        return torch.stack(rows, 1)

    cases = [
        Case("fla parallel_attn", op("attn", "parallel_attn"), attend, qkv, PRODUCTS),
    ]
    for kind in ("fused_recurrent", "chunk"):
        bound = EXACT if kind == "fused_recurrent" else PRODUCTS
        cases += [
            Case(f"fla {kind}_linear_attn",
                 lambda *x, fn=op("linear_attn", f"{kind}_linear_attn"): first(fn(*x, normalize=False)),
                 lambda q, k, v: recur(torch, q, k, v, none(q)), qkv, bound),
            Case(f"fla {kind}_retention",
                 lambda *x, fn=op("retention", f"{kind}_retention"): first(fn(*x)),
                 lambda q, k, v: recur(torch, q, k, v, wide(slopes.to(q).expand(1, time_, heads))),
                 qkv, bound),
            Case(f"fla {kind}_simple_gla",
                 lambda *x, fn=op("simple_gla", f"{kind}_simple_gla"): first(fn(*x)),
                 lambda q, k, v, g: recur(torch, q, k, v, wide(g)), [*qkv, gate], bound),
            Case(f"fla {kind}_gla", lambda *x, fn=op("gla", f"{kind}_gla"): first(fn(*x)),
                 lambda q, k, v, g: recur(torch, q, k, v, g), [*qkv, gates], bound),
            Case(f"fla {kind}_delta_rule",
                 lambda *x, fn=op("delta_rule", f"{kind}_delta_rule"): first(fn(*x)),
                 lambda q, k, v, b: recur(torch, q, k, v, none(q), b), [*qkv, beta], bound,
                 dtype="float32" if kind == "fused_recurrent" else "bfloat16"),
            Case(f"fla {kind}_gated_delta_rule",
                 lambda q, k, v, g, b, fn=op("gated_delta_rule", f"{kind}_gated_delta_rule"): first(
                     fn(q, k, v, g=g, beta=b)),
                 lambda q, k, v, g, b: recur(torch, q, k, v, wide(g), b), [*qkv, gate, beta], bound,
                 has_gradients=kind == "chunk"),
            Case(f"fla {kind}_hgrn", lambda *x, fn=op("hgrn", f"{kind}_hgrn"): first(fn(*x)), hgrn,
                 [torch.randn(1, time_, 64), f.logsigmoid(torch.randn(1, time_, 64))], EXACT),
        ]
    return cases


def make_cases(torch: Any) -> list[Case]:
    """The cases of all libraries that are here."""
    cases: list[Case] = []
    for library, make in (("liger_kernel", make_liger_cases), ("fla", make_fla_cases)):
        if importlib.util.find_spec(library) is not None:
            cases += make(torch)
    return cases


def prepare(torch: Any, inputs: list[Any], dtype: Any) -> list[Any]:
    """Copies of the inputs in a type of floats."""
    made = []
    for each in inputs:
        is_fixed = isinstance(each, Fixed)
        tensor = (each.tensor if is_fixed else each).detach().clone()
        if tensor.is_floating_point():
            tensor = tensor.to(dtype)
            if not is_fixed:
                tensor.requires_grad_()
        made.append(tensor)
    return made


def deviation(got: Any, expected: Any) -> float:
    """The largest difference, relative to the largest element."""
    size = expected.abs().max().item() or 1.0
    return (got.double() - expected).abs().max().item() / size


def run_case(torch: Any, case: Case) -> float:
    """The largest deviation of the result and of all gradients."""
    dtype = getattr(torch, case.dtype)
    ours = prepare(torch, case.inputs, dtype)
    # From the same values.
    rounded = [
        Fixed(prepare(torch, [each], dtype)[0].detach()) if isinstance(each, Fixed) else mine.detach()
        for each, mine in zip(case.inputs, ours)
    ]
    theirs = prepare(torch, rounded, torch.float64)
    result, expected = first(case.function(*ours)), case.reference(*theirs)
    worst = deviation(result.detach(), expected.detach())
    if not case.has_gradients:
        return worst
    upstream = torch.randn(expected.shape).to(dtype)
    # Some functions write the gradient over what they are given.
    result.backward(upstream.clone().to(result.dtype))
    expected.backward(upstream.double())
    for mine, other in zip(ours, theirs):
        if mine.requires_grad and other.grad is not None:
            worst = max(worst, deviation(mine.grad, other.grad))
    return worst


def judge(torch: Any, driver: Any, case: Case) -> dict[str, Any]:
    """Runs one case."""
    torch.manual_seed(0)
    start, before = time.monotonic(), driver.library.count_findings()
    row: dict[str, Any] = {"name": case.name, "agrees": False}
    try:
        row["deviation"] = run_case(torch, case)
        row["agrees"] = row["deviation"] <= case.tolerance
    except Exception as error:  # whatever a library raises is its result
        row["error"] = f"{type(error).__name__}: {error}"
    row["seconds"] = round(time.monotonic() - start, 2)
    errors = driver.library.count_findings()[1] - before[1]
    if errors:
        row["findings"] = driver.report("text", before[0])
    return row


def show(row: dict[str, Any]) -> None:
    """Prints the line of a case."""
    result = f"{row['deviation']:.1e}" if "deviation" in row else row["error"].split("\n")[0][:100]
    mark = "ok" if row["agrees"] else "FAILED"
    print(f"{mark:7}{row['name']:40}{row['seconds']:7.2f} s  {result}", flush=True)
    if "findings" in row:
        print("    " + row["findings"].replace("\n", "\n    "), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    if not all(importlib.util.find_spec(each) for each in ("torch", "triton")):
        other = os.environ.get("ATTN_TRITON_PYTHON")
        if not other or other == sys.executable:
            print("expected an interpreter with triton and torch, got none")
            return 2
        return subprocess.run([other, *sys.argv], check=False).returncode
    if "," in options.chip:
        rest = [each for each in sys.argv if not each.startswith("--chip")]
        runs = [
            subprocess.run([sys.executable, *rest, f"--chip={chip}"], check=False).returncode
            for chip in options.chip.split(",")
        ]
        return max(runs)
    import attn.sim
    import torch

    driver = attn.sim.triton(options.chip, raises=False)
    driver.library.set_quiet(True)
    torch.manual_seed(0)
    cases = [case for case in make_cases(torch) if re.search(options.only, case.name)]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    rows = []
    for case in cases:
        rows.append(judge(torch, driver, case))
        show(rows[-1])
    agreeing = sum(row["agrees"] for row in rows)
    unexplained = [row["name"] for row in rows if "findings" in row and row["name"] not in EXPLAINED]
    print(f"{options.chip}: {agreeing} of {len(rows)} functions agree; findings in {unexplained or 'none'}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"chip": options.chip, "rows": rows}, indent=1) + "\n")
    return int(10 * agreeing < 9 * len(rows) or bool(unexplained))


if __name__ == "__main__":
    sys.exit(main())
