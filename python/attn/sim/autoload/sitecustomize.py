"""Read by interpreters that attn-run starts: Triton gets the simulator's driver object when it
is imported first. A sitecustomize of the installation's own is run, too.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import pathlib
import sys


class _AfterTriton(importlib.abc.MetaPathFinder):
    """Finds the package triton as others do, and sets the driver once it is there."""

    is_searching = False

    def find_spec(self, name, path=None, target=None):
        if name != "triton" or self.is_searching:
            return None
        self.is_searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.is_searching = False
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_set(module):
            sys.meta_path.remove(self)
            execute(module)
            import attn.sim

            attn.sim.triton(os.environ["ATTN_SIM_CHIPS"], raises=False)

        spec.loader.exec_module = execute_and_set
        return spec


def _run_other() -> None:
    own = pathlib.Path(__file__).resolve().parent
    rest = [folder for folder in sys.path if folder and pathlib.Path(folder).resolve() != own]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if "ATTN_SIM_CHIPS" in os.environ:
    sys.meta_path.insert(0, _AfterTriton())
_run_other()
