"""From Python functions to the regions score_mod, mask_mod and out_mod of attn.attention."""

from __future__ import annotations

import functools
import linecache
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..errors import AttnError, TraceError
from . import captured_reads, trace_errors, traced_values

#: Parameters after the ones that the region has; a mask_mod sees no score.
_PARAMETERS = {
    "score_mod": ("score", "b", "h", "q_idx", "kv_idx"),
    "mask_mod": ("b", "h", "q_idx", "kv_idx"),
    "out_mod": ("result", "b", "h", "q_idx", "column"),
}
#: Traces that are kept.
_KEPT = 256


class _Traced(NamedTuple):
    text: str
    #: Which of the function's tensors the text reads, in its order.
    used: tuple[int, ...]


_lock = threading.Lock()
_traces: dict[object, _Traced] = {}


def _name_arguments(kind: str) -> tuple[str, ...]:
    """The arguments of a region: f32, then i32."""
    return _PARAMETERS["score_mod" if kind == "mask_mod" else kind]


def _write_header(kind: str) -> str:
    first, *indices = _name_arguments(kind)
    return f"^bb0(%{first}: f32, {', '.join(f'%{each}: i32' for each in indices)}):"


class Mod:
    """A traced score_mod, mask_mod or out_mod. The functions of these names make them; the
    function itself is not called again."""

    def __init__(self, kind: str, text: str, tensors: Sequence[Any]) -> None:
        #: "score_mod", "mask_mod" or "out_mod".
        self.kind = kind
        #: The region's operations in one line; captured tensors are %KINDn.
        self.text = text
        #: What the region reads, by n.
        self.tensors = tuple(tensors)

    def __repr__(self) -> str:
        return f"<attn {self.kind} that reads {len(self.tensors)} tensors>"


def _locate(kind: str, function: Any, error: BaseException) -> TraceError:
    """An error of the user's own code, at its line."""
    place = error.__traceback__
    file, line = "", 0
    while place is not None:
        name = place.tb_frame.f_code.co_filename
        if not trace_errors.is_library(name):
            file, line = name, place.tb_lineno
        place = place.tb_next
    if not line:
        file, line = _get_place(function)
    message = f"{kind}: {type(error).__name__}: {error}"
    return TraceError(message, file, line, linecache.getline(file, line).strip())


def _get_place(function: Any) -> tuple[str, int]:
    """Where a function is defined."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else ("", 0)


def _fail(function: Any, message: str) -> TraceError:
    file, line = _get_place(function)
    return TraceError(message, file, line, linecache.getline(file, line).strip())


def _check_parameters(kind: str, function: Any) -> None:
    import inspect

    try:
        signature = inspect.signature(function)
        signature.bind(*_PARAMETERS[kind])
    except TypeError:
        wanted = ", ".join(_PARAMETERS[kind])
        raise _fail(
            function, f"expected {kind}({wanted}), got the parameters {signature}"
        ) from None
    except ValueError:
        # A function without a signature says itself what it does not take.
        pass


def _convert(
    kind: str, function: Any, graph: traced_values.Graph, result: Any
) -> traced_values.Value:
    """The result as the region yields it."""
    wanted = "a bool" if kind == "mask_mod" else "a number"
    got = result.type if isinstance(result, traced_values.Value) else type(result).__name__
    if kind == "mask_mod":
        if isinstance(result, bool):
            return graph.constant(result, "i1")
        if isinstance(result, traced_values.Value) and result.type == "i1":
            return result
    elif isinstance(result, traced_values.Value) and result.type != "i1":
        return traced_values.convert(graph, result, "f32")
    elif traced_values.is_scalar(result) and not isinstance(result, bool):
        return graph.constant(result, "f32")
    hint = "; is a return missing?" if result is None else ""
    raise _fail(function, f"{kind}: expected {wanted} as result, got {got}{hint}")


def _trace_function(kind: str, function: Any) -> tuple[_Traced, list[Any]]:
    """The trace, and all tensors that the function has."""
    _check_parameters(kind, function)
    graph = traced_values.Graph()
    first, *indices = _name_arguments(kind)
    arguments = {
        first: graph.make("f32", f"%{first}"),
        **{name: graph.make("i32", f"%{name}") for name in indices},
    }
    tensors: list[Any] = []

    def stand_in(tensor: Any) -> Any:
        spec = captured_reads.describe(tensor)
        position = next((i for i, each in enumerate(tensors) if each is tensor), len(tensors))
        if position == len(tensors):
            tensors.append(tensor)
        proxy = captured_reads.TensorProxy(graph, f"%{kind}{position}", spec)
        return proxy if spec.shape else proxy.load()

    try:
        copy = captured_reads.rebind(function, stand_in)
        result = copy(*[arguments[name] for name in _PARAMETERS[kind]])
    except AttnError:
        raise
    except Exception as error:
        raise _locate(kind, function, error) from error
    if isinstance(result, captured_reads.TensorProxy):
        raise _fail(function, f"{kind}: expected a number as result, got a tensor")
    value = _convert(kind, function, graph, result)
    names = graph.reads(value)
    text = graph.print_region(value)
    # Numbers in the order of use; through names that are no part of others.
    for number, name in enumerate(names):
        text = text.replace(f"load {name}[", f"load %#{number}[").replace(
            f" : !{name[1:]}\n", f" : !#{number}\n"
        )
    text = text.replace("%#", f"%{kind}").replace("!#", f"!{kind}")
    # In one line: torch 2.11's compiler writes the texts of an operator's call into comments.
    text = " ".join(text.split())
    used = tuple(int(name.removeprefix(f"%{kind}")) for name in names)
    return _Traced(text, used), tensors


def trace(kind: str, function: Any) -> Mod:
    """A function as a region; what was traced before is not traced again as
    long as all that the function uses is the same, apart from the contents of
    tensors. Raises TraceError."""
    if isinstance(function, Mod):
        if function.kind != kind:
            raise TraceError(f"{kind}: expected a {kind}, got a {function.kind}")
        return function
    if not callable(function):
        raise TraceError(f"{kind}: expected a function, got {type(function).__name__}")
    guard = captured_reads.guard(function)
    key = (kind, guard.fingerprint)
    found = _traces.get(key) if guard.fingerprint is not None else None
    if found is not None:
        return Mod(kind, found.text, [guard.tensors[index] for index in found.used])
    found, tensors = _trace_function(kind, function)
    # Not when the function itself, or another thread, has changed what it reads.
    if captured_reads.is_same(guard.tensors, tensors) and guard.holds(function):
        with _lock:
            if len(_traces) >= _KEPT:
                _traces.clear()
            _traces[key] = found
    return Mod(kind, found.text, [tensors[index] for index in found.used])


def score_mod(function: Callable[..., Any]) -> Mod:
    """Traces score_mod(score, b, h, q_idx, kv_idx), for use under torch.compile
    and where it is used often. Raises TraceError."""
    return trace("score_mod", function)


def mask_mod(function: Callable[..., Any]) -> Mod:
    """Traces mask_mod(b, h, q_idx, kv_idx), as `score_mod`."""
    return trace("mask_mod", function)


def out_mod(function: Callable[..., Any]) -> Mod:
    """Traces out_mod(result, b, h, q_idx, column), as `score_mod`: it changes results
    before they are rounded."""
    return trace("out_mod", function)


class Regions(NamedTuple):
    """The regions of a problem, with the types of what they read."""

    score_mod: str
    mask_mod: str
    #: Of the tensors of score_mod, then of the others: capture0, capture1, ...
    score_specs: tuple[captured_reads.Spec, ...]
    mask_specs: tuple[captured_reads.Spec, ...]
    out_mod: str = ""
    out_specs: tuple[captured_reads.Spec, ...] = ()

    def splice(self, problem: str) -> str:
        """The text of a problem without regions, with these."""
        aliases, parameters = [], []
        lines = problem.splitlines(keepends=True)
        # Results of several runs are changed where they are merged.
        is_merged = any(line.lstrip().startswith("attn.combine") for line in lines)
        regions = {"attn.attention": "", "attn.combine": ""}
        for kind, body, specs in (
            ("score_mod", self.score_mod, self.score_specs),
            ("mask_mod", self.mask_mod, self.mask_specs),
            ("out_mod", self.out_mod, self.out_specs),
        ):
            for number, spec in enumerate(specs):
                aliases.append(f"!{kind}{number} = {spec.memref()}\n")
                parameters.append(f", %{kind}{number}: !{kind}{number}")
            if body:
                op = "attn.combine" if kind == "out_mod" and is_merged else "attn.attention"
                regions[op] += f" {kind} {{\n    {_write_header(kind)}\n      {body}\n    }}"
        for number, line in enumerate(lines):
            if line.lstrip().startswith("func.func"):
                head, separator, tail = line.rpartition(") {")
                lines[number] = head + "".join(parameters) + separator + tail
            elif line.lstrip().startswith(tuple(regions)):
                head, separator, tail = line.rstrip("\n").partition(" {")
                lines[number] = f"{head}{regions[line.split()[0]]}{separator}{tail}\n"
        return "".join(aliases + lines)


def combine(
    score: Mod | None,
    mask: Mod | None,
    out: Mod | None,
    change: Callable[[captured_reads.Spec], captured_reads.Spec],
) -> Regions | None:
    """The regions of a problem; `change` is applied to the specs of the tensors
    that they read."""
    if score is None and mask is None and out is None:
        return None

    def describe(mod: Mod | None) -> tuple[captured_reads.Spec, ...]:
        return tuple(change(captured_reads.describe(each)) for each in mod.tensors) if mod else ()

    return Regions(
        score.text if score else "",
        mask.text if mask else "",
        describe(score),
        describe(mask),
        out.text if out else "",
        describe(out),
    )
