"""What the wheel brings beside the modules."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = ("attn-compile", "attn-sim")


def test_commands_are_built():
    """What CMake installs for Python is what pip tells it to build."""
    files = (ROOT / "tools").glob("*/CMakeLists.txt")
    found = [each.parent.name for each in files if re.search(r"\bPYTHON\b", each.read_text())]
    assert sorted(found) == list(COMMANDS)
    (targets,) = re.findall(r"^build\.targets = (.*)$", (ROOT / "pyproject.toml").read_text(), re.M)
    assert targets == str(["AttnC", *COMMANDS]).replace("'", '"')


def load_backend():
    spec = importlib.util.spec_from_file_location("build_backend", ROOT / "scripts/build_backend.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_missing_packages_are_named(tmp_path, monkeypatch, capsys):
    """Before CMake starts, and before what it needs is downloaded."""
    backend = load_backend()
    major = backend.read_major()
    named = {f"{each}-{major}" for each in ("clang", "lld")} | {f"llvm-{major}-dev", f"libmlir-{major}-dev"}
    named.add(f"mlir-{major}-tools")
    none = backend.find_missing(lambda name: None, {}, tmp_path)
    assert set(none) == named
    # LLVM elsewhere is CMake's to find.
    assert set(backend.find_missing(lambda name: None, {"MLIR_DIR": "x"}, tmp_path)) == {f"clang-{major}", f"lld-{major}"}
    for file in none.values():
        if file.startswith("/"):
            (tmp_path / file[1:]).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file[1:]).touch()
    assert not backend.find_missing(lambda name: name, {}, tmp_path)
    monkeypatch.setattr(backend, "find_missing", lambda: none)
    for hook in (backend.get_requires_for_build_wheel, backend.build_wheel, backend.build_editable):
        with pytest.raises(SystemExit):
            hook("folder")
        text = capsys.readouterr().err
        assert all(f"{package} (no " in text for package in none) and "scripts/install-deps.sh" in text


def test_packages_are_the_installers():
    """What is looked for is what the installer brings."""
    backend = load_backend()
    installer = (ROOT / backend.INSTALLER).read_text().replace("$LLVM_MAJOR", backend.read_major())
    for package in backend.find_missing(lambda name: None, {}, "/nonexistent"):
        assert f'"{package}"' in installer


@pytest.mark.skipif("ATTN_INSTALLED" not in os.environ, reason="the package is not installed")
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command):
    program = pathlib.Path(sys.executable).parent / command
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "LLVM" in done.stdout
