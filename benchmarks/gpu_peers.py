"""The kernels that attn's are timed beside, as functions of (q, k, v).

Tensors are (batch, heads, rows, dim) with any strides; packed sequences have
batch 1. Only what can be imported takes part.
"""

from __future__ import annotations

from collections.abc import Callable

import cudnn_fp8
import torch
import torch.nn.functional as F
from gpu_cells import Cell
from torch.nn.attention import SDPBackend, sdpa_kernel

try:
    from flash_attn.cute import flash_attn_func, flash_attn_varlen_func
except ImportError:
    flash_attn_func = flash_attn_varlen_func = None

Call = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def _sdpa(cell: Cell, backend: SDPBackend) -> Call:
    def call(q, k, v):
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(
                q, k, v, is_causal=cell.causal, enable_gqa=cell.heads != cell.kv_heads
            )

    return call


def _flash_direct(cell: Cell) -> Call:
    """FlashAttention-2 with the options that SDPA does not pass on; its causal
    mask lets the last query see all keys."""
    window = {} if cell.window is None else {"window_size_left": cell.window, "window_size_right": 0}

    def call(q, k, v):
        out = torch.ops.aten._flash_attention_forward(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
            None, None, cell.rows, cell.keys, 0.0, cell.causal, False, **window,
        )  # fmt: skip
        return out[0].transpose(1, 2)

    return call


def _flash_packed(cell: Cell, offsets: torch.Tensor) -> Call:
    longest = max(cell.lengths)

    def call(q, k, v):
        out = torch.ops.aten._flash_attention_forward(
            q[0].transpose(0, 1), k[0].transpose(0, 1), v[0].transpose(0, 1),
            offsets, offsets, longest, longest, 0.0, cell.causal, False,
        )  # fmt: skip
        return out[0].transpose(0, 1)[None]

    return call


def _flex(cell: Cell, slopes: torch.Tensor | None) -> Call:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def mask(b, h, i, j):
        return j <= i if cell.window is None else (j <= i) & (j >= i - cell.window)

    def score(s, b, h, i, j):
        return s + slopes[h] * (j - i)

    blocks = create_block_mask(mask, None, None, cell.rows, cell.rows, device="cuda")
    compiled = torch.compile(flex_attention, dynamic=False, fullgraph=True)

    def call(q, k, v):
        return compiled(
            q, k, v, score_mod=score if cell.score else None, block_mask=blocks,
            enable_gqa=cell.heads != cell.kv_heads,
        )  # fmt: skip

    return call


def _flash4(cell: Cell, offsets: torch.Tensor | None, sinks: torch.Tensor | None) -> Call:
    # It takes sinks as bf16 only.
    sinks = None if sinks is None else sinks.to(torch.bfloat16)
    window = (None, None) if cell.window is None else (cell.window, 0)

    def call(q, k, v):
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        if offsets is not None:
            longest = max(cell.lengths)
            out = flash_attn_varlen_func(
                q[0], k[0], v[0], cu_seqlens_q=offsets, cu_seqlens_k=offsets,
                max_seqlen_q=longest, max_seqlen_k=longest, causal=cell.causal,
            )  # fmt: skip
        else:
            out = flash_attn_func(
                q, k, v, causal=cell.causal, window_size=window, learnable_sink=sinks
            )
        out = out[0] if isinstance(out, tuple) else out
        return (out if offsets is None else out[None]).transpose(1, 2)

    return call


def make_peers(
    cell: Cell,
    slopes: torch.Tensor | None,
    offsets: torch.Tensor | None,
    sinks: torch.Tensor | None,
) -> dict[str, Call]:
    """The peers of a cell by name; the first is the one that the bar is set by."""
    peers: dict[str, Call] = {}
    if cell.dtype.startswith("f8"):
        # torch has no attention on 8-bit operands.
        cudnn = cudnn_fp8.make_peer(cell)
        return {} if cudnn is None else {"cudnn": cudnn}
    if cell.score:
        return {"flex": _flex(cell, slopes)}
    if offsets is not None:
        peers["fa2"] = _flash_packed(cell, offsets)
    elif sinks is not None:
        pass  # FlashAttention-4 alone has them
    elif cell.window is not None:
        peers["fa2"] = _flash_direct(cell)
        if not cell.model:
            peers["flex"] = _flex(cell, slopes)
    elif cell.causal and cell.offset:
        peers["fa2"] = _flash_direct(cell)  # the others of torch align the mask at the first key
    else:
        peers["fa2"] = _sdpa(cell, SDPBackend.FLASH_ATTENTION)
        peers["cudnn"] = _sdpa(cell, SDPBackend.CUDNN_ATTENTION)
    if flash_attn_func is not None:
        peers["fa4"] = _flash4(cell, offsets, sinks)
    return peers
