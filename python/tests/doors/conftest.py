"""Tests of doors run on the simulator, or on a GPU where ATTN_TEST_DEVICE=cuda says so."""

import os

import pytest

if os.environ.get("ATTN_TEST_DEVICE"):
    torch = pytest.importorskip("torch")
    torch.set_default_device(os.environ["ATTN_TEST_DEVICE"])


@pytest.fixture
def count_kernels(empty_cache):
    """How many kernels were compiled into a cache of the test's own."""

    def count():
        files = (path.read_bytes() for path in empty_cache.iterdir())
        return sum(b'{"ptx"' in contents[:64] for contents in files)

    return count
