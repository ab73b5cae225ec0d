"""`attn.decode`, `attn.mla_decode`, `attn.prefill` and `attn.merge_states`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..calls.call_arguments import Modification
from ..errors import ArgumentError, ArgumentTypeError
from ..launch import device_tensors
from ..options import readers
from ..tensors import padding, tensor_views
from . import decode_launch, merging
from .settings import Settings, trace_mods


def decode(
    q: Any,
    k_cache: Any,
    v_cache: Any,
    page_table: Any,
    kv_lengths: Any,
    *,
    layout: str = "nhd",
    causal: bool = True,
    window: Sequence[int | None] | None = None,
    softcap: float | None = None,
    scale: float | None = None,
    sinks: Any = None,
    k_scale: Any = None,
    v_scale: Any = None,
    k_scales: Any = None,
    v_scales: Any = None,
    score_mod: Modification | None = None,
    mask_mod: Modification | None = None,
    kv_splits: int | None = None,
    run_keys: int | None = None,
    partials: str = "auto",
    selected: bool = False,
    init: tuple[Any, Any] | None = None,
    out_scale: float | None = None,
    lse: Any = False,
    out: Any = None,
    pad: bool = False,
    stream: int | None = None,
) -> Any:
    """Attention of a batch of sequences to keys in pages.

    q is (batch, heads, dim), one query a sequence, or (batch, heads, queries, dim),
    the last ones of each sequence. The pools k_cache and v_cache are (pages, keys,
    key heads, dim) with `layout="nhd"`, (pages, key heads, keys, dim) with "hnd", of
    any strides; two halves of one tensor will do. `page_table`, i32 (batch, pages),
    names the pages of each sequence, and `kv_lengths`, i32 (batch), says how many
    keys it has: 0 gives zeros and an LSE of -inf. What lies behind a length is not
    read, ids that the pool does not have stand for zeros.

    With several queries the last one is at the last key; `causal` hides what is
    behind each, `window=(left, right)` keeps that many keys on each side of it.
    Pools may have 8-bit elements (e4m3, e5m2; sm_89 and later) beside a 16-bit q, and
    `k_scale` and `v_scale` say what one unit of them stands for: f32 tensors of one
    element, of one for each key head, or (batch, key heads). `k_scales` and `v_scales` say so
    of each row and, where a row has several, of as many equal parts of its columns: f32
    tensors in the order of the pools, with the numbers of a row in the place of its
    columns. q becomes f16 then: beyond 65504 it is infinite. `sinks` has one f32 logit a
    head. `kv_splits` says into how many runs keys are cut; without it the planner does, from
    the shapes alone.
    With `run_keys=n` each run has n keys: then the results of a sequence have the same
    bits whatever else is in the batch and wherever it stands there. n is a multiple of
    16; plans whose block does not divide it are not chosen. `partials` is the type of what runs
    write and the launch reads again to merge them: "f32", "f16" with a scale for each row, which
    has 11 bits of each number, or "bf16", which has 8. "auto" is "f32" here, and "f16" for
    `mla_decode`.

    With `selected` an id that the pool does not have, -1 say, stands for no keys instead
    of zeros, and keys have no positions: `causal` must be False where there are several
    queries. Pages of one key, which any dense pool is a view of, make `page_table` a list
    of the keys that a sequence's queries see (sparse attention by an indexer).

    `init=(o, lse)` is a state to go on from, results of other keys that the queries have
    seen: o like the result, also in f32, and lse like that one, f32. The results are
    those of both sets of keys, as `attn.merge_states` would give them, without its launch.
    Rows whose LSE is -inf have no state, whatever their o is. `sinks` count beside it: they
    belong to one of the parts.

    With `out_scale` o has 8 bits: its numbers, times `out_scale`, rounded to `out`'s type, e4m3
    where there is none; what is beyond the largest number becomes that one.

    `score_mod` and `mask_mod` are those of `attn.attention`: q_idx counts a sequence's
    queries, kv_idx its keys, both from 0. With `mask_mod` and several queries `causal`
    still hides keys, unless it is False.

    With `pad` q and pools whose head dimension, strides or addresses no kernel takes are copied
    at each call, with zeros behind their columns; an `attn.CopyRemark` says which.

    Returns o like q, or (o, lse) with `lse`. numpy arrays run on the GPU if there is
    one, else on the simulator; bf16 is uint16 and e4m3 uint8 there. Torch tensors go through the
    operator torch.ops.attn.decode, on the current stream; other libraries' need
    `out`, and a tensor as `lse` to have one. Raises ArgumentError for tensors that
    do not fit each other.
    """
    if pad is not False and readers.to_bool("pad", pad):
        return _pad_call(decode, dict(locals()))
    texts, captures = trace_mods(score_mod, mask_mod)
    settings = Settings.read(
        layout=layout,
        causal=causal,
        window=window,
        softcap=softcap,
        scale=scale,
        kv_splits=kv_splits,
        run_keys=run_keys,
        partials=partials,
        selected=selected,
        **_read_output(out_scale, out),
        **texts,
    )
    tensors = {
        "q": q,
        "k_cache": k_cache,
        "v_cache": v_cache,
        "page_table": page_table,
        "kv_lengths": kv_lengths,
        "sinks": sinks,
        "k_scale": k_scale,
        "v_scale": v_scale,
        "k_scales": k_scales,
        "v_scales": v_scales,
        **name_state(init),
    }
    return run(tensors, captures, settings, lse, out, stream)


def mla_decode(
    q: Any,
    kv_cache: Any,
    page_table: Any,
    kv_lengths: Any,
    *,
    value_dim: int,
    scale: float,
    k_scale: Any = None,
    k_scales: Any = None,
    k_rope: Any = None,
    q_rope: Any = None,
    causal: bool = True,
    softcap: float | None = None,
    sinks: Any = None,
    score_mod: Modification | None = None,
    mask_mod: Modification | None = None,
    kv_splits: int | None = None,
    run_keys: int | None = None,
    partials: str = "auto",
    selected: bool = False,
    init: tuple[Any, Any] | None = None,
    out_scale: float | None = None,
    lse: Any = False,
    out: Any = None,
    stream: int | None = None,
) -> Any:
    """Latent attention in its absorbed form (MLA) of a batch of sequences.

    A key is one row of `kv_cache`, (pages, keys, dim) or (pages, keys, 1, dim), whose
    first `value_dim` columns are its value; the others are the rotated ones. All heads
    read the same keys. q is (batch, heads, dim) or (batch, heads, queries, dim), its
    first `value_dim` columns multiplied by the matrix that made the keys. `scale` is
    the model's, not that of `dim` columns.

    With `k_rope`, of q's type, in the order of `kv_cache` and of any strides, the rotated
    columns are a tensor of their own, and `kv_cache` has the first `value_dim` columns alone.
    With `q_rope`, like q, those of the queries are apart, too. So it is for a cache of 8-bit
    elements, with `k_scales`, f32, a number for each 128 columns of a row. Rows of 512 e4m3,
    4 f32 and 64 bf16 are three views of one tensor of bytes. A cache whose rotated columns have 8
    bits too is one tensor of all columns, with `k_scale` as in `attn.decode`. The other arguments and the results are
    those of `attn.decode`; o has `value_dim` columns.
    """
    for name, number in (("value_dim", value_dim), ("scale", scale)):
        if number is None:
            raise ArgumentError(f"{name}: expected a number, got None")
    texts, captures = trace_mods(score_mod, mask_mod)
    settings = Settings.read(
        causal=causal,
        softcap=softcap,
        scale=scale,
        kv_splits=kv_splits,
        run_keys=run_keys,
        partials=partials,
        selected=selected,
        value_dim=value_dim,
        **_read_output(out_scale, out),
        **texts,
    )
    tensors = {
        "q": q,
        "k_cache": kv_cache,
        "v_cache": None,
        "page_table": page_table,
        "kv_lengths": kv_lengths,
        "sinks": sinks,
        "k_scale": k_scale,
        # Values are columns of the keys.
        "v_scale": k_scale,
        "k_scales": k_scales,
        "k_rope": k_rope,
        "q_rope": q_rope,
        **name_state(init),
    }
    return run(tensors, captures, settings, lse, out, stream)


def prefill(
    q: Any,
    k_cache: Any,
    v_cache: Any,
    page_table: Any,
    kv_lengths: Any,
    cu_seqlens_q: Any,
    *,
    max_seqlen_q: int,
    layout: str = "nhd",
    causal: bool = True,
    window: Sequence[int | None] | None = None,
    softcap: float | None = None,
    scale: float | None = None,
    sinks: Any = None,
    k_scale: Any = None,
    v_scale: Any = None,
    k_scales: Any = None,
    v_scales: Any = None,
    score_mod: Modification | None = None,
    mask_mod: Modification | None = None,
    init: tuple[Any, Any] | None = None,
    out_scale: float | None = None,
    lse: Any = False,
    out: Any = None,
    pad: bool = False,
    stream: int | None = None,
) -> Any:
    """Attention of new queries of a batch of sequences, as many of each as it has, to
    keys in pages: chunked prefill and append.

    q is (queries, heads, dim), the queries of one sequence behind those of the one
    before. `cu_seqlens_q`, i32 (batch + 1), says where each begins, the first one with 0, and the last
    one ends, all within q; `max_seqlen_q` bounds the queries of a sequence: numpy's are compared
    with it, those of a device with ATTN_DEBUG_CHECKS=1. The last query
    of a sequence is at its last key: `kv_lengths` counts the new keys, which are in the
    cache already (`attn.append_kv`). Pools, also those of 8 bits with their scales, table,
    lengths and options are those of `attn.decode`.

    Returns o like q, or (o, lse) with `lse` f32 (queries, heads). Rows of q that no
    sequence has, or that are beyond its bound, stay as they were in `out` and are NaN in a new
    o and LSE. numpy arrays run on the GPU if there is one, else on the simulator. Raises ArgumentError
    for tensors that do not fit each other.
    """
    if max_seqlen_q is None:
        raise ArgumentError("max_seqlen_q: expected a number, got None")
    if pad is not False and readers.to_bool("pad", pad):
        return _pad_call(prefill, dict(locals()))
    texts, captures = trace_mods(score_mod, mask_mod)
    settings = Settings.read(
        layout=layout,
        causal=causal,
        window=window,
        softcap=softcap,
        scale=scale,
        max_seqlen_q=max_seqlen_q,
        **_read_output(out_scale, out),
        **texts,
    )
    tensors = {
        "q": q,
        "k_cache": k_cache,
        "v_cache": v_cache,
        "page_table": page_table,
        "kv_lengths": kv_lengths,
        "cu_seqlens_q": cu_seqlens_q,
        "sinks": sinks,
        "k_scale": k_scale,
        "v_scale": v_scale,
        "k_scales": k_scales,
        "v_scales": v_scales,
        **name_state(init),
    }
    return run(tensors, captures, settings, lse, out, stream)


def _pad_call(function: Any, given: dict[str, Any]) -> Any:
    """A call with operands that kernels take, copied where they are not so."""
    given["pad"] = False
    given |= name_state(given.pop("init"))
    for name in ("k_scales", "v_scales"):
        if given[name] is not None:
            raise ArgumentError(f"pad: expected none beside {name}")
    fitted, scale, dv, wide = padding.pad_operands(given, "k_cache", "v_cache", given["scale"])
    states = (fitted.pop("init_o"), fitted.pop("init_lse"))
    out = fitted["out"]
    if out is not None and wide != dv:
        fitted["out"] = out.new_empty((*out.shape[:-1], wide))
    fitted |= {"scale": scale, "init": None if states[0] is None else states}
    result = function(**fitted)
    return result if wide == dv else padding.cut(result, out, given["lse"], dv)


def _read_output(out_scale: float | None, out: Any) -> dict[str, Any]:
    """The settings of an output of 8 bits, e4m3 where it is not the caller's."""
    if out_scale is None:
        return {}
    made = {} if out is not None else {"out_type": "f8E4M3FN"}
    return {"out_scale": out_scale, **made}


def name_state(init: tuple[Any, Any] | None) -> dict[str, Any]:
    """A state to go on from, by the kernel's names."""
    if init is None:
        return {"init_o": None, "init_lse": None}
    if not isinstance(init, (tuple, list)) or len(init) != 2 or any(each is None for each in init):
        got = type(init).__name__ if not isinstance(init, (tuple, list)) else f"{len(init)} of them"
        got = "None among them" if got.startswith("2 ") else got
        raise ArgumentTypeError(f"init: expected a pair, o and its LSE, got {got}")
    return dict(zip(("init_o", "init_lse"), init, strict=True))


def run(
    tensors: dict[str, Any],
    captures: list[Any],
    settings: Settings,
    lse: Any,
    out: Any,
    stream: int | None,
) -> Any:
    """Any of the calls: tensors by name, what regions read, and what was said beside."""
    q = tensors["q"]
    for name in ("q", "k_cache", "page_table", "kv_lengths", "cu_seqlens_q"):
        if tensors.get(name, name) is None:
            named = decode_launch.name_arguments(settings).get(name, name)
            raise ArgumentTypeError(f'tensor "{named}": expected a tensor, got None')
    if device_tensors.is_torch(q):
        if stream is not None:
            raise ArgumentError("stream: expected none, since torch tensors use torch's")
        from .. import torch_serving

        return torch_serving.decode(tensors, captures, settings, lse, out)
    tensors |= decode_launch.name_captures(captures)
    if tensor_views.is_numpy(q):
        if out is not None:
            raise ArgumentError("out: expected none with numpy arrays, whose results are new")
        return decode_launch.decode_numpy(tensors, settings, readers.to_bool("lse", lse))
    tensor_views.view("q", q)
    if out is None or lse is True:
        missing = "out" if out is None else "lse"
        raise ArgumentError(
            f'tensor "{missing}": expected a tensor to write to; only torch and numpy have '
            "outputs made"
        )
    tensors |= {"o": out, "lse": None if lse is False else lse}
    decode_launch.launch_decode(tensors, settings, stream)
    return out if lse is False else (out, lse)


def merge_states(
    partial_o: Any,
    partial_lse: Any,
    *,
    dtype: Any = None,
    out: Any = None,
    lse: Any = None,
    stream: int | None = None,
) -> Any:
    """One attention of several ones, each over keys that no other one has.

    `partial_o` is (states, batch, heads, queries, dim) or (states, rows, heads, dim),
    `partial_lse` the same without dim, both f32 and dense; an LSE of -inf is a state
    without keys, one of +inf takes all (docs/spec.md; FlashAttention 2 gives it to rows
    without keys: replace it by -inf before). LSEs are natural logarithms. Returns (o, lse) without the dimension
    of states; o has `dtype`, f32 by default. Writes to `out` and `lse` where both are
    given. numpy arrays run on the GPU if there is one, else on the simulator. It
    merges what parts of a cache on several GPUs gave, and prefixes that sequences
    share. Raises ArgumentError for tensors that do not fit each other.
    """
    if tensor_views.is_numpy(partial_o):
        if out is not None or lse is not None:
            raise ArgumentError("out: expected none with numpy arrays, whose results are new")
        return merging.merge_numpy(partial_o, partial_lse, dtype)
    if device_tensors.is_torch(partial_o):
        if stream is not None:
            raise ArgumentError("stream: expected none, since torch tensors use torch's")
        from .. import torch_serving

        return torch_serving.merge(partial_o, partial_lse, out, lse, dtype)
    tensor_views.view("partial_o", partial_o)
    merging.check_given(out, lse)
    merging.launch_merge(partial_o, partial_lse, out, lse, stream)
    return out, lse
