"""Which kernel an attention gets, and its launch.

`Call` is what a first call with new shapes finds out; later calls with equal
shapes, strides, types and options only take it from a dictionary.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .. import runtime
from ..errors import ArgumentError
from ..kernel import get_chip
from ..launch import cuda_driver
from ..options import kernel_sizes, readers
from ..options.problem_table import CALL_DEFAULTS, CALL_NAMES
from ..record import TensorView, get_contiguous_axis
from ..tensors import block_lists, tensor_views
from ..tensors.argument_checks import check_device, check_heads, check_lse, check_out, check_sinks
from ..tracing.captured_reads import Spec
from ..tracing.mod_regions import Regions
from . import attention_outputs, shared_kernels
from .shared_kernels import Lengths, Problem

TYPES = ("f16", "bf16", "f8E4M3FN", "f8E5M2")
#: Parts of an octave to which a bound of query lengths is rounded up, so that
#: batches of other lengths find a kernel.
_BOUND_STEPS = 4
#: Elements that rows of a transposed v are a multiple of in a kernel for fixed
#: lengths: 16 bytes.
_PITCH_UNIT = 16
#: Calls that are kept.
_KEPT_CALLS = 4096

_lock = threading.Lock()
_calls: dict[object, Call] = {}


_OPERANDS = ("q", "k", "v", "o", "lse", *attention_outputs.NAMES)
#: Tensors that a call may have beside q, k and v, and its regions, in their order.
OPTIONAL = ("sinks", "cu_seqlens_q", "cu_seqlens_k", *block_lists.NAMES)
KINDS = ("score_mod", "mask_mod", "out_mod")


class Options(NamedTuple):
    """What makes the kernel beside the tensors."""

    #: The values of problem_table.CALL_NAMES: a diagonal's place or "", a window as
    #: LEFT,RIGHT[,ALIGN] with -1 for unbounded or "", numbers or None.
    call: tuple[Any, ...] = CALL_DEFAULTS
    lse: bool = False
    #: Bound of query lengths of packed sequences; None takes all rows.
    max_seqlen_q: int | None = None
    #: The text of regions, empty without one.
    score_mod: str = ""
    mask_mod: str = ""
    out_mod: str = ""
    #: The queries and keys of the blocks that lists name; None without lists.
    block_size: tuple[int, int] | None = None
    #: Columns of o that share a scale; None without scales, or where these say so.
    out_group: int | None = None


def round_bound(length: int) -> int:
    """The next greater multiple of a quarter of a power of two."""
    step = max(1 << max(length - 1, 0).bit_length() >> _BOUND_STEPS.bit_length(), 16)
    return -(-max(length, 1) // step) * step


def is_sequence_major(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether a (batch, head, sequence, dim) tensor lies in memory in the order
    (batch, sequence, head, dim)."""
    return bool(shape[1] > 1 and shape[2] > 1 and strides[1] < strides[2])


def _is_transposed(view: TensorView) -> bool:
    """Whether v is contiguous along its keys instead of its head dimension."""
    return view.shape[3] > 1 and get_contiguous_axis(view.strides) == 2


def _has_repeats(view: TensorView) -> bool:
    """Whether elements along a dimension are one, as in an expanded tensor."""
    extents = zip(view.shape, view.strides, strict=True)
    return 0 not in view.shape and any(extent > 1 and stride == 0 for extent, stride in extents)


def _join_heads(views: dict[str, TensorView]) -> None:
    """Makes one head of those of k and v that are one in memory, as in expanded tensors: query
    heads may share it."""
    both = [views[name] for name in ("k", "v")]
    if any(0 in each.shape or each.shape[1] == 1 or each.strides[1] != 0 for each in both):
        return
    for name in ("k", "v"):
        batch, _, keys, dim = views[name].shape
        step, _, row, inner = views[name].strides
        # No head is behind the first, but a tensor map takes no stride of 0.
        views[name] = views[name]._replace(
            shape=(batch, 1, keys, dim), strides=(step, keys * row, row, inner)
        )


def _get_layout(views: Sequence[TensorView]) -> str:
    """The order of dimensions in which all operands are dense; strided if there is none.
    A transposed v is dense in an order of its own."""
    others = [view for view in views if not _is_transposed(view)]
    turned = [view for view in views if _is_transposed(view)]
    if not all(tensor_views.is_dense(view, (0, 1, 3, 2), _PITCH_UNIT) for view in turned):
        return "strided"
    for layout, order in (("bhnd", (0, 1, 2, 3)), ("bnhd", (0, 2, 1, 3))):
        if all(tensor_views.is_dense(view, order) for view in others):
            return layout
    return "strided"


def unpack(name: str, view: TensorView) -> TensorView:
    """Packed sequences (rows, head, dim) as (1, head, rows, dim)."""
    if len(view.shape) != 3:
        raise ArgumentError(
            f'tensor "{name}": with cu_seqlens expected shape (rows, head, dim), got '
            f"{list(view.shape)}"
        )
    rows, heads, dim = view.shape
    step, head_step, inner = view.strides
    return view._replace(shape=(1, heads, rows, dim), strides=(0, head_step, step, inner))


def _check(views: Mapping[str, TensorView], packed: bool, size: tuple[int, int] | None) -> None:
    """What no kernel could take; the rest is the compiler's to refuse."""
    q = views["q"]
    for name, view in views.items():
        check_device(attention_outputs.SHOWN.get(name, name), view, q.device)
    for name in ("q", "k", "v"):
        view = views[name]
        if len(view.shape) != 4:
            raise ArgumentError(
                f'tensor "{name}": expected shape (batch, head, sequence, dim), got '
                f"{list(view.shape)}"
            )
        if view.dtype != q.dtype or view.dtype not in TYPES:
            raise ArgumentError(
                f'tensor "{name}": expected one of {", ".join(TYPES)} for q, k and v alike, got '
                f"{view.dtype}"
            )
        if view.shape[0] != q.shape[0]:
            raise ArgumentError(
                f'tensor "{name}": expected batch size {q.shape[0]} as q, got {view.shape[0]}'
            )
        is_turned = name == "v" and _is_transposed(view)
        if view.shape[3] > 1 and view.strides[3] != 1 and not is_turned:
            raise ArgumentError(
                f'tensor "{name}": expected an innermost stride of 1, got {view.strides[3]}'
            )
    # Of packed sequences only o has been given a batch.
    for name, shown, rank in (("o", "out", 4), ("lse", "lse", 2 if packed else 3)):
        if name in views and len(views[name].shape) != rank:
            raise ArgumentError(
                f'tensor "{shown}": expected rank {rank}, got shape {list(views[name].shape)}'
            )
    k, v = views["k"], views["v"]
    check_heads('tensor "q"', q.shape[1], k.shape[1])
    if k.shape[3] != q.shape[3]:
        raise ArgumentError(
            f'tensor "k": expected head dimension {q.shape[3]} as q, got {k.shape[3]}'
        )
    for name, each in (("q", q), ("v", v)):
        kernel_sizes.check_dim(f'tensor "{name}"', each.shape[3], each.dtype)
    if v.shape[1:3] != k.shape[1:3]:
        raise ArgumentError(
            f'tensor "v": expected heads and keys {list(k.shape[1:3])} as k, got '
            f"{list(v.shape[1:3])}"
        )
    if "sinks" in views:
        check_sinks(views["sinks"], q.shape[1])
    if packed:
        _check_counts(views)
    _check_written(views, packed)
    block_lists.check_lists(views, size)


def _check_counts(views: Mapping[str, TensorView]) -> None:
    """Refuses places of packed sequences that are no lists of as many numbers."""
    for name in ("cu_seqlens_q", "cu_seqlens_k"):
        if name not in views:
            raise ArgumentError(f'tensor "{name}": expected one beside the other cu_seqlens, got none')
        tensor_views.check_integers(name, views[name], 1, None)
    counts, others = views["cu_seqlens_q"].shape[0], views["cu_seqlens_k"].shape[0]
    tensor_views.expect("cu_seqlens_k", "as many numbers as cu_seqlens_q,", counts, others)
    if counts < 1:
        raise ArgumentError('tensor "cu_seqlens_q": expected at least 1 number, got 0')


def _check_written(views: Mapping[str, TensorView], packed: bool) -> None:
    """Refuses an o and an LSE of the caller that have not a row for each of q's."""
    (batch, heads, queries, _), columns = views["q"].shape, views["v"].shape[3]
    if "o" in views:
        o = views["o"]
        columns = columns // 2 if o.dtype == attention_outputs.PAIRED else columns
        expected = (batch, heads, queries, columns)
        if packed:
            # As the caller has it.
            o = o._replace(shape=(*o.shape[2:0:-1], o.shape[3]), strides=o.strides[1:])
            expected = (queries, heads, columns)
        attention_outputs.check_type('tensor "out"', o.dtype)
        check_out(o, expected)
    if "lse" in views:
        check_lse(views["lse"], (heads, queries) if packed else (batch, heads, queries))


def split_reads(specs: Sequence[Spec], options: Options) -> tuple[Sequence[Spec], ...]:
    """What each region reads of what all of them do."""
    parts, first = [], 0
    for kind in ("score_mod", "mask_mod", "out_mod"):
        end = first + len(set(re.findall(rf"%{kind}\d+", getattr(options, kind))))
        parts.append(specs[first:end])
        first = end
    return tuple(parts)


def _get_regions(
    options: Options, specs: tuple[Sequence[Spec], ...], is_open: bool
) -> Regions | None:
    """The regions, which read tensors of known or of any extents."""
    if not options.score_mod and not options.mask_mod and not options.out_mod:
        return None
    read = [tuple(spec.dynamic() if is_open else spec for spec in each) for each in specs]
    return Regions(options.score_mod, options.mask_mod, read[0], read[1], options.out_mod, read[2])


def _get_out_scale(options: Options) -> Any:
    return dict(zip(CALL_NAMES, options.call, strict=True))["out_scale"]


class Stated(NamedTuple):
    """The problems of an attention on tensors of some shapes."""

    #: By the kernel's names, packed sequences as of a batch of 1, with the outputs.
    views: dict[str, TensorView]
    packed: bool
    #: The problem of these lengths, and the one of any.
    own: Problem
    mixed: Problem
    lengths: Lengths


def state(
    views: dict[str, TensorView],
    specs: tuple[Sequence[Spec], ...],
    options: Options,
    chip: str,
) -> Stated:
    """States the problems of a call. `views` has q, k and v, and sinks, cu_seqlens_q,
    cu_seqlens_k, block_counts, block_indices, o, lse, o_scales and amax where they are given, in
    the caller's shapes; `specs` has what score_mod, mask_mod and out_mod read."""
    packed = "cu_seqlens_q" in views or "cu_seqlens_k" in views
    views = dict(views)
    for name in ("q", "k", "v", "o", "o_scales"):
        # Scales in tiles are a matrix of all rows.
        is_matrix = name == "o_scales" and name in views and len(views[name].shape) == 2
        if name in views and packed and not is_matrix:
            views[name] = unpack(attention_outputs.SHOWN.get(name, name), views[name])
    _check(views, packed, options.block_size)
    _join_heads(views)
    q, v = views["q"], views["v"]
    batch, heads, queries, dim = q.shape
    kv_heads, keys, dv = v.shape[1:]
    # An 8-bit output would need a factor.
    out_type = q.dtype if q.dtype in ("f16", "bf16") else "bf16"
    if "o" not in views:
        is_major = is_sequence_major(q.shape, q.strides)
        views["o"] = make_output(batch, heads, queries, dv, out_type, is_major, q.device)
    if options.lse and "lse" not in views:
        views["lse"] = TensorView("f32", *_dense(batch, heads, queries), 0, q.device)
    elif packed and options.lse:
        lse = views["lse"]
        views["lse"] = lse._replace(shape=(1, *lse.shape), strides=(0, *lse.strides))
    if (options.max_seqlen_q or 0) < 0:
        raise ArgumentError(
            f"max_seqlen_q: expected a length of at least 0, got {options.max_seqlen_q}"
        )
    if options.max_seqlen_q is not None and not packed:
        raise ArgumentError(
            f"max_seqlen_q: expected none without cu_seqlens_q, got {options.max_seqlen_q}"
        )
    bound = round_bound(queries if options.max_seqlen_q is None else options.max_seqlen_q)
    o_type = views["o"].dtype
    # A kernel for any lengths is the same for all: they stand as 1.
    rows = bound if packed else 1
    block_rows, block_keys = options.block_size or (None, None)
    flags: dict[str, object] = {
        "q": f"1x{heads}x{rows}x{dim}x{q.dtype}",
        "kv_heads": kv_heads,
        "kv_len": None if packed else 1,
        "dv": dv,
        **readers.name_call_options(options.call),
        "out_type": None if o_type == out_type else o_type,
        "sinks": "sinks" in views,
        "block_rows": block_rows,
        "block_keys": block_keys,
        "lse": options.lse,
        **attention_outputs.find_flags(views, dv, options.out_group, _get_out_scale(options)),
        "layout": None,
        "v_transposed": True if _is_transposed(v) else None,
        "varlen": f"q:{bound}/k:1" if packed else None,
        "dynamic": True,
    }
    mixed = Problem(chip, flags, _get_regions(options, specs, is_open=True))
    own_flags = {
        **flags,
        "q": f"{batch}x{heads}x{queries}x{dim}x{q.dtype}",
        "kv_len": keys,
        "layout": _get_layout(
            [
                views[name]
                for name in ("q", "k", "v", "o", "o_scales")
                if name in views and len(views[name].shape) == 4
            ]
        ),
        "dynamic": False,
    }
    own = Problem(chip, own_flags, _get_regions(options, specs, is_open=False))
    # No tensor map steps nowhere along a dimension.
    if any(map(_has_repeats, (q, views["k"], v))):
        reason = "elements of q, k or v repeat along a dimension, which a tensor map cannot say"
        mixed = mixed._replace(schedule="split_q", reason=reason)
    return Stated(views, packed, own, mixed, Lengths(batch, queries, keys))


class Call:
    """An attention on tensors of some shapes, ready to be launched."""

    def __init__(
        self,
        views: dict[str, TensorView],
        specs: tuple[Sequence[Spec], ...],
        options: Options,
        chip: str,
        prepares: bool = False,
    ) -> None:
        """The arguments are those of `state`. Compiles unless the kernel is in the cache; with
        `prepares` also the one that calls of other lengths share."""
        stated = state(views, specs, options, chip)
        views, q = stated.views, stated.views["q"]
        self.packed = stated.packed
        if stated.packed or stated.mixed.schedule is not None:
            kernel = shared_kernels.load(stated.mixed)
        elif _is_transposed(views["v"]) or options.block_size:
            # The number of keys is a part of the layout, and of what lists can name.
            kernel = shared_kernels.load(stated.own)
        else:
            find = shared_kernels.prepare if prepares else shared_kernels.load_shared
            kernel = find(stated.own, stated.mixed, stated.lengths)
        for number, spec in enumerate(each for some in specs for each in some):
            view = TensorView(spec.element, spec.shape, spec.strides, 0, q.device)
            views[f"capture{number}"] = view
        self.kernel = kernel
        self.device = q.device
        captures = sorted(views.keys() - {*_OPERANDS, *OPTIONAL}, key=lambda name: int(name[7:]))
        # In the order in which `launch` takes addresses, which the kernel's need not be: one that
        # lists tiles first reads what a mask captured.
        order = [name for name in (*_OPERANDS, *OPTIONAL) if name in views]
        self._views = {name: views[name] for name in (*order, *captures)}
        #: What the caller gets: extents and strides of o, extents of lse.
        o = views["o"]
        self.o_type = o.dtype
        self.o_shape, self.o_strides = o.shape, o.strides
        batch, heads, queries, _ = q.shape
        self.lse_shape: tuple[int, ...] = (batch, heads, queries)
        if self.packed:
            self.o_shape, self.o_strides = _dense(queries, heads, o.shape[3])
            self.lse_shape = (heads, queries)
        self.prepared: runtime.PreparedLaunch | None = None

    def launch(
        self, addresses: Sequence[int], stream: int, allocate: Callable[[int], Any] | None = None
    ) -> None:
        """Launches on tensors at these addresses: q, k, v, o, lse, o_scales, amax, those of
        OPTIONAL, and what regions captured, as far as there are any. `allocate` gives a tensor of so many bytes, whose
        memory goes back in the stream's order; without it the driver does. The first time opens
        the device."""
        prepared = self.prepared
        if prepared is None:
            prepared = self.prepared = self.kernel.prepare(self._views)
        if allocate is None or not prepared.scratch_bytes:
            prepared(addresses, stream)
            return
        memory = allocate(prepared.scratch_bytes)
        prepared(addresses, stream, scratch=memory.data_ptr())


def _dense(*shape: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * max(shape[axis], 1)
    return shape, tuple(strides)


def make_output(
    batch: int, heads: int, rows: int, dim: int, dtype: str, is_major: bool, device: int
) -> TensorView:
    """A dense output, (batch, sequence, head, dim) in memory if `is_major`."""
    if not is_major:
        return TensorView(dtype, *_dense(batch, heads, rows, dim), 0, device)
    (_, _, _, _), (s0, s1, s2, s3) = _dense(batch, rows, heads, dim)
    return TensorView(dtype, (batch, heads, rows, dim), (s0, s2, s1, s3), 0, device)


def get_call(key: object) -> Call | None:
    """The call of equal shapes and options, if there was one."""
    return _calls.get(key)


def put_call(key: object, call: Call) -> Call:
    """Keeps a call for later ones."""
    with _lock:
        if len(_calls) >= _KEPT_CALLS:
            _calls.clear()
        return _calls.setdefault(key, call)


def make_call(
    views: dict[str, TensorView],
    specs: tuple[Sequence[Spec], ...],
    options: Options,
) -> Call:
    """A call for the device that the tensors are on."""
    device = cuda_driver.get_device(views["q"].device)
    return Call(views, specs, options, get_chip(device.major, device.minor))


def clear() -> None:
    """Forgets calls and loaded kernels."""
    with _lock:
        _calls.clear()
    shared_kernels.clear()
