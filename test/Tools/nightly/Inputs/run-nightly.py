"""Runs scripts/nightly.py three times with two checks of its own."""

import importlib.util
import os
import pathlib
import sys

os.environ["ATTN_BUILD"] = sys.argv[1]
script = pathlib.Path(__file__).resolve().parents[4] / "scripts/nightly.py"
spec = importlib.util.spec_from_file_location("nightly", script)
nightly = importlib.util.module_from_spec(spec)
sys.modules["nightly"] = nightly
spec.loader.exec_module(nightly)
nightly.CHECKS[:] = [
    nightly.Check("good", 3, "true", "true"),
    nightly.Check("bad", 2, "bash -c 'echo expected something else; exit 1'", "bash -c 'exit 2'",
                  skipped=2),
]  # fmt: skip


class State(nightly.State):
    def __init__(self):
        super().__init__()
        self.commit = "same"


nightly.State = State
for arguments in ([], [], ["--sample"]):
    sys.argv[1:] = arguments
    nightly.main()
    sys.stdout.flush()
