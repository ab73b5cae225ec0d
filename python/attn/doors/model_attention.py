"""The attention of transformers' models on the kernels of attn."""

from __future__ import annotations

from typing import Any

import torch

from ..calls import call_signatures
from ..errors import AttnError
from . import mask_tensors, notices
from .model_masks import Mask

_TYPES = (torch.float16, torch.bfloat16)
#: Arguments of models that change no result here.
_IGNORED = frozenset(
    ("layer_idx", "layer_index", "max_length_q", "max_length_k", "output_attentions", "use_cache")
    + (
        "position_ids",
        "cache_position",
        "output_router_logits",
        "output_hidden_states",
        "return_dict",
    )
    + (
        "num_items_in_batch",
        "deterministic",
        "target_dtype",
        "implementation",
        "preprocess_fn",
        "use_top_left_mask",
    )
)


def _find_reason(
    query: Any, key: Any, value: Any, dropout: float, training: bool, others: dict[str, Any]
) -> str | None:
    """Why a call is none of attn's."""
    if dropout and training:
        return "there is no dropout"
    if query.dtype not in _TYPES:
        return f"elements are {query.dtype}; kernels take float16 or bfloat16"
    if torch.is_grad_enabled() and any(each.requires_grad for each in (query, key, value)):
        return "there is no backward pass; torch.no_grad() says that none is wanted"
    for name, given in others.items():
        if name not in _IGNORED and given is not None:
            return f"the model says {name}, which attn.hf does not know"
    return None


def _find_strange_cache(key: Any, value: Any) -> str | None:
    """Why nothing takes what a cache gives."""
    for name, each in (("key", key), ("value", value)):
        if not isinstance(each, torch.Tensor):
            kind = type(each).__name__
            return f"the cache gives a {kind} as {name}; dynamic and static caches give tensors"
    return None


def _find_missing_mask(module: Any) -> str | None:
    """Why a layer without a mask may have lost one."""
    from transformers import AttentionMaskInterface

    name = getattr(getattr(module, "config", None), "_attn_implementation", None)
    if name is None or name in AttentionMaskInterface._global_mapping:
        return None
    return f"the registry of masks has no {name}; attn.hf.register({name!r}) gives both"


def _get_shape(query: Any, key: Any) -> tuple[int, ...]:
    """(batch, heads, queries, keys) of the scores."""
    return (*query.shape[:3], key.shape[2])


def _read_mask(
    mask: Any, module: Any, given: dict[str, Any], query: Any, key: Any
) -> dict[str, Any]:
    """Options of `attn.attention` for what a layer is given as its mask."""
    if isinstance(mask, Mask):
        return {"causal": mask.aligned.causal, "window": mask.aligned.window, "mask_mod": mask.mod}
    if isinstance(mask, torch.Tensor):
        if mask.dim() != 4:
            raise AttnError(
                f"attention_mask: expected (batch, heads, queries, keys), got {list(mask.shape)}; a "
                "model that makes no masks under this name needs attn.hf.register() under it"
            )
        mods = mask_tensors.make_mods("attention_mask", mask, _get_shape(query, key))
        return dict(zip(("score_mod", "mask_mod"), mods, strict=True))
    if mask is not None:
        raise AttnError(
            f"attention_mask: expected a mask of attn.hf or a tensor, got {type(mask).__name__}"
        )
    causal, window = given["is_causal"], given["sliding_window"]
    if causal is None:
        causal = getattr(module, "is_causal", True)
    # As SDPA's function has it: one query sees all keys.
    is_causal = bool(causal) and query.shape[2] > 1
    if window is not None and is_causal:
        return {"window": (window - 1, 0)}
    return {"causal": is_causal}


def _add_bias(options: dict[str, Any], bias: Any, shape: tuple[int, ...]) -> None:
    """Adds a bias of the scores to what the mask adds."""
    add, _ = mask_tensors.make_mods("position_bias", bias, shape)
    given = options.get("score_mod")
    options["score_mod"] = add if given is None else mask_tensors.chain(given, add)


def _attend_packed(
    query: Any, key: Any, value: Any, counts: dict[str, Any], options: dict[str, Any]
) -> Any:
    """Sequences one after the other in a batch of 1."""
    rows = (each[0].transpose(0, 1) for each in (query, key, value))
    o = call_signatures.attention(*rows, **counts, **options)
    return o.transpose(0, 1)[None]


def _attend(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, given: dict[str, Any]
) -> Any:
    """(batch, heads, queries, dim) from the kernel."""
    counts = given["counts"]
    is_packed = counts is not None
    if is_packed and isinstance(attention_mask, Mask) and attention_mask.mod is not None:
        # The function has the places of all rows, those of a packed call count in their sequence.
        attention_mask = attention_mask.within(counts["cu_seqlens_q"], counts["cu_seqlens_k"])
        is_packed = False
    elif is_packed and isinstance(attention_mask, torch.Tensor):
        raise AttnError(
            "cu_seq_lens_q is given beside a mask that is a tensor; leave it out where the mask "
            "tells the sequences apart, or else the mask"
        )
    if is_packed and given["position_bias"] is not None:
        raise AttnError(
            "cu_seq_lens_q is given beside position_bias; give the model its sequences as rows of "
            "a batch, with an attention_mask, and no cu_seq_lens_q"
        )
    options = _read_mask(attention_mask, module, given, query, key)
    if given["position_bias"] is not None:
        _add_bias(options, given["position_bias"], _get_shape(query, key))
    sinks = given["s_aux"]
    if sinks is not None:
        options["sinks"] = sinks.detach().to(torch.float32).contiguous()
    options["scale"], options["softcap"] = given["scaling"], given["softcap"]
    if is_packed:
        if options.get("causal"):
            options["causal"] = "bottom-right"
        return _attend_packed(query, key, value, counts, options)
    if query.shape[-1] % 8 == 0 and value.shape[-1] % 8 == 0:
        return call_signatures.attention(query, key, value, **options)
    with notices.hide_copies():
        return call_signatures.attention(query, key, value, pad=True, **options)


class Forward:
    """The function that transformers calls for each layer."""

    def __init__(self, fallback: str) -> None:
        self._falls_back = fallback == "sdpa"

    def __call__(
        self,
        module: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: Any,
        scaling: float | None = None,
        dropout: float = 0.0,
        is_causal: bool | None = None,
        sliding_window: int | None = None,
        softcap: float | None = None,
        s_aux: torch.Tensor | None = None,
        position_bias: torch.Tensor | None = None,
        cu_seq_lens_q: torch.Tensor | None = None,
        cu_seq_lens_k: torch.Tensor | None = None,
        max_length_q: int | None = None,
        **others: Any,
    ) -> tuple[torch.Tensor, None]:
        counts = None
        if cu_seq_lens_q is not None:
            bound = None if max_length_q is None else int(max_length_q)
            counts = {
                "cu_seqlens_q": cu_seq_lens_q,
                "cu_seqlens_k": cu_seq_lens_k,
                "max_seqlen_q": bound,
            }
        given = {
            "scaling": scaling, "softcap": softcap, "s_aux": s_aux, "position_bias": position_bias,
            "is_causal": is_causal, "sliding_window": sliding_window, "counts": counts,
        }  # fmt: skip
        training = bool(getattr(module, "training", False))
        missing = _find_strange_cache(key, value)
        if missing is None and attention_mask is None:
            missing = _find_missing_mask(module)
        reason = missing or _find_reason(query, key, value, dropout, training, others)
        if reason is None:
            try:
                o = _attend(module, query, key, value, attention_mask, given)
                return o.transpose(1, 2).contiguous(), None
            except AttnError as error:
                reason = str(error)
        what = f"the attention of {type(module).__name__}"
        # SDPA has none of these, and transformers' own function drops them.
        lost = [name for name in ("s_aux", "softcap") if given[name] is not None]
        if missing or not self._falls_back or lost or counts is not None:
            raise notices.make_refusal(what, reason or "")
        notices.say_fallback(what, "SDPA", reason)
        return self._call_sdpa(
            module, query, key, value, attention_mask, dropout if training else 0.0, given
        )

    def _call_sdpa(
        self,
        module: Any,
        query: Any,
        key: Any,
        value: Any,
        mask: Any,
        dropout: float,
        given: dict[str, Any],
    ) -> tuple[torch.Tensor, None]:
        """transformers' own function on torch's attention."""
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        if isinstance(mask, Mask):
            mask = mask.make_tensor()
        elif mask is None and given["sliding_window"] is not None:
            raise notices.make_refusal("SDPA", "there is a window and no mask that says it")
        options = {
            name: given[name]
            for name in ("scaling", "is_causal", "position_bias")
            if given[name] is not None
        }
        result: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, mask, dropout=dropout, **options
        )
        return result
