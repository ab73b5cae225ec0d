"""The examples of examples/doors run on the simulator."""

import pathlib
import runpy

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]

EXAMPLES = {"sdpa": ["torch"], "flex": ["torch"], "transformers_model": ["torch", "transformers"]}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, capsys):
    for needed in EXAMPLES[name]:
        pytest.importorskip(needed)
    runpy.run_path(str(ROOT / "examples" / "doors" / f"{name}.py"))
    assert capsys.readouterr().out.count("\n") == 1


def test_all_are_run():
    assert sorted(EXAMPLES) == sorted(
        path.stem for path in (ROOT / "examples" / "doors").glob("*.py")
    )
