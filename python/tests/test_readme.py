"""The examples in the README and in docs/Python.md run."""

import re

import pytest
from conftest import ROOT


def get_blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


def test_readme(capsys):
    (block,) = get_blocks(ROOT / "README.md")
    assert len([line for line in block.splitlines() if line]) <= 12
    exec(compile(block, "README.md", "exec"), {})
    name, _, error = capsys.readouterr().out.partition(":")
    assert name == "largest error" and float(error) < 5e-3


@pytest.mark.parametrize("text", ["kernel.plan", "def alibi"])
def test_python_page(text):
    """The examples that need no GPU."""
    (block,) = (each for each in get_blocks(ROOT / "docs" / "Python.md") if text in each)
    import attn
    import numpy as np

    names = {"attn": attn, "np": np, "documents": np.zeros((2, 256), np.int32)}
    names["gates"] = np.zeros((2, 8, 256), np.float32)
    exec(compile(block, "docs/Python.md", "exec"), names)


def test_page_of_foreign_kernels(monkeypatch):
    (block,) = get_blocks(ROOT / "docs" / "HowTo" / "foreign-kernel.md")
    monkeypatch.chdir(ROOT)
    exec(compile(block, "foreign-kernel.md", "exec"), {})
