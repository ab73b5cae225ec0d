"""FlexAttention's signature on the kernels of attn."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch.nn.attention import flex_attention as host

from ..calls import call_signatures
from ..errors import ArgumentError
from ..options import readers
from ..tracing.mod_regions import trace
from . import mask_tensors, notices

#: Options of FlexAttention's own kernels, which change no result and mean nothing here.
_OPTIONS = frozenset(
    (
        "num_warps",
        "num_stages",
        "BLOCK_M",
        "BLOCK_N",
        "BLOCK_M1",
        "BLOCK_N1",
        "BLOCK_M2",
        "BLOCK_N2",
    )
    + (
        "PRESCALE_QK",
        "ROWS_GUARANTEED_SAFE",
        "BLOCKS_ARE_CONTIGUOUS",
        "WRITE_DQ",
        "FORCE_USE_FLEX_ATTENTION",
    )
    + (
        "USE_TMA",
        "BACKEND",
        "kpack",
        "matrix_instr_nonkdim",
        "waves_per_eu",
        "IS_DIVISIBLE",
        "OUTPUT_LOGSUMEXP",
    )
)
#: Kinds of a block of a block mask.
_HIDDEN, _PARTIAL, _FULL = 0, 1, 2

#: Queries and keys that blocks with lists are multiples of, and most columns beside lists.
_LISTED, _MOST_COLUMNS = 64, 256

#: Where a block mask that was looked at has what was found. Not in a dictionary of block masks,
#: which are compared by what their tensors hold.
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
        block_mask.mask_mod,
        batch,
        heads,
        queries,
        keys,
        device=device,
        BLOCK_SIZE=block_mask.BLOCK_SIZE,
    )
    return bool(torch.equal(make_table(made), table))


def _is_captured(tensor: Any) -> bool:
    """Returns True while operations on a tensor are captured into a CUDA graph."""
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


class Found(NamedTuple):
    """What a block mask became."""

    #: Hides what the function of the block mask hides, and, without lists, its blocks.
    mod: Any
    #: `block_counts` and `block_indices` of attn.attention for the batches and heads of the block
    #: mask, None where the function says all.
    lists: tuple[Any, Any] | None
    #: Copies of `lists` for other batches and heads, by both. None is ever dropped, since a CUDA
    #: graph may read it.
    expanded: dict[tuple[int, int], tuple[Any, Any]]

    def expand(self, batch: int, heads: int) -> tuple[Any, Any]:
        """Returns `lists`, which must not be None, for so many batches and heads. Calls with the
        same numbers share a copy: making one takes longer than a short call."""
        known = self.expanded.get((batch, heads))
        if known is None:
            assert self.lists is not None
            counts, indices = self.lists
            shape = (batch, heads, -1, -1)
            known = counts.expand(*shape).contiguous(), indices.expand(*shape).contiguous()
            if _is_captured(counts):
                # Written when the graph is replayed, not before.
                return known
            self.expanded[batch, heads] = known
        return known


def _has_holes(table: Any) -> bool:
    """Whether a row of blocks has hidden ones between others: no range of keys leaves these out."""
    seen = table != _HIDDEN
    places = torch.arange(table.shape[-1], device=table.device)
    first = torch.where(seen, places, table.shape[-1]).amin(-1)
    last = torch.where(seen, places, -1).amax(-1)
    return bool((seen.sum(-1) < last - first + 1).any())


def _make_lists(table: Any) -> tuple[Any, Any]:
    """The lists of a table of blocks, full ones first, as attn.attention takes them."""
    indices = torch.argsort(table, dim=-1, descending=True, stable=True).to(torch.int32)
    numbers = [(table != _HIDDEN).sum(-1), (table == _FULL).sum(-1)]
    return torch.stack(numbers, -1).to(torch.int32), indices


def _takes_lists(block_mask: Any, dims: tuple[int, int]) -> bool:
    """Whether kernels with lists take the sizes of a block mask and these head dimensions."""
    rows, columns = block_mask.BLOCK_SIZE
    is_whole = block_mask.seq_lengths[1] % columns == 0
    return (
        is_whole and rows % _LISTED == 0 and columns % _LISTED == 0 and max(dims) <= _MOST_COLUMNS
    )


def find_mask(block_mask: Any, dims: tuple[int, int] = (_LISTED, _LISTED)) -> Found:
    """What hides what a block mask hides, from operands with these head dimensions; looked for
    once for each block mask. Lists stand where the compiler cannot find the blocks in the
    function."""
    takes_lists = _takes_lists(block_mask, dims)
    known = block_mask.__dict__.setdefault(_FOUND, {}).get(takes_lists)
    if known is None:
        table = make_table(block_mask)
        function, lists = block_mask.mask_mod, None
        says_all = _says_all(block_mask, table)
        if takes_lists and (not says_all or _has_holes(table)):
            lists = _make_lists(table)
        elif not says_all:
            function = mask_tensors.read_blocks(table, block_mask.BLOCK_SIZE, function)
        known = Found(trace("mask_mod", function), lists, {})
        block_mask.__dict__[_FOUND][takes_lists] = known
    return known


def _check(
    query: Any, key: Any, value: Any, block_mask: Any, enable_gqa: bool, options: Any
) -> None:
    for name, each in (("query", query), ("key", key), ("value", value)):
        if not isinstance(each, torch.Tensor) or each.dim() != 4:
            got = (
                f"shape {list(each.shape)}"
                if isinstance(each, torch.Tensor)
                else type(each).__name__
            )
            raise ArgumentError(
                f'tensor "{name}": expected a torch tensor of four dimensions, got {got}'
            )
    if value.shape[0] != key.shape[0] or key.shape[0] not in (1, query.shape[0]):
        raise ArgumentError(
            f'tensor "key": expected a batch of {query.shape[0]} as query, or of 1, as value has it, '
            f"got {key.shape[0]} beside {value.shape[0]} of value"
        )
    if not readers.to_bool("enable_gqa", enable_gqa) and query.shape[1] != key.shape[1]:
        raise ArgumentError(
            f'tensor "key": expected {query.shape[1]} heads as query, got {key.shape[1]}; '
            "enable_gqa=True lets key heads divide the heads"
        )
    if block_mask is not None and not isinstance(block_mask, host.BlockMask):
        raise ArgumentError(f"block_mask: expected a BlockMask, got {type(block_mask).__name__}")
    if block_mask is not None:
        if not callable(block_mask.mask_mod):
            raise ArgumentError(
                "block_mask: expected one with a mask_mod, which hides inside of blocks, got "
                f"{type(block_mask.mask_mod).__name__}"
            )
        lengths = (query.shape[2], key.shape[2])
        if tuple(block_mask.seq_lengths) != lengths:
            raise ArgumentError(
                f"block_mask: expected one for {lengths[0]} queries and {lengths[1]} keys, got one "
                f"for {block_mask.seq_lengths[0]} and {block_mask.seq_lengths[1]}; "
                "create_block_mask makes it"
            )
        for name, extent, wanted in zip(
            ("batch", "heads"), block_mask.shape[:2], query.shape[:2], strict=True
        ):
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
    wants_lse = readers.to_bool("return_lse", return_lse) or bool(return_aux is not None and return_aux.lse)
    options: dict[str, Any] = {}
    if block_mask is not None:
        found = find_mask(block_mask, (query.shape[-1], value.shape[-1]))
        options["mask_mod"] = found.mod
        if found.lists is not None:
            lists = found.expand(query.shape[0], query.shape[1])
            options |= dict(zip(("block_counts", "block_indices"), lists, strict=True))
            options["block_size"] = tuple(block_mask.BLOCK_SIZE)
    if query.shape[0] != key.shape[0]:
        key, value = (each.expand(query.shape[0], -1, -1, -1) for each in (key, value))
    pad = False
    # A branch, since torch.compile's own bools are no bools.
    if query.shape[-1] % 8 or value.shape[-1] % 8:
        pad = True
    with notices.hide_copies() if pad else contextlib.nullcontext():
        result = call_signatures.attention(
            query, key, value, score_mod=score_mod, scale=scale, lse=wants_lse, pad=pad, **options
        )
    if return_aux is None:
        return result
    o, lse = result if wants_lse else (result, None)
    return o, host.AuxOutput(lse=lse)
