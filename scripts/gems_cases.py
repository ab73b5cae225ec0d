"""Functions of FlagGems, with what they should compute and small inputs:
scripts/triton-functions.py runs them.

The package offers forwards and backwards as functions of their own, which `pair` joins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_cases import EXACT, Case, first

#: Chains of sums, and instructions that are approximate.
LONG = 1e-4


def pair(torch: Any, forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose gradient is another one: of what came in, of what came out, and of the
    gradient of that. It returns a gradient for each input that has one."""

    class Joined(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, *inputs: Any) -> Any:
            result = forward(*inputs)
            results = result if isinstance(result, (tuple, list)) else (result,)
            context.kept = inputs, results
            return results[0]

        @staticmethod
        def backward(context: Any, upstream: Any) -> Any:
            inputs, results = context.kept
            gradients = backward(upstream.contiguous(), inputs, results)
            gradients = list(gradients) if isinstance(gradients, (tuple, list)) else [gradients]
            return tuple([*gradients, *[None] * (len(inputs) - len(gradients))])

    return Joined.apply


def make_elementwise_cases(torch: Any, ops: Any) -> list[Case]:
    """Each element by itself."""
    f = torch.nn.functional
    x, y = torch.randn(8, 128), torch.randn(8, 128)
    positive = torch.rand(8, 128) + 0.1

    def plain(name: str, reference: Callable[..., Any], *inputs: Any, tolerance: float = EXACT) -> Case:
        return Case(f"gems {name}", getattr(ops, name), reference, list(inputs), tolerance, False)

    def joined(name: str, backward: Callable[..., Any], reference: Callable[..., Any]) -> Case:
        function = pair(torch, getattr(ops, name), backward)
        return Case(f"gems {name}", function, reference, [x])

    return [
        plain("add", torch.add, x, y),
        plain("mul", torch.mul, x, torch.randn(128)),
        plain("div_mode", torch.div, x, positive),
        plain("exp", torch.exp, x),
        plain("log", torch.log, positive),
        plain("rsqrt", torch.rsqrt, positive),
        plain("erf", torch.erf, x),
        Case("gems clamp", lambda a: ops.clamp(a, -1, 1), lambda a: a.clamp(-1, 1), [x], EXACT, False),
        plain("logaddexp", torch.logaddexp, x, y),
        Case("gems masked_fill", lambda a, m: ops.masked_fill(a, m, 2.5), lambda a, m: a.masked_fill(m, 2.5),
             [x, x > 0], EXACT, False),
        joined("sigmoid", lambda g, xs, outs: ops.sigmoid_backward(g, outs[0]), torch.sigmoid),
        joined("tanh", lambda g, xs, outs: ops.tanh_backward(g, outs[0]), torch.tanh),
        joined("silu", lambda g, xs, outs: ops.silu_backward(g, xs[0]), f.silu),
        joined("gelu", lambda g, xs, outs: ops.gelu_backward(g, xs[0]), f.gelu),
        joined("relu", lambda g, xs, outs: ops.threshold_backward(g, xs[0], 0), f.relu),
        joined("glu", lambda g, xs, outs: ops.glu_backward(g, xs[0]), f.glu),
    ]


def make_reduction_cases(torch: Any, ops: Any) -> list[Case]:
    """Sums, extrema, orders."""
    x = torch.randn(8, 128)

    def plain(name: str, function: Callable[..., Any], reference: Callable[..., Any], *inputs: Any) -> Case:
        return Case(f"gems {name}", function, reference, list(inputs or [x]), LONG, False)

    index = torch.randint(0, 128, (8, 16))
    return [
        plain("sum_dim", lambda a: ops.sum_dim(a, [1]), lambda a: a.sum(1)),
        plain("mean_dim", lambda a: ops.mean_dim(a, [1]), lambda a: a.mean(1)),
        plain("amax", lambda a: ops.amax(a, [1]), lambda a: a.amax(1)),
        plain("argmax", lambda a: ops.argmax(a, 1), lambda a: a.argmax(1)),
        plain("prod_dim", lambda a: ops.prod_dim(a, 1), lambda a: a.prod(1)),
        plain("cumsum", lambda a: ops.cumsum(a, 1), lambda a: a.cumsum(1)),
        plain("var_mean", lambda a: first(ops.var_mean(a, [1], correction=1)), lambda a: a.var(1)),
        plain("vector_norm", lambda a: ops.vector_norm(a, 2, [1]), lambda a: a.norm(dim=1)),
        plain("topk", lambda a: first(ops.topk(a, 8)), lambda a: a.topk(8).values),
        plain("sort", lambda a: first(ops.sort(a)), lambda a: a.sort(-1).values),
        plain("gather", lambda a, i: ops.gather(a, 1, i), lambda a, i: a.gather(1, i), x, index),
        plain("scatter", lambda a, i, b: ops.scatter(a, 1, i, b), lambda a, i, b: a.scatter(1, i, b),
              x, torch.stack([torch.randperm(128)[:16] for _ in range(8)]), torch.randn(8, 16)),
        plain("index_select", lambda a, i: ops.index_select(a, 0, i),
              lambda a, i: a.index_select(0, i), x, torch.tensor([7, 0, 3])),
        plain("masked_select", ops.masked_select, torch.masked_select, x, x > 0.5),
        plain("flip", lambda a: ops.flip(a, [1]), lambda a: a.flip(1)),
        plain("triu", ops.triu, torch.triu, torch.randn(32, 48)),
        plain("cat", lambda a, b: ops.cat([a, b], 1), lambda a, b: torch.cat([a, b], 1),
              x, torch.randn(8, 32)),
    ]


def make_norm_cases(torch: Any, ops: Any) -> list[Case]:
    """Normalisations, losses and their gradients."""
    f = torch.nn.functional
    x, weight, bias = torch.randn(8, 128), torch.randn(128), torch.randn(128)
    image, scale, shift = torch.randn(2, 8, 16), torch.randn(8), torch.randn(8)
    labels, shape = torch.randint(0, 128, (8,)), (128,)
    all_of = [True, True, True]

    def softmax_gradient(g: Any, xs: Any, outs: Any) -> Any:
        return ops.softmax_backward(g, outs[0], -1, torch.float32)

    def log_softmax_gradient(g: Any, xs: Any, outs: Any) -> Any:
        return ops.log_softmax_backward(g, outs[0], -1, torch.float32)

    def layer_norm_gradient(g: Any, xs: Any, outs: Any) -> Any:
        return ops.layer_norm_backward(g, xs[0], shape, outs[1], outs[2], xs[1], xs[2], all_of)

    def group_norm_gradient(g: Any, xs: Any, outs: Any) -> Any:
        return ops.group_norm_backward(g, xs[0], outs[1], outs[2], xs[1], 2, 8, 16, 4, all_of)

    def batch_norm(a: Any, w: Any, b: Any) -> Any:
        return ops.batch_norm(a, w, b, torch.zeros(8), torch.ones(8), True)

    def batch_norm_gradient(g: Any, xs: Any, outs: Any) -> Any:
        return ops.batch_norm_backward(
            g, xs[0], xs[1], None, None, outs[1], outs[2], True, 1e-5, all_of)

    def embedding_gradient(g: Any, xs: Any, outs: Any) -> Any:
        return [ops.embedding_backward(g, xs[1], xs[0].shape[0])]

    def nll_gradient(g: Any, xs: Any, outs: Any) -> Any:
        return [ops.nll_loss_backward(g, xs[0], xs[1], total_weight=outs[1])]

    return [
        Case("gems softmax", pair(torch, lambda a: ops.softmax(a, -1), softmax_gradient),
             lambda a: f.softmax(a, -1), [x]),
        Case("gems log_softmax", pair(torch, lambda a: ops.log_softmax(a, -1), log_softmax_gradient),
             lambda a: f.log_softmax(a, -1), [x]),
        Case("gems layer_norm",
             pair(torch, lambda a, w, b: ops.layer_norm(a, shape, w, b), layer_norm_gradient),
             lambda a, w, b: f.layer_norm(a, shape, w, b), [x, weight, bias], LONG),
        Case("gems group_norm",
             pair(torch, lambda a, w, b: ops.group_norm(a, w, b, 2, 8, 16, 4), group_norm_gradient),
             lambda a, w, b: f.group_norm(a, 4, w, b), [image, scale, shift], LONG),
        Case("gems batch_norm", pair(torch, batch_norm, batch_norm_gradient),
             lambda a, w, b: f.batch_norm(a, None, None, w, b, True), [image, scale, shift], LONG),
        Case("gems batch_norm, no statistics",
             pair(torch, lambda a, w, b: ops.batch_norm(a, w, b, training=True), batch_norm_gradient),
             lambda a, w, b: f.batch_norm(a, None, None, w, b, True), [image, scale, shift], LONG),
        Case("gems rms_norm", lambda a, w: ops.rms_norm(a, shape, w), lambda a, w: f.rms_norm(a, shape, w, 1e-5),
             [x, weight], LONG),
        Case("gems embedding", pair(torch, ops.embedding, embedding_gradient),
             lambda w, i: f.embedding(i, w), [torch.randn(32, 64), torch.randint(0, 32, (16,))], LONG),
        Case("gems nll_loss", pair(torch, ops.nll_loss_forward, nll_gradient), f.nll_loss,
             [x.log_softmax(-1), labels], LONG),
        Case("gems mse_loss", ops.mse_loss, f.mse_loss, [x, torch.randn(8, 128)], LONG, False),
    ]


def make_product_cases(torch: Any, ops: Any) -> list[Case]:
    """Products of matrices, convolutions, attention."""
    f = torch.nn.functional
    a, b, bias = torch.randn(64, 48), torch.randn(48, 32), torch.randn(32)
    bound = 2e-2  # tensor cores take f32 as tf32, or the inputs are halves

    def product(name: str, function: Callable[..., Any], reference: Callable[..., Any], *inputs: Any,
                dtype: str = "float16", has_gradients: bool = False) -> Case:
        return Case(f"gems {name}", function, reference, list(inputs), bound, has_gradients, dtype)

    def attention(name: str, rows: int, has_gradients: bool) -> Case:
        return product(f"scaled_dot_product_attention{name}", lambda q, k, v: ops.scaled_dot_product_attention(q, k, v, is_causal=True),
                       lambda q, k, v: f.scaled_dot_product_attention(q, k, v, is_causal=True),
                       *(torch.randn(1, 2, rows, 64) for _ in range(3)), has_gradients=has_gradients)

    return [
        product("mm", ops.mm, torch.mm, a, b),
        product("addmm", ops.addmm, torch.addmm, bias, a, b),
        product("bmm", ops.bmm, torch.bmm, torch.randn(2, 32, 48), torch.randn(2, 48, 32)),
        product("mv", ops.mv, torch.mv, a, torch.randn(48), dtype="float32"),
        product("dot", ops.dot, torch.dot, torch.randn(100), torch.randn(100), dtype="float32"),
        product("conv1d", ops.conv1d, f.conv1d, torch.randn(2, 4, 32), torch.randn(8, 4, 3), dtype="float32"),
        product("conv2d", lambda x, w: ops.conv2d(x, w, padding=1), lambda x, w: f.conv2d(x, w, padding=1),
                torch.randn(1, 4, 8, 8), torch.randn(8, 4, 3, 3), dtype="float32", has_gradients=True),
        # The gradients of more rows depend on which tiles the tuner takes: dq's of
        # 64 rows are left half unwritten by a grid for 128.
        attention("", 64, False),
        attention(", gradients", 64, True),
    ]


def make_fused_cases(torch: Any, fused: Any) -> list[Case]:
    """What the package joins into one kernel."""
    f = torch.nn.functional
    x, y, weight = torch.randn(8, 128), torch.randn(8, 128), torch.randn(128)

    def skipped(a: Any, r: Any, w: Any) -> Any:
        return f.layer_norm(a + r, (128,), w, torch.zeros_like(w))

    return [
        Case("gems silu_and_mul", fused.silu_and_mul, lambda a, b: f.silu(a) * b, [x, y]),
        Case("gems gelu_and_mul", fused.gelu_and_mul, lambda a, b: f.gelu(a) * b, [x, y]),
        Case("gems cross_entropy_loss", fused.cross_entropy_loss, f.cross_entropy,
             [x, torch.randint(0, 128, (8,))], LONG),
        Case("gems weight_norm", fused.weight_norm,
             lambda v, g: torch._weight_norm(v, g, 0), [torch.randn(16, 64), torch.randn(16, 1)], LONG),
        Case("gems outer", fused.outer, torch.outer, [torch.randn(64), torch.randn(32)]),
        Case("gems skip_layer_norm",
             lambda a, r, w: fused.skip_layer_norm(a, r, (128,), w, torch.zeros_like(w)), skipped,
             [x, y, weight], LONG, False),
        Case("gems instance_norm", lambda a, w, b: fused.instance_norm(a, w, b),
             lambda a, w, b: f.instance_norm(a, weight=w, bias=b),
             [torch.randn(2, 4, 32), torch.randn(4), torch.randn(4)], LONG),
    ]


def make_gems_cases(torch: Any) -> list[Case]:
    """The cases of FlagGems."""
    from flag_gems import fused, ops

    return [
        *make_elementwise_cases(torch, ops),
        *make_reduction_cases(torch, ops),
        *make_norm_cases(torch, ops),
        *make_product_cases(torch, ops),
        *make_fused_cases(torch, fused),
    ]
