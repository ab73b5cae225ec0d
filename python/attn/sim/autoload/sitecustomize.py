"""Read by interpreters that attn-run starts: Triton and CuTe DSL get the simulator when they
are imported first. A sitecustomize of the installation's own is run, too.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import pathlib
import sys


def _set_triton() -> None:
    import attn.sim

    attn.sim.triton(os.environ["ATTN_SIM_CHIPS"], raises=False)


def _set_cute() -> None:
    # Other packages have the name, too.
    package = sys.modules["cutlass"]
    if not hasattr(package, "__path__") or importlib.util.find_spec("cutlass.cute") is None:
        return
    from attn.sim import cute_setup, stand_in

    stand_in.load().set_device(0)
    cute_setup.install()


def _hide_linker() -> None:
    """Lets those who link PTX ask the driver to, which hands it on: nvJitLink makes machine code."""
    from cuda import pathfinder

    load = pathfinder.load_nvidia_dynamic_lib

    def load_others(name, *rest, **options):
        if name == "nvJitLink":
            raise pathfinder.DynamicLibNotFoundError("the stand-in driver links in its place")
        return load(name, *rest, **options)

    pathfinder.load_nvidia_dynamic_lib = load_others


#: Functions that run once their package has been imported.
_ACTIONS = {"triton": _set_triton, "cutlass": _set_cute, "cuda.pathfinder": _hide_linker}


class _AfterImport(importlib.abc.MetaPathFinder):
    """Finds packages as others do, and acts once one is there."""

    def __init__(self) -> None:
        self._waiting = dict(_ACTIONS)

    def find_spec(self, name, path=None, target=None):
        if name not in self._waiting:
            return None
        spec = self._ask_others(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        # A look-up need not be followed by an import, and a loader may be that of more modules.
        def execute_and_act(module):
            execute(module)
            action = self._waiting.pop(name, None) if module.__name__ == name else None
            if action is not None:
                action()

        spec.loader.exec_module = execute_and_act
        return spec

    def _ask_others(self, name, path, target):
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    return spec
        return None


def _run_other() -> None:
    own = pathlib.Path(__file__).resolve().parent
    rest = [folder for folder in sys.path if folder and pathlib.Path(folder).resolve() != own]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if "ATTN_SIM_CHIPS" in os.environ:
    sys.meta_path.insert(0, _AfterImport())
_run_other()
