"""What interpreters that attn-run starts do once a package is imported. The packages are empty
ones, and what is done is noted only."""

import importlib
import importlib.util
import pathlib
import sys

import pytest
from attn import sim

FILE = pathlib.Path(sim.__file__).with_name("autoload") / "sitecustomize.py"


@pytest.fixture
def autoload(monkeypatch, tmp_path):
    """The module with its finder in place, and the names of the packages it has acted on."""
    monkeypatch.delenv("ATTN_SIM_CHIPS", raising=False)
    spec = importlib.util.spec_from_file_location("attn_autoload", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.done = []
    for name in ("triton", "cutlass"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
        for known in [each for each in sys.modules if each.split(".")[0] == name]:
            monkeypatch.delitem(sys.modules, known)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(module._ACTIONS, "triton", lambda: module.done.append("triton"))
    monkeypatch.setattr(sys, "meta_path", [module._AfterImport(), *sys.meta_path])
    yield module
    for name in ("triton", "cutlass", "cutlass.cute"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("look_ups", [0, 2])
def test_look_ups_before_the_import(autoload, look_ups):
    for _ in range(look_ups):
        assert importlib.util.find_spec("triton") is not None
    assert autoload.done == []
    importlib.import_module("triton")
    assert autoload.done == ["triton"]
    importlib.reload(sys.modules["triton"])
    assert autoload.done == ["triton"]


def test_a_cutlass_without_cute(autoload, monkeypatch, tmp_path):
    from attn.sim import cute_setup, stand_in

    class Library:
        def set_device(self, number):
            autoload.done.append("device")

    monkeypatch.setattr(stand_in, "load", Library)
    monkeypatch.setattr(cute_setup, "install", lambda: autoload.done.append("cute"))
    importlib.import_module("cutlass")
    assert autoload.done == []
    del sys.modules["cutlass"]
    (tmp_path / "cutlass" / "cute.py").write_text("")
    importlib.invalidate_caches()
    monkeypatch.setattr(sys, "meta_path", [autoload._AfterImport(), *sys.meta_path])
    importlib.import_module("cutlass")
    assert autoload.done == ["device", "cute"]
