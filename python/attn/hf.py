"""transformers' models on the kernels of attn.

    attn.hf.register()
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="attn", dtype="float16")

Models that name it run on them; what no kernel takes is an error, unless `fallback` says otherwise.
"""

from __future__ import annotations

from .errors import ArgumentError, LibraryError

__all__ = ["register"]

#: Answers to a call that no kernel takes.
_FALLBACKS = ("error", "sdpa")


def register(name: str = "attn", *, fallback: str = "error") -> None:
    """Lets models of transformers name attn's kernels as `attn_implementation`.

    Registers a function for the layers and one for their masks, which becomes the kernel's causal
    mask and window where it is one, and is read by the compiler else. What no kernel takes, such as
    dropout, gradients, float32 or an argument that is not known, is an ArgumentError with the
    reason, or, with `fallback="sdpa"`, a call of torch's attention, which the logger `attn` tells
    at level DEBUG. Nothing is left out silently. A second call counts from then on.

    Raises LibraryError without torch or a transformers that has both registries (4.53 or later)."""
    if fallback not in _FALLBACKS:
        raise ArgumentError(f"fallback: expected one of {', '.join(_FALLBACKS)}, got {fallback!r}")
    try:
        from transformers import AttentionInterface, AttentionMaskInterface
    except ImportError as error:
        raise LibraryError(f"attn.hf needs torch and transformers 4.53 or later: {error}") from None
    from .doors import model_attention, model_masks

    AttentionInterface.register(name, model_attention.Forward(fallback))
    AttentionMaskInterface.register(name, model_masks.make_mask)
