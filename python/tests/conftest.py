import functools
import os
import pathlib
import random
import sys
import tempfile
import zlib

import numpy as np
import pytest

# Matrices are small here: BLAS's threads would take longer to wait for each other than to
# multiply, on every core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = pathlib.Path(__file__).resolve().parents[2]
if "ATTN_INSTALLED" not in os.environ:
    sys.path.insert(0, str(ROOT / "python"))
    os.environ.setdefault("ATTN_LIBRARY", str(ROOT / "build" / "lib" / "libAttnC.so"))
    os.environ.setdefault("ATTN_DRIVER", str(ROOT / "build" / "lib" / "driver"))

TESTS = pathlib.Path(__file__).resolve().parent
# Tests of one folder use batches and stand-ins of another.
sys.path[:0] = [str(folder) for folder in sorted(TESTS.iterdir()) if folder.is_dir()]

#: Parts of the tests, which run side by side, by their folders; "rest" are all others.
PARTS = {
    "serving": ("serving",),
    "wrappers": ("compat",),
    "functions": ("calls", "launch", "tensors", "tracing"),
    "doors": ("doors",),
}


def pytest_addoption(parser):
    parser.addoption("--part", choices=[*PARTS, "rest"], help="run one part only")
    parser.addoption("--seed", type=int, help="draw as a failed run did, which printed its seed")


class Draws:
    """What tests draw at random, each from a seed of its own: a run of one test draws as a run of
    all does, but for what its file draws as it is imported."""

    def __init__(self, seed):
        self.seed = seed
        self.begin("")

    def begin(self, test):
        """Later draws are those of a test."""
        self._sequence = np.random.SeedSequence([self.seed, zlib.crc32(test.encode())])
        random.seed(self.draw_seed())
        if torch := sys.modules.get("torch"):
            torch.manual_seed(self.draw_seed())

    def draw_seed(self):
        return int(self._sequence.spawn(1)[0].generate_state(1)[0])


draws = Draws(random.SystemRandom().randrange(2**32))


def make_rng():
    """A generator of numpy for a test's fresh draws."""
    return np.random.default_rng(draws.draw_seed())


def pytest_configure(config):
    if config.getoption("seed") is not None:
        draws.seed = config.getoption("seed")
        draws.begin("")


def pytest_runtest_setup(item):
    draws.begin(f"{item.path.name} {item.name}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        report.sections.append(("Seed", f"--seed={draws.seed} draws the same"))


def pytest_ignore_collect(collection_path, config):
    asked = config.getoption("part")
    if asked is None or collection_path.is_dir():
        return None
    folder = collection_path.parent.name
    part = next((part for part, folders in PARTS.items() if folder in folders), "rest")
    return None if part == asked else True


def count_calls(call):
    """Functions of Python and C that a call runs: what it costs, on every machine alike."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


@functools.cache
def make_shared_folder():
    """Of kernels that several tests compile; it goes with the process."""
    return tempfile.TemporaryDirectory(prefix="attn-tests-")


@pytest.fixture(autouse=True)
def cache(request, monkeypatch):
    """The cache of a test: all of them share one but those that ask for `empty_cache`."""
    from attn.compiler import kernel_cache

    if "empty_cache" in request.fixturenames:
        folder = request.getfixturevalue("tmp_path") / "cache"
    else:
        folder = pathlib.Path(make_shared_folder().name)
    monkeypatch.setenv("ATTN_CACHE_DIR", str(folder))
    kernel_cache.clear_memory()
    return folder


@pytest.fixture
def without_gpu(monkeypatch):
    """Arrays and tensors in host memory go to the simulator, also where there is a GPU."""
    from attn.launch import host_arrays

    monkeypatch.setattr(host_arrays, "has_device", lambda: False)


@pytest.fixture
def empty_cache(cache):
    """A cache of the test's own, beside no kernels that earlier tests have loaded."""
    from attn.calls import attention_kernels

    attention_kernels.clear()
    return cache


@pytest.fixture
def count_kernels(empty_cache):
    """How many kernels were compiled into a cache of the test's own."""

    def count():
        files = (path.read_bytes() for path in empty_cache.iterdir())
        return sum(b'{"ptx"' in contents[:64] for contents in files)

    return count


if os.environ.get("ATTN_TEST_DEVICE"):
    # Tests of doors run on the simulator, or on a GPU.
    import torch

    torch.set_default_device(os.environ["ATTN_TEST_DEVICE"])
