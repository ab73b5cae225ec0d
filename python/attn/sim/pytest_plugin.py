"""A plugin of pytest for tests of Triton's kernels without a GPU: `pytest -p
attn.sim.pytest_plugin --attn-chip=sm_90a`. A test during which a launch was found to be wrong
fails, with the report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ..errors import AttnError
from . import triton_setup

if TYPE_CHECKING:
    from collections.abc import Generator

    from .triton_driver import SimulatedDriver

_driver: list[SimulatedDriver] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options."""
    group = parser.getgroup("attn")
    group.addoption(
        "--attn-chip",
        help="run Triton's kernels on the simulator of this chip, such as sm_90a",
    )
    group.addoption(
        "--attn-seed", type=int, help="seed of the order in which the simulator's warps advance"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Sets the driver up before tests are imported: many ask for a device then."""
    chip = config.getoption("--attn-chip")
    if not chip:
        return
    options: dict[str, Any] = {}
    if config.getoption("--attn-seed") is not None:
        options["seed"] = config.getoption("--attn-seed")
    try:
        _driver[:] = [triton_setup.triton(chip, raises=False, **options)]
    except AttnError as error:
        raise pytest.UsageError(f"--attn-chip: {error}") from None
    _driver[0].library.set_quiet(True)


def pytest_report_header() -> str | None:
    """Says on what the tests run."""
    return f"attn: {_driver[0].interface.get_device_name()}" if _driver else None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Fails a test whose launches were found to be wrong."""
    before = _driver[0].library.count_findings() if _driver else (0, 0)
    outcome = yield
    if not _driver or outcome.excinfo is not None:
        return
    found, errors = _driver[0].library.count_findings()
    if errors != before[1]:
        outcome.force_exception(
            pytest.fail.Exception(
                f"the simulator's findings ({found - before[0]}):\n"
                + _driver[0].report("text", before[0]),
                pytrace=False,
            )
        )
