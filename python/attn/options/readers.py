"""What stands in a call, as the compiler takes it: numbers, shapes, types and
names instead of flags."""

from __future__ import annotations

import math
import numbers
import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..errors import ArgumentError, ArgumentTypeError
from .problem_table import CALL_NAMES, KINDS, POSITIVE, SWITCHES

#: The compiler's element types by the names that numpy, torch and JAX have.
_DTYPES = {
    "float16": "f16",
    "half": "f16",
    "f16": "f16",
    "bfloat16": "bf16",
    "bf16": "bf16",
    "float32": "f32",
    "float": "f32",
    "f32": "f32",
    "float8_e4m3fn": "f8E4M3FN",
    "f8E4M3FN": "f8E4M3FN",
    "float8_e5m2": "f8E5M2",
    "f8E5M2": "f8E5M2",
    "float8_e8m0fnu": "f8E8M0FNU",
    "f8E8M0FNU": "f8E8M0FNU",
}


def to_python(value: Any) -> Any:
    """Scalars of numpy and torch, and arrays of rank 0, as Python's own."""
    # First, since numbers of torch.compile have no attributes that it can look for.
    if isinstance(value, (int, float)) and not hasattr(type(value), "item"):
        return value
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return value.item()
    return value


#: Keys of a run are a multiple of it.
_RUN_UNIT = 16
#: Characters of a value that a message shows.
_SHOWN = 60


def show(value: Any) -> str:
    """What a message says of a value that an argument cannot have: of an array its shape."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} of shape {list(shape)}"
    text = " ".join(repr(value).split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def to_bool(what: str, value: Any) -> bool:
    """A bool of Python or numpy, or the integers 0 and 1."""
    plain = to_python(value)
    # Not `in`, which torch does not trace of symbols.
    if isinstance(plain, int) and (plain == 0 or plain == 1):
        return bool(plain)
    raise ArgumentTypeError(f"{what}: expected True or False, got {show(value)}")


def to_integer(what: str, value: Any, low: int, high: int) -> int:
    """An integer from `low` to `high`; of a bool 0 or 1."""
    try:
        result = operator.index(to_python(value))
    except TypeError:
        raise ArgumentTypeError(f"{what}: expected an integer, got {show(value)}") from None
    if not low <= result <= high:
        raise ArgumentError(f"{what}: expected an integer from {low} to {high}, got {result}")
    return result


def to_float(what: str, value: Any) -> float:
    """A finite number."""
    plain = to_python(value)
    if not isinstance(plain, numbers.Real):
        raise ArgumentTypeError(f"{what}: expected a number, got {show(value)}")
    try:
        result = float(plain)
    except OverflowError:
        result = math.inf
    # Not math.isfinite, which torch does not trace.
    if not -math.inf < result < math.inf:
        raise ArgumentError(f"{what}: expected a finite number, got {show(value)}")
    return result


def to_factor(what: str, value: Any) -> float:
    """A finite number that is not 0, or is above it where the factor has to be."""
    number = to_float(what, value)
    if number == 0 or (number < 0 and what in POSITIVE):
        wanted = "above 0" if what in POSITIVE else "other than 0"
        raise ArgumentError(f"{what}: expected a number {wanted}, got {show(value)}")
    return number


def to_cap(what: str, value: Any) -> float | None:
    """A cap of scores above 0; of 0, as of None, there is none."""
    if value is None:
        return None
    cap = to_float(what, value)
    if cap < 0:
        raise ArgumentError(
            f"{what}: expected a number of at least 0, where 0 is no cap, got {show(value)}"
        )
    return cap or None


def to_splits(what: str, value: Any) -> int | None:
    """Into how many runs keys are cut; 0, as None, leaves it to the planner."""
    return None if value is None else to_integer(what, value, 0, 65535) or None


def to_run_keys(what: str, value: Any) -> int | None:
    """Keys of a run, which blocks of kernels divide."""
    if value is None:
        return None
    keys = to_integer(what, value, 1, 2**31 - 1)
    if keys % _RUN_UNIT:
        raise ArgumentError(f"{what}: expected a multiple of {_RUN_UNIT} keys, got {keys}")
    return keys


def to_bounds(window: Any) -> tuple[int, int]:
    """Keys to the left and right of a query's own, -1 for unbounded."""
    bounds = to_list("window", window)
    if len(bounds) != 2:
        raise ArgumentError(f"window: expected (left, right), got {show(window)}")
    left, right = (
        -1 if each is None else to_integer("window", each, -1, 2**31 - 1) for each in bounds
    )
    return left, right


def to_pool_order(layout: Any) -> str:
    """The order of a pool: pages, then keys and heads, or heads and keys."""
    text = to_text("layout", layout).lower()
    if text not in ("nhd", "hnd"):
        raise ArgumentError(f'layout: expected "nhd" or "hnd", got {show(layout)}')
    return text


def to_partials(partials: Any) -> str:
    """The element type of the results of runs, which the launch merges."""
    if to_text("partials", partials) not in ("auto", "f32", "f16", "bf16"):
        raise ArgumentError(f"partials: expected auto, f32, f16 or bf16, got {show(partials)}")
    return str(partials)


def settle_mask(causal: str | None, window: str | None) -> tuple[str | None, str | None]:
    """A causal mask and a window, as texts or None, as at most one of them: with both a query
    sees what both let it see, and a window without bounds hides nothing. Texts that are no
    windows are the compiler's to refuse."""
    found = None if window is None else re.fullmatch(r"(-?\d+),(-?\d+)(?:,(.*))?", window)
    if found is None:
        return causal, window
    left, right, align = int(found[1]), int(found[2]), found[3]
    if causal is not None:
        own = causal or "top-left"
        if align is not None and align != own:
            raise ArgumentError(
                f'causal: expected the alignment of the window, "{align}", got "{own}"'
            )
        align, right = own, 0
        if left < 0:
            return causal, None
    elif left < 0 and right < 0:
        return None, None
    # The default has no name, so that all who mean it find one kernel.
    named = "" if align in (None, "top-left") else f",{align}"
    return None, f"{left},{right}{named}"


def to_path(what: str, value: Any) -> str:
    """A path as text."""
    if isinstance(value, bytes) or not isinstance(value, (str, os.PathLike)):
        raise ArgumentTypeError(f"{what}: expected a path, got {type(value).__name__}")
    return os.fspath(value)


def to_text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{what}: expected a string, got {show(value)}")
    return value


def to_items(what: str, value: Any) -> list[tuple[Any, Any]]:
    """The items of a dictionary or the like; of None there are none."""
    if value is None:
        return []
    if not isinstance(value, Mapping):
        raise ArgumentTypeError(f"{what}: expected a dictionary, got {show(value)}")
    return list(value.items())


def to_list(what: str, value: Any) -> list[Any]:
    """The elements of a list, a tuple or an array of rank 1."""
    if not isinstance(value, (str, bytes, Mapping, type)) and isinstance(value, Iterable):
        try:
            return list(value)
        except TypeError:
            # An array of rank 0 is no sequence, though its type has an iterator.
            pass
    raise ArgumentTypeError(f"{what}: expected a sequence, got {show(value)}")


def get_dtype(_: str, dtype: Any) -> str:
    """The compiler's name of an element type, given by any library's name, as
    torch's dtype, or as numpy's dtype or class; others as they are."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None)
    if name is None:
        # torch's types have no name.
        is_array = hasattr(dtype, "shape")
        name = dtype.__name__ if isinstance(dtype, type) else show(dtype) if is_array else str(dtype)
    # The compiler says what it takes.
    name = name.removeprefix("torch.")
    return _DTYPES.get(name, name)


def _format_integer(what: str, value: Any) -> str:
    return str(to_integer(what, value, 0, 2**31 - 1))


def _format_float(what: str, value: Any) -> str:
    return repr(to_float(what, value))


def _format_bool(what: str, value: Any) -> str:
    return "true" if to_bool(what, value) else "false"


def _format_shape(what: str, value: Any) -> str:
    extents = to_list(what, value)
    if len(extents) != 4:
        raise ArgumentError(
            f"{what}: expected (batch, heads, queries, head dimension), got {tuple(extents)}"
        )
    names = ("batch", "heads", "queries", "head dimension")
    parts = zip(names, extents, strict=True)
    return "x".join(_format_integer(f"{what}: {name}", extent) for name, extent in parts)


def _format_window(what: str, value: Any) -> str:
    bounds = to_list(what, value)
    align = bounds.pop() if len(bounds) == 3 else None
    if len(bounds) != 2:
        raise ArgumentError(f"{what}: expected (left, right), got {show(value)}")
    texts = [
        "-1" if each is None else str(to_integer(what, each, -1, 2**31 - 1)) for each in bounds
    ]
    return ",".join([*texts, *([to_text(what, align)] if align is not None else [])])


def _format_lengths(what: str, value: Any) -> str:
    """The lengths of packed sequences: of queries and keys alike, or of each."""
    if isinstance(value, Mapping):
        unknown = [each for each in value if each not in ("q", "k")]
        if unknown or "q" not in value:
            raise ArgumentError(
                f"{what}: expected the keys q and k, got {', '.join(map(repr, value))}"
            )
        sides = [value["q"], *([value["k"]] if "k" in value else [])]
    else:
        sides = to_list(what, value)
        if not sides or not all(isinstance(each, Iterable) for each in sides):
            sides = [sides]
    if len(sides) > 2:
        raise ArgumentError(
            f"{what}: expected lengths, or a pair of lengths of queries and of keys, got "
            f"{len(sides)} sequences"
        )
    texts = []
    for name, lengths in zip("qk", sides, strict=False):
        found = [_format_integer(f"{what}: {name}", each) for each in to_list(what, lengths)]
        if not found:
            raise ArgumentError(f"{what}: expected at least one length of {name}, got none")
        texts.append(f"{name}:{','.join(found)}")
    return "/".join(texts)


def to_numbers(what: str, value: Any) -> tuple[int, ...]:
    """Numbers from 0 to 2^31 - 1, of which there is one at least."""
    found = tuple(to_integer(what, each, 0, 2**31 - 1) for each in to_list(what, value))
    if not found:
        raise ArgumentError(f"{what}: expected at least one number, got none")
    return found


def _format_numbers(what: str, value: Any) -> str:
    """Numbers that an i32 holds, one for each sequence."""
    found = [str(to_integer(what, each, -(2**31), 2**31 - 1)) for each in to_list(what, value)]
    if not found:
        raise ArgumentError(f"{what}: expected at least one number, got none")
    return ",".join(found)


def _format_align(what: str, value: Any) -> str | None:
    # True is "top-left": the flag without a value.
    return "" if to_bool(what, value) else None


def _format_count(what: str, value: Any) -> str:
    return str(to_integer(what, value, 1, 2**31 - 1))


def _format_natural(what: str, value: Any) -> str:
    return str(to_integer(what, value, 0, 2**31 - 1))


#: How the options of a kind are written, where they are no text.
_FORMATS: dict[str, Callable[[str, Any], str | None]] = {
    "shape": _format_shape,
    "size": _format_integer,
    "count": _format_count,
    "natural": _format_natural,
    "align": _format_align,
    "window": _format_window,
    "factor": _format_float,
    "type": get_dtype,
    "order": to_text,
    "lengths": _format_lengths,
    "numbers": _format_numbers,
    "switch": _format_bool,
}


_DEFAULTS = {name: "true" if is_on else "false" for name, is_on in SWITCHES.items()}


def format_flags(flags: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The options of a problem as names and texts; None is the compiler's
    default. `dtype` belongs to a q that is a shape."""
    options = []
    for name, value in flags.items():
        if value is None or name == "dtype":
            continue
        kind = KINDS.get(name)
        if kind is None:
            known = ", ".join((*KINDS, "dtype"))
            raise ArgumentTypeError(f"compile() has no option {name!r}; a problem has {known}")
        if isinstance(value, str) and kind != "type":
            text: str | None = value
        else:
            text = _FORMATS[kind](name, value)
        if kind == "shape":
            text = _add_dtype(value, str(text), flags.get("dtype"))
        # Defaults are left out, so that a problem has one key in the cache.
        if text is not None and text != _DEFAULTS.get(name):
            options.append((name.replace("_", "-"), text))
    if flags.get("dtype") is not None and flags.get("q") is None:
        raise ArgumentTypeError(
            "dtype: expected q=(batch, heads, queries, head dimension) beside it"
        )
    return _settle(options)


def _settle(options: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The options with one mask at most."""
    masks: dict[str, str | None] = {n: text for n, text in options if n in ("causal", "window")}
    if "window" not in masks:
        return tuple(options)
    masks["causal"], masks["window"] = settle_mask(masks.get("causal"), masks["window"])
    settled = [(name, masks.get(name, text)) for name, text in options]
    return tuple((name, text) for name, text in settled if text is not None)


def name_call_options(values: Sequence[Any]) -> dict[str, Any]:
    """The options of a call on tensors as format_flags takes them."""
    flags = {}
    for name, value in zip(CALL_NAMES, values, strict=True):
        # The default has no name, so that all who mean it find one kernel.
        is_default = KINDS[name] == "align" and value == "top-left"
        flags[name] = True if is_default else None if value == "" else value
    return flags


def _add_dtype(q: Any, text: str, dtype: Any) -> str:
    """The shape of q with its element type."""
    if isinstance(q, str):
        if dtype is not None:
            raise ArgumentTypeError(
                "dtype: expected none, since q as text has its type, such as 1x8x256x64xf16"
            )
        return text
    if dtype is None:
        raise ArgumentTypeError(
            'q: expected dtype="float16" or another type beside the shape, got none'
        )
    return f"{text}x{get_dtype('dtype', dtype)}"


def format_plan(plan: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Parameters of a plan, as the option `set` takes them."""
    options = []
    for name, value in to_items("plan", plan):
        plain = to_python(value)
        if isinstance(plain, bool):
            plain = "true" if plain else "false"
        elif not isinstance(plain, (str, int, float)):
            raise ArgumentTypeError(
                f"plan: {name}: expected a number, a bool or a string, got {show(value)}"
            )
        options.append(("set", f"{to_text('plan', name)}={plain}"))
    return options


_NAMES = (
    *KINDS,
    "chip",
    "schedule",
    "epilogue",
    "plan_table",
    "shipped_plans",
    "read_masks",
    "board",
    "assemble_check",
    "split_keys",
    "partials",
    "debug_lines",
)
_FLAGS = re.compile(
    r'(?:--|option ")(no-lse|set|emit|'
    + "|".join(name.replace("_", "-") for name in _NAMES)
    + r')(?![\w-])"?'
)


def name_arguments(message: str) -> str:
    """A message of the compiler with the names of arguments in the place of
    flags and options."""
    others = {"no-lse": "lse=False", "set": "plan", "emit": "rung"}
    return _FLAGS.sub(lambda found: others.get(found[1], found[1].replace("-", "_")), message)
