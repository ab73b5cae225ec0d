"""A changed score_mod is traced anew, whatever it reads the change through."""

import builtins
import contextvars
import functools
import itertools
import math
import operator
import os
import random
import sys
import time
import types

import attn
import numpy as np
import pytest
from attn.tracing import captured_reads, mod_regions
from attn import mods as am

SLOPE = 0.25
CASES = []


def case(make):
    """Registers a function that gives a score_mod, and what changes it."""
    CASES.append(make)
    return make


def distance(factor):
    """A score_mod with what a function gives as slope."""
    return lambda score, b, h, q_idx, kv_idx: score + factor() * (kv_idx - q_idx)


@case
def class_attribute():
    class Config:
        slope = 0.0

    return distance(lambda: Config.slope), lambda: setattr(Config, "slope", 5.0)


@case
def inherited_attribute():
    class Base:
        slope = 0.0

    class Config(Base):
        pass

    return distance(lambda: Config.slope), lambda: setattr(Base, "slope", 5.0)


@case
def class_property():
    class Config:
        value = 0.0
        slope = property(lambda self: type(self).value)

    config = Config()
    return distance(lambda: config.slope), lambda: setattr(Config, "value", 5.0)


@case
def made_attribute():
    values = {"slope": 0.0}

    class Config:
        def __getattr__(self, name):
            return values[name]

    config = Config()
    return distance(lambda: config.slope), lambda: values.update(slope=5.0)


@case
def attribute_of_a_metaclass():
    class Meta(type):
        slope = 0.0

    class Config(metaclass=Meta):
        pass

    return distance(lambda: Config.slope), lambda: setattr(Meta, "slope", 5.0)


@case
def constructor():
    class Slope(float):
        def __new__(cls):
            return float.__new__(cls, cls.value)

        value = 0.0

    return distance(Slope), lambda: setattr(Slope, "value", 5.0)


@case
def method_and_static_method():
    class Config:
        slope = 0.0

        @classmethod
        def get(cls):
            return cls.slope

        @staticmethod
        def score_mod(score, b, h, q_idx, kv_idx):
            return score + Config.get() * h

    return Config.score_mod, lambda: setattr(Config, "slope", 5.0)


@case
def bound_item_of_a_list():
    table = [0.0]
    get = table.__getitem__
    return distance(lambda: get(0)), lambda: operator.setitem(table, 0, 5.0)


@case
def bound_get_of_a_dictionary():
    table = {0: 0.0}
    get = table.get
    return distance(lambda: get(0)), lambda: table.update({0: 5.0})


@case
def partial_of_a_bound_builtin():
    table = {0: 0.0}
    return distance(functools.partial(table.get, 0)), lambda: table.update({0: 5.0})


@case
def module_attribute():
    np.slope_of_a_test = 0.0
    return distance(lambda: np.slope_of_a_test), lambda: setattr(np, "slope_of_a_test", 5.0)


@case
def attribute_of_a_module_in_a_module():
    np.linalg.slope_of_a_test = 0.0
    change = functools.partial(setattr, np.linalg, "slope_of_a_test", 5.0)
    return distance(lambda: np.linalg.slope_of_a_test), change


@case
def attribute_of_the_package():
    am.slope_of_a_test = 0.0
    return distance(lambda: am.slope_of_a_test), lambda: setattr(am, "slope_of_a_test", 5.0)


@case
def attribute_of_a_module_that_another_function_reads():
    math.slope_of_a_test = 0.0

    def read(module):
        return module.slope_of_a_test

    return distance(lambda: read(math)), lambda: setattr(math, "slope_of_a_test", 5.0)


@case
def attribute_of_an_own_module():
    module = types.ModuleType("numpy")
    module.slope = 0.0
    return distance(lambda: module.slope), lambda: setattr(module, "slope", 5.0)


@case
def attribute_that_a_module_makes():
    values = [0.0]
    module = types.ModuleType("numpy")
    module.__getattr__ = lambda name: values[0]
    return distance(lambda: module.slope), lambda: operator.setitem(values, 0, 5.0)


@case
def function_of_an_own_module():
    module = types.ModuleType("helpers")
    values = [0.0]
    module.get = lambda: values[0]
    return distance(lambda: module.get()), lambda: operator.setitem(values, 0, 5.0)


@case
def getattr_of_a_module():
    np.slope_of_a_test = 0.0
    name = "slope_of_a_test"
    return distance(lambda: getattr(np, name)), lambda: setattr(np, name, 5.0)


@case
def name_in_builtins():
    builtins.slope_of_a_test = 0.0
    change = functools.partial(setattr, builtins, "slope_of_a_test", 5.0)
    return distance(lambda: slope_of_a_test), change  # noqa: F821


@case
def global_name_that_hides_a_builtin():
    function = eval("lambda score, b, h, q_idx, kv_idx: score + max(q_idx, 3)", {})
    change = functools.partial(function.__globals__.update, max=lambda a, b: b)
    return function, change


@case
def global_dictionary():
    table = {"slope": 0.0}
    return distance(lambda: table["slope"]), lambda: table.update(slope=5.0)


@case
def nested_lists():
    table = [[0.0], (1.0,)]
    return distance(lambda: table[0][0]), lambda: operator.setitem(table[0], 0, 5.0)


@case
def list_that_contains_itself():
    table = [0.0]
    table.append(table)
    return distance(lambda: table[1][1][0]), lambda: operator.setitem(table, 0, 5.0)


@case
def aliases():
    a, b = [1.0], [1.0]
    pair = [a, b]
    same = lambda: 2.0 if pair[0] is pair[1] else 0.5  # noqa: E731
    return distance(same), lambda: operator.setitem(pair, 1, a)


@case
def global_variable():
    module = globals()
    module["SLOPE"] = 0.0
    return distance(lambda: SLOPE), lambda: module.update(SLOPE=5.0)


@case
def global_names_that_move():
    names = {"__builtins__": {"left": 3.0, "right": 4.0}, "right": 5.0}
    function = eval("lambda score, b, h, q_idx, kv_idx: score * left + right", names)

    def change():
        names["left"] = names.pop("right")

    return function, change


@case
def default():
    def function(score, b, h, q_idx, kv_idx, slope=0.0):
        return score + slope * h

    return function, lambda: setattr(function, "__defaults__", (5.0,))


@case
def keyword_defaults_that_change_places():
    def function(score, b, h, q_idx, kv_idx, *, left=1.0, right=2.0):
        return score * left + right

    return function, lambda: setattr(function, "__kwdefaults__", {"right": 1.0, "left": 2.0})


@case
def code():
    def function(score, b, h, q_idx, kv_idx):
        return score

    other = lambda score, b, h, q_idx, kv_idx: score + h  # noqa: E731
    return function, lambda: setattr(function, "__code__", other.__code__)


@case
def attribute_of_a_function():
    def function(score, b, h, q_idx, kv_idx):
        return score + function.slope * h

    function.slope = 0.0
    return function, lambda: setattr(function, "slope", 5.0)


@case
def documentation_of_a_function():
    def function(score, b, h, q_idx, kv_idx):
        """0.5"""
        return score + float(function.__doc__) * h

    return function, lambda: setattr(function, "__doc__", "5.0")


@case
def decorator():
    values = [0.0]

    def add(function):
        @functools.wraps(function)
        def wrapper(*operands):
            return function(*operands) + values[0]

        return wrapper

    @add
    def function(score, b, h, q_idx, kv_idx):
        return score * 2

    return function, lambda: operator.setitem(values, 0, 5.0)


@case
def decorator_of_a_library_function():
    values = [0.0]

    @functools.wraps(am.tanh)
    def tanh(x):
        return am.tanh(x) + values[0]

    assert tanh.__module__ == "attn.mods"
    function = lambda score, b, h, q_idx, kv_idx: tanh(score)  # noqa: E731
    return function, lambda: operator.setitem(values, 0, 5.0)


@case
def replaced_library_function():
    am.function_of_a_test = am.tanh
    function = lambda score, b, h, q_idx, kv_idx: am.function_of_a_test(score)  # noqa: E731
    return function, lambda: setattr(am, "function_of_a_test", am.exp)


@case
def python_function_behind_a_ufunc():
    values = [0.0]
    get = np.frompyfunc(lambda x: values[0], 1, 1)
    return distance(lambda: float(get(1))), lambda: operator.setitem(values, 0, 5.0)


@case
def cached_function():
    values = [0.0]

    @functools.lru_cache
    def get():
        return values[0]

    return distance(get), lambda: (operator.setitem(values, 0, 5.0), get.cache_clear())


@case
def callable_object():
    class Alibi:
        slope = 0.0

        def __call__(self, score, b, h, q_idx, kv_idx):
            return score + self.slope * h

    alibi = Alibi()
    return alibi, lambda: setattr(alibi, "slope", 5.0)


@case
def descriptor():
    class Slope:
        value = 0.0

        def __get__(self, owner, kind):
            return self.value

    class Config:
        slope = Slope()

    return distance(lambda: Config.slope), lambda: setattr(Slope, "value", 5.0)


@case
def slots():
    class Config:
        __slots__ = ("slope",)

    config = Config()
    config.slope = 0.0
    return distance(lambda: config.slope), lambda: setattr(config, "slope", 5.0)


@case
def generator():
    values = iter([0.0, 5.0])
    return distance(lambda: next(values)), lambda: None


@case
def counter():
    count = itertools.count()
    return distance(lambda: float(next(count))), lambda: None


@case
def context_variable():
    variable = contextvars.ContextVar("slope", default=0.0)
    return distance(variable.get), lambda: variable.set(5.0)


@case
def environment():
    os.environ["ATTN_TEST_SLOPE"] = "0"
    change = functools.partial(operator.setitem, os.environ, "ATTN_TEST_SLOPE", "5")
    return distance(lambda: float(os.environ["ATTN_TEST_SLOPE"])), change


@case
def random_numbers():
    return distance(random.random), lambda: None


@case
def random_numbers_of_numpy():
    return distance(lambda: float(np.random.rand())), lambda: None


@case
def clock():
    # no verdict: a function that reads a clock is what the guard has to refuse.
    return distance(lambda: time.time_ns() / 1e9 % 1), lambda: time.sleep(1e-3)


@case
def imported_in_the_function():
    module = types.ModuleType("attn_test_module")
    module.slope = 0.0
    sys.modules["attn_test_module"] = module

    def get():
        from attn_test_module import slope

        return slope

    return distance(get), lambda: setattr(module, "slope", 5.0)


@case
def names_by_text():
    values = {"slope": 0.0}
    return distance(lambda: eval("slope", values)), lambda: values.update(slope=5.0)


@case
def set_of_numbers():
    kept = {1}
    return distance(lambda: 1.0 if 2 in kept else 2.0), lambda: kept.add(2)


@case
def scalar_array():
    slope = np.zeros((), np.float32)
    # Its contents are the kernel's to read: see test_contents_of_tensors.
    values = [slope]
    return distance(lambda: values[0]), lambda: operator.setitem(values, 0, 2.0)


@case
def sign_of_zero():
    values = [np.float32(0.0)]
    return distance(lambda: values[0]), lambda: operator.setitem(values, 0, np.float32(-0.0))


@case
def type_of_a_number():
    values = [1]
    function = lambda score, b, h, q_idx, kv_idx: score + q_idx // 3 * values[0] / 7  # noqa: E731
    return function, lambda: operator.setitem(values, 0, 1.0)


@case
def nested_function():
    values = [0.0]

    def function(score, b, h, q_idx, kv_idx):
        def inner():
            return [values[0] for _ in range(1)][0]

        return score + inner()

    return function, lambda: operator.setitem(values, 0, 5.0)


@case
def tensor_of_another_shape():
    holder = [np.ones(8, np.float32)]
    function = lambda score, b, h, q_idx, kv_idx: score + holder[0].shape[0] * h  # noqa: E731
    return function, lambda: operator.setitem(holder, 0, np.ones(9, np.float32))


@pytest.mark.parametrize("make", CASES, ids=lambda each: each.__name__)
def test_change_is_seen(make):
    """Each time the text is that of a function that was never seen."""
    function, change = make()
    first = attn.score_mod(function).text
    change()
    second = attn.score_mod(function).text
    assert second != first
    mod_regions._traces.clear()
    if make not in (generator, counter, random_numbers, random_numbers_of_numpy, clock):
        assert attn.score_mod(function).text == second


def test_lambdas_of_the_same_code():
    functions = [lambda s, b, h, q, k: s + 1, lambda s, b, h, q, k: s + 1.5]
    functions += [lambda s, b, h, q, k: s + 0.0, lambda s, b, h, q, k: s + -0.0]
    functions += [lambda s, b, h, q, k, x=x: s + x * h for x in range(3)]
    assert len({attn.score_mod(each).text for each in functions}) == 7


def test_what_changes_while_it_is_traced():
    """As another thread does it."""
    table = [0.0]

    def function(score, b, h, q_idx, kv_idx):
        return score + table[0]

    real = captured_reads.rebind

    def change(*operands):
        table[0] += 1
        return real(*operands)

    texts = []
    for _ in range(2):
        with pytest.MonkeyPatch.context() as context:
            context.setattr(captured_reads, "rebind", change)
            texts.append(attn.score_mod(function).text)
        table[0] = 0.0
    texts.append(attn.score_mod(function).text)
    assert texts[0] == texts[1] != texts[2]
