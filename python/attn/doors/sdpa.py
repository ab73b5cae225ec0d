"""torch's scaled_dot_product_attention on the kernels of attn."""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.nn.attention import bias

from ..calls import call_signatures
from ..errors import AttnError
from . import mask_tensors, notices

_TYPES = (torch.float16, torch.bfloat16)
#: Where the diagonals of torch's causal biases lie.
_PLACES = {
    bias.CausalVariant.UPPER_LEFT: "top-left",
    bias.CausalVariant.LOWER_RIGHT: "bottom-right",
}


def _is_usual(tensor: Any) -> bool:
    """Returns True if the class of a tensor does not replace functions of torch."""
    kind = type(tensor)
    if kind in (torch.Tensor, torch.nn.Parameter):
        return True
    function = getattr(kind, "__torch_function__", None)
    usual = torch.Tensor.__torch_function__.__func__  # type: ignore[attr-defined]
    return function is torch._C._disabled_torch_function_impl or (
        getattr(function, "__func__", None) is usual
    )


def _find_place(attn_mask: Any, query: Any, key: Any) -> str | None:
    """Returns where the diagonal of torch's causal bias lies, if `attn_mask` is one for these
    operands; None for any other mask."""
    if not isinstance(attn_mask, bias.CausalBias):
        return None
    lengths = (attn_mask.seq_len_q, attn_mask.seq_len_kv)
    if lengths != (query.shape[-2], key.shape[-2]):
        return None
    return _PLACES.get(attn_mask.variant)


def find_reason(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any,
    dropout_p: float,
    is_causal: bool,
    enable_gqa: bool,
) -> str | None:
    """Why a call is left to torch; None if it is not."""
    tensors = (query, key, value)
    if not all(isinstance(each, torch.Tensor) for each in tensors):
        return "operands are no tensors"
    for each in (*tensors, attn_mask):
        # A class with functions of its own may keep its contents elsewhere.
        if each is not None and not _is_usual(each):
            return f"there is a {type(each).__name__}"
    if any(each.is_nested or each.layout != torch.strided for each in tensors):
        return "operands are nested or sparse"
    if dropout_p:
        return "there is no dropout"
    if any(each.dtype not in _TYPES or each.dtype != query.dtype for each in tensors):
        dtypes = f"{query.dtype}, {key.dtype} and {value.dtype}"
        return f"elements are {dtypes}; kernels take float16 or bfloat16"
    if any(each.device != query.device for each in tensors) or query.device.type not in (
        "cuda",
        "cpu",
    ):
        return f"operands are on {query.device}, {key.device} and {value.device}"
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        return "there is no backward pass"
    if not 2 <= query.dim() == key.dim() == value.dim():
        return f"operands have {query.dim()}, {key.dim()} and {value.dim()} dimensions"
    if key.shape[:-1] != value.shape[:-1] or query.shape[-1] != key.shape[-1]:
        return "shapes are torch's to broadcast or to refuse"
    if query.shape[:-3] != key.shape[:-3]:
        return "batches are torch's to broadcast or to refuse"
    if query.dim() > 2 and query.shape[-3] != key.shape[-3]:
        if not enable_gqa or not key.shape[-3] or query.shape[-3] % key.shape[-3]:
            return "numbers of heads are torch's to broadcast or to refuse"
    if 0 in query.shape or 0 in key.shape or not value.shape[-1]:
        return "there is nothing to compute"
    if attn_mask is not None:
        if is_causal:
            return "attn_mask and is_causal exclude each other"
        if attn_mask.requires_grad and torch.is_grad_enabled():
            return "there is no backward pass"
        if attn_mask.dtype != torch.bool and not attn_mask.dtype.is_floating_point:
            return f"attn_mask has elements of {attn_mask.dtype}"
    return None


def _to_four(tensor: Any) -> Any:
    """(…, heads, sequence, dim) as (batch, heads, sequence, dim)."""
    if tensor.dim() > 4:
        return tensor.flatten(0, -4)
    return tensor.reshape((1,) * (4 - tensor.dim()) + tuple(tensor.shape))


def _is_ready(tensor: Any) -> bool:
    """Whether kernels take a tensor's columns, strides and address as they are."""
    size = tensor.element_size()
    steps = [
        step
        for extent, step in zip(tensor.shape[:-1], tensor.stride()[:-1], strict=True)
        if extent > 1
    ]
    is_even = tensor.stride(-1) == 1 and all(step * size % 16 == 0 for step in steps)
    return is_even and tensor.shape[-1] % 8 == 0 and tensor.storage_offset() * size % 16 == 0


def attend(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    is_causal: bool | str = False,
    scale: Any = None,
    **options: Any,
) -> Any:
    """SDPA's function; `options` are those of `attn.attention`."""
    q, k, v = map(_to_four, (query, key, value))
    if attn_mask is not None:
        shape = (*q.shape[:3], k.shape[2])
        mask = _to_four(attn_mask) if attn_mask.dim() > 4 else attn_mask
        score_mod, mask_mod = mask_tensors.make_mods("attn_mask", mask, shape)
        options |= {"score_mod": score_mod, "mask_mod": mask_mod}
    pad = not all(map(_is_ready, (q, k, v)))
    with notices.hide_copies() if pad else contextlib.nullcontext():
        o = call_signatures.attention(q, k, v, causal=is_causal, scale=scale, pad=pad, **options)
    return o.reshape((*query.shape[:-1], value.shape[-1]))


def _replace_attention(
    function: types.FunctionType, attention: Callable[..., Any]
) -> Callable[..., Any]:
    """Returns a copy of a function of torch.nn.functional that calls another attention. Torch asks
    a mode about the outer function alone, and never about those that this one calls."""
    scope = {**function.__globals__, "scaled_dot_product_attention": attention}
    copy = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__)
    copy.__kwdefaults__ = function.__kwdefaults__
    # It hands itself to the modes below, such as that of a default device, which call it again.
    scope[function.__name__] = copy
    return copy


class Mode(torch.overrides.TorchFunctionMode):
    """While it is active, `scaled_dot_product_attention` is attn's."""

    def __init__(self, strict: bool = False) -> None:
        super().__init__()
        self._strict = strict
        #: The function that torch.nn.MultiheadAttention calls, with this attention in it.
        self._attend_heads = _replace_attention(
            functional.multi_head_attention_forward,  # type: ignore[arg-type]
            functools.partial(self._attend, functional.scaled_dot_product_attention),
        )

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is functional.scaled_dot_product_attention:
            return self._attend(func, *args, **kwargs)
        if func is functional.multi_head_attention_forward and not torch.compiler.is_compiling():
            return self._attend_heads(*args, **kwargs)
        return func(*args, **kwargs)

    def _attend(
        self,
        func: Any,
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: Any = None,
        enable_gqa: bool = False,
    ) -> Any:
        place = None if is_causal else _find_place(attn_mask, query, key)
        mask, causal = (attn_mask, is_causal) if place is None else (None, place)
        reason = find_reason(query, key, value, mask, dropout_p, bool(causal), enable_gqa)
        if reason is None:
            try:
                return attend(query, key, value, mask, causal, scale)
            except AttnError as error:
                reason = str(error)
        if self._strict:
            raise notices.make_refusal("scaled_dot_product_attention", reason)
        notices.say_fallback("scaled_dot_product_attention", "torch", reason)
        return func(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
