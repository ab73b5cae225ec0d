"""Runs of compiled kernels on the simulator."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import arrays
from ..errors import SimulationError
from ..launch import events
from ..options import readers
from ..record import DYNAMIC
from . import c_library, long_calls

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


@dataclasses.dataclass(frozen=True)
class Simulation:
    """A run on the simulator."""

    #: What the kernel wrote, by tensor name; bf16 and fp8 as raw bits, or of q's own type.
    outputs: dict[str, NDArray[np.generic]]
    #: Findings, deviations from the float64 reference, and counters.
    report: dict[str, Any]
    #: The report for people.
    text: str
    #: The sanitizer found nothing and the deviations are within tolerance.
    passed: bool

    def __getitem__(self, name: str) -> NDArray[np.generic]:
        return self.outputs[name]


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a kernel is run, as `Kernel.simulate` takes it."""

    seed: Any = 0
    verify: Any = True
    corners: Any = False
    threads: Any = 0
    sizes: Mapping[str, Any] | None = None
    progress: long_calls.Show = True

    def apply(self, run: int) -> None:
        library = c_library.load()
        seed = readers.to_integer("seed", self.seed, 0, 2**64 - 1)
        library.attnSimulationSetSeed(run, seed)
        is_quick = isinstance(self.verify, str) and self.verify == "quick"
        verify = is_quick or readers.to_bool("verify", self.verify)
        library.attnSimulationSetVerify(run, verify)
        library.attnSimulationSetQuick(run, is_quick)
        library.attnSimulationSetCorners(run, readers.to_bool("corners", self.corners))
        threads = readers.to_integer("threads", self.threads, 0, 2**32 - 1)
        library.attnSimulationSetThreads(run, threads)
        for name, value in readers.to_items("sizes", self.sizes):
            size = readers.to_integer(f"sizes: {name}", value, 0, 2**63 - 1)
            library.attnSimulationSetSize(run, c_library.ref(name), size)


def simulate(
    name: str,
    ptx: str,
    launch: Mapping[str, Any],
    request: c_library.Handle | None,
    inputs: Mapping[str, ArrayLike],
    settings: Settings,
) -> Simulation:
    """Runs the kernel of a launch record. Without the `request` that made it, nothing is
    compared, and all that its regions read has to be there."""
    library = c_library.load()
    dtypes = {tensor["name"]: tensor["dtype"] for tensor in launch["tensors"]}
    shapes = {tensor["name"]: tensor["shape"] for tensor in launch["tensors"]}
    watch = long_calls.Watch(settings.progress)
    with c_library.Handle("Simulation", library.attnSimulationCreate()) as run:
        settings.apply(run)
        for tensor, value in inputs.items():
            if tensor not in dtypes:
                raise SimulationError(
                    f'array "{tensor}": expected one of {", ".join(dtypes)} for kernel {name}'
                )
            array = arrays.read_elements(tensor, value, dtypes[tensor])
            _check_shape(f'kernel {name}: input "{tensor}"', array.shape, shapes[tensor])
            _set_input(run, tensor, array, dtypes[tensor])
        long_calls.set_callback(run, watch)
        with request or contextlib.nullcontext() as problem, watch:
            report = events.time_call(
                "simulated:",
                name,
                lambda: library.attnSimulate(
                    c_library.ref(ptx), c_library.ref(json.dumps(launch)), problem, run
                ),
            )
    with c_library.Handle("Report", report):
        watch.finish(library.attnReportWasStopped(report))
        if not library.attnReportRan(report):
            raise SimulationError(f"kernel {name}: {library.attnReportGetError(report).text()}")
        return Simulation(
            arrays.restore(_get_outputs(report), inputs, dtypes),
            json.loads(library.attnReportGetJSON(report).text()),
            library.attnReportGetText(report).text(),
            library.attnReportPassed(report),
        )


def _check_shape(what: str, shape: Sequence[int], expected: Sequence[int]) -> None:
    """Before an array is made dense: one that repeats an element may be larger than memory."""
    if len(shape) != len(expected):
        raise SimulationError(f"{what}: expected rank {len(expected)}, got {len(shape)}")
    for axis, (want, got) in enumerate(zip(expected, shape, strict=True)):
        if want not in (DYNAMIC, got):
            raise SimulationError(f"{what}: dimension {axis}: expected {want}, got {got}")


def _set_input(run: int, name: str, value: ArrayLike, dtype: str) -> None:
    array = arrays.to_elements(name, value, dtype)
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    c_library.load().attnSimulationSetInput(
        run,
        c_library.ref(name),
        c_library.ref(dtype),
        shape,
        array.ndim,
        array.ctypes.data,
        array.nbytes,
    )


def _get_outputs(report: int) -> dict[str, NDArray[np.generic]]:
    import numpy as np

    library = c_library.load()
    outputs = {}
    for index in range(library.attnReportGetNumTensors(report)):
        tensor = library.attnReportGetTensor(report, index)
        if tensor.written:
            raw = ctypes.string_at(tensor.data, tensor.numBytes)
            carrier, _ = arrays.CARRIERS[tensor.dtype.text()]
            array = np.frombuffer(bytearray(raw), dtype=carrier)
            outputs[tensor.name.text()] = array.reshape(tensor.shape[: tensor.rank])
    return outputs
