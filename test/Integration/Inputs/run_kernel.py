"""What tests share that compile a kernel and run it in the simulator on arrays of their own."""

import functools
import pathlib
import subprocess
from collections.abc import Sequence

import numpy as np


@functools.cache
def compile_kernel(ptx: pathlib.Path, launch: pathlib.Path, flags: tuple[str, ...]) -> None:
    """Kernels that are run more than once are compiled once."""
    subprocess.run(["attn-compile", *flags, "-o", ptx, f"--launch-out={launch}"], check=True)


def run_kernel(
    folder: pathlib.Path,
    name: str,
    operands: dict[str, np.ndarray],
    flags: list[str],
    simulated: Sequence[str] = (),
) -> np.ndarray:
    """The result of a kernel that attn-compile makes with `flags` and attn-sim runs with
    `simulated`; files are called `name`."""
    folder.mkdir(parents=True, exist_ok=True)
    ptx, launch, out = (folder / f"{name}.{end}" for end in ("ptx", "json", "npy"))
    compile_kernel(ptx, launch, tuple(flags))
    inputs = []
    for tensor, values in operands.items():
        path = folder / f"{name}-{tensor}.npy"
        np.save(path, values)
        inputs.append(f"--in={tensor}={path}")
    command = ["attn-sim", ptx, f"--launch={launch}", *inputs, f"--out=o={out}", *simulated]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return np.load(out)
