"""Functions for a score_mod or mask_mod.

    import attn.mods as am

    def cap(score, b, h, q_idx, kv_idx):
        return 30 * am.tanh(score / 30)

They take traced values and Python numbers. The functions of torch, numpy and
`math` with these names work on traced values too.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .tracing import trace_errors, traced_values
from .tracing.traced_values import Operand, Value

__all__ = [
    "abs",
    "ceil",
    "clip",
    "exp",
    "exp2",
    "floor",
    "log",
    "log2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "round",
    "rsqrt",
    "sigmoid",
    "sqrt",
    "tanh",
    "trunc",
    "where",
]


def _apply(name: str, x: Operand) -> Any:
    x = traced_values.to_scalar(x)
    if isinstance(x, Value) or not traced_values.is_scalar(x):
        return traced_values.function(name, x)
    return traced_values.FLOAT_FUNCTIONS[name][1](x)


def exp(x: Operand) -> Any:
    """e to the power of x."""
    return _apply("exp", x)


def exp2(x: Operand) -> Any:
    """2 to the power of x."""
    return _apply("exp2", x)


def log(x: Operand) -> Any:
    """The natural logarithm."""
    return _apply("log", x)


def log2(x: Operand) -> Any:
    """The logarithm to base 2."""
    return _apply("log2", x)


def tanh(x: Operand) -> Any:
    """The hyperbolic tangent."""
    return _apply("tanh", x)


def sqrt(x: Operand) -> Any:
    """The square root."""
    return _apply("sqrt", x)


def rsqrt(x: Operand) -> Any:
    """1 / sqrt(x)."""
    return _apply("rsqrt", x)


def floor(x: Operand) -> Any:
    """The next integer downwards, as f32."""
    return _apply("floor", x)


def ceil(x: Operand) -> Any:
    """The next integer upwards, as f32."""
    return _apply("ceil", x)


def trunc(x: Operand) -> Any:
    """The next integer towards 0, as f32."""
    return _apply("trunc", x)


def round(x: Operand) -> Any:
    """The nearest integer, halves to even, as f32."""
    return _apply("round", x)


def sigmoid(x: Operand) -> Any:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + exp(-x))


def abs(x: Operand) -> Any:
    """The absolute value."""
    return traced_values.absolute(x) if isinstance(x, Value) else math.fabs(x)


def _is_traced(*operands: object) -> bool:
    return any(isinstance(each, Value) for each in operands)


def minimum(a: Operand, b: Operand) -> Any:
    """The lesser one; NaN if one is NaN."""
    return traced_values.extreme("min", a, b) if _is_traced(a, b) else min(a, b)


def maximum(a: Operand, b: Operand) -> Any:
    """The greater one; NaN if one is NaN."""
    return traced_values.extreme("max", a, b) if _is_traced(a, b) else max(a, b)


def clip(x: Operand, low: Operand | None = None, high: Operand | None = None) -> Any:
    """x, but at least `low` and at most `high`."""
    if low is not None:
        x = maximum(x, low)
    return x if high is None else minimum(x, high)


def where(condition: Operand, a: Operand, b: Operand) -> Any:
    """`a` where `condition` holds, else `b`."""
    condition = traced_values.to_scalar(condition)
    if isinstance(condition, bool) or not _is_traced(condition, a, b):
        return a if condition else b
    return traced_values.select(condition, a, b)


def logical_not(x: Operand) -> Any:
    """Whether x is 0."""
    return traced_values.logical_not(x) if isinstance(x, Value) else not x


def logical_and(a: Operand, b: Operand) -> Any:
    """Whether neither is 0."""
    return traced_values.logical("and", a, b) if _is_traced(a, b) else bool(a and b)


def logical_or(a: Operand, b: Operand) -> Any:
    """Whether one of them is not 0."""
    return traced_values.logical("or", a, b) if _is_traced(a, b) else bool(a or b)


def logical_xor(a: Operand, b: Operand) -> Any:
    """Whether exactly one of them is 0."""
    return traced_values.logical("xor", a, b) if _is_traced(a, b) else bool(a) != bool(b)


def _clamp(x: Operand, min: Operand | None = None, max: Operand | None = None) -> Any:
    """torch's names of clip's parameters."""
    return clip(x, min, max)


def _full_like(x: Value, fill_value: Any, *, dtype: object = None, device: object = None) -> Any:
    """A constant of the type of x, or of another one."""
    return traced_values.full("full_like", x, fill_value, (), dtype, device)


def _ones_like(x: Value, *, dtype: object = None, device: object = None) -> Any:
    """1 of the type of x, or of another one."""
    return traced_values.full("ones_like", x, 1, (), dtype, device)


def _zeros_like(x: Value, *, dtype: object = None, device: object = None) -> Any:
    """0 of the type of x, or of another one."""
    return traced_values.full("zeros_like", x, 0, (), dtype, device)


#: Functions of torch and numpy by their names there, where these differ.
_FOREIGN: dict[str, Callable[..., Any]] = {
    "absolute": abs,
    "clamp": _clamp,
    "rint": round,
    "full_like": _full_like,
    "ones_like": _ones_like,
    "zeros_like": _zeros_like,
    "add": operator.add,
    "sub": operator.sub,
    "subtract": operator.sub,
    "mul": operator.mul,
    "multiply": operator.mul,
    "div": operator.truediv,
    "divide": operator.truediv,
    "true_divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "power": operator.pow,
    "square": lambda x: x * x,
    "neg": operator.neg,
    "negative": operator.neg,
    "eq": operator.eq,
    "equal": operator.eq,
    "ne": operator.ne,
    "not_equal": operator.ne,
    "lt": operator.lt,
    "less": operator.lt,
    "le": operator.le,
    "less_equal": operator.le,
    "gt": operator.gt,
    "greater": operator.gt,
    "ge": operator.ge,
    "greater_equal": operator.ge,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_not": operator.invert,
    "invert": operator.invert,
    "bitwise_left_shift": operator.lshift,
    "left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift,
    "right_shift": operator.rshift,
    "floordiv": operator.floordiv,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
    "mod": operator.mod,
    "truediv": operator.truediv,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
#: What traced values have as methods.
METHODS = frozenset(__all__) | frozenset(_FOREIGN)


def _to_operand(name: str, value: Any) -> Any:
    """A number of numpy or torch as Python's; nothing is done to whole tensors."""
    value = traced_values.to_scalar(value)
    if isinstance(value, Value) or hasattr(value, "load"):
        return value
    if isinstance(getattr(value, "shape", None), tuple):
        raise trace_errors.fail(
            f"{name}: expected a number, got {type(value).__name__} of shape {list(value.shape)}"
        )
    return value


def call(name: str, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> Any:
    """What a function of torch, numpy or math does to traced values."""
    # Methods come as __add__, reflected ones, whose operands are the other way round, as __radd__.
    plain = name.strip("_")
    if name.startswith("__r") and plain not in _FOREIGN and plain[1:] in _FOREIGN:
        plain, args = plain[1:], tuple(reversed(args))
    target = _FOREIGN.get(plain) or (globals()[plain] if plain in __all__ else None)
    if target is None:
        raise trace_errors.fail(
            f"the function {name} cannot be traced; known are {', '.join(sorted(__all__))}"
        )
    try:
        operands = [_to_operand(name, each) for each in args]
        options = {key: _to_operand(name, each) for key, each in (kwargs or {}).items()}
        return target(*operands, **options)
    except TypeError as error:
        raise trace_errors.fail(f"{name}: {error}") from None


traced_values.set_functions(METHODS, call)
