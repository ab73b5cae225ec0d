"""Values that a score_mod or mask_mod computes with while it is traced.

Each operation on a `Value` becomes a node; `print_region` prints the nodes that
the result needs as the body of a region of attn.attention. Equal nodes are one.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, Union

from .target_types import DEVICE, TYPE_NAMES, Device, is_device, read_target, read_type
from .trace_errors import fail

#: Types in the order in which operands are widened.
_RANKS = {"i1": 0, "i32": 1, "i64": 2, "f32": 3}

Scalar = Union[bool, int, float]
Operand = Union["Value", Scalar]


class _Functions:
    """What functions and methods do to traced values, by name."""

    methods: frozenset[str] = frozenset()
    call: Callable[[str, Sequence[Any], Any], Any]


_functions = _Functions()


def set_functions(methods: frozenset[str], call: Callable[[str, Sequence[Any], Any], Any]) -> None:
    """Gives values the functions of attn.mods, which is made of those here."""
    _functions.methods = methods
    _functions.call = call


class Graph:
    """The nodes of one region."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[object, ...], Value] = {}

    def make(self, type: str, template: str, *operands: Value) -> Value:
        """The node of an operation; `template` has a {} for each operand."""
        key = (type, template, *[id(operand) for operand in operands])
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Value(self, type, template, operands)
        return node

    def constant(self, value: Scalar, type: str) -> Value:
        """A constant, rounded to f32 or checked against the integer type."""
        if type == "f32":
            try:
                bits = struct.unpack("<I", struct.pack("<f", value))[0]
            except OverflowError:
                raise fail(f"expected a number that fits f32, got {value}") from None
            text = f"0x{bits:08X}"
        elif type == "i1":
            text = "true" if value else "false"
            return self.make(type, f"arith.constant {text}")
        else:
            text = str(int(value))
        return self.make(type, f"arith.constant {text} : {type}")

    def print_region(self, result: Value, indent: str = "      ") -> str:
        """The operations down to `result`, which is yielded."""
        needed: dict[int, Value] = {}
        stack = [result]
        while stack:
            node = stack.pop()
            if id(node) not in needed:
                needed[id(node)] = node
                stack += node.operands
        names: dict[int, str] = {}
        lines = []
        # Nodes are made after their operands.
        for node in self._nodes.values():
            if id(node) not in needed:
                continue
            if node.template.startswith("%"):
                names[id(node)] = node.template
                continue
            names[id(node)] = f"%{len(names)}"
            operands = [names[id(operand)] for operand in node.operands]
            lines.append(f"{indent}{names[id(node)]} = {node.template.format(*operands)}\n")
        lines.append(f"{indent}attn.yield {names[id(result)]} : {result.type}\n")
        return "".join(lines)

    def reads(self, result: Value) -> list[str]:
        """The captured tensors that `result` needs, in the order of their first
        use in the printed text."""
        text = self.print_region(result)
        found: dict[str, None] = {}
        for line in text.splitlines():
            _, is_load, rest = line.partition("= memref.load ")
            if is_load:
                found[rest[: rest.index("[")]] = None
        return list(found)


def _python_type(value: Scalar) -> str:
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise fail(f"expected an integer of 64 bits, got {value}")
        return "i32" if -(2**31) <= value < 2**31 else "i64"
    return "f32"


def is_scalar(value: object) -> bool:
    """Whether `value` is a number that becomes a constant."""
    return isinstance(value, (bool, int, float))


def to_scalar(value: Any) -> Any:
    """Numbers of numpy and torch, and their tensors of rank 0, as Python's own."""
    kind = type(value)
    if kind.__module__ in ("numpy", "torch") and getattr(value, "shape", None) == ():
        return value.item()
    return value


def _read(what: str, *values: Any) -> tuple[Any, ...]:
    """The graph of the operands, and the operands; raises for what is neither value nor
    number."""
    graph = None
    operands = tuple(map(to_scalar, values))
    for value in operands:
        if isinstance(value, Value):
            graph = value.graph
        elif not is_scalar(value):
            raise fail(f"{what}: expected a number, got {type(value).__name__}")
    if graph is None:
        raise fail(f"{what}: expected a traced value, got numbers only")
    return (graph, *operands)


def convert(graph: Graph, value: Operand, type: str) -> Value:
    """`value` as `type`; widening, or an integer's truncation."""
    if not isinstance(value, Value):
        return graph.constant(value, type)
    source = value.type
    if source == type:
        return value
    if type == "f32":
        op = "uitofp" if source == "i1" else "sitofp"
    elif type == "i1":
        if source == "f32":
            zero = graph.constant(0.0, "f32")
            return graph.make("i1", "arith.cmpf une, {}, {} : f32", value, zero)
        zero = graph.constant(0, source)
        return graph.make("i1", f"arith.cmpi ne, {{}}, {{}} : {source}", value, zero)
    elif source == "f32":
        op = "fptosi"
    elif source == "i1":
        op = "extui"
    else:
        op = "extsi" if type == "i64" else "trunci"
    return graph.make(type, f"arith.{op} {{}} : {source} to {type}", value)


def _unify(graph: Graph, least: str, *values: Operand) -> tuple[str, list[Value]]:
    """The operands as their widest type, which is at least `least`."""
    types = [v.type if isinstance(v, Value) else _python_type(v) for v in values]
    widest = max([least, *types], key=_RANKS.__getitem__)
    return widest, [convert(graph, value, widest) for value in values]


def _arithmetic(name: str, a: Operand, b: Operand) -> Value:
    graph, a, b = _read({"add": "+", "sub": "-", "mul": "*"}[name], a, b)
    type, operands = _unify(graph, "i32", a, b)
    suffix = "f" if type == "f32" else "i"
    return graph.make(type, f"arith.{name}{suffix} {{}}, {{}} : {type}", *operands)


def _integers(name: str, symbol: str, a: Operand, b: Operand, least: str = "i32") -> Value:
    graph, a, b = _read(name, a, b)
    type, operands = _unify(graph, least, a, b)
    if type == "f32":
        raise fail(f"{symbol}: expected integers, got a float")
    return graph.make(type, f"arith.{name} {{}}, {{}} : {type}", *operands)


def _is_from_score(value: Value) -> bool:
    """Whether the score is among what `value` is computed from."""
    seen: set[int] = set()
    stack = [value]
    while stack:
        node = stack.pop()
        if node.template == "%score":
            return True
        if id(node) not in seen:
            seen.add(id(node))
            stack += node.operands
    return False


def _divide(a: Operand, b: Operand) -> Value:
    graph, a, b = _read("/", a, b)
    if isinstance(a, Value) and a.type == "f32" and not isinstance(b, Value) and b:
        inverse = 1 / b
        # A product costs one instruction. It differs by rounding, which a score
        # has anyway, while a quotient of indices may be a whole number.
        if 1e-37 < abs(inverse) < 1e37 and _is_from_score(a):
            return _arithmetic("mul", a, float(inverse))
    _, operands = _unify(graph, "f32", a, b)
    return graph.make("f32", "arith.divf {}, {} : f32", *operands)


def _log2(value: Operand) -> int | None:
    """The exponent of an integer constant that is a power of two."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value.bit_length() - 1 if value & (value - 1) == 0 else None
    return None


def _floor_divide(a: Operand, b: Operand) -> Value:
    graph, a, b = _read("//", a, b)
    type, _ = _unify(graph, "i32", a, b)
    if type == "f32":
        return function("floor", _divide(a, b))
    if not isinstance(b, Value) and b == 0:
        raise fail("division by zero")
    exponent = _log2(b)
    if exponent is not None:
        return _integers("shrsi", ">>", a, exponent)
    return _integers("floordivsi", "//", a, b)


def _modulo(a: Operand, b: Operand) -> Value:
    """Python's: the result has the divisor's sign."""
    graph, a, b = _read("%", a, b)
    type, _ = _unify(graph, "i32", a, b)
    if type != "f32" and _log2(b) is not None:
        assert isinstance(b, int)
        return _integers("andi", "&", a, b - 1)
    return _arithmetic("sub", a, _arithmetic("mul", _floor_divide(a, b), b))


def _power(base: Operand, exponent: Operand) -> Value:
    graph, base, exponent = _read("**", base, exponent)
    if isinstance(exponent, Value) or not isinstance(base, Value):
        raise fail("**: expected a constant exponent, got a traced one")
    if exponent == 0.5:
        return function("sqrt", base)
    if int(exponent) != exponent or not abs(exponent) <= 64:
        raise fail(f"**: expected 0.5 or an integer from -64 to 64, got {exponent}")
    least = "f32" if isinstance(exponent, float) or exponent < 0 else "i32"
    type, (square,) = _unify(graph, least, base)
    result = None
    remaining = abs(int(exponent))
    while remaining:
        if remaining & 1:
            result = _arithmetic("mul", result, square) if result is not None else square
        remaining >>= 1
        if remaining:
            square = _arithmetic("mul", square, square)
    if result is None:
        return base.graph.constant(1, type)
    return result if exponent > 0 else _divide(1.0, result)


#: Predicate of floats and of signed integers by Python's operator.
_PREDICATES = {
    "<": ("olt", "slt"),
    "<=": ("ole", "sle"),
    ">": ("ogt", "sgt"),
    ">=": ("oge", "sge"),
    "==": ("oeq", "eq"),
    "!=": ("une", "ne"),
}


def _compare(symbol: str, a: Operand, b: Operand) -> Value:
    graph, a, b = _read(symbol, a, b)
    type, operands = _unify(graph, "i1" if symbol in ("==", "!=") else "i32", a, b)
    of_float, of_integer = _PREDICATES[symbol]
    op = f"arith.cmpf {of_float}" if type == "f32" else f"arith.cmpi {of_integer}"
    return graph.make("i1", f"{op}, {{}}, {{}} : {type}", *operands)


#: Functions of one float by name; those whose value may be a constant's have
#: the one of `math`.
FLOAT_FUNCTIONS: dict[str, tuple[str, Callable[[float], float]]] = {
    "exp": ("math.exp", math.exp),
    "exp2": ("math.exp2", lambda x: 2.0**x),
    "log": ("math.log", math.log),
    "log2": ("math.log2", math.log2),
    "tanh": ("math.tanh", math.tanh),
    "sqrt": ("math.sqrt", math.sqrt),
    "rsqrt": ("math.rsqrt", lambda x: 1 / math.sqrt(x)),
    "floor": ("math.floor", math.floor),
    "ceil": ("math.ceil", math.ceil),
    "trunc": ("math.trunc", math.trunc),
    "round": ("math.roundeven", round),
}


def function(name: str, value: Operand) -> Value:
    """One of the functions of a float."""
    graph, value = _read(name, value)
    _, (operand,) = _unify(graph, "f32", value)
    return graph.make("f32", f"{FLOAT_FUNCTIONS[name][0]} {{}} : f32", operand)


def absolute(value: Operand) -> Value:
    """The absolute value, of the operand's type."""
    graph, value = _read("abs", value)
    type, (operand,) = _unify(graph, "i32", value)
    op = "math.absf" if type == "f32" else "math.absi"
    return graph.make(type, f"{op} {{}} : {type}", operand)


def extreme(name: str, a: Operand, b: Operand) -> Value:
    """The minimum or maximum; of a NaN it is NaN."""
    graph, a, b = _read(f"{name}imum", a, b)
    type, operands = _unify(graph, "i32", a, b)
    op = f"arith.{name}imumf" if type == "f32" else f"arith.{name}si"
    return graph.make(type, f"{op} {{}}, {{}} : {type}", *operands)


def select(condition: Operand, a: Operand, b: Operand) -> Value:
    """`a` where `condition` holds, else `b`."""
    graph, condition, a, b = _read("where", condition, a, b)
    if isinstance(condition, Value) and condition.type != "i1":
        raise fail(f"where: expected a condition of type bool, got {condition.type}")
    type, operands = _unify(graph, "i1", a, b)
    chosen = convert(graph, condition, "i1")
    return graph.make(type, f"arith.select {{}}, {{}}, {{}} : {type}", chosen, *operands)


def logical_not(value: Operand) -> Value:
    """The negation of a bool."""
    graph, value = _read("logical_not", value)
    condition = convert(graph, value, "i1")
    return graph.make("i1", "arith.xori {}, {} : i1", condition, graph.constant(True, "i1"))


def logical(name: str, a: Operand, b: Operand) -> Value:
    """and, or or xor of what the operands are as bools."""
    graph, a, b = _read(f"logical_{name}", a, b)
    operands = [convert(graph, each, "i1") for each in (a, b)]
    return graph.make("i1", f"arith.{name}i {{}}, {{}} : i1", *operands)


def full(
    what: str, like: Value, number: Scalar, size: object, dtype: object, device: object
) -> Value:
    """A constant of the type of `like`, or of `dtype`."""
    if tuple(size if isinstance(size, (tuple, list)) else (size,)) != ():
        raise fail(f"{what}: expected the shape () of a number, got {size}")
    if device is not None and not is_device(device):
        raise fail(f"{what}: expected a device, got {type(device).__name__}")
    type_ = like.type if dtype is None else read_type(what, dtype)
    return like.graph.constant(number, type_)


def _binary(operation: Callable[[Operand, Operand], Value]) -> tuple[Any, Any]:
    """The method of an operator and its reflected one."""

    def forward(self: Value, other: Operand) -> Value:
        return operation(self, other)

    def reflected(self: Value, other: Operand) -> Value:
        return operation(other, self)

    return forward, reflected


def _refuse(what: str, advice: str) -> Any:
    def method(self: Value, *_: object) -> Any:
        raise fail(f"{what} depends on a traced value; {advice}")

    return method


class Value:
    """A number that the kernel computes for each pair of query and key."""

    __slots__ = ("graph", "operands", "template", "type")

    def __init__(self, graph: Graph, type: str, template: str, operands: Sequence[Value]) -> None:
        self.graph = graph
        #: "f32", "i32", "i64" or "i1".
        self.type = type
        self.template = template
        self.operands = tuple(operands)

    def __repr__(self) -> str:
        return f"<traced {self.type}>"

    __hash__ = object.__hash__
    __add__, __radd__ = _binary(lambda a, b: _arithmetic("add", a, b))
    __sub__, __rsub__ = _binary(lambda a, b: _arithmetic("sub", a, b))
    __mul__, __rmul__ = _binary(lambda a, b: _arithmetic("mul", a, b))
    __truediv__, __rtruediv__ = _binary(_divide)
    __floordiv__, __rfloordiv__ = _binary(_floor_divide)
    __mod__, __rmod__ = _binary(_modulo)
    __pow__, __rpow__ = _binary(_power)
    __lshift__, __rlshift__ = _binary(lambda a, b: _integers("shli", "<<", a, b))
    __rshift__, __rrshift__ = _binary(lambda a, b: _integers("shrsi", ">>", a, b))
    __and__, __rand__ = _binary(lambda a, b: _integers("andi", "&", a, b, "i1"))
    __or__, __ror__ = _binary(lambda a, b: _integers("ori", "|", a, b, "i1"))
    __xor__, __rxor__ = _binary(lambda a, b: _integers("xori", "^", a, b, "i1"))
    __lt__, _ = _binary(lambda a, b: _compare("<", a, b))
    __le__, _ = _binary(lambda a, b: _compare("<=", a, b))
    __gt__, _ = _binary(lambda a, b: _compare(">", a, b))
    __ge__, _ = _binary(lambda a, b: _compare(">=", a, b))
    __eq__, _ = _binary(lambda a, b: _compare("==", a, b))
    __ne__, _ = _binary(lambda a, b: _compare("!=", a, b))
    del _

    def __neg__(self) -> Value:
        if self.type == "f32":
            return self.graph.make("f32", "arith.negf {} : f32", self)
        return _arithmetic("sub", 0, self)

    def __pos__(self) -> Value:
        return self

    def __abs__(self) -> Value:
        return absolute(self)

    def __invert__(self) -> Value:
        return logical_not(self) if self.type == "i1" else _integers("xori", "~", self, -1)

    def __round__(self) -> Value:
        return function("round", self)

    __bool__ = _refuse(
        "an if, and, or, not or chained comparison",
        "use where(), &, |, ~ on conditions",
    )
    __index__ = _refuse(
        "an index",
        "index a torch tensor or numpy array that is a variable of the function itself",
    )
    __int__ = _refuse("int()", "use .int()")
    __float__ = _refuse("a call that takes a Python float", "use attn.mods or torch functions")
    __iter__ = _refuse("a loop", "unroll it over Python numbers")
    __len__ = _refuse("len()", "it is a number")

    def float(self) -> Value:
        """As f32."""
        return convert(self.graph, self, "f32")

    def int(self) -> Value:
        """As i32; floats are truncated."""
        return convert(self.graph, self, "i32")

    def long(self) -> Value:
        """As i64; floats are truncated."""
        return convert(self.graph, self, "i64")

    def bool(self) -> Value:
        """Whether it is not 0."""
        return convert(self.graph, self, "i1")

    def to(self, *args: object, **kwargs: object) -> Value:
        """As a type of torch or numpy, or of another value; a device changes nothing."""
        target = read_target("to()", args, kwargs)
        return convert(self.graph, self, target or self.type)

    def type_as(self, other: Value) -> Value:
        """As the type of another value."""
        return self.to(other)

    @property
    def device(self) -> Device:
        """Where the kernel runs."""
        return DEVICE

    @property
    def dtype(self) -> str:
        """numpy's and torch's name of the type."""
        return TYPE_NAMES[self.type]

    @property
    def shape(self) -> tuple[()]:
        """That of a number."""
        return ()

    def new_full(
        self, size: object, fill_value: Scalar, *, dtype: object = None, device: object = None
    ) -> Value:
        """A constant, of the same type without another one."""
        return full("new_full()", self, fill_value, size, dtype, device)

    def new_ones(self, size: object = (), *, dtype: object = None, device: object = None) -> Value:
        """1, of the same type without another one."""
        return full("new_ones()", self, 1, size, dtype, device)

    def new_zeros(self, size: object = (), *, dtype: object = None, device: object = None) -> Value:
        """0, of the same type without another one."""
        return full("new_zeros()", self, 0, size, dtype, device)

    def __getattr__(self, name: str) -> Any:
        if name in _functions.methods:
            return lambda *args, **kwargs: _functions.call(name, (self, *args), kwargs)
        if name.startswith("__"):
            raise AttributeError(name)
        raise fail(f"a traced value has no method {name!r}")

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _functions.call(function.__name__, args, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _functions.call(function.__name__, args, kwargs)

    def __array_ufunc__(self, function: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        name = function.__name__ if method == "__call__" else f"{function.__name__}.{method}"
        return _functions.call(name, args, kwargs)
