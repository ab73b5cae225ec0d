"""What the wheel brings beside the modules."""

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


@pytest.mark.skipif("ATTN_INSTALLED" not in os.environ, reason="the package is not installed")
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command):
    program = pathlib.Path(sys.executable).parent / command
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "LLVM" in done.stdout
