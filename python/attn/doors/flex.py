"""FlexAttention's signature on the kernels of attn."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import torch
from torch.nn.attention import flex_attention as host

from ..calls import call_signatures
from ..errors import ArgumentError
from ..tracing.mod_regions import trace
from . import mask_tensors, notices

#: Options of FlexAttention's own kernels, which change no result and mean nothing here.
_OPTIONS = frozenset(
    ("num_warps", "num_stages", "BLOCK_M", "BLOCK_N", "BLOCK_M1", "BLOCK_N1", "BLOCK_M2", "BLOCK_N2")
    + ("PRESCALE_QK", "ROWS_GUARANTEED_SAFE", "BLOCKS_ARE_CONTIGUOUS", "WRITE_DQ", "FORCE_USE_FLEX_ATTENTION")
    + ("USE_TMA", "BACKEND", "kpack", "matrix_instr_nonkdim", "waves_per_eu", "IS_DIVISIBLE", "OUTPUT_LOGSUMEXP")
)
#: Kinds of a block of a block mask.
_HIDDEN, _PARTIAL, _FULL = 0, 1, 2

#: Where a block mask that was looked at has its function. Not in a dictionary of block masks, which
#: are compared by what their tensors hold.
_FOUND = "_attn_mask_mod"


def _make_table(counts: Any, indices: Any, value: int, table: Any) -> None:
    """Writes `value` where lists of blocks, (batch, heads, rows) and (…, columns), name them."""
    if counts is None:
        return
    columns = table.shape[-1]
    places = torch.arange(indices.shape[-1], device=indices.device)
    listed = (places < counts[..., None]).to(table.dtype) * value
    # Entries behind a list's end may name any block: they are written beside the table.
    kept = torch.where(places < counts[..., None], indices, columns).long()
    wide = torch.nn.functional.pad(table, (0, 1))
    wide.scatter_(-1, kept, listed)
    table.copy_(torch.maximum(table, wide[..., :columns]))


def make_table(block_mask: Any) -> Any:
    """What each block is, (batch, heads, rows, columns) as uint8."""
    queries, keys = block_mask.seq_lengths
    rows, columns = block_mask.BLOCK_SIZE
    shape = (*block_mask.kv_num_blocks.shape[:2], -(-queries // rows), -(-keys // columns))
    table = torch.zeros(shape, dtype=torch.uint8, device=block_mask.kv_num_blocks.device)
    _make_table(block_mask.kv_num_blocks, block_mask.kv_indices, _PARTIAL, table)
    _make_table(block_mask.full_kv_num_blocks, block_mask.full_kv_indices, _FULL, table)
    return table


def _says_all(block_mask: Any, table: Any) -> bool:
    """Whether the function of a block mask hides what its blocks do: then the compiler finds them
    in it. Evaluates the function once, as `create_block_mask` does."""
    queries, keys = block_mask.seq_lengths
    batch, heads = table.shape[:2]
    device = table.device
    made = host.create_block_mask(
        block_mask.mask_mod, batch, heads, queries, keys, device=device, BLOCK_SIZE=block_mask.BLOCK_SIZE
    )
    return bool(torch.equal(make_table(made), table))


def find_function(block_mask: Any) -> Any:
    """The mask_mod that hides what a block mask hides; looked for once for each block mask."""
    known = block_mask.__dict__.get(_FOUND)
    if known is None:
        table = make_table(block_mask)
        function = block_mask.mask_mod
        if not _says_all(block_mask, table):
            function = mask_tensors.read_blocks(table, block_mask.BLOCK_SIZE, function)
        known = block_mask.__dict__[_FOUND] = trace("mask_mod", function)
    return known


def _check(query: Any, key: Any, value: Any, block_mask: Any, enable_gqa: bool, options: Any) -> None:
    for name, each in (("query", query), ("key", key), ("value", value)):
        if not isinstance(each, torch.Tensor) or each.dim() != 4:
            got = f"shape {list(each.shape)}" if isinstance(each, torch.Tensor) else type(each).__name__
            raise ArgumentError(f'tensor "{name}": expected a torch tensor of four dimensions, got {got}')
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise ArgumentError(
            f'tensor "key": expected {query.shape[1]} heads as query, got {key.shape[1]}; '
            "enable_gqa=True lets key heads divide the heads"
        )
    if block_mask is not None and not isinstance(block_mask, host.BlockMask):
        raise ArgumentError(f"block_mask: expected a BlockMask, got {type(block_mask).__name__}")
    if block_mask is not None:
        lengths = (query.shape[2], key.shape[2])
        if tuple(block_mask.seq_lengths) != lengths:
            raise ArgumentError(
                f"block_mask: expected one for {lengths[0]} queries and {lengths[1]} keys, got one for "
                f"{block_mask.seq_lengths[0]} and {block_mask.seq_lengths[1]}; create_block_mask makes it"
            )
        for name, extent, wanted in zip(("batch", "heads"), block_mask.shape[:2], query.shape[:2], strict=True):
            if extent not in (1, wanted):
                raise ArgumentError(f"block_mask: expected {name} of 1 or {wanted}, got {extent}")
    if options is not None and not isinstance(options, Mapping):
        raise ArgumentError(f"kernel_options: expected a dictionary, got {type(options).__name__}")
    for name in options or ():
        if name.removeprefix("fwd_").removeprefix("bwd_") not in _OPTIONS:
            raise ArgumentError(f"kernel_options: no option of FlexAttention is called {name!r}")


def attend(
    query: Any,
    key: Any,
    value: Any,
    score_mod: Any,
    block_mask: Any,
    scale: Any,
    enable_gqa: bool,
    return_lse: bool,
    kernel_options: Any,
    return_aux: Any,
) -> Any:
    """attn.flex_attention."""
    _check(query, key, value, block_mask, enable_gqa, kernel_options)
    if return_aux is not None and getattr(return_aux, "max_scores", False):
        raise ArgumentError("return_aux: expected lse alone, since kernels keep no largest scores")
    wants_lse = return_lse or bool(return_aux is not None and return_aux.lse)
    mask_mod = None if block_mask is None else find_function(block_mask)
    if query.shape[0] != key.shape[0]:
        key, value = (each.expand(query.shape[0], -1, -1, -1) for each in (key, value))
    pad = bool(query.shape[-1] % 8 or value.shape[-1] % 8)
    with notices.hide_copies() if pad else contextlib.nullcontext():
        result = call_signatures.attention(
            query, key, value, score_mod=score_mod, mask_mod=mask_mod, scale=scale, lse=wants_lse, pad=pad
        )
    if return_aux is None:
        return result
    o, lse = result if wants_lse else (result, None)
    return o, host.AuxOutput(lse=lse)
