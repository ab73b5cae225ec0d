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


@pytest.mark.parametrize("index", [0, 1])
def test_python_page(index):
    block = get_blocks(ROOT / "docs" / "Python.md")[index]
    import attn
    import numpy as np

    names = {"attn": attn, "np": np, "documents": np.zeros((2, 256), np.int32)}
    exec(compile(block, "docs/Python.md", "exec"), names)
