"""A plugin of pytest for scripts/triton-suites.py: draws a sample of tests, makes their extents
small, lets tensors on "cuda" be the CPU's, and ends a test that is over its time."""

from __future__ import annotations

import contextlib
import random
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

#: Parameters of tests that are extents of tensors, and the most of one.
EXTENTS = ("M", "N", "K", "xnumel", "ynumel", "N_CTX")
MOST = 512


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("suite")
    for name in ("sample", "seed", "seconds"):
        group.addoption(f"--suite-{name}", type=int, default=0)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Draws the sample: as many tests of each function as of every other one, as far as it has
    so many."""
    count = config.getoption("--suite-sample")
    if not count or count >= len(items):
        return
    draw = random.Random(config.getoption("--suite-seed"))
    kinds: dict[str, list[pytest.Item]] = {}
    for item in items:
        kinds.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for each in kinds.values():
        draw.shuffle(each)
    order = list(kinds.values())
    draw.shuffle(order)
    kept: set[str] = set()
    # Tests with one name are one to pytest: there may be fewer names than items.
    while len(kept) < count and any(order):
        for each in order:
            if each and len(kept) < count:
                kept.add(each.pop().nodeid)
    items[:] = [item for item in items if item.nodeid in kept]


def shrink(value: Any) -> Any:
    """An extent that is small, and a multiple of no power of two that it was not one of before."""
    return 256 + value % 256 if isinstance(value, int) and value > MOST else value


class OnTheCpu(TorchFunctionMode):
    """Does on the CPU what is asked for on "cuda"."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.Tensor.cuda:
            return args[0]
        named = {name: to_cpu(value) for name, value in (kwargs or {}).items()}
        return function(*map(to_cpu, args), **named)


def to_cpu(value: Any) -> Any:
    """A device, or its name; others stay as they are."""
    is_device = isinstance(value, torch.device) and value.type == "cuda"
    is_name = isinstance(value, str) and value.split(":")[0] == "cuda"
    return torch.device("cpu") if is_device or is_name else value


@contextlib.contextmanager
def limit_time(seconds: int) -> Iterator[None]:
    def end(*_: Any) -> None:
        raise TimeoutError(f"over its time of {seconds} s")

    signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    given = pyfuncitem.funcargs
    given.update({name: shrink(given[name]) for name in EXTENTS if name in given})
    with OnTheCpu(), limit_time(pyfuncitem.config.getoption("--suite-seconds")):
        yield
