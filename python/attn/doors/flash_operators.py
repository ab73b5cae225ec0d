"""torch's operators for flash attention on the kernels of attn.

torch.nn.attention has a registry of implementations; each overrides aten's operators for CUDA.
Calls that no kernel covers go to the operator that was there before.
"""

from __future__ import annotations

from typing import Any

import torch

from ..calls import call_signatures
from ..errors import AttnError, LibraryError
from . import notices

#: By which torch knows the implementation.
NAME = "attn"
_TYPES = (torch.float16, torch.bfloat16)


def _find_registry() -> Any:
    """The functions of torch.nn.attention, None where it has none."""
    from torch.nn import attention

    has_all = hasattr(attention, "register_flash_attention_impl") and hasattr(
        torch.library, "get_kernel"
    )
    return attention if has_all else None


def _find_reason(
    query: Any, key: Any, value: Any, dropout_p: float, others: dict[str, Any]
) -> str | None:
    """Why a call is left to torch's operator."""
    if dropout_p:
        return "there is no dropout"
    if query.dtype not in _TYPES:
        return f"elements are {query.dtype}"
    for name, given in others.items():
        if given is not None and given is not False:
            return f"{name} is given"
    return None


def _finish(o: Any, lse: Any) -> tuple[Any, ...]:
    """The results of an operator, with the states of a random generator that was not used."""
    state = torch.zeros((2,), dtype=torch.uint64, device=o.device)
    offset = torch.zeros((), dtype=torch.uint64, device=o.device)
    return o, lse, state, offset, torch.empty(0, dtype=o.dtype, device=o.device)


def attend_dense(
    query: Any,
    key: Any,
    value: Any,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...] | str:
    """aten::_scaled_dot_product_flash_attention, or why it is torch's."""
    reason = _find_reason(query, key, value, dropout_p, {"return_debug_mask": return_debug_mask})
    if reason is not None:
        return reason
    o, lse = call_signatures.attention(
        query.detach(), key.detach(), value.detach(), causal=is_causal, scale=scale, lse=True
    )
    o, lse, state, offset, mask = _finish(o, lse)
    return o, lse, None, None, query.shape[2], key.shape[2], state, offset, mask


def attend_rows(
    query: Any,
    key: Any,
    value: Any,
    cum_seq_q: Any,
    cum_seq_k: Any,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    return_debug_mask: bool,
    *,
    scale: float | None = None,
    window_size_left: int | None = None,
    window_size_right: int | None = None,
    **others: Any,
) -> tuple[Any, ...] | str:
    """aten::_flash_attention_forward, whose tensors are (batch, sequence, heads, dim), or packed
    (rows, heads, dim); or why it is torch's."""
    reason = _find_reason(
        query, key, value, dropout_p, {"return_debug_mask": return_debug_mask, **others}
    )
    if reason is not None:
        return reason
    sides = [-1 if side is None else side for side in (window_size_left, window_size_right)]
    options: dict[str, Any] = {
        "causal": "bottom-right" if is_causal else False,
        "scale": scale,
        "lse": True,
    }
    if sides != [-1, -1]:
        options["window"] = (*sides, "bottom-right")
    q, k, v = (each.detach() for each in (query, key, value))
    if cum_seq_q is not None:
        counts = {"cu_seqlens_q": cum_seq_q, "cu_seqlens_k": cum_seq_k, "max_seqlen_q": int(max_q)}
        return _finish(*call_signatures.attention(q, k, v, **counts, **options))
    o, lse = call_signatures.attention(*(each.transpose(1, 2) for each in (q, k, v)), **options)
    return _finish(o.transpose(1, 2), lse)


class Overrides:
    """The operators in the place of torch's. `remove` gives torch its own back."""

    def __init__(self, key: str = "CUDA") -> None:
        self._library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
        for name, function in (
            ("_scaled_dot_product_flash_attention", attend_dense),
            ("_flash_attention_forward", attend_rows),
        ):
            self._override(name, function, key)

    def _override(self, name: str, function: Any, key: str) -> None:
        before = torch.library.get_kernel(f"aten::{name}", key)

        def call(keys: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                result = function(*args, **kwargs)
            except AttnError as error:
                result = str(error)
            if not isinstance(result, str):
                return result
            notices.say_fallback(name, "torch", result)
            return before.call_boxed(keys, *args, **kwargs)

        self._library.impl(name, call, key, with_keyset=True, allow_override=True)

    def remove(self) -> None:
        """As torch's registry calls it."""
        self._library._destroy()


def register() -> None:
    """Tells torch's registry of the implementation, without activating it."""
    registry = _find_registry()
    if registry is not None:
        registry.register_flash_attention_impl(NAME, register_fn=Overrides)


def activate() -> None:
    """Activates the implementation, unless it is."""
    registry = _find_registry()
    if registry is None:
        raise LibraryError(
            f"attn.torch.activate: torch {torch.__version__} has no registry of implementations, "
            "which 2.11 brings; attn.torch.sdpa() needs none"
        )
    register()
    if registry.current_flash_attention_impl() != NAME:
        registry.activate_flash_attention_impl(NAME)


def deactivate() -> None:
    """Gives torch its own operators back."""
    registry = _find_registry()
    if registry is not None and registry.current_flash_attention_impl() == NAME:
        registry.restore_flash_attention_impl()
