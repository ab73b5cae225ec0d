"""Problems in, kernels out."""

from __future__ import annotations

import copy
import ctypes
import dataclasses
import json
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _cache, _capture, _driver, _host, _library, _regions, arrays, bundle, runtime
from .errors import CompileError, Diagnostic, DriverError, LibraryError, SimulationError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

#: The forms that a kernel goes through, in order.
RUNGS = ("problem", "plan", "tile", "barrier", "thread", "nvvm", "launch", "llvm", "ptx", "cubin")

#: Options of a problem that is not given as text.
_PROBLEM_OPTIONS = (
    "q",
    "kv_heads",
    "kv_len",
    "dv",
    "causal",
    "window",
    "softcap",
    "scale",
    "out_type",
    "layout",
    "varlen",
    "sinks",
    "descales",
    "v_transposed",
    "lse",
    "dynamic",
)


@dataclasses.dataclass(frozen=True)
class Target:
    """One target of the compiler."""

    chip: str
    #: Times ten, without suffix: 90 for sm_90a.
    compute_capability: int
    #: PTX versions times ten: the least that knows the chip, and the default.
    min_ptx: int
    default_ptx: int
    #: Most bytes of shared memory of one CTA.
    shared_bytes_per_cta: int


def targets() -> list[Target]:
    """All targets, oldest first."""
    try:
        library = _library.load()
    except LibraryError:
        described = _read_compiler()
        if described is None:
            raise
        return [Target(*row) for row in described["targets"]]
    rows = [library.attnGetTarget(index) for index in range(library.attnGetNumTargets())]
    return [
        Target(
            row.chip.text(),
            row.computeCapability,
            row.minPTX,
            row.defaultPTX,
            row.sharedBytesPerCTA,
        )
        for row in rows
    ]


def compiler_version() -> str:
    """Such as "0.1.0 (LLVM 22.1.8)"."""
    return str(_library.load().attnGetCompilerVersion().text())


#: Name of the cache's file about the compiler that filled it.
_COMPILER_KEY = "compiler"


def _read_compiler() -> dict[str, Any] | None:
    """The compiler that filled the cache, for machines that have none."""
    raw = _cache.read(_COMPILER_KEY)
    return json.loads(raw) if raw is not None else None


def _write_compiler() -> None:
    rows = [dataclasses.astuple(target) for target in targets()]
    described = json.dumps({"identity": _build_identity(), "targets": rows}).encode()
    if _cache.read(_COMPILER_KEY) != described:
        _cache.write(_COMPILER_KEY, described)


def _build_identity() -> str:
    """Tells builds of one version apart. Without a compiler it is that of the
    one that filled the cache."""
    try:
        version = compiler_version()
    except LibraryError:
        described = _read_compiler()
        if described is None:
            raise
        return str(described["identity"])
    stat = os.stat(_library.find_library())
    return f"{version} {stat.st_size} {stat.st_mtime_ns}"


@dataclasses.dataclass(frozen=True)
class Simulation:
    """A run on the simulator."""

    #: What the kernel wrote, by tensor name; bf16 and fp8 as raw bits.
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
class _Request:
    """A problem and how to compile it, as the library takes it."""

    text: str | None
    name: str
    #: What states the problem, unless the text does.
    flags: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str], ...]
    regions: _regions.Regions | None = None
    #: Contents of files that options name.
    files: tuple[str, ...] = ()

    def make(self, *more: tuple[str, str]) -> _library.Handle:
        if self.regions is None:
            options = (*self.flags, *self.options, *more)
            return _library.make_request(self.text, self.name, options)
        return _library.make_request(self._splice(), self.name, (*self.options, *more))

    def _splice(self) -> str:
        """The problem of the flags with the regions, as text."""
        assert self.regions is not None
        plain = dataclasses.replace(self, regions=None)
        return self.regions.splice(bytes(plain.run("problem")["output"]).decode())

    def key(self, *more: str) -> str:
        # The name of a file stands in remarks.
        parts = [_build_identity(), repr(self.text), self.name, repr(self.regions), *self.files]
        parts += [f"{name}={value}" for name, value in (*self.flags, *self.options)]
        return _cache.make_key(*parts, *more)

    def run(self, rung: str) -> dict[str, Any]:
        """Compiles down to `rung`."""
        library = _library.load()
        with self.make(("emit", rung)) as request:
            result = library.attnCompile(request)
        with _library.Handle("Result", result):
            diagnostics = _library.get_diagnostics(result)
            if not library.attnResultSucceeded(result):
                errors = tuple(each for each in diagnostics if each.severity == "error")
                text = library.attnResultGetDiagnosticText(result).text()
                if len(errors) != len(diagnostics):
                    text = "\n".join(str(each) for each in errors)
                raise CompileError(text, diagnostics)
            return {
                "output": library.attnResultGetOutput(result).bytes(),
                "ptx": library.attnResultGetPTX(result).text(),
                "plans": [
                    library.attnResultGetPlan(result, index).text()
                    for index in range(library.attnResultGetNumPlans(result))
                ],
                "launches": [
                    library.attnResultGetLaunch(result, index).text()
                    for index in range(library.attnResultGetNumLaunches(result))
                ],
                "remarks": [each for each in diagnostics if each.severity != "error"],
            }


class Kernel:
    """A compiled kernel. `compile` makes one; everything about it can be read."""

    def __init__(self, request: _Request, contents: dict[str, Any]) -> None:
        self._request = request
        #: What score_mod and mask_mod read, by the launch's names.
        self.captures: dict[str, Any] = {}
        #: PTX text.
        self.ptx: str = contents["ptx"]
        #: The plan, as it prints in IR.
        self.plan: str = contents["plan"]
        #: The launch record (docs/LaunchRecord.md).
        self.launch: dict[str, Any] = contents["launch"]
        #: What the passes and ptxas had to say.
        self.remarks: tuple[Diagnostic, ...] = contents["remarks"]

    def with_captures(self, tensors: Sequence[Any]) -> Kernel:
        """The same code with other tensors for score_mod and mask_mod."""
        other = copy.copy(self)
        other.captures = {f"capture{n}": tensor for n, tensor in enumerate(tensors)}
        return other

    def __repr__(self) -> str:
        return f"<attn.Kernel {self.name} for {self.chip}>"

    @property
    def name(self) -> str:
        """The name of the PTX entry."""
        return str(self.launch["kernel"])

    @property
    def chip(self) -> str:
        """The target that it was compiled for."""
        return str(self.launch["target"]["chip"])

    @property
    def cubin(self) -> bytes:
        """The machine code. Needs ptxas; made at the first use and cached."""
        key = self._request.key("cubin")
        cubin = _cache.read(key)
        if cubin is None:
            cubin = bytes(self._request.run("cubin")["output"])
            _cache.write(key, cubin)
        return cubin

    def bundle(self, path: str | os.PathLike[str] | None = None, *, cubin: bool = True) -> bytes:
        """A bundle of the kernel (docs/Bundles.md), also written to `path`. It
        has the PTX and, with `cubin`, which needs ptxas, machine code for the
        kernel's chip; attn-compile --bundle-chips adds other chips."""
        images = [bundle.Image("ptx", self.chip, self.ptx.encode())]
        if cubin:
            images.insert(0, bundle.Image("cubin", self.chip, self.cubin))
        data = bundle.write(self.launch, images)
        if path is not None:
            pathlib.Path(path).write_bytes(data)
        return data

    def mlir(self, rung: str) -> str:
        """The text of a rung: problem, plan, tile, barrier, thread, nvvm, launch,
        llvm or ptx."""
        if rung not in RUNGS or rung == "cubin":
            raise ValueError(f"expected one of {', '.join(RUNGS[:-1])}, got {rung!r}")
        return bytes(self._request.run(rung)["output"]).decode()

    def simulate(
        self,
        *,
        seed: int = 0,
        verify: bool = True,
        corners: bool = False,
        threads: int = 0,
        sizes: Mapping[str, int] | None = None,
        **inputs: ArrayLike,
    ) -> Simulation:
        """Runs the kernel on the simulator. `inputs` are row-major arrays by
        tensor name (q, k, v, ...), random where there is none, and what score_mod
        and mask_mod captured in the place of `capture0`, ...; `sizes` gives
        what they leave open, such as {"q.dim2": 300}. Raises SimulationError
        when the launch cannot start, TypeError for elements of another type."""
        library = _library.load()
        dtypes = {tensor["name"]: tensor["dtype"] for tensor in self.launch["tensors"]}
        inputs = {**{n: _capture.to_numpy(each) for n, each in self.captures.items()}, **inputs}
        with _library.Handle("Simulation", library.attnSimulationCreate()) as run:
            library.attnSimulationSetSeed(run, seed)
            library.attnSimulationSetVerify(run, verify)
            library.attnSimulationSetCorners(run, corners)
            library.attnSimulationSetThreads(run, threads)
            for name, size in (sizes or {}).items():
                library.attnSimulationSetSize(run, _library.ref(name), size)
            for name, value in inputs.items():
                if name not in dtypes:
                    raise SimulationError(
                        f'array "{name}": expected one of {", ".join(dtypes)} '
                        f"for kernel {self.name}"
                    )
                _set_input(run, name, value, dtypes[name])
            with self._request.make() as request:
                report = library.attnSimulate(
                    _library.ref(self.ptx), _library.ref(json.dumps(self.launch)), request, run
                )
        with _library.Handle("Report", report):
            if not library.attnReportRan(report):
                raise SimulationError(
                    f"kernel {self.name}: {library.attnReportGetError(report).text()}"
                )
            return Simulation(
                _get_outputs(report),
                json.loads(library.attnReportGetJSON(report).text()),
                library.attnReportGetText(report).text(),
                library.attnReportPassed(report),
            )

    def run(self, **inputs: ArrayLike) -> dict[str, NDArray[np.generic]]:
        """What the kernel writes, by tensor name: on device 0 where there is a
        GPU, else on the simulator. Inputs as in `simulate`, but all of them.
        Copies to the GPU and back: for tensors that are there, `attention` and
        bundles are the fast ways."""
        inputs = {**{n: _capture.to_numpy(each) for n, each in self.captures.items()}, **inputs}
        if not _host.has_device():
            run: Any = self.simulate
            outputs: dict[str, NDArray[np.generic]] = run(verify=False, **inputs).outputs
            return outputs
        return _host.launch(self.load(), inputs)

    def load(self) -> runtime.LoadedKernel:
        """The kernel as `attn.runtime` launches it. Without ptxas the driver
        translates the PTX, or says what is wrong."""
        images = [bundle.Image("ptx", self.chip, self.ptx.encode())]
        try:
            images.insert(0, bundle.Image("cubin", self.chip, self.cubin))
        except (CompileError, LibraryError):
            pass
        return runtime.LoadedKernel(bundle.Bundle(self.launch, tuple(images)))


def _set_input(run: int, name: str, value: ArrayLike, dtype: str) -> None:
    array = arrays.to_elements(name, value, dtype)
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    _library.load().attnSimulationSetInput(
        run,
        _library.ref(name),
        _library.ref(dtype),
        shape,
        array.ndim,
        array.ctypes.data,
        array.nbytes,
    )


def _get_outputs(report: int) -> dict[str, NDArray[np.generic]]:
    import numpy as np

    library = _library.load()
    outputs = {}
    for index in range(library.attnReportGetNumTensors(report)):
        tensor = library.attnReportGetTensor(report, index)
        if tensor.written:
            raw = ctypes.string_at(tensor.data, tensor.numBytes)
            carrier, _ = arrays.CARRIERS[tensor.dtype.text()]
            array = np.frombuffer(bytearray(raw), dtype=carrier)
            outputs[tensor.name.text()] = array.reshape(tensor.shape[: tensor.rank])
    return outputs


def _format_option(name: str, value: object) -> str:
    """An option's value as attn-compile's flag takes it."""
    if value is True:
        return "" if name == "causal" else "true"
    if isinstance(value, (str, int, float)):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if name == "window" and isinstance(value, Sequence):
        return ",".join("-1" if each is None else str(each) for each in value)
    raise TypeError(f"{name}: expected a string or a number, got {type(value).__name__}")


def _make_options(flags: Mapping[str, object]) -> list[tuple[str, str]]:
    options = []
    for name, value in flags.items():
        if name not in _PROBLEM_OPTIONS:
            raise TypeError(
                f"compile() has no option {name!r}; a problem has {', '.join(_PROBLEM_OPTIONS)}"
            )
        if value is None or (name == "causal" and value is False):
            continue
        options.append((name.replace("_", "-"), _format_option(name, value)))
    return options


def _decode(raw: bytes) -> dict[str, Any]:
    contents: dict[str, Any] = json.loads(raw)

    def revive(record: dict[str, Any]) -> Diagnostic:
        notes = tuple(revive(note) for note in record.pop("notes"))
        return Diagnostic(notes=notes, **record)

    contents["remarks"] = tuple(revive(record) for record in contents["remarks"])
    return contents


def _encode(contents: dict[str, Any]) -> bytes:
    remarks = [dataclasses.asdict(each) for each in contents["remarks"]]
    return json.dumps({**contents, "remarks": remarks}).encode()


def _compile(request: _Request) -> dict[str, Any]:
    result = request.run("ptx")
    if len(result["launches"]) != 1:
        raise CompileError(
            f"expected one kernel with a launch record, got {len(result['launches'])}"
        )
    return {
        "ptx": result["ptx"],
        "plan": "\n".join(result["plans"]),
        "launch": json.loads(result["launches"][0]),
        "remarks": tuple(result["remarks"]),
    }


def compile(
    problem: str | os.PathLike[str] | None = None,
    *,
    chip: str = "sm_80",
    plan: Mapping[str, object] | None = None,
    schedule: str | None = None,
    epilogue: str | None = None,
    plan_table: str | os.PathLike[str] | None = None,
    shipped_plans: bool = True,
    debug_lines: bool = False,
    cache: bool = True,
    score_mod: Callable[..., Any] | _regions.Mod | None = None,
    mask_mod: Callable[..., Any] | _regions.Mod | None = None,
    **flags: object,
) -> Kernel:
    """Compiles an attention problem.

    `problem` is MLIR text, or a path to a file of it. Without one, the problem
    comes from `flags`, which are attn-compile's: q="4x32x4096x128xf16",
    kv_heads, kv_len, dv, causal (True, "top-left", "bottom-right"), window
    ((left, right)), softcap, scale, out_type, layout, varlen, sinks, descales,
    v_transposed, lse, dynamic. `score_mod(score, b, h, q_idx, kv_idx)` and `mask_mod(b, h, q_idx,
    kv_idx)` are traced to the problem's regions (docs/Python.md). The chip
    "native" is that of device 0, or sm_80 without a GPU. `plan` fixes
    parameters of the plan by name. Without `plan` and `schedule`, measured plans
    come before the cost model's: those of the file `plan_table`, then, with
    `shipped_plans`, the compiler's own (docs/Autotuning.md).

    Kernels are cached in memory and on disk, by problem, plan, chip and
    compiler. Raises CompileError with the compiler's text and places.
    """
    name = "<problem>"
    if isinstance(problem, os.PathLike):
        name = os.fspath(problem)
        problem = pathlib.Path(problem).read_text(encoding="utf-8")
    if problem is not None and (score_mod is not None or mask_mod is not None):
        raise TypeError("score_mod and mask_mod go with flags; a problem as text has regions")
    mods = [
        _regions.trace(kind, function) if function is not None else None
        for kind, function in (("score_mod", score_mod), ("mask_mod", mask_mod))
    ]
    # simulate() takes row-major arrays.
    regions = _regions.combine(mods[0], mods[1], _capture.Spec.row_major)
    tensors = [tensor for mod in mods if mod is not None for tensor in mod.tensors]
    options = [("chip", _get_native_chip() if chip == "native" else chip)]
    if schedule is not None:
        options.append(("schedule", schedule))
    if epilogue is not None:
        options.append(("epilogue", epilogue))
    files: tuple[str, ...] = ()
    if plan_table is not None:
        options.append(("plan-table", os.fspath(plan_table)))
        files = (pathlib.Path(plan_table).read_text(encoding="utf-8"),)
    if not shipped_plans:
        options.append(("shipped-plans", "false"))
    if debug_lines:
        options.append(("debug-lines", "true"))
    options += [("set", f"{key}={value}") for key, value in (plan or {}).items()]
    flag_options = tuple(_make_options(flags))
    request = _Request(problem, name, flag_options, tuple(options), regions, files)
    return _get_kernel(request, tensors, cache)


def get_chip(major: int, minor: int) -> str:
    """The target for a compute capability: its own, else the newest without
    suffix that is not newer than it."""
    capability = 10 * major + minor
    rows = targets()
    for row in rows:
        if row.compute_capability == capability:
            return row.chip
    older = [row for row in rows if row.compute_capability < capability and row.chip[-1].isdigit()]
    if not older:
        raise DriverError(f"no target for compute capability {major}.{minor}")
    return older[-1].chip


def _get_native_chip() -> str:
    if not _host.has_device():
        return "sm_80"
    device = _driver.get_device(0)
    return get_chip(device.major, device.minor)


def compile_flags(
    chip: str, flags: Mapping[str, object], regions: _regions.Regions | None
) -> Kernel:
    """As `compile`, for regions that are traced already."""
    options = (("chip", chip),)
    request = _Request(None, "<problem>", tuple(_make_options(flags)), options, regions)
    return _get_kernel(request, (), cache=True)


def _get_kernel(request: _Request, tensors: Sequence[Any], cache: bool) -> Kernel:
    """The kernel of a request, compiled unless it is in the cache."""
    if not cache:
        return Kernel(request, _compile(request)).with_captures(tensors)
    key = request.key("ptx")
    kernel = _cache.get_object(key)
    if not isinstance(kernel, Kernel):
        raw = _cache.read(key)
        if raw is not None:
            contents = _decode(raw)
        else:
            contents = _compile(request)
            _cache.write(key, _encode(contents))
            _write_compiler()
        kernel = _cache.put_object(key, Kernel(request, contents))
    assert isinstance(kernel, Kernel)
    return kernel.with_captures(tensors) if tensors else kernel
