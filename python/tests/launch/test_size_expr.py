"""Expressions of launch records: the package's reader beside the compiler's."""

import ctypes
import json
import pathlib
import random

import attn
import pytest
from attn.compiler import c_library
from attn.record import SizeExpr

#: Cases that the compiler's own test has too (SizeExprTest.cpp).
CASES = json.loads(
    (pathlib.Path(__file__).resolve().parents[3] / "test/Target/Inputs/size-expressions.json")
    .read_text(encoding="utf-8")
)  # fmt: skip
SYMBOLS = CASES["symbols"]
ATOMS = [
    *SYMBOLS,
    "v.dim0",
    "q.dim7",
    "0",
    "1",
    "2",
    "-3",
    "128",
    "007",
    str(2**62),
    str(2**63 - 1),
]
#: What a generated text is broken with.
DEBRIS = [
    "",
    " ",
    "(",
    ")",
    ",",
    "-",
    "+",
    "/",
    ".",
    "q",
    "q.",
    "dim",
    "min(",
    "pow(",
    "#",
    "9" * 25,
]


def lookup(tensor, is_stride, index):
    name = f"{tensor}.{'stride' if is_stride else 'dim'}{index}" if tensor else "sms"
    return SYMBOLS.get(name)


def evaluate(text):
    """The value, or the message."""
    try:
        return SizeExpr(text).evaluate(lookup)
    except attn.RecordError as error:
        return str(error)


def evaluate_in_compiler(text):
    library = c_library.load()
    held = [c_library.ref(name) for name in SYMBOLS]
    names = (c_library.StringRef * len(SYMBOLS))(*held)
    values = (ctypes.c_int64 * len(SYMBOLS))(*SYMBOLS.values())
    value, error = ctypes.c_int64(), c_library.StringRef()
    is_good = library.attnEvaluateSize(
        c_library.ref(text), names, values, len(SYMBOLS), ctypes.byref(value), ctypes.byref(error)
    )
    return value.value if is_good else error.text()


def generate(random_, depth):
    """A text of the grammar, with blanks anywhere."""
    if depth == 0 or random_.random() < 0.2:
        return random_.choice(ATOMS)
    parts = [generate(random_, depth - 1) for _ in range(2)]
    form = random_.choice(["+", "-", "*", "/", "%", "ceildiv", "min", "max", "()", "neg"])
    blank = random_.choice(["", " ", "  ", "\t"])
    if form == "()":
        return f"({blank}{parts[0]})"
    if form == "neg":
        return f"-{blank}{parts[0]}"
    if form.isalpha():
        return f"{form}{blank}({parts[0]},{blank}{parts[1]})"
    return f"{parts[0]}{blank}{form}{blank}{parts[1]}"


def break_text(random_, text):
    """The text with a piece replaced."""
    start = random_.randrange(len(text) + 1)
    return text[:start] + random_.choice(DEBRIS) + text[start + random_.randrange(3) :]


@pytest.mark.parametrize("text, value", CASES["values"])
def test_values(text, value):
    assert evaluate(text) == evaluate_in_compiler(text) == value


@pytest.mark.parametrize("text, message", CASES["errors"])
def test_errors(text, message):
    assert evaluate(text) == evaluate_in_compiler(text)
    assert message in evaluate(text)


@pytest.mark.parametrize(
    "text, message",
    [
        ("1 +", "at column 4: expected an integer, a size, a function or '\\(', got the end"),
        ("1 2", 'at column 3: expected an operator or the end, got "2"'),
        ("min(1)", "at column 6: expected ',', got"),
        ("(1", r"expected '\)', got the end"),
        ("q", "at column 2: expected '.' or '\\(' after \"q\", got the end"),
        ("q.size2", "expected 'dim' or 'stride' and a number"),
        ("q.dim9 + 1", 'no value for "q.dim9" in "q.dim9'),
        ("sms", 'no value for "sms" in "sms"'),
        ("pow(1, 2)", "at column 1: expected 'ceildiv', 'min' or 'max', got \"pow"),
        ("9" * 5000, "expected an integer below 2"),
        ("(" * 80 + "1" + ")" * 80, "at column 65: expected at most 64 nested expressions"),
        ("(-9223372036854775807 - 1) % -1", "overflow of a 64-bit integer"),
        ("-(-9223372036854775807 - 1)", "overflow of a 64-bit integer"),
    ],
)
def test_messages(text, message):
    with pytest.raises(attn.RecordError, match=message):
        SizeExpr(text).evaluate(lookup)
    assert evaluate(text) == evaluate_in_compiler(text)


def test_generated():
    """Good and bad ones have the same values and the same messages."""
    random_ = random.Random(7)
    found = {"value": 0, "error": 0, "overflow": 0, "zero": 0}
    for _ in range(4000):
        text = generate(random_, random_.randrange(5))
        if random_.random() < 0.5:
            text = break_text(random_, text)
        result = evaluate(text)
        assert result == evaluate_in_compiler(text), text
        kind = "value" if isinstance(result, int) else "error"
        kind = "overflow" if kind == "error" and "overflow" in result else kind
        found["zero" if kind == "error" and "division by zero" in result else kind] += 1
    assert min(found.values()) > 40, found
