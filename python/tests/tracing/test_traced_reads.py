"""What a traced function reads: tensors, builtins."""

import builtins
import functools
import math

import attn
import numpy as np
import pytest
from attn.tracing import captured_reads, mod_regions
from attn import mods as am

SLOPE = 0.25
TABLE = np.arange(8, dtype=np.float32)


def test_contents_of_tensors():
    """They are the kernel's to read: a change is no other trace, and is seen."""
    table = np.ones(2, np.float32)

    def function(score, b, h, q_idx, kv_idx):
        return score + table[h] * (kv_idx - q_idx)

    first = attn.score_mod(function)
    table[:] = 3
    second = attn.score_mod(function)
    assert first.text == second.text and second.tensors[0] is table


def scaled(score, weight=TABLE):
    return score * weight[0]


@pytest.mark.parametrize(
    "function",
    [
        lambda score, b, h, q_idx, kv_idx: score + TABLE[h] * SLOPE,
        lambda score, b, h, q_idx, kv_idx: am.where(kv_idx > q_idx, -math.inf, math.tanh(score)),
        lambda score, b, h, q_idx, kv_idx: np.tanh(np.float32(0.5) * score) + np.pi,
        lambda score, b, h, q_idx, kv_idx: max(score, min(q_idx, 3), len(TABLE)) + abs(h),
        lambda score, b, h, q_idx, kv_idx: scaled(score) + score.float() * sum(range(3)),
        functools.partial(lambda slope, score, b, h, q_idx, kv_idx: score + slope * h, 0.5),
    ],
)
def test_usual_functions_are_traced_once(function, monkeypatch):
    first = attn.score_mod(function)
    assert captured_reads.guard(function).fingerprint is not None
    monkeypatch.setattr(mod_regions, "_trace_function", None)
    again = attn.score_mod(function)
    assert again.text == first.text and captured_reads.is_same(again.tensors, first.tensors)


def test_attribute_of_a_function_is_a_tensor():
    def function(score, b, h, q_idx, kv_idx):
        return score + function.table[h]

    function.table = TABLE
    assert attn.score_mod(function).tensors[0] is TABLE


def test_tensor_in_builtins(monkeypatch):
    monkeypatch.setattr(builtins, "table_of_a_test", TABLE, raising=False)
    function = lambda score, b, h, q_idx, kv_idx: score + table_of_a_test[h]  # noqa: E731, F821
    assert attn.score_mod(function).tensors[0] is TABLE


def test_replaced_builtin_is_not_the_shim(monkeypatch):
    function = lambda score, b, h, q_idx, kv_idx: max(score, h)  # noqa: E731
    with monkeypatch.context() as context:
        context.setattr(builtins, "max", lambda a, b: a)
        text = attn.score_mod(function).text
    assert "maximum" not in text and "attn.yield" in text


def test_empty_cell_is_an_error():
    def make():
        def function(score, b, h, q_idx, kv_idx):
            return score + later

        if SLOPE is None:
            later = 1.0
        return function

    with pytest.raises(attn.TraceError, match="NameError"):
        attn.score_mod(make())


def test_endless_nesting_is_an_error():
    table = []
    for _ in range(100000):
        table = [table]
    function = lambda score, b, h, q_idx, kv_idx: score if table else h  # noqa: E731
    with pytest.raises(attn.TraceError, match="RecursionError"):
        attn.score_mod(function)
    while table:
        table = table.pop()
