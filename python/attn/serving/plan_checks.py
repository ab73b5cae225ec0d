"""What a launch of `attn.DecodePlan` is given beside what the plan was made for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ArgumentError
from ..record import TensorView
from ..tensors import tensor_views
from ..tensors.argument_checks import check_amax, check_device, check_sinks
from ..tensors.tensor_views import HOST, expect
from .decode_problem import DecodeProblem
from .pool_rows import check_planned_rows, check_planned_state


def check_planned(views: Mapping[str, TensorView], p: DecodeProblem, device: int) -> None:
    """Raises ArgumentError for tensors of a launch that the plan of a problem was not made for."""
    expected = {
        "q": (p.batch, p.heads, p.queries, p.query_columns),
        "k": (p.kv_heads, p.page_size, p.key_columns),
        "v": (p.kv_heads, p.page_size, p.value_dim),
    }
    strides = {"k": p.k_strides, "v": p.v_strides}
    names = {"q": "q", "k": "k_cache", "v": "v_cache"}
    for short, name in names.items():
        if short not in views:
            continue
        each = views[short]
        dtype = p.dtype if short == "q" else p.pool_dtype
        expect(name, "elements of", dtype, each.dtype)
        check_device(name, each, device, "the plan")
        got = each.shape if short == "q" else each.shape[1:]
        if got != expected[short]:
            order = (
                "(batch, heads, queries, dim)" if short == "q" else "(heads, keys, dim) of a page"
            )
            raise ArgumentError(
                f'tensor "{name}": expected {order} {list(expected[short])}, for which the plan '
                f"was made, got {list(got)}"
            )
        if short in strides and device != HOST and each.strides[:3] != strides[short]:
            raise ArgumentError(
                f'tensor "{name}": expected strides {[*strides[short], 1]} of (page, head, key, '
                f"dim), for which the plan was made, got {list(each.strides)}"
            )
    if not p.latent:
        expect("v_cache", "pages as k_cache,", views["k"].shape[0], views["v"].shape[0])
    for name, tensor, is_planned in (
        ("sinks", "sinks", p.sinks),
        ("q_rope", "q_rope", p.q_rope_strides is not None),
        ("init", "init_o", p.init is not None),
    ):
        if is_planned != (tensor in views):
            wanted = "a tensor" if is_planned else "none"
            raise ArgumentError(f'tensor "{name}": expected {wanted}, as the plan was made')
    if p.sinks:
        check_sinks(views["sinks"], p.heads)
    check_planned_state(views, p)
    _check_scales(views, p, device)
    check_planned_rows(views, p)


def check_planned_amax(amax: Any, p: DecodeProblem) -> None:
    """Raises ArgumentError for another `amax` than one f32 where the plan has one, and none where
    it has not."""
    if (amax is not None) != p.amax:
        wanted = "a tensor" if p.amax else "none"
        raise ArgumentError(f'tensor "amax": expected {wanted}, as the plan was made')
    if amax is None:
        return
    check_amax(tensor_views.view("amax", amax))


def _check_scales(views: Mapping[str, TensorView], p: DecodeProblem, device: int) -> None:
    expected = p.descale_strides
    if (expected is not None) != ("k_descale" in views):
        wanted = "none" if expected is None else "a tensor"
        raise ArgumentError(f'tensor "k_scale": expected {wanted}, as the plan was made')
    for name, strides in zip("kv", expected or ((), ()), strict=True):
        if expected is None or device == HOST:
            continue
        got = views[f"{name}_descale"].strides
        if got != strides:
            raise ArgumentError(
                f'tensor "{name}_scale": expected strides {list(strides)} of (sequence, key '
                f"head), for which the plan was made, got {list(got)}"
            )
