"""Tensors that a score_mod or mask_mod reads, and copies of functions in which
traceable stand-ins take their places. What a function reads at all is found in
`read_guard`."""

from __future__ import annotations

import builtins
import functools
import math
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import mods
from ..errors import ArgumentError
from ..record import DYNAMIC
from . import read_guard, target_types, trace_errors, traced_values

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


class Spec(NamedTuple):
    """What a kernel has to know of a captured tensor."""

    #: torch's or numpy's name, such as "bfloat16".
    dtype: str
    shape: tuple[int, ...]
    #: Elements.
    strides: tuple[int, ...]

    @property
    def element(self) -> str:
        """MLIR's element type, by which launch records call it too. Those that no
        function reads have MLIR's name already."""
        return _ELEMENTS[self.dtype][0] if self.dtype in _ELEMENTS else self.dtype

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
    if hasattr(kind, "__dlpack__"):
        return hasattr(value, "shape")
    try:
        # Objects may answer for every name, or fail in ways of their own.
        return isinstance(value.__cuda_array_interface__, dict) and hasattr(value, "shape")
    except Exception:
        return False


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

    def __init__(self, graph: traced_values.Graph, name: str, spec: Spec) -> None:
        self._graph = graph
        self._name = name
        self._spec = spec
        self._prefix: tuple[traced_values.Operand, ...] = ()

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

    @property
    def device(self) -> target_types.Device:
        return target_types.DEVICE

    def to(self, *args: object, **kwargs: object) -> TensorProxy:
        """The tensor itself, for a device or its own type."""
        if args == (self.dtype,) or kwargs == {"dtype": self.dtype}:
            return self
        if not target_types.names_devices_only(args, kwargs):
            raise trace_errors.fail("to(): a captured tensor keeps its type; convert its elements")
        return self

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        indices = index if isinstance(index, tuple) else (index,)
        shape = self.shape
        if len(indices) > len(shape):
            raise trace_errors.fail(
                f"expected at most {len(shape)} indices of a tensor of shape {list(shape)}, "
                f"got {len(indices)}"
            )
        checked = [self._check(i, extent) for i, extent in zip(indices, shape, strict=False)]
        result = TensorProxy(self._graph, self._name, self._spec)
        result._prefix = (*self._prefix, *checked)
        return result if len(result._prefix) < len(self._spec.shape) else result.load()

    @staticmethod
    def _check(index: Any, extent: int) -> traced_values.Operand:
        if isinstance(index, traced_values.Value):
            if index.type not in ("i32", "i64"):
                raise trace_errors.fail(f"expected an integer as index, got {index.type}")
            return index
        if isinstance(index, bool) or not isinstance(index, int):
            raise trace_errors.fail(f"expected an integer as index, got {type(index).__name__}")
        if not -extent <= index < extent:
            raise trace_errors.fail(f"index {index} is outside of a dimension of {extent} elements")
        return index % extent

    def load(self) -> traced_values.Value:
        """The element that all indices together name."""
        graph = self._graph
        element, type, conversion = _ELEMENTS[self._spec.dtype]
        indices = []
        for index in self._prefix:
            if not isinstance(index, traced_values.Value):
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
        raise trace_errors.fail(
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
            if any(isinstance(each, traced_values.Value) for each in operands):
                return mods.call("abs" if name == "fabs" else name, operands, None)
            return original(*operands)

        return choose


def _choose_extreme(original: Any, name: str) -> Any:
    """min or max, for traced values too."""

    def choose(*operands: Any, **options: Any) -> Any:
        values = operands[0] if len(operands) == 1 else operands
        if options or not any(isinstance(each, traced_values.Value) for each in values):
            return original(*operands, **options)
        return functools.reduce(lambda a, b: mods.call(name, (a, b), None), values)

    return choose


_SHIMS = (
    (builtins.min, _choose_extreme(builtins.min, "minimum")),
    (builtins.max, _choose_extreme(builtins.max, "maximum")),
)


class Guard(NamedTuple):
    """What a trace of a function depends on, apart from the contents of tensors."""

    #: Comparable; None when changes cannot be noticed.
    fingerprint: object
    #: What the function captures, each once, in the order of `rebind`.
    tensors: tuple[Any, ...] = ()

    def holds(self, function: Any) -> bool:
        """Whether the function still is what it was."""
        now = guard(function)
        return (
            self.fingerprint is not None
            and self.fingerprint == now.fingerprint
            and is_same(self.tensors, now.tensors)
        )


def is_same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether these are the same objects, whatever their `==` says."""
    return list(map(id, some)) == list(map(id, others))


def guard(function: Any) -> Guard:
    """The guard of a function's trace."""
    if type(function) not in (types.FunctionType, functools.partial):
        return Guard(None)
    found = read_guard.Fingerprint(is_tensor)
    try:
        return Guard(found.make(function), tuple(found.tensors))
    except (read_guard.Unguarded, RecursionError):
        return Guard(None)


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
    if kind is tuple:
        return tuple([rebind(each, stand_in, done) for each in value])
    if kind is list:
        # Known before its contents are copied: lists may contain themselves.
        done[id(value)] = elements = []
        elements += [rebind(each, stand_in, done) for each in value]
        return elements
    if kind is functools.partial:
        function = rebind(value.func, stand_in, done)
        args = rebind(value.args, stand_in, done)
        keywords = {k: rebind(v, stand_in, done) for k, v in value.keywords.items()}
        return functools.partial(function, *args, **keywords)
    if kind is types.MethodType:
        return types.MethodType(rebind(value.__func__, stand_in, done), value.__self__)
    if kind is not types.FunctionType or read_guard.is_of_library(value):
        return value
    return _copy_function(value, stand_in, done)


def _copy_function(
    function: types.FunctionType, stand_in: Callable[[Any], Any], done: dict[int, Any]
) -> types.FunctionType:
    scope = dict(function.__globals__)
    closure = tuple(types.CellType() for _ in function.__closure__ or ())
    copy = types.FunctionType(function.__code__, scope, function.__name__, None, closure)
    # Known before its contents are copied: functions may call themselves.
    done[id(function)] = copy
    for cell, original in zip(closure, function.__closure__ or (), strict=True):
        try:
            contents = original.cell_contents
        except ValueError:
            continue  # An empty one stays empty.
        cell.cell_contents = rebind(contents, stand_in, done)
    if function.__defaults__:
        copy.__defaults__ = rebind(function.__defaults__, stand_in, done)
    if function.__kwdefaults__:
        copy.__kwdefaults__ = {
            k: rebind(v, stand_in, done) for k, v in function.__kwdefaults__.items()
        }
    copy.__doc__ = function.__doc__
    for name, value in function.__dict__.items():
        copy.__dict__[name] = value if name == "__wrapped__" else rebind(value, stand_in, done)
    for name in read_guard.get_names(function.__code__).scope:
        value = read_guard.look_up(function, name)
        if value is read_guard.MISSING:
            continue
        shim = next((new for old, new in _SHIMS if old is value), None)
        scope[name] = shim or rebind(value, stand_in, done)
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
