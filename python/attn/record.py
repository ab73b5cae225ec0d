"""Launch records: what a launch of a kernel needs (docs/LaunchRecord.md).

`Binder` checks the tensors of a launch against a record and computes grid,
workspace sizes and parameter bytes from both. Needs the standard library only.
"""

from __future__ import annotations

import dataclasses
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from .arrays import CARRIERS
from .errors import ArgumentError, RecordError
from .launch.shared_sizes import check_sizes
from .launch.size_expr import Lookup, SizeExpr
from .launch.tensor_map import MAP_VIEWS, TensorMap, TensorView, get_map_rank, make_map

#: The last version that this package reads.
VERSION = 2
#: Stands for a size or stride that the launch decides.
DYNAMIC = -1
#: What every address and open stride of these tensors is a multiple of, in
#: bytes.
_ROW_ALIGNMENT = 16
_ROW_TENSORS = ("q", "k", "v", "o", "partial_o")
#: Most CTAs in x, y, z.
_GRID_LIMITS = (2**31 - 1, 65535, 65535)
#: Most tiles that CTAs deal among themselves: their numbers have 32 bits, and go
#: on by one for each CTA behind the last.
_MOST_TILES = 2**31 - 2**16
#: What a kernel does with a tensor: `update` reads and writes it.
_ACCESS = ("read", "write", "update")
#: struct's format of each scalar type; bf16 and fp8 are not scalars of kernels.
_FORMATS = {
    "f16": "<e",
    "f32": "<f",
    "f64": "<d",
    "i8": "<b",
    "i16": "<h",
    "i32": "<i",
    "i64": "<q",
    "u8": "<B",
    "u16": "<H",
    "u32": "<I",
    "u64": "<Q",
}


@dataclasses.dataclass(frozen=True)
class LaunchStep:
    """What follows for one step."""

    #: CTAs in x, y, z; a zero means that there is nothing to compute.
    grid: tuple[int, int, int]
    #: Parameters with sizes and strides; addresses are filled in by each call.
    parameters: bytes
    tensor_maps: tuple[TensorMap, ...]


@dataclasses.dataclass(frozen=True)
class Launch:
    """What follows from a record and the shapes of its tensors."""

    steps: tuple[LaunchStep, ...]
    workspace_bytes: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Workspace:
    """Memory of a launch beside its tensors, the same for all steps."""

    #: What messages call it; empty without a name.
    name: str
    bytes: SizeExpr
    #: It has to hold zeros at the start, and with `persistent` at that of the
    #: first call only.
    zeroed: bool
    #: It holds zeros again at the end.
    restored: bool
    #: What one call leaves is there for the next one.
    persistent: bool


@dataclasses.dataclass(frozen=True)
class Proof:
    """What the check of a kernel's synchronisation said (docs/BarrierCheck.md)."""

    #: proved, bounded (nothing was wrong as far as it was followed) or unchecked.
    verdict: str
    #: Which orders counted, isa or hw; empty where nothing was followed.
    profile: str = ""
    #: What the proof rests on beyond the profile, such as A4 (docs/Simulator.md).
    assumptions: tuple[str, ...] = ()
    #: Tiles in a row that were followed, where it is bounded.
    tiles: int = 0
    #: Why it is not proved.
    reason: str = ""

    def __str__(self) -> str:
        text = ", ".join(each for each in (self.profile, *self.assumptions) if each)
        text = self.verdict + (f" ({text})" if text else "")
        return f"{text}: {self.reason}" if self.reason else text


def _read_proof(step: Mapping[str, Any], path: str) -> Proof | None:
    """A step's verdict; records that say nothing of it have none."""
    if "proof" not in step:
        return None
    proof = _get(step, "proof", dict, path)
    path += "proof."
    assumptions = _get(proof, "assumptions", list, path) if "assumptions" in proof else []
    if not all(isinstance(each, str) for each in assumptions):
        raise RecordError(
            f"launch record: {path}assumptions: expected strings, got {assumptions!r}"
        )
    return Proof(
        verdict=_get(proof, "verdict", str, path),
        profile=_get(proof, "profile", str, path) if "profile" in proof else "",
        assumptions=tuple(assumptions),
        tiles=_get(proof, "tiles", int, path) if "tiles" in proof else 0,
        reason=_get(proof, "reason", str, path) if "reason" in proof else "",
    )


def read_proofs(record: Mapping[str, Any]) -> dict[str, Proof | None]:
    """The verdict on each kernel of a record, None where nobody looked."""
    steps = record["steps"] if "steps" in record else [record]
    return {
        _get(step, "kernel", str, path): _read_proof(step, path)
        for step, path in (
            (step, f"steps[{index}]." if "steps" in record else "")
            for index, step in enumerate(steps)
        )
    }


def describe_proofs(record: Mapping[str, Any]) -> str:
    """One line: the verdict, or of kernels that differ in it each one's."""
    texts = {name: str(proof or "not checked") for name, proof in read_proofs(record).items()}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{name} {text}" for name, text in texts.items())


def get_contiguous_axis(strides: Sequence[int]) -> int:
    """The dimension along which rows lie: the last one, or the one before it."""
    last = len(strides) - 1
    return last - 1 if last > 0 and strides[last] != 1 and strides[last - 1] == 1 else last


def _print_extents(extents: Sequence[int]) -> str:
    return "[" + ", ".join("?" if each == DYNAMIC else str(each) for each in extents) + "]"


def _get(container: Any, key: str, kind: type, path: str) -> Any:
    if not isinstance(container, dict) or key not in container:
        raise RecordError(f"launch record: {path}{key}: missing")
    value = container[key]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise RecordError(
            f"launch record: {path}{key}: expected {kind.__name__}, got {type(value).__name__}"
        )
    return value


def _get_integers(container: Any, key: str, path: str, count: int | None = None) -> tuple[int, ...]:
    values = _get(container, key, list, path)
    if not all(type(value) is int for value in values) or count not in (None, len(values)):
        wanted = "integers" if count is None else f"{count} integers"
        raise RecordError(f"launch record: {path}{key}: expected {wanted}, got {values!r}")
    return tuple(values)


def _get_strides(tensor: Any, shape: tuple[int, ...], path: str) -> tuple[int, ...]:
    """Those of a tensor; without any it is row-major, as far as its shape is known."""
    if "strides" in tensor:
        return _get_integers(tensor, "strides", path, len(shape))
    if DYNAMIC in shape:
        return (DYNAMIC,) * len(shape)
    return tuple(
        math.prod(max(each, 1) for each in shape[axis + 1 :]) for axis in range(len(shape))
    )


def _get_flag(container: Any, key: str, path: str) -> bool:
    """A flag that may be left out."""
    return key in container and bool(_get(container, key, bool, path))


def _get_extents(container: Any, key: str, kinds: tuple[type, ...], path: str) -> list[Any]:
    """One to three extents, or one without a list; those that are not there are 1."""
    if not isinstance(container, dict) or key not in container:
        raise RecordError(f"launch record: {path}{key}: missing")
    given = container[key]
    values = given if isinstance(given, list) else [given]
    if not 1 <= len(values) <= 3 or not all(type(value) in kinds for value in values):
        wanted = " or ".join("expressions" if kind is str else "integers" for kind in kinds)
        raise RecordError(f"launch record: {path}{key}: expected 1 to 3 {wanted}, got {given!r}")
    return values + [1] * (3 - len(values))


class Step:
    """One kernel of a record: how it is launched, and its parameters."""

    def __init__(self, record: Mapping[str, Any], path: str, binder: Binder) -> None:
        self.path = path
        self.kernel: str = _get(record, "kernel", str, path)
        self.block = tuple(_get_extents(record, "block", (int,), path))
        self.cluster = (1, 1, 1)
        if "cluster" in record:
            self.cluster = tuple(_get_extents(record, "cluster", (int,), path))
        self.shared_bytes: int = 0
        if "shared_bytes" in record:
            self.shared_bytes = _get(record, "shared_bytes", int, path)
        if min(*self.block, *self.cluster) < 1 or self.shared_bytes < 0:
            raise RecordError("launch record: expected block and cluster of at least 1")
        grid = _get_extents(record, "grid", (int, str), path)
        self.grid = [SizeExpr(str(extent)) for extent in grid]
        #: Tiles that the CTAs deal among themselves, where a launch may have too many.
        self.tiles: SizeExpr | None = None
        if "tiles" in record:
            self.tiles = SizeExpr(str(record["tiles"]))
        self.cooperative = _get_flag(record, "cooperative", path)
        self.programmatic = _get_flag(record, "programmatic", path)
        self.args = [
            binder.read_arg(arg, f"{path}args[{index}].")
            for index, arg in enumerate(_get(record, "args", list, path))
        ]
        #: Values of the parameters that are expressions.
        self.expressions = {
            index: SizeExpr(arg["value"])
            for index, arg in enumerate(self.args)
            if arg["kind"] == "expression"
        }
        self._lay_out()

    @property
    def uses_device(self) -> bool:
        """Whether the launch depends on the device's multiprocessors."""
        return any(each.uses_device for each in (*self.grid, *self.expressions.values()))

    def _lay_out(self) -> None:
        """Each parameter lies at its own alignment."""
        #: Offset of each parameter; `parameter_bytes` is the end of the last.
        self.offsets: list[int] = []
        offset = 0
        for arg in self.args:
            size = align = 8
            if arg["kind"] == "tensor_map":
                size, align = 128, 64
            elif arg["kind"] in ("size", "stride", "scalar", "expression"):
                size = align = CARRIERS[arg["type"]][1]
            offset = -(-offset // align) * align
            self.offsets.append(offset)
            offset += size
        self.parameter_bytes = offset
        places = list(zip(self.args, self.offsets, strict=True))
        #: (tensor, offset) and (workspace, offset) of the addresses.
        self.pointers = [(a["tensor"], o) for a, o in places if a["kind"] == "pointer"]
        self.workspaces = [(a["index"], o) for a, o in places if a["kind"] == "workspace"]


class Binder:
    """A record that was read and checked, ready for launches."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        version = _get(record, "version", int, "")
        if not 1 <= version <= VERSION:
            newer = "; a newer attn or attn-runtime reads it" if version > VERSION else ""
            raise RecordError(
                f"launch record: version: expected 1 to {VERSION}, got {version}{newer}"
            )
        self.chip: str = _get(_get(record, "target", dict, ""), "chip", str, "target.")
        self._read_tensors(_get(record, "tensors", list, ""))
        #: A problem of attention, or partial results of one.
        self._is_attention = "problem" in record or "partial_o" in self.tensors
        field = "workspace" if version == 1 else "workspaces"
        self.workspaces: list[Workspace] = []
        for index, workspace in enumerate(_get(record, field, list, "") if field in record else ()):
            self._read_workspace(workspace, f"{field}[{index}].")
        #: The kernels in their order; version 1 has one, in the record itself.
        self.steps: list[Step] = []
        if version == 1:
            self.steps.append(Step(record, "", self))
        else:
            for index, step in enumerate(_get(record, "steps", list, "")):
                self.steps.append(Step(step, f"steps[{index}].", self))
        if not self.steps:
            raise RecordError("launch record: steps: expected at least one step, got none")
        self._check_steps()
        #: The kernels' names, for messages.
        self.kernel = ", ".join(step.kernel for step in self.steps)
        #: Whether the launch depends on the device's multiprocessors.
        self.uses_device = any(step.uses_device for step in self.steps) or any(
            each.bytes.uses_device for each in self.workspaces
        )
        #: Indices of the workspaces that hold zeros again behind the launch.
        self.restored = [n for n, each in enumerate(self.workspaces) if each.restored]
        # A tensor map checks the strides itself.
        mapped = {
            arg["tensor"] for step in self.steps for arg in step.args if arg["kind"] == "tensor_map"
        }
        self._rows = set(_ROW_TENSORS) - mapped
        #: Bytes of which each tensor's address has to be a multiple.
        self.alignments = {name: self._get_alignment(name) for name in self.tensors}

    def _read_workspace(self, workspace: Any, path: str) -> None:
        read = Workspace(
            str(workspace.get("name", "")) if isinstance(workspace, dict) else "",
            SizeExpr(_get(workspace, "bytes", str, path)),
            _get(workspace, "zeroed", bool, path),
            _get_flag(workspace, "restored", path),
            _get_flag(workspace, "persistent", path),
        )
        if read.restored and (read.persistent or not read.zeroed):
            raise RecordError(
                f"launch record: {path}restored: expected a workspace that is zeroed and not "
                "persistent"
            )
        self.workspaces.append(read)

    def _check_steps(self) -> None:
        """A step reads what was written in front of it."""
        filled = {n for n, each in enumerate(self.workspaces) if each.zeroed or each.persistent}
        for step in self.steps:
            used = [(a["index"], a.get("access")) for a in step.args if a["kind"] == "workspace"]
            for index, access in used:
                if access == "read" and index not in filled:
                    raise RecordError(
                        f"launch record: {step.path}args: kernel {step.kernel} reads workspace "
                        f"{index}, which no step before it writes and which is not zeroed"
                    )
            filled |= {index for index, access in used if access != "read"}

    def _get_alignment(self, name: str) -> int:
        """The rows of an attention's operands are read and written in pieces of
        16 bytes, or of fewer where a stride of the record allows no more."""
        tensor = self.tensors[name]
        width = CARRIERS[tensor.dtype][1]
        if not self._is_attention or name not in _ROW_TENSORS:
            return width
        alignment = _ROW_ALIGNMENT
        inner = get_contiguous_axis(tensor.strides)
        for axis, (stride, extent) in enumerate(zip(tensor.strides, tensor.shape, strict=True)):
            if axis != inner and stride not in (DYNAMIC, 0) and extent != 1:
                alignment = min(alignment, (stride * width) & -(stride * width))
        return alignment

    def _check_open_strides(self, name: str, view: TensorView) -> None:
        """Strides that the launch decides keep the alignment."""
        expected, width = self.tensors[name], CARRIERS[view.dtype][1]
        steps = zip(expected.strides, view.strides, view.shape, strict=True)
        for axis, (want, stride, extent) in enumerate(steps):
            is_open = want == DYNAMIC and extent > 1 and axis + 1 < len(view.shape)
            if is_open and stride * width % _ROW_ALIGNMENT:
                raise ArgumentError(
                    f'kernel {self.kernel}: tensor "{name}": stride {axis}: expected a multiple '
                    f"of {_ROW_ALIGNMENT} bytes, got {stride * width}"
                )

    def check_addresses(self, addresses: Mapping[str, int]) -> None:
        """Raises ArgumentError unless each tensor lies where the kernel can read
        and write it."""
        for name, address in addresses.items():
            alignment = self.alignments[name]
            if address % alignment:
                raise ArgumentError(
                    f'kernel {self.kernel}: tensor "{name}": expected an address that is a '
                    f"multiple of {alignment} bytes, got {address:#x}"
                )

    def _read_tensors(self, tensors: list[Any]) -> None:
        #: The record's tensors by name.
        self.tensors: dict[str, TensorView] = {}
        self.written: set[str] = set()
        #: Those of them whose contents before the launch count.
        self.updated: set[str] = set()
        for index, tensor in enumerate(tensors):
            path = f"tensors[{index}]."
            name = _get(tensor, "name", str, path)
            dtype = _get(tensor, "dtype", str, path)
            if dtype not in CARRIERS:
                raise RecordError(f"launch record: {path}dtype: unknown {dtype!r}")
            shape = _get_integers(tensor, "shape", path)
            strides = _get_strides(tensor, shape, path)
            if name in self.tensors:
                raise RecordError(f"launch record: {path}name: expected one {name!r}, got two")
            self.tensors[name] = TensorView(dtype, shape, strides)
            access = _get(tensor, "access", str, path)
            if access not in _ACCESS:
                raise RecordError(
                    f"launch record: {path}access: expected one of {', '.join(_ACCESS)}, "
                    f"got {access!r}"
                )
            if access != "read":
                self.written.add(name)
            if access == "update":
                self.updated.add(name)

    def read_arg(self, arg: Any, path: str) -> dict[str, Any]:
        """A parameter of a step, checked."""
        kind = _get(arg, "kind", str, path)
        if kind in ("pointer", "size", "stride", "tensor_map"):
            tensor = _get(arg, "tensor", str, path)
            if tensor not in self.tensors:
                raise RecordError(f"launch record: {path}tensor: there is no tensor {tensor!r}")
            rank = len(self.tensors[tensor].shape)
            if kind in ("size", "stride"):
                dim = _get(arg, "dim", int, path)
                if not 0 <= dim < rank or _get(arg, "type", str, path) not in ("i32", "i64"):
                    raise RecordError(f"launch record: {path}dim: no such size")
            if kind == "tensor_map":
                view = arg.get("view", "whole")
                if view not in MAP_VIEWS or rank < MAP_VIEWS[view][0]:
                    raise RecordError(f"launch record: {path}view: unknown {view!r}")
                _get_integers(arg, "box", path, get_map_rank(view, rank))
                if view == "rows" and _get(arg, "pitch", int, path) < 1:
                    raise RecordError(f"launch record: {path}pitch: expected at least 1")
                _get(arg, "swizzle", str, path)
                if _get(arg, "element", str, path) not in CARRIERS:
                    raise RecordError(f"launch record: {path}element: unknown type")
        elif kind == "scalar":
            _get(arg, "name", str, path)
            if _get(arg, "type", str, path) not in _FORMATS:
                raise RecordError(f"launch record: {path}type: unknown {arg['type']!r}")
        elif kind == "workspace":
            if not 0 <= _get(arg, "index", int, path) < len(self.workspaces):
                raise RecordError(f"launch record: {path}index: there is no such workspace")
            if arg.get("access", "update") not in ("update", "read", "write"):
                raise RecordError(f"launch record: {path}access: unknown {arg['access']!r}")
        elif kind == "expression":
            _get(arg, "value", str, path)
            if _get(arg, "type", str, path) not in ("i32", "i64"):
                raise RecordError(f"launch record: {path}type: unknown {arg['type']!r}")
        else:
            raise RecordError(f"launch record: {path}kind: unknown {kind!r}")
        return dict(arg)

    def check(self, name: str, view: TensorView) -> None:
        """Raises ArgumentError unless `view` fits the record's tensor."""
        expected = self.tensors[name]

        def fail(what: str, want: object, got: object) -> ArgumentError:
            return ArgumentError(
                f'kernel {self.kernel}: tensor "{name}": expected {what} {want}, got {got}'
            )

        if view.dtype != expected.dtype:
            raise fail("dtype", expected.dtype, view.dtype)
        if len(view.shape) != len(expected.shape):
            raise fail("rank", len(expected.shape), len(view.shape))
        pairs = zip(expected.shape, view.shape, strict=True)
        if any(want not in (DYNAMIC, got) for want, got in pairs):
            raise fail("shape", _print_extents(expected.shape), _print_extents(view.shape))
        # Nothing steps along a dimension of extent 1.
        steps = zip(expected.strides, view.strides, view.shape, strict=True)
        if any(extent > 1 and want not in (DYNAMIC, got) for want, got, extent in steps):
            raise fail("strides", _print_extents(expected.strides), _print_extents(view.strides))

    def check_names(self, names: Sequence[str]) -> None:
        """Raises ArgumentError unless `names` are the record's tensors."""
        for name in names:
            if name not in self.tensors:
                raise ArgumentError(
                    f'kernel {self.kernel}: tensor "{name}": the launch record has no tensor '
                    f"of this name, only {', '.join(self.tensors)}"
                )
        for name in self.tensors:
            if name not in names:
                raise ArgumentError(f'kernel {self.kernel}: tensor "{name}": missing')

    def resolve(
        self,
        views: Mapping[str, TensorView],
        scalars: Mapping[str, float] | None = None,
        multiprocessors: int | None = None,
    ) -> Launch:
        """Checks all tensors and computes the launch on a device of that many
        multiprocessors. Addresses are not read. ArgumentError for tensors that do
        not fit."""
        self.check_names(list(views))
        for name, view in views.items():
            self.check(name, view)
            if self._is_attention and name in self._rows:
                self._check_open_strides(name, view)
        if self._is_attention:
            check_sizes(self.kernel, views)

        def lookup(tensor: str, is_stride: bool, index: int) -> int | None:
            if not tensor:
                return multiprocessors
            view = views.get(tensor)
            values = (view.strides if is_stride else view.shape) if view else ()
            return values[index] if index < len(values) else None

        known = [a["name"] for step in self.steps for a in step.args if a["kind"] == "scalar"]
        for name in scalars or {}:
            if name not in known:
                raise ArgumentError(
                    f'kernel {self.kernel}: scalar "{name}": the launch record has no scalar '
                    "of this name"
                )
        sizes = tuple(each.bytes.evaluate(lookup) for each in self.workspaces)
        if min(sizes, default=0) < 0:
            raise RecordError(f"workspace: expected at least 0 bytes, got {min(sizes)}")
        steps = tuple(self._resolve_step(step, views, scalars or {}, lookup) for step in self.steps)
        return Launch(steps, sizes)

    def _resolve_step(
        self,
        step: Step,
        views: Mapping[str, TensorView],
        scalars: Mapping[str, float],
        lookup: Lookup,
    ) -> LaunchStep:
        grid = []
        for axis, expression in enumerate(step.grid):
            extent = expression.evaluate(lookup)
            if not 0 <= extent <= _GRID_LIMITS[axis] or extent % step.cluster[axis]:
                raise ArgumentError(
                    f"kernel {step.kernel}: grid[{axis}]: expected a multiple of "
                    f"{step.cluster[axis]} from 0 to {_GRID_LIMITS[axis]}, got {extent}"
                )
            grid.append(extent)
        tiles = step.tiles.evaluate(lookup) if step.tiles else 0
        if tiles > _MOST_TILES:
            raise ArgumentError(
                f"kernel {step.kernel}: tiles: expected at most {_MOST_TILES}, got {tiles}"
            )
        values = {index: each.evaluate(lookup) for index, each in step.expressions.items()}
        parameters = self._fill(step, views, scalars, values)
        filled = self.written - self.updated
        has_results = any(0 not in views[name].shape for name in filled)
        maps = tuple(
            make_map(step.kernel, arg, offset, views[arg["tensor"]], has_results)
            for arg, offset in zip(step.args, step.offsets, strict=True)
            if arg["kind"] == "tensor_map"
        )
        return LaunchStep((grid[0], grid[1], grid[2]), parameters, maps)

    def _fill(
        self,
        step: Step,
        views: Mapping[str, TensorView],
        scalars: Mapping[str, float],
        values: Mapping[int, int],
    ) -> bytes:
        """The parameters of a step, but for addresses."""
        buffer = bytearray(step.parameter_bytes)
        for index, (arg, offset) in enumerate(zip(step.args, step.offsets, strict=True)):
            kind = arg["kind"]
            if kind in ("size", "stride"):
                view = views[arg["tensor"]]
                value: float = (view.shape if kind == "size" else view.strides)[arg["dim"]]
                what = f'{kind} {arg["dim"]} of "{arg["tensor"]}"'
            elif kind == "expression":
                value, what = values[index], f'"{arg["value"]}"'
            elif kind == "scalar":
                what = f'scalar "{arg["name"]}"'
                given = scalars.get(arg["name"])
                if given is None and arg.get("value") is None:
                    raise ArgumentError(f"kernel {self.kernel}: {what}: missing value")
                value = arg["value"] if given is None else given
                if arg["type"][0] in "iu":
                    if not math.isfinite(value) or int(value) != value:
                        raise ArgumentError(
                            f"kernel {self.kernel}: {what}: expected an integer, got {value}"
                        )
                    value = int(value)
            else:
                continue
            try:
                struct.pack_into(_FORMATS[arg["type"]], buffer, offset, value)
            except (struct.error, OverflowError):
                raise ArgumentError(
                    f"kernel {self.kernel}: {what}: expected a value that fits {arg['type']}, "
                    f"got {value}"
                ) from None
        return bytes(buffer)
