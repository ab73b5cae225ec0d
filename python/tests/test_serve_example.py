"""The example server on the simulator: its tokens are those of a dense run of its model."""

import importlib.util
import pathlib
import sys

import pytest
from attn import _host

PATH = pathlib.Path(__file__).resolve().parents[2] / "examples" / "serve" / "serve.py"


@pytest.fixture
def serve(monkeypatch):
    """Arrays go to the simulator, also where there is a GPU."""
    if not PATH.exists():
        pytest.skip("the examples are not here")
    monkeypatch.setattr(_host, "has_device", lambda: False)
    spec = importlib.util.spec_from_file_location("serve", PATH)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "serve", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("drafts", [False, True])
def test_tokens(serve, drafts, capsys):
    """Sequences come and go, some begin alike, prompts come in chunks, and drafts are
    right now and then."""
    assert serve.run(serve.Shape(), serve.Host(), 5, drafts)
    shown = capsys.readouterr().out
    assert "0 differ from the dense model" in shown and "1 pages shared" in shown
    assert ("0 drafts right" in shown) != drafts


def test_a_request_that_is_too_long(serve):
    server = serve.Server(serve.Shape(), serve.Host(), False)
    with pytest.raises(ValueError, match="a request of 102 tokens needs more than 6 pages"):
        server.serve([(0, serve.Request([1] * 90, 10))])
