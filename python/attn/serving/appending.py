"""`attn.append_kv`: new keys and values into the pages of their sequences."""

from __future__ import annotations

from typing import Any

from .. import arrays
from ..errors import ArgumentError, ArgumentTypeError
from ..launch import device_tensors
from ..options import readers
from ..record import TensorView
from ..tensors import batch_lists, host_tensors, tensor_views


def append_kv(
    k: Any,
    v: Any,
    k_cache: Any,
    v_cache: Any,
    page_table: Any,
    kv_lengths: Any,
    cu_seqlens: Any = None,
    *,
    layout: str = "nhd",
) -> None:
    """Writes new keys and values of a batch of sequences into their pages.

    k and v are (batch, key heads, dim), one new key of each sequence, or, with
    `cu_seqlens`, i32 (batch + 1), (keys, key heads, dim), the new keys of one sequence
    behind those of the one before. `kv_lengths` counts them already, as `attn.decode`
    and `attn.prefill` expect it: of n new keys key i goes to position length - n + i.
    Pools and table are those of `attn.decode`; element types have to agree.

    What has no place is dropped: keys of a sequence of length 0, positions that the
    table does not have, ids that the pool does not have, rows in front of cu_seqlens[0] or
    behind its last one. Torch tensors are written by torch's own operators on the current stream,
    without a wait for the device, so that it can be captured in a CUDA graph; numpy
    arrays in place, bit for bit: uint16 and ml_dtypes' bfloat16 are one type. Raises
    ArgumentError for tensors that do not fit each other, before anything is written.
    """
    if host_tensors.is_host(k):
        given = {"k": k, "v": v, "k_cache": k_cache, "v_cache": v_cache, "page_table": page_table}
        given |= {"kv_lengths": kv_lengths, "cu_seqlens": cu_seqlens}
        for name in ("k_cache", "v_cache"):
            _check_target(name, given[name])
        # On the memory of the tensors.
        append_kv(**host_tensors.to_arrays(given), layout=layout)
        return
    order = readers.to_pool_order(layout)
    tensors = {"k": k, "v": v, "k_cache": k_cache, "v_cache": v_cache}
    tensors |= {"page_table": page_table, "kv_lengths": kv_lengths}
    if cu_seqlens is not None:
        tensors["cu_seqlens"] = cu_seqlens
    # Where torch compiles the call, tensors in host memory are written by torch, too.
    is_traced = device_tensors.is_torch(k) and k.device.type == "cpu"
    view = device_tensors.describe if is_traced else tensor_views.view
    _check({name: view(name, each) for name, each in tensors.items()}, order)
    for name in ("k_cache", "v_cache"):
        _check_target(name, tensors[name])
    if cu_seqlens is not None and batch_lists.looks_at(cu_seqlens):
        batch_lists.check_counts("cu_seqlens", cu_seqlens, k.shape[0])
    if kv_lengths.shape[0] == 0:
        return
    if order == "hnd":
        k_cache, v_cache = k_cache.swapaxes(1, 2), v_cache.swapaxes(1, 2)
    places = (page_table, kv_lengths, cu_seqlens)
    if tensor_views.is_numpy(k):
        _append_numpy(((k, k_cache), (v, v_cache)), *places)
    elif device_tensors.is_torch(k):
        _append_torch(((k, k_cache), (v, v_cache)), *places)
    else:
        raise ArgumentTypeError(
            f'tensor "k": expected a torch tensor or a numpy array, got {type(k).__name__}'
        )


def _check_target(name: str, pool: Any) -> None:
    """What would stop the second pool's writing after the first one's."""
    if tensor_views.is_numpy(pool) and not pool.flags.writeable:
        raise ArgumentError(f'tensor "{name}": expected an array that can be written to')
    if device_tensors.is_torch(pool):
        import torch

        if pool.requires_grad and torch.is_grad_enabled():
            raise ArgumentError(f'tensor "{name}": expected a tensor that requires no grad')
    strides = pool.strides if tensor_views.is_numpy(pool) else pool.stride()
    for axis, (extent, step) in enumerate(zip(pool.shape, strides, strict=True)):
        if extent > 1 and step == 0:
            raise ArgumentError(
                f'tensor "{name}": expected memory for each element, got one for all of dimension '
                f"{axis}"
            )


def _check(views: dict[str, TensorView], layout: str) -> None:
    counts = views.get("cu_seqlens")
    lengths = views["kv_lengths"]
    batch_lists.check_lengths(lengths, views["page_table"], views["k"].device)
    if counts is not None:
        tensor_views.check_counts("cu_seqlens", counts, lengths)
    for name in ("k", "v"):
        rows = views[name]
        pool = tensor_views.turn_pool(f"{name}_cache", views[f"{name}_cache"], layout)
        if len(rows.shape) != 3:
            what = "(batch, key heads, dim)" if counts is None else "(keys, key heads, dim)"
            raise ArgumentError(f'tensor "{name}": expected shape {what}, got {list(rows.shape)}')
        expected = rows.shape[0]
        if name == "v":
            expected = views["k"].shape[0]
        elif counts is None:
            expected = lengths.shape[0]
        tensor_views.expect(
            name, "shape", [expected, pool.shape[1], pool.shape[3]], list(rows.shape)
        )
        tensor_views.expect(f"{name}_cache", "elements as its rows,", rows.dtype, pool.dtype)
        if pool.shape[0] == 0 and lengths.shape[0]:
            raise ArgumentError(f'tensor "{name}_cache": expected at least one page, got none')
        if 0 in pool.shape[1:]:
            raise ArgumentError(
                f'tensor "{name}_cache": expected pages with heads, keys and columns, got shape '
                f"{list(views[f'{name}_cache'].shape)}"
            )
        for other, each in ((name, rows), (f"{name}_cache", pool)):
            if each.device != views["k"].device:
                raise ArgumentError(f'tensor "{other}": expected it on the device of k')
    k_pool, v_pool = (views[f"{name}_cache"].shape for name in "kv")
    tensor_views.expect(
        "v_cache", "pages, heads and keys of a page as k_cache,", k_pool[:3], v_pool[:3]
    )


def _append_numpy(pairs: Any, table: Any, lengths: Any, counts: Any) -> None:
    import numpy as np

    pages, page = pairs[0][1].shape[:2]
    row = np.arange(len(pairs[0][0]))
    if counts is None:
        sequence, place, inside = row, lengths[row].astype(np.int64) - 1, np.ones(len(row), bool)
    else:
        ends = counts[1:].astype(np.int64)
        sequence = np.minimum(np.searchsorted(ends, row, side="right"), len(ends) - 1)
        place = lengths[sequence].astype(np.int64) - ends[sequence] + row
        inside = (row >= counts[0]) & (row < counts[-1])
    entry = place // page
    inside &= (place >= 0) & (entry < table.shape[1])
    row, sequence, place, entry = (each[inside] for each in (row, sequence, place, entry))
    ids = table[sequence, entry]
    exists = (ids >= 0) & (ids < pages)
    for rows, pool in pairs:
        bits = arrays.to_bits(pool)
        bits[ids[exists], place[exists] % page] = arrays.to_bits(rows)[row[exists]]


def _append_torch(pairs: Any, table: Any, lengths: Any, counts: Any) -> None:
    import torch

    pages, page = pairs[0][1].shape[:2]
    row = torch.arange(pairs[0][0].shape[0], device=table.device)
    if row.numel() == 0:
        return
    if counts is None:
        sequence, place, inside = row, lengths.long() - 1, torch.ones_like(row, dtype=torch.bool)
    else:
        ends = counts[1:].long()
        sequence = torch.searchsorted(ends, row, right=True).clamp_(max=ends.numel() - 1)
        place = lengths.long()[sequence] - ends[sequence] + row
        inside = (row >= counts[0]) & (row < counts[-1])
    entry = place.div(page, rounding_mode="floor")
    inside = inside & (place >= 0) & (entry < table.shape[1])
    ids = table[sequence, entry.clamp(0, table.shape[1] - 1)].long()
    inside = inside & (ids >= 0) & (ids < pages)
    # A row that has no place does what some row with a place does, so that no index is
    # outside and nothing is written twice but the same; without any, nothing changes.
    source = torch.where(inside, row, inside.int().argmax())
    some = inside.any()
    ids = torch.where(some, ids[source], 0)
    slots = torch.where(some, place[source].remainder(page), 0)
    for rows, pool in pairs:
        if pool.element_size() == 1:
            # torch moves no 8-bit floats by index; their bits are the same.
            rows, pool = rows.view(torch.uint8), pool.view(torch.uint8)
        pool[ids, slots] = torch.where(some, rows[source], pool[0, 0])
