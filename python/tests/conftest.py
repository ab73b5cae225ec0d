import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
if "ATTN_INSTALLED" not in os.environ:
    sys.path.insert(0, str(ROOT / "python"))
    os.environ.setdefault("ATTN_LIBRARY", str(ROOT / "build" / "lib" / "libAttnC.so"))


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    """Each test has a cache of its own."""
    from attn import _cache

    monkeypatch.setenv("ATTN_CACHE_DIR", str(tmp_path / "cache"))
    _cache.clear_memory()
    return tmp_path / "cache"
