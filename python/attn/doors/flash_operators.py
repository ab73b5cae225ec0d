"""torch's operators for flash attention on the kernels of attn.

torch.nn.attention has a registry of implementations; each overrides aten's operators for CUDA.
Calls that no kernel covers go to the operator that was there before.
"""

from __future__ import annotations

from typing import Any

import torch

from ..calls import call_signatures
from ..errors import AttnError, LibraryError
from ..serving import serving_signatures
from . import mask_tensors, notices

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


def _make_options(is_causal: bool, left: int | None, right: int | None) -> dict[str, Any]:
    """`causal` and `window` for a diagonal that ends at the last query and key."""
    sides = [-1 if side is None else side for side in (left, right)]
    if is_causal and sides != [-1, -1]:
        sides[1] = 0
    window = None if sides == [-1, -1] else (*sides, "bottom-right")
    return {"causal": "bottom-right" if is_causal else False, "window": window}


def _attend_pages(
    q: Any, pools: tuple[Any, Any], tables: tuple[Any, Any, Any], max_q: int, options: dict[str, Any]
) -> tuple[Any, Any]:
    """Keys in pages (pages, keys, heads, dim): o and the LSE (heads, rows)."""
    if options["window"] is not None:
        options["window"] = options["window"][:2]
    options["causal"] = bool(options["causal"])
    o, lse = serving_signatures.prefill(q, *pools, *tables, max_seqlen_q=max_q, **options)
    return o, lse.mT.contiguous()


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
    seqused_k: Any = None,
    block_table: Any = None,
    num_splits: int | None = None,
    out: Any = None,
    **others: Any,
) -> tuple[Any, ...] | str:
    """aten::_flash_attention_forward, whose tensors are (batch, sequence, heads, dim), or packed
    (rows, heads, dim), with keys in pages (pages, keys, heads, dim) where there is a `block_table`;
    or why it is torch's. `out` takes the result. Into how many runs keys are cut is a hint, but for
    1, which asks for results that other sequences of the batch do not change."""
    reason = _find_reason(
        query, key, value, dropout_p, {"return_debug_mask": return_debug_mask, **others}
    )
    if reason is None and num_splits == 1:
        reason = "num_splits=1 asks for the same bits in every batch"
    if reason is None and block_table is not None and (seqused_k is None or cum_seq_q is None):
        reason = "there is a block_table without seqused_k or cum_seq_q"
    if reason is not None:
        return reason
    options = _make_options(is_causal, window_size_left, window_size_right)
    q, k, v = (each.detach() for each in (query, key, value))
    lse: Any = True
    if out is not None:
        # A call that writes one result of two writes both.
        rows = q.shape[:2] if q.dim() == 3 else q.shape[:3]
        lse = torch.empty(rows, dtype=torch.float32, device=q.device)
        lse = lse if block_table is not None else lse.mT.contiguous()
    options |= {"scale": scale, "lse": lse, "out": out}
    if block_table is not None:
        tables = (block_table, seqused_k, cum_seq_q)
        return _finish(*_attend_pages(q, (k, v), tables, int(max_q), options))
    if seqused_k is not None:
        queries = query.shape[1] if cum_seq_q is None else cum_seq_q.diff()
        sides = options["window"][:2] if options["window"] else (-1, 0 if is_causal else -1)
        options["mask_mod"] = mask_tensors.see_used(seqused_k, seqused_k - queries, *sides)
        options |= {"causal": False, "window": None}
    if cum_seq_q is not None:
        counts = {"cu_seqlens_q": cum_seq_q, "cu_seqlens_k": cum_seq_k, "max_seqlen_q": int(max_q)}
        return _finish(*call_signatures.attention(q, k, v, **counts, **options))
    if out is not None:
        options["out"] = out.transpose(1, 2)
    o, lse = call_signatures.attention(*(each.transpose(1, 2) for each in (q, k, v)), **options)
    return _finish(o.transpose(1, 2), lse)


def attend_into(out: Any, *args: Any, **kwargs: Any) -> Any:
    """aten::_flash_attention_forward_no_dropout_inplace: the LSE, or why it is torch's."""
    result = attend_rows(*args, out=out, **kwargs)
    return result if isinstance(result, str) else result[1]


#: Those of aten that are overridden; the last one came with a later torch than the registry.
OPERATORS = {
    name: function
    for name, function in (
        ("_scaled_dot_product_flash_attention", attend_dense),
        ("_flash_attention_forward", attend_rows),
        ("_flash_attention_forward_no_dropout_inplace", attend_into),
    )
    if hasattr(torch.ops.aten, name)
}


class Overrides:
    """The operators in the place of torch's. `remove` gives torch its own back."""

    def __init__(self, key: str = "CUDA") -> None:
        self._library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
        for name, function in OPERATORS.items():
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
