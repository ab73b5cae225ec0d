"""Triton's kernels on CPU tensors, without a GPU."""

from __future__ import annotations

import functools
import os
import pathlib
from typing import TYPE_CHECKING, Any

from ..errors import DriverError
from . import stand_in

if TYPE_CHECKING:
    from .triton_driver import SimulatedDriver


def _get_cache_folder() -> pathlib.Path:
    """The folder of what is kept from process to process; one that goes with this process where
    the user has none to write to."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = pathlib.Path(base) / "attn"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return _make_own_folder()
    return folder if os.access(folder, os.W_OK) else _make_own_folder()


@functools.cache
def _make_own_folder() -> pathlib.Path:
    return pathlib.Path(stand_in.make_folder("attn-"))


def prepare_environment(chips: str, environment: dict[str, str] | os._Environ[str]) -> None:
    """Sets what Triton and the stand-in read from the environment: `chips` with commas."""
    environment[stand_in.CHIPS] = chips
    environment["TRITON_LIBCUDA_PATH"] = str(stand_in.find_folder())
    folder = _get_cache_folder()
    assembler = str(stand_in.write_assembler(folder))
    environment["TRITON_PTXAS_PATH"] = assembler
    environment["TRITON_PTXAS_BLACKWELL_PATH"] = assembler
    # FlagGems keeps what its tuners have measured: not beside a GPU's.
    environment.setdefault("FLAGGEMS_CACHE_DIR", str(folder / "flag_gems"))


def triton(
    chip: str = "sm_90a",
    *,
    raises: bool = True,
    patches_torch: bool = True,
    tunes: bool = False,
    **options: Any,
) -> SimulatedDriver:
    """Runs Triton's kernels on the simulator from now on, on CPU tensors or numpy arrays.

    Call it before the first kernel is launched. `chip` is a name such as "sm_80", "sm_90a" or
    "sm_100a", or several with commas: the devices 0, 1, ... `raises` makes a launch that was
    found to be wrong a SimulationError; otherwise findings are printed, and kept for `report`.
    `patches_torch` lets `torch.cuda` answer what libraries ask of it: that there is a device, its
    name, properties, streams and events. Autotuners take their first configuration that runs;
    with `tunes` they launch each once, and take the simulator's fastest. Of `options` `seed` (an
    integer) is the seed of the order in which warps advance, `jobs` the number of host threads,
    `sms` how many SMs the device says that it has.

    Returns the driver object. Raises DriverError where a CUDA driver is installed, or has been
    loaded."""
    known = {"seed": "ATTN_SIM_SEED", "jobs": "ATTN_SIM_JOBS", "sms": "ATTN_SIM_SMS"}
    for name, value in options.items():
        if name not in known:
            raise DriverError(f"expected one of {', '.join(known)}, got {name!r}")
        os.environ[known[name]] = str(value)
    stand_in.check_absent()
    prepare_environment(chip, os.environ)
    library = stand_in.load()
    from . import triton_driver

    return triton_driver.activate(library, raises, patches_torch, tunes)
