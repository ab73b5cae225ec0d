"""The example server on the simulator: its tokens are those of a dense run of its model."""

import importlib.util
import pathlib
import sys

import pytest
from attn.launch import host_arrays

PATH = pathlib.Path(__file__).resolve().parents[3] / "examples" / "serve" / "serve.py"


@pytest.fixture
def serve(monkeypatch):
    """Arrays go to the simulator, also where there is a GPU."""
    if not PATH.exists():
        pytest.skip("the examples are not here")
    monkeypatch.setattr(host_arrays, "has_device", lambda: False)
    spec = importlib.util.spec_from_file_location("serve", PATH)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "serve", module)
    spec.loader.exec_module(module)
    return module


def test_tokens(serve, capsys):
    """Sequences come and go, some begin alike, and prompts come in chunks."""
    assert serve.run(serve.Shape(), serve.Host(), 5, False)
    shown = capsys.readouterr().out
    assert " 0 tokens are not those of the dense run" in shown and "1 pages shared" in shown


def test_drafts(serve, monkeypatch, capsys):
    """Guesses of which none, the first, the second, or the first and what follows it are
    right."""
    model = serve.Model(serve.Shape())

    def guess(self):
        first = int(model.run_dense(self.tokens)[-1].argmax())
        second = int(model.run_dense([*self.tokens, first])[-1].argmax())
        other, wrong = (first + 1) % 9, (second + 1) % 9
        return [self.tokens[-1], *[(first, other, second), (other, first, wrong), (first, other, wrong),
                                   (other, other, second)][len(self.tokens) % 4]]  # fmt: skip

    monkeypatch.setattr(serve.Request, "draft", guess)
    assert serve.run(serve.Shape(), serve.Host(), 4, True)
    shown = capsys.readouterr().out
    assert " 0 tokens are not those of the dense run" in shown and " 0 drafts right" not in shown


def test_what_is_drafted(serve):
    request = serve.Request([3, 5, 3, 7, 9, 3], 4)
    request.tokens = list(request.prompt)
    assert request.draft() == [3, 7, 5, 9]


def test_a_request_that_is_too_long(serve):
    server = serve.Server(serve.Shape(), serve.Host(), False)
    with pytest.raises(ValueError, match="a request of 102 tokens needs more than 6 pages"):
        server.serve([(0, serve.Request([1] * 90, 10))])
