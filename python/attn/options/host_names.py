"""What other libraries call the arguments of an attention, and what stands for them here."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from ..errors import ArgumentTypeError

#: By names of torch's SDPA and FlexAttention, FlashAttention, transformers and vLLM.
NAMES = {
    "query": "q",
    "key": "k",
    "value": "v",
    "is_causal": 'causal=True, which is "top-left" as in SDPA; FlashAttention has "bottom-right"',
    "attn_mask": "mask_mod, a function that reads it: lambda b, h, q, k: attn_mask[b, h, q, k]; "
    "what is added to scores goes into score_mod; attn.torch.sdpa() takes it as it is",
    "attention_mask": "mask_mod, a function that reads it: lambda b, h, q, k: mask[b, h, q, k]",
    "attn_bias": "score_mod: lambda score, b, h, q, k: score + attn_bias[b, h, q, k]",
    "bias": "score_mod: lambda score, b, h, q, k: score + bias[b, h, q, k]",
    "position_bias": "score_mod: lambda score, b, h, q, k: score + position_bias[b, h, q, k]",
    "key_padding_mask": "mask_mod: lambda b, h, q, k: key_padding_mask[b, k], where True is seen",
    "block_mask": "mask_mod=block_mask.mask_mod, of which hidden blocks are found; "
    "attn.flex_attention takes the block mask",
    "kernel_options": "plan in attn.compile; attn.flex_attention takes them",
    "dropout_p": "nothing: there is no dropout",
    "dropout": "nothing: there is no dropout",
    "enable_gqa": "nothing: key heads may always divide the heads",
    "softmax_scale": "scale",
    "sm_scale": "scale",
    "scaling": "scale",
    "window_size": "window=(left, right), the same pair, -1 or None for unbounded",
    "sliding_window": "window=(n - 1, 0) for the last n keys",
    "alibi_slopes": "score_mod: lambda score, b, h, q, k: score + slopes[h] * (k - q)",
    "logits_soft_cap": "softcap",
    "soft_cap": "softcap",
    "s_aux": "sinks",
    "learnable_sink": "sinks",
    "return_lse": "lse=True",
    "return_softmax_lse": "lse=True",
    "return_attn_probs": "lse=True; probabilities are never in memory",
    "need_weights": "lse=True; probabilities are never in memory",
    "deterministic": "nothing: results never depend on the order of work",
    "max_seqlen_k": "nothing: cu_seqlens_k says it",
    "max_seqlen_kv": "nothing: cu_seqlens_k says it",
    "cu_seqlens_kv": "cu_seqlens_k",
    "seqused_k": "kv_lengths of attn.decode and attn.prefill",
    "cache_seqlens": "kv_lengths of attn.decode and attn.prefill",
    "block_table": "page_table of attn.decode and attn.prefill",
    "block_tables": "page_table of attn.decode and attn.prefill",
    "page_size": "the second dimension of the pools of attn.decode",
    "num_splits": "kv_splits of attn.decode and attn.compile",
    "device": "nothing: it is that of the tensors",
}


def refuse(function: Callable[..., Any], others: Mapping[str, Any]) -> NoReturn:
    """Raises ArgumentTypeError for arguments that `function` does not have, with what attn calls
    them, or with the nearest name that it has."""
    texts = []
    known = list(inspect.signature(function).parameters)[:-1]
    for name in others:
        text = f"attn.{function.__name__} has no argument {name!r}"
        near = difflib.get_close_matches(name, known, 1)
        if name in NAMES:
            text += f"; for that attn has {NAMES[name]}"
        elif near:
            text += f"; did you mean {near[0]!r}?"
        texts.append(text)
    raise ArgumentTypeError("\n".join(texts))
