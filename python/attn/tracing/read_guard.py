"""What a trace of a function depends on, in a form that can be compared.

A function is traced again only when its fingerprint has changed. Values whose
changes cannot be noticed make it `Unguarded`: such functions are traced at every
call. So what is known to be constant is listed, and everything else is not.
"""

from __future__ import annotations

import builtins
import dis
import functools
import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import mods

#: Top-level packages whose functions are not copied for a trace.
_LIBRARIES = ("torch", "numpy", "math", "attn", "builtins", "operator")
#: Modules of these whose functions are: they make masks of other functions and of tensors.
_MAKERS = ("torch.nn.attention.flex_attention", "attn.doors.mask_tensors", "attn.doors.host_masks")
#: Functions of torch, numpy and `attn.mods` whose results depend on nothing but
#: their arguments, by name.
_PURE = mods.METHODS | frozenset(
    ("all", "amax", "amin", "any", "arctan", "cos", "cosh", "expm1", "fabs", "isfinite", "isinf")
    + ("isnan", "log10", "log1p", "max", "mean", "min", "ndim", "prod", "shape", "sign", "sin")
    + ("sinh", "size", "sum", "tan")
)
_PURE_BUILTINS = frozenset(
    ("abs", "all", "any", "bin", "chr", "divmod", "format", "hex", "isinstance", "issubclass")
    + ("iter", "len", "max", "min", "next", "oct", "ord", "pow", "round", "sorted", "sum")
)
#: Py_TPFLAGS_HEAPTYPE: classes without it cannot be changed.
_HEAP_TYPE = 1 << 9
_SIMPLE = frozenset((int, bool, str, bytes, type(None), type(...)))
_LOADS = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"))
_ATTRIBUTES = frozenset(("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"))
#: Names in the bodies of classes that a function defines.
_LOCALS = frozenset(("STORE_NAME", "DELETE_NAME"))


class Unguarded(Exception):
    """A function uses something whose changes cannot be noticed."""


class _Missing:
    """Stands for a name that is not defined."""


MISSING = _Missing()


class Names(NamedTuple):
    """Names in the code of a function and of the functions inside."""

    #: Looked up among the globals, then in builtins.
    scope: tuple[str, ...]
    #: Attributes that are read, of whatever object.
    attributes: tuple[str, ...]
    #: Whether the code also imports, changes objects, or reads attributes such
    #: as __dict__ through which everything can be reached.
    is_opaque: bool


@functools.lru_cache(1024)
def get_names(code: types.CodeType) -> Names:
    scope: dict[str, None] = {}
    attributes: dict[str, None] = {}
    is_opaque = False
    for instruction in dis.get_instructions(code):
        if instruction.opcode not in dis.hasname:
            continue
        if instruction.opname in _LOADS:
            scope[instruction.argval] = None
        elif instruction.opname in _ATTRIBUTES:
            attributes[instruction.argval] = None
            is_opaque |= instruction.argval.startswith("__")
        else:
            is_opaque |= instruction.opname not in _LOCALS
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner = get_names(constant)
            scope |= dict.fromkeys(inner.scope)
            attributes |= dict.fromkeys(inner.attributes)
            is_opaque |= inner.is_opaque
    return Names(tuple(scope), tuple(attributes), is_opaque)


def look_up(function: types.FunctionType, name: str) -> Any:
    """What a global name means in a function, or MISSING."""
    scope = function.__globals__
    if name in scope:
        return scope[name]
    # A dictionary; the attribute is Python 3.10's.
    return function.__builtins__.get(name, MISSING)  # type: ignore[attr-defined]


def is_of_library(function: types.FunctionType) -> bool:
    """Whether a library defines the function. Not by `__module__`, which
    functools.wraps copies."""
    name = str(function.__globals__.get("__name__"))
    module = sys.modules.get(name)
    return (
        name.partition(".")[0] in _LIBRARIES
        and name not in _MAKERS
        and module is not None
        and module.__dict__ is function.__globals__
    )


def _is_libraries_own(value: Any) -> bool:
    """Whether `value` is one of the functions named in _PURE."""
    name = getattr(value, "__name__", None)
    if name not in _PURE and type(value).__name__ != "ufunc":
        return False
    return any(
        getattr(sys.modules.get(module), name, MISSING) is value
        for module in ("attn.mods", "numpy", "torch")
    )


def _is_pure_builtin(function: types.BuiltinFunctionType) -> bool:
    """Whether a function of C depends on its arguments only. Bound methods, such
    as `table.__getitem__`, have an object that may change."""
    owner = function.__self__
    if isinstance(owner, types.ModuleType):
        if owner.__name__ in ("math", "_operator"):
            return True
        if owner is builtins:
            return function.__name__ in _PURE_BUILTINS
    elif owner is not None and not isinstance(owner, type):
        return False
    return _is_libraries_own(function)


def _is_constant_type(value: type) -> bool:
    """Whether a class cannot be changed, and makes the same of the same."""
    if value.__flags__ & _HEAP_TYPE:
        return False
    numpy = sys.modules.get("numpy")
    if numpy is not None and (issubclass(value, numpy.generic) or value is numpy.ndarray):
        return True
    return value.__module__ == "builtins"


def _is_constant(value: Any) -> bool:
    """Whether `value` never changes, so that its identity is enough."""
    kind = type(value)
    if kind is types.BuiltinFunctionType:
        return _is_pure_builtin(value)
    if isinstance(value, type):
        return _is_constant_type(value)
    if kind is types.FunctionType:
        return _is_libraries_own(value)
    if kind.__module__ == "torch":
        return kind is getattr(sys.modules.get("torch"), "dtype", None)
    return kind.__module__.partition(".")[0] == "numpy" and _is_libraries_own(value)


class Fingerprint:
    """Collects what a trace of a function depends on."""

    def __init__(self, is_tensor: Callable[[Any], bool]) -> None:
        #: What the function captures, each once, in the order of `rebind`.
        self.tensors: list[Any] = []
        self._is_tensor = is_tensor
        #: Numbers of functions and lists by identity: they may be cyclic.
        self._met: dict[int, int] = {}
        self._modules: list[types.ModuleType] = []
        #: Attributes that any of the functions reads of anything.
        self._attributes: dict[str, None] = {}

    def make(self, function: Any) -> object:
        """The fingerprint of a function; raises Unguarded."""
        found = [self._of(function)]
        captured = len(self.tensors)
        done: set[tuple[int, str]] = set()
        # A module is known by what may be read of it, which may be a function
        # that reads more.
        while todo := [
            (module, name)
            for module in self._modules
            for name in self._attributes
            if (id(module), name) not in done
        ]:
            for module, name in todo:
                done.add((id(module), name))
                found.append(self._of_attribute(module, name))
        if len(self.tensors) != captured:
            # What is in modules is not replaced for the trace.
            raise Unguarded
        return tuple(found)

    def _of(self, value: Any) -> object:
        kind = type(value)
        if kind in _SIMPLE:
            return (kind, value)
        if kind is float:
            # Not by value: 0.0 equals -0.0, and no NaN equals itself.
            return (kind, value.hex())
        if kind is tuple:
            return (kind, *map(self._of, value))
        if kind is types.FunctionType and not is_of_library(value):
            return self._meet(value) or self._of_function(value)
        if kind is list:
            return self._meet(value) or (kind, *map(self._of, value))
        if kind is types.ModuleType:
            if not any(each is value for each in self._modules):
                self._modules.append(value)
            return value
        if self._is_tensor(value):
            return self._of_tensor(value)
        if kind.__module__ == "numpy" and getattr(value, "shape", None) == ():
            number = value.item()
            if type(number) in _SIMPLE or type(number) is float:
                return (kind, self._of(number))
        if kind is functools.partial and not value.__dict__:
            parts = (value.func, value.args, tuple(value.keywords.items()))
            return (kind, *map(self._of, parts))
        if _is_constant(value):
            return value
        raise Unguarded

    def _meet(self, value: Any) -> object:
        """None at the first time, then what tells which one it is."""
        number = self._met.get(id(value))
        if number is not None:
            return ("met", number)
        self._met[id(value)] = len(self._met)
        return None

    def _of_tensor(self, tensor: Any) -> object:
        number = next((i for i, each in enumerate(self.tensors) if each is tensor), None)
        if number is not None:
            return ("tensor", number)
        self.tensors.append(tensor)
        steps = tensor.stride() if hasattr(tensor, "stride") else getattr(tensor, "strides", None)
        return (type(tensor), tensor.dtype, tuple(tensor.shape), steps)

    def _of_function(self, function: types.FunctionType) -> object:
        names = get_names(function.__code__)
        if names.is_opaque:
            raise Unguarded
        self._attributes |= dict.fromkeys(names.attributes)
        found: list[object] = [function.__code__]
        for cell in function.__closure__ or ():
            try:
                contents = cell.cell_contents
            except ValueError:
                contents = None
                found.append(MISSING)
            found.append(self._of(contents))
        found.append(self._of(function.__defaults__))
        found.append(self._of(tuple((function.__kwdefaults__ or {}).items())))
        for name, value in function.__dict__.items():
            # Code that reads such an attribute is opaque.
            if not name.startswith("__"):
                found += (name, self._of(value))
        for name in names.scope:
            value = look_up(function, name)
            found.append(value if value is MISSING else self._of(value))
        return tuple(found)

    def _of_attribute(self, module: types.ModuleType, name: str) -> object:
        scope = module.__dict__
        if name in scope:
            return self._of(scope[name])
        # A module may make attributes when they are asked for.
        make = scope.get("__getattr__")
        is_known = type(make) is types.FunctionType and is_of_library(make)
        return make if is_known else self._of(make)
