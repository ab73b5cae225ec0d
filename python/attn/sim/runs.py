"""Any PTX kernel on the simulator, with numpy arrays.

import attn
import numpy as np

x = np.arange(256, dtype=np.float32)
run = attn.sim.run(ptx, grid=2, block=128, args=[x, attn.sim.empty(256, np.float32), 256])
run.outputs[1]          # what the kernel left in the second argument
run.findings            # races, reads of uninitialised memory, ...
run.counters["warpInstructions"]
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from ..compiler import c_library, long_calls
from ..errors import ArgumentError, ArgumentTypeError, SimulationError
from ..options import readers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike, NDArray

    Argument = Union[NDArray[np.generic], "Empty", "TensorMap", np.generic, int, float, bytes]

#: Element types of tensor maps, by numpy's names and ours.
_ELEMENTS = {
    "float16": "float16",
    "float32": "float32",
    "float64": "float64",
    "bfloat16": "bfloat16",
    "int8": "int8",
    "uint8": "int8",
    "int32": "int32",
    "uint32": "int32",
    "int64": "int64",
    "uint64": "int64",
}

Dim3 = Union[int, Sequence[int]]


@dataclasses.dataclass(frozen=True, eq=False)
class Empty:
    """Device memory that nobody has written yet: reading it is reported."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]


def empty(shape: int | Sequence[int], dtype: DTypeLike) -> Empty:
    """Memory for a result."""
    import numpy as np

    given = readers.to_list("shape", shape) if isinstance(shape, Iterable) else [shape]
    extents = tuple(readers.to_integer("shape", extent, 0, 2**48) for extent in given)
    try:
        kind = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            f"dtype: expected a type of numpy, got {dtype!r}: {error}"
        ) from None
    return Empty(extents, _check_elements("empty", kind))


def _check_elements(what: str, dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """That a device could hold elements of this type."""
    if dtype.hasobject:
        raise ArgumentTypeError(f"{what}: expected numbers, got Python objects")
    return dtype


def _little_endian(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """The elements as device memory has them."""
    return array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)


def _check_range(what: str, value: int, bits: int) -> int:
    """An integer that the C interface takes without wrapping it."""
    return readers.to_integer(what, value, 0, 2**bits - 1)


@dataclasses.dataclass(frozen=True, eq=False)
class TensorMap:
    """A tensor map by its fields, as cuTensorMapEncodeTiled takes them: extents
    are in elements, innermost first; strides in bytes, from dimension 1 on.
    `array` is an array or `empty`; the same object may be an argument of its
    own too. numpy has no bf16: `element="bfloat16"` says what `array` holds."""

    array: NDArray[np.generic] | Empty
    box: Sequence[int]
    dims: Sequence[int] | None = None
    strides: Sequence[int] | None = None
    swizzle: int = 0
    element: str | None = None
    offset: int = 0

    def get_dims(self) -> list[int]:
        return list(self.array.shape[::-1] if self.dims is None else self.dims)

    def get_strides(self) -> list[int]:
        if self.strides is not None:
            return list(self.strides)
        strides, step = [], self.array.dtype.itemsize
        for extent in self.get_dims()[:-1]:
            step *= extent
            strides.append(step)
        return strides

    def get_element(self) -> str:
        name = self.element or self.array.dtype.name
        if name not in _ELEMENTS:
            raise ArgumentTypeError(
                f"tensor map: expected one of {', '.join(_ELEMENTS)}, got {name!r}"
            )
        return _ELEMENTS[name]


@dataclasses.dataclass(frozen=True)
class Run:
    """What a launch did."""

    #: For each argument what its memory holds afterwards; None for a scalar. A
    #: tensor map has its array's.
    outputs: list[NDArray[np.generic] | None]
    #: What the sanitizer found.
    findings: list[dict[str, Any]]
    counters: dict[str, Any]
    #: All of that and more (docs/Simulate.md).
    report: dict[str, Any]
    #: The report for people.
    text: str
    #: Ran to its end without an error.
    passed: bool


class _Launch:
    """Collects the arrays and writes launch.json."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[np.generic] | Empty] = []
        self.params: list[dict[str, Any]] = []

    def add_array(self, array: NDArray[np.generic] | Empty) -> str:
        for index, other in enumerate(self.arrays):
            if other is array:
                return f"arg{index}"
        self.arrays.append(array)
        return f"arg{len(self.arrays) - 1}"

    def add(self, value: Argument) -> int | None:
        """Adds a parameter; the index of its array, if it has one."""
        import numpy as np

        if isinstance(value, TensorMap):
            name = self.add_array(value.array)
            dims = value.get_dims()
            fields = {
                "tensor": name,
                "offset": value.offset,
                "rank": len(dims),
                "dims": dims,
                "stride_bytes": value.get_strides(),
                "box": list(value.box),
                "swizzle_bytes": value.swizzle,
                "element": value.get_element(),
            }
            self.params.append({"size": 128, "tensor_map": fields})
            return int(name[3:])
        if isinstance(value, (np.generic, np.ndarray)):
            _check_elements(f"argument {len(self.params)}", value.dtype)
        if isinstance(value, Empty) or (isinstance(value, np.ndarray) and value.ndim):
            name = self.add_array(value)
            pointer = {"at": 0, "tensor": name, "offset": 0}
            self.params.append({"size": 8, "hex": "00" * 8, "pointers": [pointer]})
            return int(name[3:])
        if isinstance(value, float) and not isinstance(value, np.generic):
            self.params.append({"number": value})
        elif isinstance(value, int):
            self.params.append({"integer": int(value)})
        elif isinstance(value, (np.generic, np.ndarray)):
            raw = _little_endian(np.asarray(value)).tobytes()
            self.params.append({"size": len(raw), "hex": raw.hex()})
        elif isinstance(value, bytes):
            self.params.append({"size": len(value), "hex": value.hex()})
        else:
            raise ArgumentTypeError(
                f"argument {len(self.params)}: expected an array, a tensor map, a number or "
                f"bytes, got {type(value).__name__}"
            )
        return None

    def get_tensors(self) -> dict[str, Any]:
        result = {}
        for index, array in enumerate(self.arrays):
            count = array.dtype.itemsize
            for extent in array.shape:
                count *= extent
            access = "write" if isinstance(array, Empty) else "update"
            result[f"arg{index}"] = {"shape": [count], "dtype": "int8", "access": access}
        return result


def _get_extents(what: str, value: Dim3) -> list[int]:
    given = readers.to_list(what, value) if isinstance(value, Iterable) else [value]
    extents = [_check_range(what, extent, 32) for extent in given]
    if not 1 <= len(extents) <= 3:
        raise ArgumentError(f"{what}: expected 1 to 3 extents, got {len(extents)}")
    return extents + [1] * (3 - len(extents))


def _read_ptx(ptx: str | os.PathLike[str]) -> str:
    """The text of a module: `ptx` itself, or the file of that name."""
    # A module has several lines, and no name of a file has.
    if isinstance(ptx, str) and "\n" in ptx:
        return ptx
    if not isinstance(ptx, (str, os.PathLike)):
        return readers.to_text("ptx", ptx)
    path = os.fspath(ptx)
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SimulationError(
            f"ptx: expected PTX or the path of a file with PTX, got {path!r}: {reason}"
        ) from None


def _get_kernel(ptx: str) -> str:
    names = [str(name) for name in re.findall(r"\.entry\s+([\w$]+)", ptx)]
    if not names:
        raise SimulationError("ptx: expected a module with a kernel (.entry), got none")
    if len(names) > 1:
        raise SimulationError(f"kernel: expected one of {', '.join(names)}, got none")
    return names[0]


def run(
    ptx: str | os.PathLike[str],
    grid: Dim3,
    args: Sequence[Argument],
    *,
    block: Dim3,
    cluster: Dim3 = 1,
    shared: int = 0,
    kernel: str | None = None,
    chip: str = "",
    seed: int = 0,
    threads: int = 0,
    options: Mapping[str, str] | None = None,
    progress: long_calls.Show = True,
) -> Run:
    """Runs a kernel. `ptx` is PTX, or the path of a file with it. `args` are its parameters: an
    array is memory with these contents (the array itself is left as it is), `empty` memory without,
    a numpy scalar or bytes a parameter of that width, a Python number one of the type that the
    kernel declares (an int for an f32 becomes a float). `shared` is in bytes, `kernel` may be left
    out where the module has one. `options` are attn-sim's, such as {"schedule": "random"};
    `progress` is as in `Kernel.simulate`, and Ctrl-C ends the run. Raises SimulationError when the
    launch cannot start; what the kernel does wrong is in the result."""
    import numpy as np

    ptx = _read_ptx(ptx)
    launch = _Launch()
    if isinstance(args, (np.ndarray, bytes, str)):
        raise ArgumentTypeError(f"args: expected a list of parameters, got {type(args).__name__}")
    places = [launch.add(value) for value in readers.to_list("args", args)]
    name = _get_kernel(ptx) if kernel is None else readers.to_text("kernel", kernel)
    description = {
        "kernel": name,
        "chip": readers.to_text("chip", chip),
        "grid": _get_extents("grid", grid),
        "block": _get_extents("block", block),
        "cluster": _get_extents("cluster", cluster),
        "dynamic_shared_bytes": _check_range("shared", shared, 32),
        "tensors": launch.get_tensors(),
        "params": launch.params,
    }
    library = c_library.load()
    watch = long_calls.Watch(progress)
    with c_library.Handle("Simulation", library.attnSimulationCreate()) as simulation:
        long_calls.set_callback(simulation, watch)
        library.attnSimulationSetSeed(simulation, _check_range("seed", seed, 64))
        library.attnSimulationSetThreads(simulation, _check_range("threads", threads, 32))
        for option, value in readers.to_items("options", options):
            text = readers.to_text(f"options: {option}", value)
            library.attnSimulationSetOption(simulation, c_library.ref(option), c_library.ref(text))
        for index, array in enumerate(launch.arrays):
            if isinstance(array, Empty):
                continue
            raw = _little_endian(array)
            shape = (ctypes.c_int64 * 1)(raw.nbytes)
            library.attnSimulationSetInput(
                simulation,
                c_library.ref(f"arg{index}"),
                c_library.ref("i8"),
                shape,
                1,
                raw.ctypes.data,
                raw.nbytes,
            )
        with watch:
            report = library.attnSimulateLaunch(
                c_library.ref(ptx), c_library.ref(json.dumps(description)), simulation
            )
    with c_library.Handle("Report", report):
        watch.finish(library.attnReportWasStopped(report))
        if not library.attnReportRan(report):
            raise SimulationError(f"kernel {name}: {library.attnReportGetError(report).text()}")
        contents = json.loads(library.attnReportGetJSON(report).text())
        results: dict[int, NDArray[np.generic]] = {}
        for index in range(library.attnReportGetNumTensors(report)):
            tensor = library.attnReportGetTensor(report, index)
            number = int(tensor.name.text()[3:])
            raw = bytearray(ctypes.string_at(tensor.data, tensor.numBytes))
            array = launch.arrays[number]
            found = np.frombuffer(raw, dtype=array.dtype.newbyteorder("<"))
            results[number] = found.astype(array.dtype, copy=False).reshape(array.shape)
        return Run(
            [None if place is None else results[place] for place in places],
            contents["run"]["findings"],
            contents["run"]["counters"],
            contents,
            library.attnReportGetText(report).text(),
            bool(library.attnReportPassed(report)),
        )
