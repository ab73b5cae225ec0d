"""Numbers of numpy and torch in a score_mod or mask_mod: what they make is what Python's make."""

import functools
import sys

import attn
import numpy as np
import pytest
from attn import mods as am

OPERATORS = (
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "<<",
    ">>",
    "&",
    "|",
    "^",
    "<",
    "<=",
    ">",
    ">=",
    "==",
    "!=",
)
#: An operand in the place of C, beside a traced one in the place of X.
FORMS = (
    *(f"X {sign} C" for sign in OPERATORS),
    *(f"C {sign} X" for sign in OPERATORS),
    *("min(X, C)", "np.minimum(X, C)", "np.maximum(C, X)", "np.where(X > 0, C, X)", "np.add(X, C)"),
    *("am.where(X > 0, X, C)", "am.where(C, X, 0)", "am.clip(X, C, C)", "am.logical_xor(X, C)"),
    *("X + am.exp(C)", "X + am.where(C, 1, 2)", "abs(X - C)", "am.maximum(C, X)"),
)


@functools.cache
def trace_form(form, operand):
    """The text of a function, or what tracing it raises."""
    text = f"lambda score, b, h, q_idx, kv_idx: am.where(({form}) == 3, score, -score)"
    text = text.replace("C", f"({operand})")
    names = {"np": np, "am": am, "torch": sys.modules.get("torch")}
    try:
        return [attn.score_mod(eval(text.replace("X", x), names)).text for x in ("score", "q_idx")]
    except attn.TraceError:
        return attn.TraceError


def check_numbers(spelled):
    for operand, plain in spelled.items():
        for form in FORMS:
            assert trace_form(form, operand) == trace_form(form, plain), (form, operand)


def test_numbers_of_numpy():
    """They are Python's, on both sides of all operators and in all functions."""
    floats = ("np.float32(2)", "np.float16(2)", "np.array(2.0)")
    whole = ("np.int64(2)", "np.uint8(2)", "np.array(2)")
    check_numbers(
        dict.fromkeys(floats, "2.0")
        | dict.fromkeys(whole, "2")
        | dict.fromkeys(("np.bool_(True)",), "True")
    )
    assert trace_form("X + C", "2.0") is not attn.TraceError


def test_numbers_of_torch():
    pytest.importorskip("torch")
    check_numbers(
        dict.fromkeys(("torch.tensor(2.0)", "torch.ones(2)[0] * 2"), "2.0")
        | {"torch.tensor(2)": "2", "torch.tensor(True)": "True"}
    )


@pytest.mark.parametrize("operand", ["np.ones(2)", "np.ones(1)", "None", "'2'", "np.complex64(1)"])
def test_operands_that_are_no_numbers(operand):
    for form in (f"X {sign} C" for sign in OPERATORS):
        assert trace_form(form, operand) is attn.TraceError, form
    with pytest.raises(attn.TraceError, match="expected a number, got"):
        attn.score_mod(eval(f"lambda score, b, h, q_idx, kv_idx: score + {operand}", {"np": np}))
