"""`attn.attention`: compiles, loads and launches in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Union

from . import _attention, _capture, _options, _regions, _tensors
from ._attention import Options
from .errors import ArgumentError
from .record import TensorView

_OPTIONAL = ("sinks", "cu_seqlens_q", "cu_seqlens_k")

#: A function, or what `score_mod` and `mask_mod` make of it.
Modification = Union[Callable[..., Any], _regions.Mod]


_CAUSAL = {False: "", True: "top-left"}
#: Types that the operator takes; torch's are those of numbers that it does not
#: know while it traces.
_INTEGERS = ("int", "SymInt")
_NUMBERS = (*_INTEGERS, "float", "SymFloat")


def _format_window(window: Sequence[int | str | None] | None) -> str:
    if window is None:
        return ""
    return ",".join("-1" if each is None else str(each) for each in window)


def _make_options(
    max_seqlen_q: Any, causal: Any, window: Any, softcap: Any, scale: Any
) -> tuple[Any, str, str, Any, Any]:
    """The options in the operator's types. What torch.compile traces has these
    or Python's types already; the others are numpy's and torch's numbers."""
    if type(causal) is not bool and not isinstance(causal, str):
        causal = _options.to_bool("causal", causal)
    if max_seqlen_q is not None and type(max_seqlen_q).__name__ not in _INTEGERS:
        max_seqlen_q = _options.to_integer("max_seqlen_q", max_seqlen_q, 0, 2**31 - 1)
    if softcap is not None and type(softcap).__name__ not in _NUMBERS:
        softcap = _options.to_float("softcap", softcap)
    if scale is not None and type(scale).__name__ not in _NUMBERS:
        scale = _options.to_float("scale", scale)
    return (
        max_seqlen_q,
        _CAUSAL[causal] if isinstance(causal, bool) else causal,
        _format_window(window),
        softcap,
        scale,
    )


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    causal: bool | str = False,
    window: Sequence[int | str | None] | None = None,
    softcap: float | None = None,
    scale: float | None = None,
    sinks: Any = None,
    score_mod: Modification | None = None,
    mask_mod: Modification | None = None,
    cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None,
    max_seqlen_q: int | None = None,
    lse: Any = False,
    out: Any = None,
    stream: int | None = None,
) -> Any:
    """Attention on tensors on a GPU, on the current stream.

    q is (batch, heads, queries, dim), k and v have key heads that divide the
    heads; v may have another head dimension. With `cu_seqlens_q` and
    `cu_seqlens_k`, i32 cumulative lengths that begin with 0, sequences are
    packed and all tensors are (rows, heads, dim); `max_seqlen_q` bounds the
    query lengths. Returns o, or (o, lse) with `lse`; lse is (batch, heads,
    queries) or (heads, rows).

    `causal` is True ("top-left") or "bottom-right", `window` is (left, right) or
    (left, right, "bottom-right") with None for unbounded, `sinks` has one f32
    logit for each head. `score_mod(score, b, h, q_idx, kv_idx)` and `mask_mod(b,
    h, q_idx, kv_idx)` are traced, see docs/Python.md. `out`, and a tensor as
    `lse`, are written instead of new ones.

    Torch tensors go through the operator torch.ops.attn.attention. Others, with
    __cuda_array_interface__ or DLPack, need `out`, and take the CUstream `stream`.

    The first call with new shapes compiles a kernel for them, or takes it from
    the cache; dense operands in the order (batch, head, sequence, dim) or (batch,
    sequence, head, dim) in memory get the fastest one. Forward only. Raises
    ArgumentError, CompileError, TraceError or DriverError.
    """
    options = _make_options(max_seqlen_q, causal, window, softcap, scale)
    if type(lse).__module__ == "numpy":
        lse = _options.to_bool("lse", lse)
    mods = (score_mod, mask_mod)
    if _tensors.is_torch(q):
        if stream is not None:
            raise ArgumentError("stream: expected none, since torch tensors use torch's")
        optional = (sinks, cu_seqlens_q, cu_seqlens_k)
        return _get_torch_op().attention(q, k, v, optional, mods, options, lse, out)
    if type(q).__module__ == "numpy":
        raise ArgumentError(
            f'tensor "q": expected a tensor on a GPU, got a numpy {type(q).__name__}; for arrays '
            "in host memory there is attn.compile(...).run(q=q, k=k, v=v)"
        )
    given = {"q": q, "k": k, "v": v, "o": out, "lse": None if isinstance(lse, bool) else lse}
    given |= {"sinks": sinks, "cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k}
    return _attend_arrays(given, mods, options, lse is not False, stream)


def trace_mods(
    mods: tuple[Modification | None, Modification | None],
) -> tuple[str, str, list[Any], tuple[list[_capture.Spec], list[_capture.Spec]]]:
    """The texts of both regions, and what they read."""
    texts = ["", ""]
    tensors: list[Any] = []
    specs: tuple[list[_capture.Spec], list[_capture.Spec]] = ([], [])
    for index, (kind, function) in enumerate(zip(("score_mod", "mask_mod"), mods, strict=True)):
        if function is not None:
            mod = _regions.trace(kind, function)
            texts[index] = mod.text
            tensors += mod.tensors
            specs[index].extend(map(_capture.describe, mod.tensors))
    return texts[0], texts[1], tensors, specs


_torch_op: Any = None


def _get_torch_op() -> Any:
    """The operator's module, which needs torch."""
    global _torch_op
    if _torch_op is None:
        from . import torch_op

        _torch_op = torch_op
    return _torch_op


def _attend_arrays(
    given: dict[str, Any],
    mods: tuple[Modification | None, Modification | None],
    options: tuple[Any, ...],
    lse: bool,
    stream: int | None,
) -> Any:
    """On arrays of whatever library."""
    needed = ("q", "k", "v", "o", "lse") if lse else ("q", "k", "v", "o")
    arrays = {name: array for name, array in given.items() if array is not None}
    for name in needed:
        if name not in arrays:
            raise ArgumentError(
                f'tensor "{"out" if name == "o" else name}": expected a tensor, got None; only '
                "torch tensors have outputs made"
            )
    views = {name: _tensors.view(name, array, 0) for name, array in arrays.items()}
    score, mask, tensors, specs = trace_mods(mods)
    bound, causal, window, softcap, scale = options
    parsed = Options(causal, window, softcap, scale, lse, bound, score, mask)
    captures = [_tensors.view(f"capture{n}", each, 0) for n, each in enumerate(tensors)]
    key = (
        tuple((name, view[:3], view[4]) for name, view in views.items()),
        tuple(map(tuple, specs)),
        parsed,
    )
    call = _attention.get_call(key)
    if call is None:
        call = _attention.put_call(key, _attention.make_call(views, specs, parsed))
    order = [views[name].address for name in (*needed, *_OPTIONAL) if name in views]
    order += [view.address for view in captures]
    call.launch(order, stream or 0)
    return (given["o"], given["lse"]) if lse else given["o"]


def prepare(
    q: Any,
    k: Any,
    v: Any,
    *,
    chip: str,
    causal: bool | str = False,
    window: Sequence[int | str | None] | None = None,
    softcap: float | None = None,
    scale: float | None = None,
    sinks: Any = None,
    score_mod: Modification | None = None,
    mask_mod: Modification | None = None,
    cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None,
    max_seqlen_q: int | None = None,
    lse: Any = False,
    out: Any = None,
) -> None:
    """Compiles what `attention` with these arguments launches on `chip`, into
    the cache, without a GPU. Tensors may lie anywhere and need no contents
    (torch's device "meta"); a folder filled so serves machines that have no
    compiler ($ATTN_CACHE_DIR)."""
    given = {"q": q, "k": k, "v": v, "o": out, "lse": None if isinstance(lse, bool) else lse}
    given |= {"sinks": sinks, "cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k}
    views = {}
    for name, tensor in given.items():
        if tensor is not None:
            spec = _capture.describe(tensor)
            views[name] = TensorView(spec.element, spec.shape, spec.strides)
    score, mask, _, specs = trace_mods((score_mod, mask_mod))
    bound, *masks = _make_options(max_seqlen_q, causal, window, softcap, scale)
    if type(lse).__module__ == "numpy":
        lse = _options.to_bool("lse", lse)
    options = Options(*masks, lse is not False, bound, score, mask)
    _attention.Call(views, specs, options, chip)
