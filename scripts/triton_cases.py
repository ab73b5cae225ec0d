"""Functions of Liger-Kernel and of flash-linear-attention, with what they should compute and
inputs that are small: scripts/triton-functions.py runs them.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

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
