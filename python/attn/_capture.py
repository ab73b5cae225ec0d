"""Tensors that a score_mod or mask_mod reads, and copies of functions in which
traceable stand-ins take their places."""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from . import _trace, mods
from .errors import ArgumentError
from .record import DYNAMIC

#: MLIR's element type, and how a loaded element becomes a traced value: the
#: value's type and the operation, if any.
_ELEMENTS: dict[str, tuple[str, str, str]] = {
    "float16": ("f16", "f32", "arith.extf {} : f16 to f32"),
    "bfloat16": ("bf16", "f32", "arith.extf {} : bf16 to f32"),
    "float32": ("f32", "f32", ""),
    "float64": ("f64", "f32", "arith.truncf {} : f64 to f32"),
    "int8": ("i8", "i32", "arith.extsi {} : i8 to i32"),
    "uint8": ("i8", "i32", "arith.extui {} : i8 to i32"),
    "bool": ("i8", "i1", ""),
    "int32": ("i32", "i32", ""),
    "int64": ("i64", "i64", ""),
}
#: Modules whose contents nobody changes.
_KNOWN_MODULES = ("torch", "numpy", "math", "attn", "builtins", "operator")


class Spec(NamedTuple):
    """What a kernel has to know of a captured tensor."""

    #: torch's or numpy's name, such as "bfloat16".
    dtype: str
    shape: tuple[int, ...]
    #: Elements.
    strides: tuple[int, ...]

    @property
    def element(self) -> str:
        """MLIR's element type, by which launch records call it too."""
        return _ELEMENTS[self.dtype][0]

    def row_major(self) -> Spec:
        """The same tensor without gaps."""
        strides: list[int] = []
        step = 1
        for extent in reversed(self.shape):
            strides.insert(0, step)
            step *= max(extent, 1)
        return self._replace(strides=tuple(strides))

    def dynamic(self) -> Spec:
        """Any tensor of this type and rank; the innermost stride stays."""
        rank = len(self.shape)
        outer = (DYNAMIC,) * max(rank - 1, 0)
        return self._replace(shape=(DYNAMIC,) * rank, strides=outer + self.strides[rank - 1 :])

    def memref(self) -> str:
        """MLIR's type."""

        def show(extent: int) -> str:
            return "?" if extent == DYNAMIC else str(extent)

        shape = "".join(f"{show(extent)}x" for extent in self.shape)
        strides = ", ".join(map(show, self.strides))
        layout = f", strided<[{strides}]>" if self.shape else ""
        return f"memref<{shape}{self.element}{layout}>"


def is_tensor(value: object) -> bool:
    """Whether `value` is an array of some library; numpy's numbers are none."""
    kind = type(value)
    if kind.__module__ == "numpy":
        return kind.__name__ == "ndarray"
    if kind.__module__ == "torch":
        return kind.__name__ in ("Tensor", "Parameter")
    return hasattr(value, "shape") and (
        hasattr(kind, "__dlpack__") or hasattr(value, "__cuda_array_interface__")
    )


def describe(tensor: Any) -> Spec:
    """The spec of a tensor of torch, numpy or a library like numpy."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in _ELEMENTS:
        raise ArgumentError(
            f"a captured tensor: expected elements of {', '.join(_ELEMENTS)}, got {dtype}"
        )
    shape = tuple(tensor.shape)
    if callable(getattr(tensor, "stride", None)):
        return Spec(dtype, shape, tuple(tensor.stride()))
    strides = getattr(tensor, "strides", None)
    if strides is None:
        return Spec(dtype, shape, ()).row_major()
    return Spec(dtype, shape, tuple(step // tensor.dtype.itemsize for step in strides))


class TensorProxy:
    """A captured tensor while a function is traced."""

    def __init__(self, graph: _trace.Graph, name: str, spec: Spec) -> None:
        self._graph = graph
        self._name = name
        self._spec = spec
        self._prefix: tuple[_trace.Operand, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return self._spec.shape[len(self._prefix) :]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> str:
        return self._spec.dtype

    def size(self, axis: int | None = None) -> Any:
        return self.shape if axis is None else self.shape[axis]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        indices = index if isinstance(index, tuple) else (index,)
        shape = self.shape
        if len(indices) > len(shape):
            raise _trace.fail(
                f"expected at most {len(shape)} indices of a tensor of shape {list(shape)}, "
                f"got {len(indices)}"
            )
        checked = [self._check(i, extent) for i, extent in zip(indices, shape, strict=False)]
        result = TensorProxy(self._graph, self._name, self._spec)
        result._prefix = (*self._prefix, *checked)
        return result if len(result._prefix) < len(self._spec.shape) else result.load()

    @staticmethod
    def _check(index: Any, extent: int) -> _trace.Operand:
        if isinstance(index, _trace.Value):
            if index.type not in ("i32", "i64"):
                raise _trace.fail(f"expected an integer as index, got {index.type}")
            return index
        if isinstance(index, bool) or not isinstance(index, int):
            raise _trace.fail(f"expected an integer as index, got {type(index).__name__}")
        if not -extent <= index < extent:
            raise _trace.fail(f"index {index} is outside of a dimension of {extent} elements")
        return index % extent

    def load(self) -> _trace.Value:
        """The element that all indices together name."""
        graph = self._graph
        element, type, conversion = _ELEMENTS[self._spec.dtype]
        indices = []
        for index in self._prefix:
            if not isinstance(index, _trace.Value):
                indices.append(graph.make("index", f"arith.constant {index} : index"))
                continue
            template = f"arith.index_cast {{}} : {index.type} to index"
            indices.append(graph.make("index", template, index))
        places = ", ".join("{}" for _ in indices)
        template = f"memref.load {self._name}[{places}] : !{self._name[1:]}"
        value = graph.make(element, template, *indices)
        if self._spec.dtype == "bool":
            zero = graph.make("i8", "arith.constant 0 : i8")
            return graph.make("i1", "arith.cmpi ne, {}, {} : i8", value, zero)
        return graph.make(type, conversion, value) if conversion else value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise _trace.fail(
            f"a captured tensor has no {name!r} here; index it down to one element "
            f"({self.ndim} indices) first"
        )


class _MathShim:
    """The module math, for traced values too."""

    def __getattr__(self, name: str) -> Any:
        original = getattr(math, name)
        if name not in mods.METHODS and name != "fabs":
            return original

        def choose(*operands: Any) -> Any:
            if any(isinstance(each, _trace.Value) for each in operands):
                return mods.call("abs" if name == "fabs" else name, operands, None)
            return original(*operands)

        return choose


def _choose_extreme(original: Any, name: str) -> Any:
    """min or max, for traced values too."""

    def choose(*operands: Any, **options: Any) -> Any:
        values = operands[0] if len(operands) == 1 else operands
        if options or not any(isinstance(each, _trace.Value) for each in values):
            return original(*operands, **options)
        return functools.reduce(lambda a, b: mods.call(name, (a, b), None), values)

    return choose


_SHIMS = {"min": _choose_extreme(min, "minimum"), "max": _choose_extreme(max, "maximum")}


@functools.lru_cache(1024)
def get_names(code: types.CodeType) -> tuple[str, ...]:
    """Names that the code, and functions inside, may look up in globals."""
    found = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= dict.fromkeys(get_names(constant))
    return tuple(found)


def _is_known(name: str | None) -> bool:
    return (name or "").partition(".")[0] in _KNOWN_MODULES


_SIMPLE = frozenset((int, bool, str, type(None)))


class Unguarded(Exception):
    """A function uses something whose changes cannot be noticed."""


def fingerprint(value: Any, tensors: list[Any], functions: tuple[Any, ...] = ()) -> object:
    """What a trace of the function `value` depends on, in a form that can be
    compared. Appends the tensors to `tensors`, in the order of `rebind`."""
    kind = type(value)
    if kind in _SIMPLE:
        return (kind, value)
    if kind is types.FunctionType:
        if value in functions:
            return functions.index(value)
        if _is_known(value.__module__):
            return value
        inside = (*functions, value)
        contents = [fingerprint(each, tensors, inside) for each in _get_captured(value)]
        return (value.__code__, *contents)
    if kind is float:
        return (kind, value.hex())
    if is_tensor(value):
        tensors.append(value)
        first = next(i for i, each in enumerate(tensors) if each is value)
        steps = value.stride() if hasattr(value, "stride") else getattr(value, "strides", None)
        return (first, value.dtype, tuple(value.shape), steps)
    if kind in (tuple, list):
        return (kind, *[fingerprint(each, tensors, functions) for each in value])
    if kind is types.BuiltinFunctionType or (
        isinstance(value, type) and _is_known(kind.__module__)
    ):
        return value
    if kind is types.ModuleType and _is_known(value.__name__):
        return value
    if kind.__module__ == "numpy" and getattr(value, "shape", None) == ():
        return (kind, value.item())
    if kind is functools.partial:
        parts = (value.func, value.args, tuple(value.keywords.items()))
        return (kind, *[fingerprint(each, tensors, functions) for each in parts])
    raise Unguarded


def _get_cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _get_captured(function: types.FunctionType) -> list[Any]:
    """Everything that a function uses from outside, in a fixed order."""
    scope = function.__globals__
    found = [_get_cell(cell) for cell in function.__closure__ or ()]
    found += function.__defaults__ or ()
    found += (function.__kwdefaults__ or {}).values()
    found += [scope[name] for name in get_names(function.__code__) if name in scope]
    return found


def rebind(value: Any, stand_in: Callable[[Any], Any], done: dict[int, Any] | None = None) -> Any:
    """`value` with `stand_in(tensor)` in the place of each tensor that it
    captures; functions are copied."""
    done = {} if done is None else done
    kind = type(value)
    if id(value) in done:
        return done[id(value)]
    if is_tensor(value):
        return stand_in(value)
    if value is math:
        return _MathShim()
    if kind is types.BuiltinFunctionType and value.__module__ == "math":
        return getattr(_MathShim(), value.__name__)
    if kind.__module__ == "numpy" and getattr(value, "shape", None) == ():
        return value.item()
    if kind in (tuple, list):
        return kind(rebind(each, stand_in, done) for each in value)
    if kind is functools.partial:
        function = rebind(value.func, stand_in, done)
        args = rebind(value.args, stand_in, done)
        keywords = {k: rebind(v, stand_in, done) for k, v in value.keywords.items()}
        return functools.partial(function, *args, **keywords)
    if kind is types.MethodType:
        return types.MethodType(rebind(value.__func__, stand_in, done), value.__self__)
    if kind is not types.FunctionType or _is_known(value.__module__):
        return value
    scope = dict(value.__globals__)
    closure = tuple(types.CellType(_get_cell(cell)) for cell in value.__closure__ or ())
    copy = types.FunctionType(value.__code__, scope, value.__name__, None, closure)
    # Known before its contents are copied: functions may call themselves.
    done[id(value)] = copy
    for cell in closure:
        cell.cell_contents = rebind(cell.cell_contents, stand_in, done)
    if value.__defaults__:
        copy.__defaults__ = rebind(value.__defaults__, stand_in, done)
    if value.__kwdefaults__:
        copy.__kwdefaults__ = {
            k: rebind(v, stand_in, done) for k, v in value.__kwdefaults__.items()
        }
    for name in get_names(value.__code__):
        if name in scope:
            scope[name] = rebind(scope[name], stand_in, done)
        elif name in _SHIMS:
            scope[name] = _SHIMS[name]
    return copy


def to_numpy(tensor: Any) -> Any:
    """The elements of a captured tensor in the carriers of `arrays`."""
    import numpy as np

    spec = describe(tensor)
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu().contiguous()
        if spec.dtype == "bfloat16":
            import torch

            tensor = tensor.view(torch.uint16)
        tensor = tensor.numpy()
    elif hasattr(tensor, "get"):
        tensor = tensor.get()
    array = np.ascontiguousarray(tensor).reshape(spec.shape)
    return array.view(np.int8) if spec.element == "i8" else array
