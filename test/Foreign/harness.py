"""Compiles kernels in Triton's languages and runs them on the simulator.

A Case is a kernel with arguments and the result that numpy computes. Nothing here needs a
GPU: Triton compiles for any chip, and what its launcher would pass to the driver is built
here (docs/RecordedLaunches.md, "Other compilers' kernels").
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import attn  # noqa: E402
from attn.sim import Empty, TensorMap, empty  # noqa: E402

#: numpy's names of element types, as Triton spells them.
TYPES = {
    "float16": "fp16", "float32": "fp32", "float64": "fp64", "int8": "i8", "int16": "i16",
    "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32",
    "uint64": "u64", "bool": "i1",
}  # fmt: skip
#: Element types of descriptors that the driver numbers, as tensor maps name them.
MAP_ELEMENTS = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "i32": "int32"}
SWIZZLES = {0: 0, 1: 32, 2: 64, 3: 128}


@dataclasses.dataclass(eq=False)
class Array:
    """An array whose elements numpy has no type for: "bf16", "fp8e4nv", "fp8e5"."""

    data: np.ndarray | Empty
    type: str


@dataclasses.dataclass(eq=False)
class Descriptor:
    """A tensor descriptor that the host makes."""

    array: np.ndarray | Empty | Array
    block: list[int]
    nan_padding: bool = False

    @property
    def data(self):
        return self.array.data if isinstance(self.array, Array) else self.array

    @property
    def type(self) -> str:
        return self.array.type if isinstance(self.array, Array) else TYPES[self.data.dtype.name]


@dataclasses.dataclass
class Case:
    name: str
    kernel: Any
    #: Values of the parameters that are no constants, in their order.
    args: list[Any]
    constants: dict[str, Any]
    grid: tuple[int, ...]
    #: What arguments hold afterwards, by index: an array with float64, or integers, which have to
    #: be equal.
    expected: dict[int, np.ndarray]
    #: Accepted ||out - ref|| / ||ref||.
    tolerance: float = 1e-3
    chips: tuple[int, ...] = (80, 90, 100)
    warps: int = 4
    ctas: int = 1
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    #: Kinds of findings that the kernel deserves on a chip; docs/Evidence.md says why.
    findings: dict[int, set[str]] = dataclasses.field(default_factory=dict)
    gluon: bool = False


@dataclasses.dataclass
class Verdict:
    name: str
    chip: int
    problem: str = ""
    error: float = 0.0
    instructions: int = 0


def random(seed: str) -> np.random.Generator:
    return np.random.default_rng(list(seed.encode()))


def to_bf16(values: np.ndarray) -> np.ndarray:
    return attn.arrays.to_bf16(np.asarray(values, np.float32))


def from_bf16(raw: np.ndarray) -> np.ndarray:
    return attn.arrays.from_bf16(raw).astype(np.float64)


def to_fp8(values: np.ndarray, kind: str) -> np.ndarray:
    """The nearest of the numbers that a byte can hold; ties go to an even byte."""
    table = from_fp8(np.arange(256, dtype=np.uint8), kind)
    positive = table[:127] if kind == "fp8e4nv" else table[:124]
    magnitude = np.minimum(np.abs(np.asarray(values, np.float64)), positive[-1])
    index = np.clip(np.searchsorted(positive, magnitude), 1, len(positive) - 1)
    low, high = positive[index - 1], positive[index]
    closer = (magnitude - low > high - magnitude) | (
        (magnitude - low == high - magnitude) & (index % 2 == 0)
    )
    chosen = np.where(magnitude == 0, 0, np.where(closer, index, index - 1))
    return (chosen | np.where(np.signbit(values), 128, 0)).astype(np.uint8)


def from_fp8(raw: np.ndarray, kind: str) -> np.ndarray:
    mantissa, bias = (3, 7) if kind == "fp8e4nv" else (2, 15)
    bits = raw.astype(np.int64)
    sign = np.where(bits & 128, -1.0, 1.0)
    exponent, fraction = (bits & 127) >> mantissa, bits & ((1 << mantissa) - 1)
    step = 2.0**-mantissa
    normal = (1 + fraction * step) * 2.0 ** (exponent - bias)
    return sign * np.where(exponent == 0, fraction * step * 2.0 ** (1 - bias), normal)


def type_of(value: Any) -> str:
    """Triton's type of an argument."""
    if isinstance(value, Descriptor):
        return f"tensordesc<{value.type}{list(value.block)}>".replace(" ", "")
    if isinstance(value, Array):
        return f"*{value.type}"
    if isinstance(value, Empty) or (isinstance(value, np.ndarray) and value.ndim):
        return f"*{TYPES[value.dtype.name]}"
    return "i32" if isinstance(value, int) else "fp32" if isinstance(value, float) else TYPES[value.dtype.name]


def compile_case(case: Case, chip: int):
    """The compiled kernel of Triton."""
    import triton
    from triton.backends.compiler import GPUTarget

    names = case.kernel.arg_names
    variables = [name for name in names if name not in case.constants]
    assert len(variables) == len(case.args), (case.name, variables)
    types = {name: type_of(value) for name, value in zip(variables, case.args)}
    signature = {name: types.get(name, "constexpr") for name in names}
    # As the driver's allocations are aligned, and integers that are multiples of 16.
    attributes = {
        (names.index(name),): [["tt.divisibility", 16]]
        for name, value in zip(variables, case.args)
        if types[name].startswith("*") or (isinstance(value, (int, np.integer)) and value % 16 == 0)
    }
    if case.gluon:
        from triton.experimental.gluon._runtime import GluonASTSource as Source
    else:
        from triton.compiler import ASTSource as Source
    source = Source(case.kernel, signature, constexprs=case.constants, attrs=attributes)
    options = {"num_warps": case.warps, "num_ctas": case.ctas, **case.options}
    return triton.compile(source, target=GPUTarget("cuda", chip, 32), options=options)


def strides_of(array) -> list[int]:
    """Row-major, in elements."""
    result = [1]
    for extent in array.shape[:0:-1]:
        result.insert(0, result[0] * extent)
    return result


def parameters(case: Case, metadata: Any, scratch: Empty | np.uint64) -> tuple[list[Any], list[int]]:
    """The kernel's parameters, and where each argument's memory is among them."""
    maps = list(getattr(metadata, "tensordesc_meta", None) or [])
    result, places = [], []
    for value in case.args:
        places.append(len(result))
        if isinstance(value, Array):
            result.append(value.data)
        elif isinstance(value, Descriptor):
            shape, strides = list(value.data.shape), strides_of(value.data)
            tail = [np.int32(each) for each in shape] + [np.int64(each) for each in strides]
            if maps:
                result.append(map_of(value, maps.pop(0)))
            else:
                # The memory, then both twice, with two flags between.
                long = [np.int64(each) for each in shape + strides]
                result += [value.data, *long, np.int8(value.nan_padding), np.int8(0)]
            result += tail
        elif isinstance(value, (int, float)):
            result.append(np.int32(value) if isinstance(value, int) else np.float32(value))
        else:
            result.append(value)
    return [*result, scratch, np.uint64(0)], places


def map_of(value: Descriptor, meta: dict[str, Any]) -> TensorMap:
    array, size = value.data, meta["elem_size"]
    element = MAP_ELEMENTS.get(value.type, "int8")
    dims = list(array.shape[::-1])
    if meta["fp4_padded"]:
        raise NotImplementedError("padded fp4 descriptors")
    strides = [each * size for each in strides_of(array)[-2::-1]]
    return TensorMap(
        array, meta["block_size"][::-1], dims=dims, strides=strides,
        swizzle=SWIZZLES[meta["swizzle"]], element=element,
    )  # fmt: skip


def error_of(case: Case, index: int, raw: np.ndarray) -> float:
    """The relative error of a result, or infinity."""
    expected, value = np.asarray(case.expected[index]), case.args[index]
    inner = value.array if isinstance(value, Descriptor) else value
    if isinstance(inner, Array):
        got = from_bf16(raw) if inner.type == "bf16" else from_fp8(raw.view(np.uint8), inner.type)
    else:
        got = raw
    if expected.dtype.kind in "iub":
        return 0.0 if np.array_equal(got, expected) else np.inf
    got, expected = got.astype(np.float64), expected.astype(np.float64)
    same_nan = np.isnan(got) == np.isnan(expected)
    infinite = np.isinf(expected)
    if not same_nan.all() or not np.array_equal(got[infinite], expected[infinite]):
        return np.inf
    usable = ~(np.isnan(expected) | infinite)
    norm = np.linalg.norm(expected[usable])
    return float(np.linalg.norm(got[usable] - expected[usable]) / (norm or 1.0))


SCHEDULES: list[dict[str, str]] = [
    {},
    {"schedule": "random", "adversarial": "true", "reads": "completion", "writes": "completion"},
    {"schedule": "random", "reads": "issue", "writes": "issue"},
]


def run_case(case: Case, chip: int, schedules: int = 1, keep: pathlib.Path | None = None) -> Verdict:
    """Compiles and runs; the verdict says what is wrong, if anything."""
    verdict = Verdict(case.name, chip)
    try:
        compiled = compile_case(case, chip)
    except Exception as error:  # noqa: BLE001  (whatever the other compiler says)
        lines = [line for line in str(error).splitlines() if line.strip()]
        verdict.problem = f"not compiled: {type(error).__name__}: {lines[-1] if lines else ''}"
        return verdict
    ptx, metadata = compiled.asm["ptx"], compiled.metadata
    if keep:
        (keep / f"{case.name}_{chip}.ptx").write_text(ptx)
    threads = int(re.search(r"\.reqntid (\d+)", ptx)[1])
    cluster = re.search(r"\.reqnctapercluster (\d+)", ptx)
    ctas = int(cluster[1]) if cluster else 1
    size = metadata.global_scratch_size * int(np.prod(case.grid)) * ctas
    scratch = empty(size, np.uint8) if size else np.uint64(0)
    args, places = parameters(case, metadata, scratch)
    grid = (case.grid[0] * ctas, *case.grid[1:])
    for schedule in SCHEDULES[:schedules]:
        try:
            run = attn.sim.run(
                ptx, grid, args, block=threads, cluster=ctas, shared=metadata.shared, seed=1,
                threads=1, options=schedule,
            )  # fmt: skip
        except attn.SimulationError as error:
            verdict.problem = f"not run: {error}"
            return verdict
        verdict.instructions += run.counters["warp_instructions"]
        found = {each["kind"] for each in run.findings if each["severity"] == "error"}
        if not found <= case.findings.get(chip, set()) or (not run.passed and not found):
            verdict.problem = "reported: " + " | ".join(run.text.splitlines()[:4])
            return verdict
        if found and schedule:
            continue  # a race may spoil the values in another order
        for index in case.expected:
            verdict.error = max(verdict.error, error_of(case, index, run.outputs[places[index]]))
        if not verdict.error <= case.tolerance:
            verdict.problem = f"wrong: error {verdict.error:.2e}, accepted {case.tolerance:.0e}"
            return verdict
    return verdict


#: Functions that make cases.
Maker = Callable[[], list[Case]]
