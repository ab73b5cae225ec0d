"""Keys that stand beside those of a table: `added` of `attn.decode` and `attn.mla_decode`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import ArgumentError, ArgumentTypeError
from ..options import kernel_sizes
from ..record import DYNAMIC, TensorView
from ..tensors import batch_lists
from ..tensors.argument_checks import check_columns, check_device
from ..tensors.tensor_views import expect

if TYPE_CHECKING:
    from .settings import Settings

#: The pools of keys and of values, the table and the lengths, by the kernel's names.
NAMES = ("added_k", "added_v", "added_table", "added_lengths")


_LISTS = ("added_lengths", "added_table")
#: Settings that added keys do not stand beside.
_APART = ("selected", "run_keys", "expected_keys", "score_mod", "mask_mod")


class AddedKeys(NamedTuple):
    """What a kernel is made for of keys beside those of its table."""

    page_size: int
    #: Entries of the table for each sequence, and elements from a row of it to the next one.
    max_pages: int
    table_stride: int
    #: Pages of the pools; DYNAMIC leaves them to the launch.
    pages: int
    #: Elements from a page, a head and a key to the next one; none of values that are columns
    #: of the keys.
    k_strides: tuple[int, int, int]
    v_strides: tuple[int, int, int] | None


def name_added(added: tuple[Any, ...] | None, is_latent: bool) -> dict[str, Any]:
    """The tensors of `added` by the kernel's names, none of which is there without it."""
    if added is None:
        return {}
    names = [name for name in NAMES if not (is_latent and name == "added_v")]
    if not isinstance(added, (tuple, list)) or len(added) != len(names):
        got = len(added) if isinstance(added, (tuple, list)) else type(added).__name__
        what = "a pool" if is_latent else "pools of keys and values"
        raise ArgumentTypeError(f"added: expected {what}, a table and lengths, got {got}")
    if any(each is None for each in added):
        raise ArgumentTypeError("added: expected tensors, got None among them")
    return dict(zip(names, added, strict=True))


def _check_pool(name: str, pool: TensorView, own: TensorView) -> None:
    expect(name, "elements as the other keys,", own.dtype, pool.dtype)
    check_device(name, pool, own.device, "the other keys")
    for what, dim in (("key heads", 1), ("columns", 3)):
        expect(name, f"as many {what} as the other keys,", own.shape[dim], pool.shape[dim])
    check_columns(name, pool)


def read_added(tensors: Mapping[str, TensorView], settings: Settings) -> AddedKeys | None:
    """What the tensors of a call, in the kernel's order of dimensions, have of added keys."""
    if "added_k" not in tensors:
        return None
    named = [name for name in _APART if getattr(settings, name)]
    named += [name for name in ("k_scales", "v_scales", "k_rope") if name in tensors]
    if named:
        raise ArgumentError(f"added: expected none beside {named[0]}")
    k, v = tensors["added_k"], tensors.get("added_v")
    table, lengths = tensors["added_table"], tensors["added_lengths"]
    _check_pool("added_k", k, tensors["k"])
    if v is not None:
        _check_pool("added_v", v, tensors["v"])
        expect("added_v", "pages and keys of a page as added_k,", k.shape[:3], v.shape[:3])
    kernel_sizes.check_pool('tensor "added_k"', k.shape[0], k.shape[2], table.shape[0])
    batch_lists.check_lengths(lengths, table, tensors["q"].device, names=_LISTS)
    expect("added_lengths", "a length for each sequence,", tensors["q"].shape[0], lengths.shape[0])
    if table.shape[1] == 0 and table.shape[0] != 0:
        # Kernels look at the first entry whatever the lengths are.
        raise ArgumentError(
            'tensor "added_table": expected at least 1 column, got 0; leave added out without keys'
        )
    return AddedKeys(
        page_size=k.shape[2],
        max_pages=table.shape[1],
        table_stride=table.strides[0] if table.shape[0] > 1 else table.shape[1],
        pages=k.shape[0] if k.device < 0 else DYNAMIC,
        k_strides=(k.strides[0], k.strides[1], k.strides[2]),
        v_strides=None if v is None else (v.strides[0], v.strides[1], v.strides[2]),
    )


def check_values(tensors: Mapping[str, Any], views: Mapping[str, TensorView]) -> None:
    """What `batch_lists.check_batch` checks, of the added keys."""
    if "added_k" not in views:
        return
    pages, _, page_size, _ = views["added_k"].shape
    batch = (tensors["added_lengths"], tensors["added_table"])
    batch_lists.check_batch(*batch, page_size, pages, selected=True, names=_LISTS)
