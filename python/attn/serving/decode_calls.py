"""`attn.decode`, `attn.mla_decode`, `attn.prefill` and `attn.merge_states`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..calls import attention_outputs
from ..errors import ArgumentError, ArgumentTypeError
from ..launch import device_tensors
from ..options import argument_names, readers
from ..tensors import padding, tensor_views
from . import decode_launch, merging, packed_runs
from .decode_launch import join_results
from .query_rows import check_out_type
from .settings import Settings, trace_mods


class Outputs(NamedTuple):
    """Where results go, and on which stream."""

    #: Whether there is an LSE, or the tensor that it goes to.
    lse: Any
    out: Any
    stream: int | None
    #: Element type of an o that is made, columns of it that share a scale, the type of scales,
    #: whether they lie in tiles, and the tensor that they go to.
    out_type: Any = None
    out_group: Any = None
    out_scale_type: Any = None
    out_scale_tiles: Any = False
    out_scales: Any = None
    #: Where the largest size of results goes.
    amax: Any = None


class Results(NamedTuple):
    """The same, checked."""

    lse: Any
    out: Any
    stream: int | None
    asked: attention_outputs.Asked = attention_outputs.PLAIN


def check_given(options: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raises ArgumentError for an option that a call has no default for."""
    for name in names:
        if options[name] is None:
            raise ArgumentError(f"{name}: expected a number, got None")


def call(
    tensors: dict[str, Any],
    options: dict[str, Any],
    mods: tuple[Any, Any, Any],
    init: tuple[Any, Any] | None,
    outputs: Outputs,
    pad: Any,
) -> Any:
    """Any of the calls: tensors and options by the names of its arguments."""
    tensors = tensors | name_state(init)
    if pad is not False and readers.to_bool("pad", pad):
        return _pad_call(tensors, options, mods, outputs)
    return _call(tensors, options, mods, outputs)


def _call(
    tensors: dict[str, Any], options: dict[str, Any], mods: tuple[Any, Any, Any], outputs: Outputs
) -> Any:
    texts, captures = trace_mods(*mods)
    lse, out, stream, *stated, amax = outputs
    asked = attention_outputs.read(out, *stated, options["out_scale"], amax)
    if asked.out_type not in (None, attention_outputs.PAIRED):
        check_out_type(asked.out_type, "out_type")
    made = {} if asked.out_type is None else {"out_type": asked.out_type}
    settings = Settings.read(**options, **made, **texts)
    if "kv_cache" in tensors:
        tensors = {
            argument_names.LATENT_POOLS.get(name, name): each for name, each in tensors.items()
        }
        # Values are columns of the keys.
        tensors |= {"v_cache": None, "v_scale": tensors["k_scale"]}
    return run(tensors, captures, settings, Results(lse, out, stream, asked))


def _pad_call(
    tensors: dict[str, Any], options: dict[str, Any], mods: tuple[Any, Any, Any], outputs: Outputs
) -> Any:
    """A call with operands that kernels take, copied where they are not so."""
    for name in ("k_scales", "v_scales", "added_k"):
        if tensors.get(name) is not None:
            named = "added" if name == "added_k" else name
            raise ArgumentError(f"pad: expected none beside {named}")
    for name in ("out_group", "out_scales", "amax"):
        if getattr(outputs, name) is not None:
            raise ArgumentError(f"pad: expected none beside {name}")
    if "kv_cache" in tensors:
        fitted, dv, wide = padding.pad_latent(tensors, options["value_dim"])
        options = options | {"value_dim": wide}
    else:
        fitted, scale, dv, wide = padding.pad_operands(
            tensors, "k_cache", "v_cache", options["scale"]
        )
        options = options | {"scale": scale}
    out = outputs.out
    if out is not None and wide != dv:
        outputs = outputs._replace(out=out.new_empty((*out.shape[:-1], wide)))
    result = _call(fitted, options, mods, outputs)
    return result if wide == dv else padding.cut(result, out, outputs.lse, dv)


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
    tensors: dict[str, Any], captures: list[Any], settings: Settings, results: Results
) -> Any:
    """Any of the calls: tensors by name, what regions read, and what was said beside."""
    lse, out, stream, asked = results
    q = tensors["q"]
    for name in ("q", "k_cache", "page_table", "kv_lengths", "cu_seqlens_q"):
        if tensors.get(name, name) is None:
            named = decode_launch.name_arguments(settings).get(name, name)
            raise ArgumentTypeError(f'tensor "{named}": expected a tensor, got None')
    if tensor_views.is_numpy(q):
        if out is not None:
            raise ArgumentError("out: expected none with numpy arrays, whose results are new")
        lse = readers.to_bool("lse", lse)
    if settings.run_keys is not None and settings.max_seqlen_q is not None:
        if asked.has_scales or asked.amax is not None:
            what = "scales of the output" if asked.has_scales else "amax"
            raise ArgumentError(f"run_keys: expected none beside {what} in attn.prefill")

        def attend(batch: Any, read: Any, given: Settings, kind: str | None, *more: Any) -> Any:
            made = asked if kind is None else asked._replace(out_type=kind)
            return run(batch, read, given, Results(*more, made))

        lengths = tensors["kv_lengths"]
        return packed_runs.attend(attend, tensors, lengths, captures, settings, (lse, out, stream))
    if device_tensors.is_torch(q):
        if stream is not None:
            raise ArgumentError("stream: expected none, since torch tensors use torch's")
        from .. import torch_serving

        return torch_serving.decode(tensors, captures, settings, lse, out, asked)
    tensors |= decode_launch.name_captures(captures) | {"amax": asked.amax}
    if tensor_views.is_numpy(q):
        return decode_launch.decode_numpy(tensors, settings, lse, asked)
    tensor_views.view("q", q)
    if out is None or lse is True:
        missing = "out" if out is None else "lse"
        raise ArgumentError(
            f'tensor "{missing}": expected a tensor to write to; only torch and numpy have '
            "outputs made"
        )
    tensors |= {"o": out, "lse": None if lse is False else lse, "o_scales": asked.scales}
    decode_launch.launch_decode(tensors, settings, stream, asked.group)
    return join_results(out, None if lse is False else lse, asked.scales)


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
    without keys: replace it by -inf before). LSEs are natural logarithms. Returns (o, lse) without
    the dimension of states; o has `dtype`, f32 by default. Writes to `out` and `lse` where both are
    given. `partial_lse` may have the maximum and the sum of each row instead, (..., 2), beside a
    `partial_o` that is not divided, as kernels with `row_state` write both. numpy arrays run on the
    GPU if there is one, else on the simulator. It merges what parts of a cache on several GPUs gave,
    and prefixes that sequences share. Raises ArgumentError for tensors that do not fit each other.
    """
    partial_o, partial_lse = merging.divide_rows(partial_o, partial_lse)
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
