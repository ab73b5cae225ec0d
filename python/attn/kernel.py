"""Problems in, kernels out."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import bundle, record, runtime
from .compiler import builds, c_library, kernel_cache, long_calls, plan_notes, plan_options
from .compiler.builds import Target, compiler_version, get_chip, get_native_chip, targets
from .compiler.simulation import Settings, Simulation, simulate
from .errors import (
    ArgumentError,
    ArgumentTypeError,
    CompileError,
    Diagnostic,
    LibraryError,
    RecordError,
)
from .launch import events, host_arrays
from .options import readers
from .tensors import host_tensors, padding
from .tracing import captured_reads, mod_regions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

#: The forms that a kernel goes through, in order.
RUNGS = ("problem", "plan", "tile", "barrier", "thread", "nvvm", "launch", "llvm", "ptx", "cubin")


@dataclasses.dataclass(frozen=True)
class _Request:
    """A problem and how to compile it, as the library takes it."""

    text: str | None
    name: str
    #: What states the problem, unless the text does.
    flags: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str], ...]
    regions: mod_regions.Regions | None = None
    #: Contents of files that options name.
    files: tuple[str, ...] = ()

    def describe(self) -> str:
        """The problem and the chip, for a line of a log."""
        flags = " ".join(f"{name}={value}" if value else name for name, value in self.flags)
        chip = dict(self.options).get("chip", "")
        regions = "" if self.regions is None else " with functions"
        return f"{flags or self.name}{regions} for {chip}"

    def make(self, *more: tuple[str, str]) -> c_library.Handle:
        if self.regions is None:
            options = (*self.flags, *self.options, *more)
            return c_library.make_request(self.text, self.name, options)
        return c_library.make_request(self._splice(), self.name, (*self.options, *more))

    def _splice(self) -> str:
        """The problem of the flags with the regions, as text."""
        assert self.regions is not None
        plain = dataclasses.replace(self, regions=None)
        return self.regions.splice(bytes(plain.run("problem")["output"]).decode())

    def key(self, *more: str) -> str:
        # The name of a file stands in remarks.
        parts = [builds.get_identity(), repr(self.text), self.name, repr(self.regions), *self.files]
        parts += [f"{name}={value}" for name, value in (*self.flags, *self.options)]
        return kernel_cache.make_key(*parts, *more)

    def run(self, rung: str) -> dict[str, Any]:
        """Compiles down to `rung`. Ctrl-C is heard at once."""
        return long_calls.run_interruptible("compilation", lambda: self._run(rung))

    def _run(self, rung: str) -> dict[str, Any]:
        library = c_library.load()
        with self.make(("emit", rung)) as request:
            result = library.attnCompile(request)
        with c_library.Handle("Result", result):
            diagnostics = c_library.get_diagnostics(result)
            if not library.attnResultSucceeded(result):
                errors = tuple(each for each in diagnostics if each.severity == "error")
                text = library.attnResultGetDiagnosticText(result).text()
                if len(errors) != len(diagnostics):
                    text = "\n".join(str(each) for each in errors)
                named = tuple(map(_name_arguments, diagnostics))
                raise CompileError(readers.name_arguments(text), named)
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


def _name_arguments(diagnostic: Diagnostic) -> Diagnostic:
    notes = tuple(map(_name_arguments, diagnostic.notes))
    message = readers.name_arguments(diagnostic.message)
    return dataclasses.replace(diagnostic, message=message, notes=notes)


class Kernel:
    """A compiled kernel. `compile` makes one; everything about it can be read."""

    def __init__(self, request: _Request, contents: dict[str, Any]) -> None:
        self._request = request
        #: Tensors that score_mod, mask_mod and out_mod read, by the launch's names.
        self.captures: dict[str, Any] = {}
        #: Columns of tensors that the kernel has more of, since `pad` asked for it.
        self._columns: dict[str, int] = {}
        #: PTX text.
        self.ptx: str = contents["ptx"]
        #: The plan, as it prints in IR.
        self.plan: str = contents["plan"]
        #: The launch record (docs/LaunchRecord.md).
        self.launch: dict[str, Any] = contents["launch"]
        #: What the passes and ptxas had to say.
        self.remarks: tuple[Diagnostic, ...] = contents["remarks"]
        #: Why the chip's matrix instructions are not used, if they are not: the options that its
        #: own schedule refused, one text for each problem. And what became of the conditions
        #: of mask_mod, one text for each.
        self.plan_notes: tuple[str, ...] = plan_notes.find_notes(self.remarks)

    def with_captures(self, tensors: Sequence[Any]) -> Kernel:
        """The same code with other tensors for score_mod, mask_mod and out_mod."""
        other = copy.copy(self)
        other.captures = {f"capture{n}": tensor for n, tensor in enumerate(tensors)}
        return other

    def with_columns(self, columns: Mapping[str, int]) -> Kernel:
        """The same code for tensors of so many columns, which runs and simulations pad."""
        other = copy.copy(self)
        other._columns = dict(columns)
        return other

    def _widen(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Arrays of a run as the kernel takes them."""
        inputs = {
            **{n: captured_reads.to_numpy(each) for n, each in self.captures.items()},
            **inputs,
        }
        return padding.widen_inputs(inputs, self._columns, self.launch)

    def _cut(self, outputs: Mapping[str, NDArray[np.generic]]) -> dict[str, NDArray[np.generic]]:
        """Outputs without the columns that padding added."""
        return {
            name: each[..., : self._columns[name]] if name in self._columns else each
            for name, each in outputs.items()
        }

    def __repr__(self) -> str:
        return f"<attn.Kernel {self.name} for {self.chip}, {record.describe_proofs(self.launch)}>"

    @property
    def proofs(self) -> dict[str, record.Proof | None]:
        """What was shown of each kernel's synchronisation, by its name; None
        where nobody looked."""
        return record.read_proofs(self.launch)

    @property
    def name(self) -> str:
        """The name of the PTX entry; of several steps, all of their names."""
        if "steps" in self.launch:
            return ", ".join(str(step["kernel"]) for step in self.launch["steps"])
        return str(self.launch["kernel"])

    @property
    def chip(self) -> str:
        """The target that it was compiled for."""
        return str(self.launch["target"]["chip"])

    def _has_cubin(self) -> bool:
        """Whether `cubin` is in the cache or can be made."""
        if kernel_cache.read(self._request.key("cubin", builds.get_assembler())) is not None:
            return True
        with contextlib.suppress(LibraryError):
            return bool(c_library.load().attnGetAssemblerVersion().text())
        return False

    @property
    def cubin(self) -> bytes:
        """The machine code. Needs ptxas; made at the first use and cached."""
        key = self._request.key("cubin", builds.get_assembler())
        cubin = kernel_cache.read(key)
        if cubin is None:
            make = lambda: self._request.run("cubin")  # noqa: E731
            cubin = bytes(events.time_call("assembled:", self._request.describe(), make)["output"])
            kernel_cache.write(key, cubin)
            builds.write_compiler()
        return cubin

    def bundle(
        self, path: str | os.PathLike[str] | None = None, *, cubin: bool | None = None
    ) -> bytes:
        """A bundle of the kernel (docs/Bundles.md), also written to `path`. It
        has the PTX and machine code for the kernel's chip: with `cubin` None
        where there is a ptxas that runs, with True always, which raises
        CompileError without one; attn-compile --bundle-chips adds other chips."""
        images = [bundle.Image("ptx", self.chip, self.ptx.encode())]
        if cubin is None:
            cubin = self._has_cubin()
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
            raise ArgumentError(f"expected one of {', '.join(RUNGS[:-1])}, got {rung!r}")
        return bytes(self._request.run(rung)["output"]).decode()

    def simulate(
        self,
        *,
        seed: int = 0,
        verify: bool | str = True,
        corners: bool = False,
        threads: int = 0,
        sizes: Mapping[str, int] | None = None,
        progress: long_calls.Show = True,
        **inputs: ArrayLike,
    ) -> Simulation:
        """Runs the kernel on the simulator. `inputs` are arrays, or torch tensors in host memory,
        by tensor name (q, k, v, ...), random where there is none, and what score_mod and mask_mod
        captured in the place of `capture0`, ...; `amax` is what is there before, 0 without it; `sizes` gives what they leave open, such as
        {"q.dim2": 300}. `verify="quick"` runs 64 CTAs that the seed draws, and compares the rows
        that they write; other rows of the outputs mean nothing. A run of more than two seconds says
        on standard error how far it is, or calls `progress(phase, fraction, seconds_left)`;
        `progress=False` is silent, and Ctrl-C ends it. Raises SimulationError when the launch
        cannot start, TypeError for elements of another type."""
        settings = Settings(seed, verify, corners, threads, sizes, progress)
        taken, give = host_tensors.take_inputs(inputs, self.launch)
        request = self._request.make()
        run = simulate(self.name, self.ptx, self.launch, request, self._widen(taken), settings)
        return dataclasses.replace(run, outputs=give(self._cut(run.outputs)))

    def run(self, **inputs: ArrayLike) -> dict[str, NDArray[np.generic]]:
        """What the kernel writes, by tensor name: on device 0 where there is a
        GPU, else on the simulator. Inputs as in `simulate`, but all of them.
        Copies to the GPU and back: for tensors that are there, `attention` and
        bundles are the fast ways."""
        given = {
            **{n: captured_reads.to_numpy(each) for n, each in self.captures.items()},
            **inputs,
        }
        read = [each["name"] for each in self.launch["tensors"] if each["access"] == "read"]
        updated = [each["name"] for each in self.launch["tensors"] if each["access"] == "update"]
        for name in (*given, *read):
            if name not in (*read, *updated):
                known = ", ".join((*read, *updated))
                raise ArgumentError(
                    f'kernel {self.name}: tensor "{name}": expected one of {known}'
                )
            if name not in given and name in read:
                raise ArgumentError(
                    f'kernel {self.name}: tensor "{name}": missing; the kernel reads '
                    f"{', '.join(read)}"
                )
        if not host_arrays.has_device():
            run: Any = self.simulate
            simulated: dict[str, NDArray[np.generic]] = run(verify=False, **inputs).outputs
            return simulated
        taken, give = host_tensors.take_inputs(inputs, self.launch)
        return give(self._cut(host_arrays.launch(self.load(), self._widen(taken))))

    def load(self) -> runtime.LoadedKernel:
        """The kernel as `attn.runtime` launches it. Without ptxas the driver
        translates the PTX, or says what is wrong."""
        images = [bundle.Image("ptx", self.chip, self.ptx.encode())]
        try:
            images.insert(0, bundle.Image("cubin", self.chip, self.cubin))
        except (CompileError, LibraryError):
            pass
        return runtime.LoadedKernel(bundle.Bundle(self.launch, tuple(images)))


def _decode(raw: bytes) -> dict[str, Any] | None:
    """What a file of the cache holds; None where that is no kernel: whoever can write files
    can write hashes, too."""

    def revive(remark: dict[str, Any]) -> Diagnostic:
        notes = tuple(revive(note) for note in remark.pop("notes"))
        return Diagnostic(notes=notes, **remark)

    try:
        contents = json.loads(raw)
        remarks = tuple(revive(remark) for remark in contents["remarks"])
        found = {name: contents[name] for name in ("ptx", "plan", "launch")}
        record.Binder(found["launch"])
        record.read_proofs(found["launch"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, RecordError):
        return None
    texts = [found["ptx"], found["plan"], *(each.message for each in remarks)]
    return found | {"remarks": remarks} if all(isinstance(each, str) for each in texts) else None


def _encode(contents: dict[str, Any]) -> bytes:
    remarks = [dataclasses.asdict(each) for each in contents["remarks"]]
    return json.dumps({**contents, "remarks": remarks}).encode()


def _compile(request: _Request) -> dict[str, Any]:
    result = events.time_call("compiled:", request.describe(), lambda: request.run("ptx"))
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


def compile_problem(
    problem: str | os.PathLike[str] | None,
    flags: Mapping[str, Any],
    functions: tuple[Callable[..., Any] | mod_regions.Mod | None, ...],
    *,
    chip: str,
    plan: Mapping[str, object] | None,
    schedule: str | None,
    epilogue: str | None,
    plan_table: str | os.PathLike[str] | None,
    shipped_plans: bool,
    split_keys: bool,
    partials: str,
    debug_lines: bool,
    cache: bool,
    read_masks: bool | None = None,
    board: str | None = None,
    assemble_check: bool = False,
    pad: bool = False,
) -> Kernel:
    """attn.compile: `flags` has what states the problem without `problem`,
    `functions` is score_mod, mask_mod and out_mod."""
    written = readers.format_flags(flags)
    columns: dict[str, int] = {}
    if readers.to_bool("pad", pad):
        written, columns = padding.pad_flags(written, problem is not None)
    text, name = _read_problem(problem)
    if text is not None and any(function is not None for function in functions):
        raise ArgumentTypeError(
            "score_mod, mask_mod and out_mod go with q=...; a problem as text or file has regions"
        )
    mods = [
        mod_regions.trace(kind, function) if function is not None else None
        for kind, function in zip(("score_mod", "mask_mod", "out_mod"), functions, strict=True)
    ]
    # simulate() takes row-major arrays.
    regions = mod_regions.combine(mods[0], mods[1], mods[2], captured_reads.Spec.row_major)
    tensors = [tensor for mod in mods if mod is not None for tensor in mod.tensors]
    target = readers.to_text("chip", chip)
    options = [("chip", builds.get_native_chip() if target == "native" else target)]
    if schedule is not None:
        options.append(("schedule", readers.to_text("schedule", schedule)))
    if epilogue is not None:
        options.append(("epilogue", readers.to_text("epilogue", epilogue)))
    files: tuple[str, ...] = ()
    if plan_table is not None:
        path = readers.to_path("plan_table", plan_table)
        options.append(("plan-table", path))
        files = (_read_text(path),)
    more, texts = plan_options.read(board, assemble_check, builds.get_assembler)
    options, files = options + more, files + texts
    if not readers.to_bool("shipped_plans", shipped_plans):
        options.append(("shipped-plans", "false"))
    if not readers.to_bool("split_keys", split_keys):
        options.append(("split-keys", "false"))
    if readers.to_text("partials", partials) != "auto":
        options.append(("partials", partials))
    if readers.to_bool("debug_lines", debug_lines):
        options.append(("debug-lines", "true"))
    options += plan_options.get_mask_options(read_masks) + readers.format_plan(plan)
    request = _Request(text, name, written, tuple(options), regions, files)
    kernel = _get_kernel(request, tensors, readers.to_bool("cache", cache))
    return kernel.with_columns(columns) if columns else kernel


def _read_problem(problem: str | os.PathLike[str] | None) -> tuple[str | None, str]:
    """A problem's text and the name that diagnostics give it."""
    if problem is not None and not isinstance(problem, (str, os.PathLike)):
        raise ArgumentTypeError(
            f"problem: expected MLIR text or a path, got {type(problem).__name__}; q=(batch, "
            "heads, queries, head dimension) with dtype states one by numbers"
        )
    if problem is None:
        return problem, "<problem>"
    if isinstance(problem, str):
        is_path = "\n" not in problem and (problem.endswith(".mlir") or os.path.isfile(problem))
        if not is_path:
            return problem, "<problem>"
    path = readers.to_path("problem", problem)
    return _read_text(path), path


def _read_text(path: str) -> str:
    """The text of a file that the caller names; OSError of one that cannot be read."""
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except ValueError as error:
        raise CompileError(f"error: cannot read {path!r}: {error}") from error


def _request_flags(
    chip: str,
    flags: Mapping[str, object],
    regions: mod_regions.Regions | None,
    schedule: str | None = None,
) -> _Request:
    options = [("chip", chip), *plan_options.get_mask_options(None)]
    if schedule is not None:
        options.append(("schedule", schedule))
    return _Request(None, "<problem>", readers.format_flags(flags), tuple(options), regions)


def compile_flags(
    chip: str,
    flags: Mapping[str, object],
    regions: mod_regions.Regions | None,
    schedule: str | None = None,
) -> Kernel:
    """As `compile`, for regions that are traced already."""
    return _get_kernel(_request_flags(chip, flags, regions, schedule), (), cache=True)


def is_compiled(
    chip: str, flags: Mapping[str, object], regions: mod_regions.Regions | None
) -> bool:
    """Whether `compile_flags` finds the kernel in the cache."""
    key = _request_flags(chip, flags, regions).key("ptx")
    return kernel_cache.get_object(key) is not None or kernel_cache.read(key) is not None


def compile_open_keys(
    chip: str, flags: Mapping[str, object], regions: mod_regions.Regions | None
) -> Kernel:
    """As `compile_flags`, for any number of keys. The plan and the number of runs are those of
    the `kv_len` of `flags`, a number that no other extent has."""
    request = _request_flags(chip, flags, regions)
    key = request.key("plan")
    text = kernel_cache.read(key)
    if text is None:
        text = bytes(request.run("plan")["output"])
        kernel_cache.write(key, text)
    opened = text.decode().replace(f"x{flags['kv_len']}x", "x?x")
    return _get_kernel(_Request(opened, "<problem>", (), request.options), (), cache=True)


def _get_kernel(request: _Request, tensors: Sequence[Any], cache: bool) -> Kernel:
    """The kernel of a request, compiled unless it is in the cache."""
    if not cache:
        return Kernel(request, _compile(request)).with_captures(tensors)
    key = request.key("ptx")
    kernel = kernel_cache.get_object(key)
    if not isinstance(kernel, Kernel):
        raw = kernel_cache.read(key)
        contents = None if raw is None else _decode(raw)
        if contents is not None:
            events.tell("cached: %s", request.describe())
        else:
            contents = _compile(request)
            kernel_cache.write(key, _encode(contents))
            builds.write_compiler()
        kernel = kernel_cache.put_object(key, Kernel(request, contents))
    assert isinstance(kernel, Kernel)
    return kernel.with_captures(tensors) if tensors else kernel
