"""The operators torch.ops.attn.decode, decode_lse, decode_out, merge_states, and those
of `attn.mla_decode` and `attn.prefill`.

Importing this module defines them; the first call of `attn.decode`, `attn.prefill` or
`attn.merge_states` on torch tensors does so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _decode, _merge
from .errors import ArgumentError, LibraryError

try:
    import torch
except ImportError as error:
    raise LibraryError(f"the torch operators need torch: {error}") from error

if TYPE_CHECKING:
    from torch import Tensor

    from ._paged_problem import DecodeProblem

_STATES = "Tensor partial_o, Tensor partial_lse"
_ARGUMENTS = """Tensor q, Tensor k_cache, Tensor v_cache, Tensor page_table, Tensor kv_lengths,
    Tensor? sinks=None, str layout="nhd", bool causal=True, int[]? window=None,
    float? softcap=None, float? scale=None, int? kv_splits=None, Tensor? k_scale=None,
    Tensor? v_scale=None"""
_LATENT = """Tensor q, Tensor kv_cache, Tensor page_table, Tensor kv_lengths, int value_dim,
    float scale, Tensor? sinks=None, bool causal=True, float? softcap=None,
    int? kv_splits=None"""
_PACKED = """Tensor q, Tensor k_cache, Tensor v_cache, Tensor page_table, Tensor kv_lengths,
    Tensor cu_seqlens_q, int max_seqlen_q, Tensor? sinks=None, str layout="nhd",
    bool causal=True, int[]? window=None, float? softcap=None, float? scale=None"""
SCHEMAS = (
    f"decode({_ARGUMENTS}) -> Tensor",
    f"decode_lse({_ARGUMENTS}) -> (Tensor o, Tensor lse)",
    f"decode_out({_ARGUMENTS}, *, Tensor(a!) o, Tensor(b!)? lse=None) -> ()",
    f"mla_decode({_LATENT}) -> Tensor",
    f"mla_decode_lse({_LATENT}) -> (Tensor o, Tensor lse)",
    f"mla_decode_out({_LATENT}, *, Tensor(a!) o, Tensor(b!)? lse=None) -> ()",
    f"prefill({_PACKED}) -> Tensor",
    f"prefill_lse({_PACKED}) -> (Tensor o, Tensor lse)",
    f"prefill_out({_PACKED}, *, Tensor(a!) o, Tensor(b!)? lse=None) -> ()",
    f"merge_states({_STATES}, ScalarType dtype) -> (Tensor o, Tensor lse)",
    f"merge_states_out({_STATES}, *, Tensor(a!) o, Tensor(b!) lse) -> ()",
)
_TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
_STRIDES = getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order)
_library: Any = torch.library.Library("attn", "FRAGMENT")  # type: ignore[no-untyped-call]
for _schema in SCHEMAS:
    _library.define(_schema, tags=(torch.Tag.pt2_compliant_tag, _STRIDES))


def make_outputs(q: Tensor, problem: DecodeProblem, lse: bool) -> tuple[Tensor, Tensor | None]:
    """New outputs of a plan, in q's rank."""
    middle = () if q.dim() == 3 else (problem.queries,)
    rows = (problem.batch, problem.heads, *middle)
    o = torch.empty((*rows, problem.value_dim), dtype=_TYPES[problem.out_type], device=q.device)
    log = torch.empty(rows, dtype=torch.float32, device=q.device) if lse else None
    return o, log


def _make_output(q: Tensor, dv: int) -> Tensor:
    """An o of `dv` columns whose rows lie as q's do."""
    if q.dim() == 3:
        return q.new_empty((*q.shape[:2], dv))
    batch, heads, queries, _dim = q.shape
    if heads > 1 and queries > 1 and q.stride(1) < q.stride(2):
        return q.new_empty((batch, queries, heads, dv)).transpose(1, 2)
    return q.new_empty((batch, heads, queries, dv))


def _make_lse(q: Tensor) -> Tensor:
    return q.new_empty(q.shape[:-1], dtype=torch.float32)


def _pad(operands: tuple[Any, ...], needed: int, defaults: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands with what the dispatcher leaves out at the end, since it has its
    default value; the first `needed` have none."""
    return (*operands, *defaults[len(operands) - needed :])


def _launch(operands: tuple[Any, ...], o: Tensor, lse: Tensor | None) -> None:
    padded = _pad(operands, 5, (None, "nhd", True, None, None, None, None, None, None))
    names = ("q", "k_cache", "v_cache", "page_table", "kv_lengths", "sinks")
    tensors = dict(zip(names, padded[:6], strict=True))
    layout, causal, window, softcap, scale, kv_splits = padded[6:12]
    tensors |= {"k_scale": padded[12], "v_scale": padded[13]}
    settings = _decode.Settings.read(layout, causal, window, softcap, scale, kv_splits)
    _decode.launch_decode(tensors | {"o": o, "lse": lse}, settings, None)


def _check_rank(q: Tensor, v_cache: Tensor) -> None:
    if q.dim() not in (3, 4) or v_cache.dim() != 4:
        raise ArgumentError(
            f"expected q of rank 3 or 4 and pools of rank 4, got {q.dim()} and {v_cache.dim()}"
        )


def _run(q: Tensor, k_cache: Tensor, v_cache: Tensor, *rest: Any) -> Tensor:
    _check_rank(q, v_cache)
    o = _make_output(q, v_cache.shape[-1])
    _launch((q, k_cache, v_cache, *rest), o, None)
    return o


def _run_lse(q: Tensor, k_cache: Tensor, v_cache: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    _check_rank(q, v_cache)
    o, lse = _make_output(q, v_cache.shape[-1]), _make_lse(q)
    _launch((q, k_cache, v_cache, *rest), o, lse)
    return o, lse


def _run_out(*operands: Any, o: Tensor, lse: Tensor | None = None) -> None:
    _launch(operands, o, lse)


def _fake(q: Tensor, k_cache: Tensor, v_cache: Tensor, *_: Any) -> Tensor:
    """The output without its contents, for tracing."""
    _check_rank(q, v_cache)
    return _make_output(q, v_cache.shape[-1])


def _fake_lse(q: Tensor, k_cache: Tensor, v_cache: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return _fake(q, k_cache, v_cache), _make_lse(q)


def _launch_latent(operands: tuple[Any, ...], o: Tensor, lse: Tensor | None) -> None:
    padded = _pad(operands, 6, (None, True, None, None))
    q, kv_cache, page_table, kv_lengths, value_dim, scale, sinks = padded[:7]
    causal, softcap, kv_splits = padded[7:]
    settings = _decode.Settings.read("nhd", causal, None, softcap, scale, kv_splits, value_dim)
    tensors = {"q": q, "k_cache": kv_cache, "v_cache": None, "page_table": page_table}
    tensors |= {"kv_lengths": kv_lengths, "sinks": sinks, "o": o, "lse": lse}
    _decode.launch_decode(tensors, settings, None)


def _fake_latent(
    q: Tensor, kv_cache: Tensor, page_table: Tensor, kv_lengths: Tensor, value_dim: int, *_: Any
) -> Tensor:
    if q.dim() not in (3, 4):
        raise ArgumentError(f"expected q of rank 3 or 4, got {q.dim()}")
    return _make_output(q, value_dim)


def _fake_latent_lse(*operands: Any) -> tuple[Tensor, Tensor]:
    return _fake_latent(*operands), _make_lse(operands[0])


def _run_latent(*operands: Any) -> Tensor:
    o = _fake_latent(*operands)
    _launch_latent(operands, o, None)
    return o


def _run_latent_lse(*operands: Any) -> tuple[Tensor, Tensor]:
    o, lse = _fake_latent_lse(*operands)
    _launch_latent(operands, o, lse)
    return o, lse


def _run_latent_out(*operands: Any, o: Tensor, lse: Tensor | None = None) -> None:
    _launch_latent(operands, o, lse)


def _launch_packed(operands: tuple[Any, ...], o: Tensor, lse: Tensor | None) -> None:
    padded = _pad(operands, 7, (None, "nhd", True, None, None, None))
    names = ("q", "k_cache", "v_cache", "page_table", "kv_lengths", "cu_seqlens_q")
    tensors = dict(zip(names, padded[:6], strict=True))
    most, sinks, layout, causal, window, softcap, scale = padded[6:]
    settings = _decode.Settings.read(
        layout, causal, window, softcap, scale, None, None, most
    )
    tensors |= {"sinks": sinks, "o": o, "lse": lse}
    _decode.launch_decode(tensors, settings, None)


def _fake_packed(q: Tensor, k_cache: Tensor, v_cache: Tensor, *_: Any) -> Tensor:
    if q.dim() != 3 or v_cache.dim() != 4:
        raise ArgumentError(
            f"expected q of rank 3 and pools of rank 4, got {q.dim()} and {v_cache.dim()}"
        )
    return q.new_empty((*q.shape[:2], v_cache.shape[-1]))


def _fake_packed_lse(*operands: Any) -> tuple[Tensor, Tensor]:
    return _fake_packed(*operands), _make_lse(operands[0])


def _run_packed(*operands: Any) -> Tensor:
    o = _fake_packed(*operands)
    _launch_packed(operands, o, None)
    return o


def _run_packed_lse(*operands: Any) -> tuple[Tensor, Tensor]:
    o, lse = _fake_packed_lse(*operands)
    _launch_packed(operands, o, lse)
    return o, lse


def _run_packed_out(*operands: Any, o: Tensor, lse: Tensor | None = None) -> None:
    _launch_packed(operands, o, lse)


def _fake_out(*_: Any, **__: Any) -> None:
    pass


def _merge_new(partial_o: Tensor, partial_lse: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    o, lse = _fake_merge(partial_o, partial_lse, dtype)
    _merge.launch_merge(partial_o, partial_lse, o, lse, None)
    return o, lse


def _fake_merge(
    partial_o: Tensor, partial_lse: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    o = partial_o.new_empty(partial_o.shape[1:], dtype=dtype)
    return o, partial_lse.new_empty(partial_lse.shape[1:])


def _merge_out(partial_o: Tensor, partial_lse: Tensor, *, o: Tensor, lse: Tensor) -> None:
    _merge.launch_merge(partial_o, partial_lse, o, lse, None)


for _name, _function, _fake_function in (
    ("decode", _run, _fake),
    ("decode_lse", _run_lse, _fake_lse),
    ("decode_out", _run_out, _fake_out),
    ("mla_decode", _run_latent, _fake_latent),
    ("mla_decode_lse", _run_latent_lse, _fake_latent_lse),
    ("mla_decode_out", _run_latent_out, _fake_out),
    ("prefill", _run_packed, _fake_packed),
    ("prefill_lse", _run_packed_lse, _fake_packed_lse),
    ("prefill_out", _run_packed_out, _fake_out),
    ("merge_states", _merge_new, _fake_merge),
    ("merge_states_out", _merge_out, _fake_out),
):
    _library.impl(_name, _function, "CompositeExplicitAutograd")
    torch.library.register_fake(f"attn::{_name}", _fake_function, lib=_library)


def decode(tensors: dict[str, Any], settings: Any, lse: Any, out: Any) -> Any:
    """attn.decode, attn.mla_decode and attn.prefill for torch tensors."""
    operators: Any = torch.ops.attn
    window = None if settings.window is None else list(settings.window)
    if settings.max_seqlen_q is not None:
        calls = operators.prefill, operators.prefill_lse, operators.prefill_out
        *operands, sinks = tensors.values()
        operands = (*operands, settings.max_seqlen_q, sinks, settings.layout, settings.causal)
        operands += (window, settings.softcap, settings.scale)
    elif settings.value_dim is None:
        calls = operators.decode, operators.decode_lse, operators.decode_out
        operands = (*list(tensors.values())[:6], settings.layout, settings.causal)
        operands += (window, settings.softcap, settings.scale, settings.kv_splits)
        operands += (tensors["k_scale"], tensors["v_scale"])
    else:
        calls = operators.mla_decode, operators.mla_decode_lse, operators.mla_decode_out
        names = ("q", "k_cache", "page_table", "kv_lengths")
        operands = (*(tensors[name] for name in names), settings.value_dim, settings.scale)
        operands += (tensors["sinks"], settings.causal, settings.softcap, settings.kv_splits)
    for name, tensor in tensors.items():
        may_lack = name in ("sinks", "k_scale", "v_scale")
        may_lack |= settings.value_dim is not None and name == "v_cache"
        if not (tensor is None and may_lack) and not isinstance(tensor, torch.Tensor):
            raise ArgumentError(
                f'tensor "{name}": expected a torch tensor as q, got {type(tensor).__name__}'
            )
    if out is None and lse is False:
        return calls[0](*operands)
    if out is None and lse is True:
        return calls[1](*operands)
    if out is None or lse is True:
        missing = "out" if out is None else "lse"
        raise ArgumentError(
            f'tensor "{missing}": expected a tensor to write to, as the other output, got '
            f"{out if out is None else lse}"
        )
    log = None if lse is False else lse
    calls[2](*operands, o=out, lse=log)
    return out if log is None else (out, log)


def merge(partial_o: Tensor, partial_lse: Tensor, out: Any, lse: Any, dtype: Any) -> Any:
    """attn.merge_states for torch tensors."""
    if out is None and lse is None:
        kind = dtype if isinstance(dtype, torch.dtype) else _TYPES[_merge.read_type(dtype)]
        return torch.ops.attn.merge_states(partial_o, partial_lse, kind)
    _merge.check_given(out, lse)
    torch.ops.attn.merge_states_out(partial_o, partial_lse, o=out, lse=lse)
    return out, lse
