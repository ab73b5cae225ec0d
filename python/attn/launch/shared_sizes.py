"""Sizes that the tensors of an attention problem share."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import ArgumentError
from .tensor_map import TensorView

#: Rows of a tile of scales in the layout 128x4.
_TILE_ROWS = 128


def _partial(dim: int) -> tuple[tuple[str, int], ...]:
    """A dimension of the partial results that a kernel reads."""
    return ("partial_o", dim), ("partial_lse", dim)


def _init(dim: int) -> tuple[tuple[str, int], ...]:
    """A dimension of the results that a kernel goes on from."""
    return ("init_o", dim), ("init_lse", dim)


def _beside_rows(dim: int) -> tuple[tuple[str, int], ...]:
    """A dimension of what belongs to rows of q and o."""
    return ("q_rope", dim), ("o_scales", dim)


def _of_rows(dim: int) -> tuple[tuple[str, int], ...]:
    """A dimension of what belongs to rows of k and v."""
    return ("k_scales", dim), ("v_scales", dim), ("k_rope", dim)


def _of_added(dim: int) -> tuple[tuple[str, int], ...]:
    """A dimension of keys that stand beside those of k, and of their values."""
    return ("added_k", dim), ("added_v", dim)


def _check_tiles(kernel: str, views: Mapping[str, TensorView]) -> None:
    """Scales of o in tiles have a row for each token, padded to whole tiles."""
    o, scales = views["o"], views["o_scales"]
    want = -(-o.shape[0] * o.shape[2] // _TILE_ROWS) * _TILE_ROWS
    if scales.shape[0] != want:
        raise ArgumentError(
            f'kernel {kernel}: tensor "o_scales": expected {want} rows, those of o padded to tiles '
            f"of {_TILE_ROWS}, got {scales.shape[0]}"
        )


def check_sizes(kernel: str, views: Mapping[str, TensorView]) -> None:
    """Sizes that an attention problem has in several tensors agree."""
    if "o_scales" in views and "o" in views and len(views["o_scales"].shape) == 2:
        _check_tiles(kernel, views)
        views = {name: each for name, each in views.items() if name != "o_scales"}
    # Partial results have their run in front of the batch.
    lead = 1 if "o" in views and len(views["o"].shape) == 5 else 0
    # Pools have pages in the place of the batch, and a list of pages no batch.
    pool = (("k", 0), ("v", 0), *_of_rows(0))
    batch = (("q", 0), ("o", lead), ("lse", lead), *_partial(1), *_init(0), *_beside_rows(0))
    rows = () if "page_indptr" in views else (("page_table", 0),)
    sequences = (*rows, ("kv_lengths", 0), ("added_table", 0), ("added_lengths", 0))
    if "cu_seqlens_q" not in views:
        batch = (*batch, *sequences)
    if "page_table" not in views:
        batch = (*batch, *pool)
    groups: tuple[tuple[tuple[str, int], ...], ...] = (
        batch,
        pool,
        sequences,
        (
            *(("q", 1), ("o", lead + 1), ("lse", lead + 1), ("sinks", 0)),
            *(*_partial(2), *_init(1), *_beside_rows(1)),
        ),
        (("k", 1), ("v", 1), *_of_rows(1), *_of_added(1)),
        _of_added(0),
        _of_added(2),
        (("q", 2), ("o", lead + 2), ("lse", lead + 2), *_partial(3), *_init(2), *_beside_rows(2)),
        (("k", 2), ("v", 2), *_of_rows(2)),
        # Keys without their rotated columns are the values.
        (("o", lead + 3) if "k_rope" in views else ("q", 3), ("k", 3)),
        (("k", 3), ("added_k", 3)),
        (("v", 3), ("added_v", 3)),
        *((("q", 3), ("k", 3)), (("q_rope", 3), ("k_rope", 3))) * ("q_rope" in views),
        (("v", 3), ("o", lead + 3), ("partial_o", 4), ("init_o", 3)),
        (("cu_seqlens_q", 0), ("cu_seqlens_k", 0)),
        _partial(0),
    )
    # A byte holds two results of 4 bits.
    halved = ("o", lead + 3) if "o" in views and views["o"].dtype == "i8" else None
    for group in groups:
        known = [(n, d) for n, d in group if n in views and d < len(views[n].shape)]
        for name, dim in known[1:]:
            first, axis = known[0]
            want, got = views[first].shape[axis], views[name].shape[dim]
            if (name, dim) == halved:
                want = -(-want // 2)
            if want != got:
                raise ArgumentError(
                    f'kernel {kernel}: tensor "{name}": dimension {dim}: expected '
                    f"{want} as in dimension {axis} of {first}, got {got}"
                )
