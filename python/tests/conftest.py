import functools
import os
import pathlib
import sys
import tempfile

import pytest

# Matrices are small here: BLAS's threads would take longer to wait for each other than to
# multiply, on every core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = pathlib.Path(__file__).resolve().parents[2]
if "ATTN_INSTALLED" not in os.environ:
    sys.path.insert(0, str(ROOT / "python"))
    os.environ.setdefault("ATTN_LIBRARY", str(ROOT / "build" / "lib" / "libAttnC.so"))


#: Parts of the tests, which run side by side, by how the names of their files go on behind
#: "test_"; "rest" are all others.
PARTS = {
    "serving": ("cascade", "compat", "debug_checks", "decode", "prefill", "serve", "steps", "torch_serving"),
    "functions": ("functional", "host", "mods", "runtime", "torch"),
}  # fmt: skip


def pytest_addoption(parser):
    parser.addoption("--part", choices=[*PARTS, "rest"], help="run one part only")


def pytest_ignore_collect(collection_path, config):
    asked = config.getoption("part")
    name = collection_path.stem.removeprefix("test_")
    if asked is None or collection_path.is_dir():
        return None
    part = next((part for part, starts in PARTS.items() if name.startswith(starts)), "rest")
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
    from attn import _cache

    if "empty_cache" in request.fixturenames:
        folder = request.getfixturevalue("tmp_path") / "cache"
    else:
        folder = pathlib.Path(make_shared_folder().name)
    monkeypatch.setenv("ATTN_CACHE_DIR", str(folder))
    _cache.clear_memory()
    return folder


@pytest.fixture
def empty_cache(cache):
    """A cache of the test's own."""
    return cache
