"""What `attn.attention` and `attn.prepare` do: compile, load and launch in one call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Union

from ..errors import ArgumentError, ArgumentTypeError
from ..launch import device_tensors
from ..options import kernel_sizes, readers
from ..options.problem_table import CALL_NAMES
from ..record import TensorView
from ..tensors import label_checks, padding, tensor_views
from ..tracing import captured_reads, mod_regions
from . import attention_kernels, attention_outputs
from .attention_kernels import KINDS, OPTIONAL, Options

#: A function, or what `score_mod`, `mask_mod` and `out_mod` make of it.
Modification = Union[Callable[..., Any], mod_regions.Mod]


#: Where a diagonal may lie.
_PLACES = ("top-left", "bottom-right")
#: The most queries of a packed sequence.
_MOST_QUERIES = 2**29
_ALIGNS = {False: "", True: "top-left"}
#: Types that the operator takes; torch's are those of numbers that it does not
#: know while it traces.
_INTEGERS = ("int", "SymInt")
_NUMBERS = (*_INTEGERS, "float", "SymFloat")

# Options in the operator's types. What torch.compile traces has these or Python's
# types already; the others are numpy's and torch's numbers.


def to_align(what: str, value: Any) -> Any:
    """Where a diagonal lies; empty for none."""
    if type(value) is not bool and not isinstance(value, str):
        value = readers.to_bool(what, value)
    return _ALIGNS[value] if isinstance(value, bool) else value


def to_window(window: Sequence[int | str | None] | None) -> str:
    """LEFT,RIGHT[,ALIGN] with -1 for unbounded; empty for none."""
    if window is None:
        return ""
    if isinstance(window, str):
        return window
    if not isinstance(window, (tuple, list)):
        window = readers.to_list("window", window)
    if len(window) not in (2, 3):
        raise ArgumentError(
            f"window: expected (left, right) or (left, right, alignment), got {len(window)} of them"
        )
    if len(window) == 3 and not (isinstance(window[2], str) and window[2] in _PLACES):
        raise ArgumentError(
            f"window: expected an alignment {' or '.join(_PLACES)}, got {readers.show(window[2])}"
        )
    return ",".join(["-1" if each is None else _to_bound_text(each) for each in window])


def _to_bound_text(bound: Any) -> str:
    if type(bound).__name__ in _INTEGERS and type(bound) is not int:
        return str(bound)
    if isinstance(bound, str):
        return bound
    return str(readers.to_integer("window", bound, -1, 2**31 - 1))


def to_factor(what: str, value: Any) -> Any:
    # torch.compile traces comparisons of a number that it does not know, and not readers.
    if type(value) in (int, float):
        return value if 0 < value < math.inf else readers.to_factor(what, value)
    is_symbol = type(value).__name__ in _NUMBERS
    return value if value is None or is_symbol else readers.to_factor(what, value)


def read_cap(what: str, value: Any) -> Any:
    """A cap of an option, whose text is the compiler's to read."""
    return value if isinstance(value, str) else readers.to_cap(what, value)


def to_cap(what: str, value: Any) -> Any:
    # torch.compile traces no readers.
    if type(value) in (int, float):
        return value if value > 0 else readers.to_cap(what, value)
    return value if type(value).__name__ in _NUMBERS else readers.to_cap(what, value)


def to_runs(what: str, count: Any, length: Any, may_split: Any) -> tuple[Any, bool]:
    """Into how many runs keys are cut, as an option, and whether the planner may cut them: one
    run of all keys is none, and there is nothing to merge."""
    is_free = readers.to_bool("split_keys", may_split)
    runs = count if isinstance(count, str) else readers.to_splits(what, count)
    return (None, False) if runs == 1 and length is None else (runs, is_free)


def to_page(what: str, keys: Any) -> Any:
    """Keys of a page, which kernels have."""
    if keys is not None and not isinstance(keys, str):
        kernel_sizes.check_page_size(what, readers.to_integer(what, keys, 1, 2**31 - 1))
    return keys


def to_bound(max_seqlen_q: Any) -> Any:
    # torch.compile traces no readers.
    if max_seqlen_q is None or type(max_seqlen_q).__name__ == "SymInt":
        return max_seqlen_q
    if type(max_seqlen_q) is int and 0 <= max_seqlen_q <= _MOST_QUERIES:
        return max_seqlen_q
    return readers.to_integer("max_seqlen_q", max_seqlen_q, 0, _MOST_QUERIES)


def read_lse(lse: Any) -> Any:
    """Whether an LSE is wanted, or the tensor that it goes to."""
    if isinstance(lse, bool) or (tensor_views.is_array(lse) and len(lse.shape)):
        return lse
    return lse if hasattr(lse, "__dlpack__") else readers.to_bool("lse", lse)


def attend(
    operands: tuple[Any, Any, Any],
    optional: tuple[Any, ...],
    mods: tuple[Modification | None, ...],
    bound: Any,
    options: tuple[Any, ...],
    lse: Any,
    out: Any,
    stream: int | None,
    pad: Any = False,
    block_size: tuple[int, int] | None = None,
    outputs: tuple[Any, ...] = (),
) -> Any:
    """attn.attention: `optional` is sinks, both cumulative lengths and lists of blocks with their
    counts, `options` has the values of problem_table.CALL_NAMES, `outputs` what
    `attention_outputs.read` takes of outputs, or nothing."""
    asked = _read_outputs(out, outputs, options)
    lse = read_lse(lse)
    if pad is not False and readers.to_bool("pad", pad):
        if asked != attention_outputs.PLAIN:
            raise ArgumentError("pad: expected none beside outputs of another type")
        operands, options, dv, wide = _pad(operands, options)
        given = out
        if out is not None and wide != dv:
            out = out.new_empty((*out.shape[:-1], wide))
        call = (operands, optional, mods, bound, options, lse, out, stream)
        result = attend(*call, block_size=block_size)
        return result if wide == dv else padding.cut(result, given, lse, dv)
    q, k, v = operands
    if device_tensors.is_torch(q):
        if stream is not None:
            raise ArgumentError("stream: expected none, since torch tensors use torch's")
        op = _get_torch_op()
        return op.attention(q, k, v, optional, mods, bound, options, lse, out, block_size, asked)
    if type(q).__module__ == "numpy":
        raise ArgumentError(
            f'tensor "q": expected a tensor on a GPU, got a numpy {type(q).__name__}; for arrays '
            "in host memory there is attn.compile(...).run(q=q, k=k, v=v)"
        )
    given = _name_tensors(operands, optional, lse, out)
    given |= {"o_scales": asked.scales, "amax": asked.amax}
    parsed = (mods, bound, options, lse is not False)
    return _attend_arrays(given, *parsed, stream, block_size, asked.group)


def _read_outputs(
    out: Any, outputs: tuple[Any, ...], options: tuple[Any, ...]
) -> attention_outputs.Asked:
    if all(each is None or each is False for each in outputs):
        factor = dict(zip(CALL_NAMES, options, strict=True))["out_scale"]
        if out is not None or factor is None:
            return attention_outputs.PLAIN
        outputs = outputs or (None, None, None, False, None, None)
    *stated, amax = outputs
    factor = dict(zip(CALL_NAMES, options, strict=True))["out_scale"]
    return attention_outputs.read(out, *stated, factor, amax)


def _name_tensors(
    operands: tuple[Any, Any, Any], optional: tuple[Any, ...], lse: Any, out: Any
) -> dict[str, Any]:
    """The tensors of a call by their names in the launch, None where there is none."""
    given = dict(zip(("q", "k", "v"), operands, strict=True))
    given |= {"o": out, "lse": None if isinstance(lse, bool) else lse}
    return given | dict(zip(OPTIONAL, optional, strict=True))


def trace_mods(
    mods: tuple[Modification | None, ...],
) -> tuple[tuple[str, ...], list[Any], tuple[list[captured_reads.Spec], ...]]:
    """The texts of all regions, and what they read."""
    texts = []
    tensors: list[Any] = []
    specs: tuple[list[captured_reads.Spec], ...] = ([], [], [])
    for index, (kind, function) in enumerate(zip(KINDS, mods, strict=True)):
        if function is None:
            texts.append("")
            continue
        mod = mod_regions.trace(kind, function)
        texts.append(mod.text)
        tensors += mod.tensors
        specs[index].extend(map(captured_reads.describe, mod.tensors))
        label_checks.check_labels(mod, len(tensors) - len(mod.tensors))
    return tuple(texts), tensors, specs


_torch_op: Any = None


def _get_torch_op() -> Any:
    """The operator's module, which needs torch."""
    global _torch_op
    if _torch_op is None:
        from .. import torch_op

        _torch_op = torch_op
    return _torch_op


def _attend_arrays(
    given: dict[str, Any],
    mods: tuple[Modification | None, ...],
    bound: Any,
    options: tuple[Any, ...],
    lse: bool,
    stream: int | None,
    block_size: tuple[int, int] | None,
    group: int | None,
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
    views = {name: device_tensors.view(name, array, 0) for name, array in arrays.items()}
    texts, tensors, specs = trace_mods(mods)
    parsed = Options(options, lse, bound, *texts, block_size, group)
    captures = [device_tensors.view(f"capture{n}", each, 0) for n, each in enumerate(tensors)]
    key = (
        tuple((name, view[:3], view[4]) for name, view in views.items()),
        tuple(map(tuple, specs)),
        parsed,
    )
    call = attention_kernels.get_call(key)
    if call is None:
        call = attention_kernels.put_call(key, attention_kernels.make_call(views, specs, parsed))
    written = (*needed, *attention_outputs.NAMES)
    order = [views[name].address for name in (*written, *OPTIONAL) if name in views]
    order += [view.address for view in captures]
    call.launch(order, stream or 0)
    names = ("o", "lse", "o_scales") if lse else ("o", "o_scales")
    results = [given[name] for name in names if given[name] is not None]
    return results[0] if len(results) == 1 else tuple(results)


def _pad(
    operands: tuple[Any, Any, Any], options: tuple[Any, ...]
) -> tuple[tuple[Any, Any, Any], tuple[Any, ...], int, int]:
    """Operands that kernels take, options with the scale of those that were given, and the
    columns of o before and after."""
    named = dict(zip(CALL_NAMES, options, strict=True))
    tensors = dict(zip(("q", "k", "v"), operands, strict=True))
    fitted, named["scale"], dv, wide = padding.pad_operands(tensors, "k", "v", named["scale"])
    return (fitted["q"], fitted["k"], fitted["v"]), tuple(named.values()), dv, wide


def prepare(
    operands: tuple[Any, Any, Any],
    optional: tuple[Any, ...],
    mods: tuple[Modification | None, ...],
    bound: Any,
    options: tuple[Any, ...],
    lse: Any,
    out: Any,
    chip: str,
    pad: Any = False,
    block_size: tuple[int, int] | None = None,
    outputs: tuple[Any, ...] = (),
) -> None:
    """attn.prepare; the arguments are those of `attend`."""
    asked = _read_outputs(out, outputs, options)
    lse = read_lse(lse)
    if readers.to_bool("pad", pad):
        operands, options, dv, wide = _pad(operands, options)
        out = None if wide != dv else out
    views = {}
    given = _name_tensors(operands, optional, lse, out)
    given |= {"o_scales": asked.scales, "amax": asked.amax}
    for name, tensor in given.items():
        if tensor is not None or name in ("q", "k", "v"):
            if not captured_reads.is_tensor(tensor):
                raise ArgumentTypeError(
                    f'tensor "{name}": expected a tensor, got {type(tensor).__name__}'
                )
            spec = captured_reads.describe(tensor)
            views[name] = TensorView(spec.element, spec.shape, spec.strides)
    texts, _, specs = trace_mods(mods)
    parsed = Options(options, lse is not False, bound, *texts, block_size, asked.group)
    if asked.makes:
        packed = "cu_seqlens_q" in views
        views |= attention_outputs.make_views(views["q"], views["v"].shape[-1], packed, asked)
    attention_kernels.Call(views, specs, parsed, readers.to_text("chip", chip), True)
