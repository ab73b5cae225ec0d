"""`attn.flex_attention`, which imports torch when it is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..calls.call_arguments import Modification
from ..errors import LibraryError


def flex_attention(
    query: Any,
    key: Any,
    value: Any,
    score_mod: Modification | None = None,
    block_mask: Any = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Mapping[str, Any] | None = None,
    *,
    return_aux: Any = None,
) -> Any:
    """torch's FlexAttention on attn's kernels, forward only.

    The arguments are those of `torch.nn.attention.flex_attention.flex_attention`: query (batch,
    heads, queries, dim), key and value with key heads, `score_mod` and the `mask_mod` of a
    `BlockMask` as functions that are traced, not compiled. Blocks that are hidden are found in
    `mask_mod` (docs/Masks.md), so that a block mask need not be made anew when lengths change:
    `attn.attention(..., mask_mod=...)` needs none. Where a block mask hides more than its function,
    or hidden blocks lie between others, which is looked for once, kernels walk lists of its blocks;
    those with blocks of no multiple of 64 rows and columns are read as a table, and none is skipped.

    Tensors lie on a GPU, or in host memory for the simulator. Returns o, (o, lse) with `return_lse`
    or (o, AuxOutput) with `return_aux`; lse is (batch, heads, queries) in f32, a natural logarithm.
    `kernel_options` are for torch's kernels and change nothing. Raises ArgumentError for tensors
    and block masks that do not fit each other, and for gradients."""
    try:
        from . import flex
    except ImportError as error:
        raise LibraryError(f"attn.flex_attention needs torch 2.8 or later: {error}") from None
    return flex.attend(
        query, key, value, score_mod, block_mask, scale, enable_gqa, return_lse, kernel_options,
        return_aux
    )  # fmt: skip
