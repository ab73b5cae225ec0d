"""The operator torch.ops.attn.attention, which torch.compile and CUDA graphs take.

Importing this module defines it; the first call of `attn.attention` on torch
tensors does so, and `import attn` where torch is loaded already.
"""

from __future__ import annotations

import collections
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import runtime
from .calls import attention_kernels as _attention_module
from .calls import attention_outputs, host_calls
from .calls.attention_kernels import KINDS, OPTIONAL, Options
from .errors import ArgumentError, DriverError, LibraryError
from .launch import device_tensors, host_arrays
from .options.problem_table import CALL_NAMES, CALL_SCHEMA
from .record import TensorView
from .tensors import batch_lists, block_lists, host_tensors, label_checks, tensor_views
from .tensors.argument_checks import check_beside, check_device, check_torch
from .tracing import captured_reads, mod_regions

try:
    import torch

    from .tensors import derivatives
except ImportError as error:
    raise LibraryError(f"the torch operator needs torch: {error}") from error

if TYPE_CHECKING:
    from torch import Tensor

#: Options that callers, and graphs that they have saved, may give by position. Those that came
#: later have to be named, so that none of these moves.
_PLACED = ("causal", "window", "softcap", "scale")
_ARGUMENTS = f"""Tensor q, Tensor k, Tensor v, Tensor? sinks=None, Tensor? cu_seqlens_q=None,
    Tensor? cu_seqlens_k=None, Tensor[]? captures=None, SymInt? max_seqlen_q=None,
    {", ".join(CALL_SCHEMA[name] for name in _PLACED)}, str score_mod="", str mask_mod="" """
_NAMED = f"""{", ".join(CALL_SCHEMA[name] for name in CALL_NAMES if name not in _PLACED)},
    str out_mod="", Tensor? block_counts=None, Tensor? block_indices=None,
    int[]? block_size=None"""
#: Options are what `call_arguments` makes of arguments; score_mod, mask_mod and out_mod are
#: texts of the functions of these names, captures their tensors.
SCHEMAS = (
    f"attention({_ARGUMENTS}, *, {_NAMED}) -> Tensor",
    f"attention_lse({_ARGUMENTS}, *, {_NAMED}) -> (Tensor o, Tensor lse)",
    f"attention_out({_ARGUMENTS}, *, {_NAMED}, Tensor(a!) o, Tensor(b!)? lse=None, "
    "Tensor(c!)? o_scales=None, Tensor(d!)? amax=None, SymInt? out_group=None) -> ()",
)
#: torch's current stream on a device; the first one is what torch's own compiler
#: calls and makes no Stream object.
_get_stream = getattr(torch._C, "_cuda_getCurrentRawStream", runtime.get_torch_stream)

_TORCH_TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
_TORCH_TYPES |= {"f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2}
_TORCH_TYPES |= {attention_outputs.PAIRED: torch.uint8}
if hasattr(torch, "float8_e8m0fnu"):
    _TORCH_TYPES["f8E8M0FNU"] = torch.float8_e8m0fnu

#: The compiled graph's tensors have the strides that the eager ones have.
_STRIDES = getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order)
_library: Any = torch.library.Library("attn", "DEF")  # type: ignore[no-untyped-call]
for _schema in SCHEMAS:
    _library.define(_schema, tags=(torch.Tag.pt2_compliant_tag, _STRIDES))


def _make_arguments() -> Any:
    """Returns the class of an operator's arguments by their names: where its schema is called, the
    dispatcher leaves out what has its default value."""
    arguments = torch.ops.attn.attention.default._schema.arguments
    names = [each.name for each in arguments]
    defaults = [each.default_value for each in arguments if each.has_default_value()]
    return collections.namedtuple("Arguments", names, defaults=defaults)  # type: ignore[misc]


_Arguments = _make_arguments()
#: Tensors that a call may have beside its operands.
_Optional = collections.namedtuple("_Optional", OPTIONAL)  # type: ignore[misc]
_take_optional = operator.attrgetter(*OPTIONAL)
_get_options = operator.attrgetter(*CALL_NAMES)


def _get_optional(given: Any) -> Any:
    """The optional tensors of an operator's arguments."""
    return _Optional._make(_take_optional(given))


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    optional: tuple[Tensor | None, ...],
    mods: tuple[Any, ...],
    bound: Any,
    options: tuple[Any, ...],
    lse: bool | Tensor,
    out: Tensor | None,
    block_size: tuple[int, int] | None = None,
    asked: attention_outputs.Asked = attention_outputs.PLAIN,
) -> Any:
    """attn.attention for torch tensors."""
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        check_torch(name, tensor)
    texts: tuple[str, ...] = ("", "", "")
    captures = None
    score, mask, out_mod = mods
    if score is not None or mask is not None or out_mod is not None:
        texts, captures = _trace(mods)
    others = (*optional, *captures) if captures else optional
    scales = asked.scales
    if out is None and (asked.makes or asked.amax is not None):
        out, lse, scales = _make_asked(q, v, optional[1] is not None, lse, asked)
    is_made = out is None and isinstance(lse, bool)
    if is_made and _is_plain_call(q, k, v, others):
        parsed = Options(options, bool(lse), bound, *texts, block_size)
        o, log = _run_on_gpu(q, k, v, _Optional._make(optional), captures, parsed)
        return (o, log) if lse else o
    named = dict(zip(OPTIONAL, optional, strict=True))
    outputs = {"out": out, "lse": None if isinstance(lse, bool) else lse}
    outputs |= {"out_scales": scales, "amax": asked.amax}
    for some in ({"k": k, "v": v}, named, outputs):
        for name, each in some.items():
            if each is not None:
                check_beside(name, each, q)
    derivatives.refuse((q, k, v, named["sinks"], *(captures or ())))
    # Compiled code does not come to the check in the operator.
    if torch.compiler.is_compiling() and torch.is_grad_enabled():
        if _has_gradient(q, k, v, named["sinks"], captures):
            raise _make_gradient_error()
    named.update(zip(CALL_NAMES, options, strict=True))
    named.update(zip(KINDS, texts, strict=True))
    named.update(captures=captures, max_seqlen_q=bound, block_size=block_size)
    if is_made:
        return (_attention_lse if lse else _attention)(q, k, v, **named)
    if out is None or lse is True:
        raise tensor_views.make_output_error(out, lse)
    log = None if lse is False else lse
    written = {"o_scales": scales, "amax": asked.amax, "out_group": asked.group}
    _attention_out(q, k, v, **named, o=out, lse=log, **written)
    results = [each for each in (out, log, scales) if each is not None]
    return out if len(results) == 1 else tuple(results)


def _make_asked(
    q: Tensor, v: Tensor, packed: bool, lse: Any, asked: attention_outputs.Asked
) -> tuple[Tensor, Any, Tensor | None]:
    """New outputs as a call asks for them: o, its LSE and its scales."""
    if not isinstance(lse, bool):
        raise tensor_views.make_output_error(None, lse)
    if not asked.makes:
        o, scales = _fake(q, v, v, cu_seqlens_q=q if packed else None), None
    else:
        view = TensorView("", tuple(q.shape), q.stride(), 0, 0)
        made = attention_outputs.make_views(view, v.shape[-1], packed, asked)
        tensors = {name: _make_tensor(q, each) for name, each in made.items()}
        o, scales = tensors["o"], tensors.get("o_scales")
    log: Any = lse
    if lse:
        shape = (q.shape[1], q.shape[0]) if packed else q.shape[:3]
        log = q.new_empty(shape, dtype=torch.float32)
    if packed:
        for each in (o, scales, log):
            if isinstance(each, torch.Tensor):
                _erase(each)
    return o, log, scales


def _make_tensor(q: Tensor, view: TensorView) -> Tensor:
    if view.dtype not in _TORCH_TYPES:
        raise ArgumentError(f"out_scale_type: this torch has no {view.dtype}")
    dtype = _TORCH_TYPES[view.dtype]
    return torch.empty_strided(view.shape, view.strides, dtype=dtype, device=q.device)


def _is_plain_call(q: Tensor, k: Tensor, v: Tensor, others: Sequence[Tensor | None]) -> bool:
    """Returns whether nothing but the operator's own kernel would see a call: no compiler, tracer,
    profiler, mode, transform or class of tensors. It is then called without torch's dispatcher,
    which takes longer than all else."""
    # First, so that a compiler reads no further.
    if torch.compiler.is_compiling():
        return False
    if not (type(q) in _PLAIN and type(k) in _PLAIN and type(v) in _PLAIN and _is_on_gpu(q)):
        return False
    for tensor in others:
        if tensor is not None and type(tensor) not in _PLAIN:
            return False
    return not any([is_active() for is_active in _OBSERVERS])


def _find_observers() -> list[Callable[[], Any]]:
    """Returns functions that say whether something sees calls of operators: a number, an object or
    a flag. Where torch lacks one of them, something always does."""
    try:
        return [
            torch._C._len_torch_dispatch_stack,
            torch._C._len_torch_function_stack,
            torch._C._functorch.peek_interpreter_stack,
            torch._C._get_tracing_state,
            torch.autograd._profiler_enabled,
            derivatives.is_dual_level,
        ]
    except AttributeError:
        return [lambda: True]


_is_on_gpu = operator.attrgetter("is_cuda")
_is_on_host = operator.attrgetter("is_cpu")
_PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))
_OBSERVERS = _find_observers()


def _has_gradient(
    q: Tensor, k: Tensor, v: Tensor, sinks: Tensor | None, captures: Sequence[Tensor] | None
) -> bool:
    if q.requires_grad or k.requires_grad or v.requires_grad:
        return True
    if sinks is not None and sinks.requires_grad:
        return True
    # A plain loop, which torch.compile reads.
    for each in captures or ():
        if each.requires_grad:
            return True
    return False


def _make_gradient_error() -> ArgumentError:
    return ArgumentError(
        "attention has no backward pass: expected tensors that do not require grad, or a call "
        "under torch.no_grad() or torch.inference_mode()"
    )


def _trace(mods: tuple[Any, ...]) -> tuple[tuple[str, ...], list[Tensor]]:
    texts, tensors = [], []
    for kind, mod in zip(KINDS, mods, strict=True):
        if mod is not None and not isinstance(mod, mod_regions.Mod):
            if torch.compiler.is_compiling():
                raise ArgumentError(
                    f"{kind}: under torch.compile expected what attn.{kind}(function) gives, got "
                    "a function; trace it outside of the compiled function"
                )
            mod = mod_regions.trace(kind, mod)
        texts.append("" if mod is None else mod.text)
        if mod is not None:
            if not torch.compiler.is_compiling():
                label_checks.check_labels(mod, len(tensors))
            tensors += mod.tensors
    return tuple(texts), tensors


def _get_key(tensor: Tensor) -> object:
    return (tensor.shape, tensor.stride(), tensor.dtype, tensor.get_device())


def _get_call(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    optional: tuple[Tensor | None, ...],
    captures: Sequence[Tensor] | None,
    options: Options,
    is_plain: bool,
) -> _attention_module.Call:
    """The call for these shapes; `optional` is sinks, both cumulative lengths,
    counts and lists of blocks, and what is written, if it is given: _WRITTEN. Plain if nothing
    is."""
    key = (
        q.shape,
        q.stride(),
        q.dtype,
        q.get_device(),
        k.shape,
        k.stride(),
        k.dtype,
        k.get_device(),
        v.shape,
        v.stride(),
        v.dtype,
        v.get_device(),
        None
        if is_plain
        else tuple([each if each is None else _get_key(each) for each in optional]),
        tuple(map(_get_key, captures)) if captures else None,
        options,
    )
    call = _attention_module.get_call(key)
    if call is not None:
        return call
    names = ("q", "k", "v", *OPTIONAL, *_WRITTEN)
    tensors = zip(names, (q, k, v, *optional), strict=True)
    shown = attention_outputs.SHOWN
    views = {
        n: device_tensors.view(shown.get(n, n), tensor, 0)
        for n, tensor in tensors
        if tensor is not None
    }
    for number, tensor in enumerate(captures or ()):
        view = device_tensors.view(f"capture{number}", tensor, 0)
        check_device(f"capture{number}", view, views["q"].device)
    specs = [captured_reads.describe(tensor) for tensor in captures or ()]
    parts = _attention_module.split_reads(specs, options)
    call = _attention_module.make_call(views, parts, options)
    return _attention_module.put_call(key, call)


def _launch(
    call: _attention_module.Call,
    operands: Sequence[Tensor],
    optional: Sequence[Tensor | None],
    captures: Sequence[Tensor] | None,
) -> None:
    """Launches on q, k, v and what is written, then the others that a call has."""
    addresses = [each.data_ptr() for each in operands]
    for tensor in optional:
        if tensor is not None:
            addresses.append(tensor.data_ptr())
    if captures:
        addresses += [tensor.data_ptr() for tensor in captures]
    device = operands[0].device

    # torch's memory costs less than the driver's, and waits for no other stream's.
    def allocate(size: int) -> Tensor:
        try:
            return torch.empty(size, dtype=torch.uint8, device=device)
        except torch.cuda.OutOfMemoryError as error:
            # As where the driver lacks it: what falls back catches the package's errors.
            raise DriverError(
                f"expected {size} bytes of {device} for a workspace, got: {error}; free tensors, "
                "or use fewer queries in a call"
            ) from error

    call.launch(addresses, _get_stream(call.device), allocate)


#: Tensors that a launch writes.
_WRITTEN = ("o", "lse", *attention_outputs.NAMES)
_NOTHING = (None,) * len(_WRITTEN)


def _make_options(given: Any, has_lse: bool, group: int | None = None) -> Options:
    """The options of an operator's arguments."""
    return Options(
        _get_options(given),
        has_lse,
        given.max_seqlen_q,
        given.score_mod,
        given.mask_mod,
        given.out_mod,
        block_lists.to_size(given.block_size),
        group,
    )


def _prepare(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    optional: Any,
    captures: Sequence[Tensor] | None,
    parsed: Options,
    written: tuple[Tensor | None, ...] = _NOTHING,
) -> _attention_module.Call:
    """The call for these arguments; `written` has those of _WRITTEN that are given."""
    _check_gradients(q, k, v, optional.sinks, captures)
    is_plain = all([each is None for each in (*optional, *written)])
    call = _get_call(q, k, v, (*optional, *written), captures, parsed, is_plain)
    if call.packed:
        _check_lengths(q, k, optional, parsed.max_seqlen_q)
    return call


def _check_gradients(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    sinks: Tensor | None,
    captures: Sequence[Tensor] | None,
) -> None:
    if torch.is_grad_enabled() and _has_gradient(q, k, v, sinks, captures):
        raise _make_gradient_error()


def _check_lengths(q: Tensor, k: Tensor, optional: Any, bound: Any) -> None:
    """Refuses places of packed sequences that are wrong, where their contents are looked at."""
    lengths_q, lengths_k = optional.cu_seqlens_q, optional.cu_seqlens_k
    if lengths_q is not None and lengths_k is not None and batch_lists.looks_at(lengths_q):
        most = q.shape[0] if bound is None else bound
        batch_lists.check_counts("cu_seqlens_q", lengths_q, q.shape[0], most)
        batch_lists.check_counts("cu_seqlens_k", lengths_k, k.shape[0])


def _run_on_gpu(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    optional: Any,
    captures: Sequence[Tensor] | None,
    parsed: Options,
) -> tuple[Tensor, Any]:
    """o and, where it is wanted, lse in new memory."""
    call = _prepare(q, k, v, optional, captures, parsed)
    o = _make_output(call, q)
    if not parsed.lse:
        _launch(call, (q, k, v, o), optional, captures)
        return o, None
    lse = torch.empty(call.lse_shape, dtype=torch.float32, device=q.device)
    if call.packed:
        _erase(lse)
    _launch(call, (q, k, v, o, lse), optional, captures)
    return o, lse


def _make_output(call: _attention_module.Call, q: Tensor) -> Tensor:
    dtype = _TORCH_TYPES[call.o_type]
    o = torch.empty_strided(call.o_shape, call.o_strides, dtype=dtype, device=q.device)
    return _erase(o) if call.packed else o


def _erase(output: Tensor) -> Tensor:
    """Rows of packed sequences that none has, or that are beyond `max_seqlen_q`, are NaN in new
    memory: no kernel writes them, and only the device knows which they are."""
    if output.dtype.itemsize == 1:
        # All bits are NaN, of every type that has one.
        output.view(torch.uint8).fill_(0xFF)
        return output
    return output.fill_(float("nan"))


def _move(value: Any) -> Any:
    """An argument with its tensors on a GPU."""
    if isinstance(value, torch.Tensor):
        return value.cuda()
    if isinstance(value, list):
        return [_move(each) for each in value]
    return value


def _run_host(given: Any, lse: bool) -> tuple[Tensor, Any]:
    """The results of tensors in host memory: from a GPU if there is one, else from the
    simulator."""
    _check_gradients(given.q, given.k, given.v, given.sinks, given.captures)
    if host_arrays.has_device():
        moved = {name: _move(value) for name, value in given._asdict().items()}
        if not lse:
            return _run(**moved).cpu(), None
        o, log = _run_lse(**moved)
        return o.cpu(), log.cpu()
    every = given._asdict()
    tensors = {name: every[name] for name in ("q", "k", "v", *OPTIONAL) if every[name] is not None}
    for name, tensor in tensors.items():
        if tensor.device.type != "cpu":
            raise ArgumentError(
                f'tensor "{name}": expected a tensor in host memory as q, got {tensor.device}'
            )
    options = _make_options(given, lse)
    arrays = host_tensors.to_arrays(tensors)
    results = host_calls.attend(arrays, given.captures or (), options)
    shape = _fake(given.q, given.k, given.v, cu_seqlens_q=given.cu_seqlens_q)
    result = shape.copy_(host_tensors.to_tensor(results["o"]))
    return result, host_tensors.to_tensor(results["lse"]) if lse else None


def _run_host_out(given: Any, written: dict[str, Tensor | None], group: int | None) -> None:
    """Writes the results of tensors in host memory to those of the caller."""
    _check_gradients(given.q, given.k, given.v, given.sinks, given.captures)
    outputs = {name: each for name, each in written.items() if each is not None}
    every = {**given._asdict(), **outputs}
    tensors = {name: every[name] for name in ("q", "k", "v", *OPTIONAL) if every[name] is not None}
    for name, tensor in (tensors | outputs).items():
        if tensor.device.type != "cpu":
            raise ArgumentError(
                f'tensor "{attention_outputs.SHOWN.get(name, name)}": expected a tensor in host '
                f"memory as q, got {tensor.device}"
            )
    if host_arrays.has_device():
        moved = {name: _move(value) for name, value in given._asdict().items()}
        results = {name: _move(each) for name, each in outputs.items()}
        _run_out(**moved, **results, out_group=group)
        for name, each in outputs.items():
            each.copy_(results[name])
        return
    if "amax" in outputs:
        # The kernel reads it, too: results join the number that is there.
        tensors["amax"] = outputs["amax"]
    shown = attention_outputs.SHOWN
    views = {name: device_tensors.describe(shown.get(name, name), each) for name, each in outputs.items()}
    options = _make_options(given, "lse" in outputs, group)
    arrays = host_tensors.to_arrays(tensors)
    made = host_calls.attend(arrays, given.captures or (), options, views)
    rows = None if given.cu_seqlens_q is None else int(given.cu_seqlens_q[-1])
    for name, each in outputs.items():
        kept: Any = slice(rows) if name != "lse" else (slice(None), slice(rows))
        if name == "o_scales" and each.dim() == 2:
            kept = attention_outputs.find_written_tiles(outputs["o"], rows, group)
        host_tensors.write(each, made[name], kept)


def _run_given(given: Any, lse: bool) -> tuple[Tensor, Any]:
    """The results of an operator's arguments."""
    if _is_on_host(given.q):
        return _run_host(given, lse)
    operands = (given.q, given.k, given.v)
    return _run_on_gpu(*operands, _get_optional(given), given.captures, _make_options(given, lse))


def _run(*arguments: Any, **named: Any) -> Tensor:
    return _run_given(_Arguments(*arguments, **named), False)[0]


def _run_lse(*arguments: Any, **named: Any) -> tuple[Tensor, Tensor]:
    return _run_given(_Arguments(*arguments, **named), True)


def _run_out(
    *arguments: Any,
    o: Tensor,
    lse: Tensor | None = None,
    o_scales: Tensor | None = None,
    amax: Tensor | None = None,
    out_group: int | None = None,
    **named: Any,
) -> None:
    given = _Arguments(*arguments, **named)
    written = (o, lse, o_scales, amax)
    if _is_on_host(given.q):
        _run_host_out(given, dict(zip(_WRITTEN, written, strict=True)), out_group)
        return
    operands, optional = (given.q, given.k, given.v), _get_optional(given)
    parsed = _make_options(given, lse is not None, out_group)
    call = _prepare(*operands, optional, given.captures, parsed, written)
    results = [each for each in written if each is not None]
    _launch(call, (*operands, *results), optional, given.captures)


def _fake(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    sinks: Tensor | None = None,
    cu_seqlens_q: Tensor | None = None,
    *_: Any,
    **__: Any,
) -> Tensor:
    """The output without its contents, for tracing."""
    is_packed = cu_seqlens_q is not None
    if q.dim() != (3 if is_packed else 4) or v.dim() != q.dim():
        raise ArgumentError(
            f"expected q, k and v of rank {3 if is_packed else 4}, got {q.dim()} and {v.dim()}"
        )
    dtype = q.dtype if q.dtype in (torch.float16, torch.bfloat16) else torch.bfloat16
    dv = v.shape[-1]
    if is_packed:
        return q.new_empty((*q.shape[:2], dv), dtype=dtype)
    batch, heads, rows, _dim = q.shape
    if _attention_module.is_sequence_major(q.shape, q.stride()):
        return q.new_empty((batch, rows, heads, dv), dtype=dtype).transpose(1, 2)
    return q.new_empty((batch, heads, rows, dv), dtype=dtype)


def _fake_lse(q: Tensor, k: Tensor, v: Tensor, *rest: Any, **named: Any) -> tuple[Tensor, Tensor]:
    o = _fake(q, k, v, *rest, **named)
    shape = q.shape[:3] if q.dim() == 4 else (q.shape[1], q.shape[0])
    return o, q.new_empty(shape, dtype=torch.float32)


def _fake_out(*_: Any, **outputs: Any) -> None:
    pass


for _name, _function, _fake_function in (
    ("attention", _run, _fake),
    ("attention_lse", _run_lse, _fake_lse),
    ("attention_out", _run_out, _fake_out),
):
    _library.impl(_name, _function, "CompositeExplicitAutograd")
    torch.library.register_fake(f"attn::{_name}", _fake_function, lib=_library)
_attention = torch.ops.attn.attention.default
_attention_lse = torch.ops.attn.attention_lse.default
_attention_out = torch.ops.attn.attention_out.default
