"""Launch records: what a launch of a kernel needs (docs/LaunchRecord.md).

`Binder` checks the tensors of a launch against a record and computes grid,
workspace sizes and parameter bytes from both. Needs the standard library only.
"""

from __future__ import annotations

import dataclasses
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ._size_expr import SizeExpr
from .arrays import CARRIERS
from .errors import ArgumentError, RecordError

VERSION = 1
#: Stands for a size or stride that the launch decides.
DYNAMIC = -1
#: What every address and open stride of these tensors is a multiple of, in
#: bytes.
_ROW_ALIGNMENT = 16
_ROW_TENSORS = ("q", "k", "v", "o")
#: As what tensor maps may describe their tensors, and the dimensions that this
#: adds.
#: The least rank of a tensor in each view of a map, and dimensions in addition.
_MAP_VIEWS = {"whole": (1, 0), "transposed": (2, 0), "quads": (2, 1), "packed": (3, 0)}
#: Most CTAs in x, y, z.
_GRID_LIMITS = (2**31 - 1, 65535, 65535)
#: struct's format of each scalar type; bf16 and fp8 are not scalars of kernels.
_FORMATS = {"f16": "<e", "f32": "<f", "f64": "<d", "i8": "<b", "i32": "<i", "i64": "<q"}


class TensorView(NamedTuple):
    """A tensor in device memory. Every launch makes some, so that it is cheap."""

    dtype: str
    #: Elements.
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    #: Of the first element.
    address: int = 0
    #: Ordinal of the CUDA device.
    device: int = 0


@dataclasses.dataclass(frozen=True)
class TensorMap:
    """A tensor map that the driver has to encode. Dimension 0 is the innermost."""

    offset: int
    tensor: str
    element: str
    swizzle: str
    dims: tuple[int, ...]
    #: Bytes, from dimension 1 on.
    strides: tuple[int, ...]
    box: tuple[int, ...]
    #: Bytes by which element 0 of all dimensions lies in front of the tensor.
    before: int = 0


@dataclasses.dataclass(frozen=True)
class Launch:
    """What follows from a record and the shapes of its tensors."""

    #: CTAs in x, y, z; a zero means that there is nothing to compute.
    grid: tuple[int, int, int]
    workspace_bytes: tuple[int, ...]
    #: Parameters with sizes and strides; addresses are filled in by each call.
    parameters: bytes
    tensor_maps: tuple[TensorMap, ...]


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


class Binder:
    """A record that was read and checked, ready for launches."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        version = _get(record, "version", int, "")
        if version != VERSION:
            raise RecordError(f"launch record: version: expected {VERSION}, got {version}")
        self.kernel: str = _get(record, "kernel", str, "")
        self.chip: str = _get(_get(record, "target", dict, ""), "chip", str, "target.")
        self.block = _get_integers(record, "block", "", 3)
        self.cluster = _get_integers(record, "cluster", "", 3)
        self.shared_bytes: int = _get(record, "shared_bytes", int, "")
        if min(*self.block, *self.cluster) < 1 or self.shared_bytes < 0:
            raise RecordError("launch record: expected block and cluster of at least 1")
        grid = _get(record, "grid", list, "")
        if len(grid) != 3 or not all(isinstance(each, str) for each in grid):
            raise RecordError(f"launch record: grid: expected 3 expressions, got {grid!r}")
        self._grid = [SizeExpr(text) for text in grid]
        self._is_attention = "problem" in record
        self._read_tensors(_get(record, "tensors", list, ""))
        self._workspaces = []
        restored = []
        for index, workspace in enumerate(_get(record, "workspace", list, "")):
            path = f"workspace[{index}]."
            text = _get(workspace, "bytes", str, path)
            self._workspaces.append((SizeExpr(text), _get(workspace, "zeroed", bool, path)))
            restored.append("restored" in workspace and _get(workspace, "restored", bool, path))
        #: Whether each workspace has to hold zeros.
        self.zeroed = tuple(zeroed for _, zeroed in self._workspaces)
        #: Whether all workspaces hold zeros again behind the kernel.
        self.restored = bool(restored) and all(restored)
        self.args = [
            self._read_arg(arg, f"args[{index}].")
            for index, arg in enumerate(_get(record, "args", list, ""))
        ]
        self._lay_out()
        # A tensor map checks the strides itself.
        mapped = {arg["tensor"] for arg in self.args if arg["kind"] == "tensor_map"}
        self._rows = set(_ROW_TENSORS) - mapped
        #: Bytes of which each tensor's address has to be a multiple.
        self.alignments = {name: self._get_alignment(name) for name in self.tensors}

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
        for index, tensor in enumerate(tensors):
            path = f"tensors[{index}]."
            name = _get(tensor, "name", str, path)
            dtype = _get(tensor, "dtype", str, path)
            if dtype not in CARRIERS:
                raise RecordError(f"launch record: {path}dtype: unknown {dtype!r}")
            shape = _get_integers(tensor, "shape", path)
            strides = _get_integers(tensor, "strides", path, len(shape))
            if name in self.tensors:
                raise RecordError(f"launch record: {path}name: expected one {name!r}, got two")
            self.tensors[name] = TensorView(dtype, shape, strides)
            if _get(tensor, "access", str, path) == "write":
                self.written.add(name)

    def _read_arg(self, arg: Any, path: str) -> dict[str, Any]:
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
                if view not in _MAP_VIEWS or rank < _MAP_VIEWS[view][0]:
                    raise RecordError(f"launch record: {path}view: unknown {view!r}")
                _get_integers(arg, "box", path, rank + _MAP_VIEWS[view][1])
                _get(arg, "swizzle", str, path)
                if _get(arg, "element", str, path) not in CARRIERS:
                    raise RecordError(f"launch record: {path}element: unknown type")
        elif kind == "scalar":
            _get(arg, "name", str, path)
            if _get(arg, "type", str, path) not in _FORMATS:
                raise RecordError(f"launch record: {path}type: unknown {arg['type']!r}")
        elif kind == "workspace":
            if not 0 <= _get(arg, "index", int, path) < len(self._workspaces):
                raise RecordError(f"launch record: {path}index: there is no such workspace")
        else:
            raise RecordError(f"launch record: {path}kind: unknown {kind!r}")
        return dict(arg)

    def _lay_out(self) -> None:
        """Each parameter lies at its own alignment."""
        #: Offset of each parameter; `parameter_bytes` is the end of the last.
        self.offsets: list[int] = []
        offset = 0
        for arg in self.args:
            size = align = 8
            if arg["kind"] == "tensor_map":
                size, align = 128, 64
            elif arg["kind"] in ("size", "stride", "scalar"):
                size = align = CARRIERS[arg["type"]][1]
            offset = -(-offset // align) * align
            self.offsets.append(offset)
            offset += size
        self.parameter_bytes = offset
        places = list(zip(self.args, self.offsets, strict=True))
        #: (tensor, offset) and (workspace, offset) of the addresses.
        self.pointers = [(a["tensor"], o) for a, o in places if a["kind"] == "pointer"]
        self.workspaces = [(a["index"], o) for a, o in places if a["kind"] == "workspace"]

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
        self, views: Mapping[str, TensorView], scalars: Mapping[str, float] | None = None
    ) -> Launch:
        """Checks all tensors and computes the launch. Their addresses are not
        read. ArgumentError for tensors that do not fit."""
        self.check_names(list(views))
        for name, view in views.items():
            self.check(name, view)
            if self._is_attention and name in self._rows:
                self._check_open_strides(name, view)
        if self._is_attention:
            self._check_sizes(views)

        def lookup(tensor: str, is_stride: bool, index: int) -> int | None:
            view = views.get(tensor)
            values = (view.strides if is_stride else view.shape) if view else ()
            return values[index] if index < len(values) else None

        grid = []
        for axis, expression in enumerate(self._grid):
            extent = expression.evaluate(lookup)
            if not 0 <= extent <= _GRID_LIMITS[axis] or extent % self.cluster[axis]:
                raise ArgumentError(
                    f"kernel {self.kernel}: grid[{axis}]: expected a multiple of "
                    f"{self.cluster[axis]} from 0 to {_GRID_LIMITS[axis]}, got {extent}"
                )
            grid.append(extent)
        sizes = tuple(expression.evaluate(lookup) for expression, _ in self._workspaces)
        if min(sizes, default=0) < 0:
            raise RecordError(f"workspace: expected at least 0 bytes, got {min(sizes)}")
        parameters = self._fill(views, scalars or {})
        maps = tuple(
            self._make_map(arg, offset, views[arg["tensor"]])
            for arg, offset in zip(self.args, self.offsets, strict=True)
            if arg["kind"] == "tensor_map"
        )
        return Launch((grid[0], grid[1], grid[2]), sizes, parameters, maps)

    def _check_sizes(self, views: Mapping[str, TensorView]) -> None:
        """Sizes that an attention problem has in several tensors agree."""
        groups = (
            (("q", 0), ("k", 0), ("v", 0), ("o", 0), ("lse", 0)),
            (("q", 1), ("o", 1), ("lse", 1), ("sinks", 0)),
            (("k", 1), ("v", 1)),
            (("q", 2), ("o", 2), ("lse", 2)),
            (("k", 2), ("v", 2)),
            (("q", 3), ("k", 3)),
            (("v", 3), ("o", 3)),
            (("cu_seqlens_q", 0), ("cu_seqlens_k", 0)),
        )
        for group in groups:
            known = [(n, d) for n, d in group if n in views and d < len(views[n].shape)]
            for name, dim in known[1:]:
                first, axis = known[0]
                want, got = views[first].shape[axis], views[name].shape[dim]
                if want != got:
                    raise ArgumentError(
                        f'kernel {self.kernel}: tensor "{name}": dimension {dim}: expected '
                        f"{want} as in dimension {axis} of {first}, got {got}"
                    )

    def _fill(self, views: Mapping[str, TensorView], scalars: Mapping[str, float]) -> bytes:
        for name in scalars:
            if not any(a["kind"] == "scalar" and a["name"] == name for a in self.args):
                raise ArgumentError(
                    f'kernel {self.kernel}: scalar "{name}": the launch record has no scalar '
                    "of this name"
                )
        buffer = bytearray(self.parameter_bytes)
        for arg, offset in zip(self.args, self.offsets, strict=True):
            kind = arg["kind"]
            if kind in ("size", "stride"):
                view = views[arg["tensor"]]
                value: float = (view.shape if kind == "size" else view.strides)[arg["dim"]]
                what = f'{kind} {arg["dim"]} of "{arg["tensor"]}"'
            elif kind == "scalar":
                what = f'scalar "{arg["name"]}"'
                given = scalars.get(arg["name"])
                if given is None and arg.get("value") is None:
                    raise ArgumentError(f"kernel {self.kernel}: {what}: missing value")
                value = arg["value"] if given is None else given
                if arg["type"].startswith("i"):
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

    def _make_map(self, arg: Mapping[str, Any], offset: int, view: TensorView) -> TensorMap:
        name, width = arg["tensor"], CARRIERS[arg["element"]][1]

        def fail(message: str) -> ArgumentError:
            return ArgumentError(
                f'kernel {self.kernel}: tensor "{name}": its tensor map expects {message}'
            )

        # The map's dimensions, the innermost first.
        shape, steps = list(reversed(view.shape)), list(reversed(view.strides))
        before = 0
        form = arg.get("view", "whole")
        if form == "transposed":
            shape[:2], steps[:2] = shape[1::-1], steps[1::-1]
        elif form == "quads":
            if shape[1] % 4:
                raise fail(f"rows of a multiple of 4, got {shape[1]}")
            shape[1:2] = [4, shape[1] // 4]
            steps[1:2] = [steps[1], 4 * steps[1]]
        elif form == "packed":
            # The last row of a sequence is the last one of the map, so that
            # nothing behind it is inside.
            if shape[-1] != 1:
                raise fail(f"one batch of packed sequences, got {shape[-1]}")
            shape[-1], steps[-1] = shape[1] + 1, steps[1]
            before = shape[1] * steps[1] * width
        # Limits of cuTensorMapEncodeTiled in the CUDA driver API.
        strides = []
        for extent, stride in zip(shape, steps, strict=True):
            if not 1 <= extent <= 2**32:
                raise fail(f"extents from 1 to 2^32, got {extent}")
            strides.append((16 // width if extent == 1 else stride) * width)
        if shape[0] > 1 and steps[0] != 1:
            raise fail(f"an innermost stride of 1, got {steps[0]}")
        for stride in strides[1:]:
            if stride % 16 or not 0 <= stride < 2**40:
                raise fail(f"strides of a multiple of 16 bytes below 2^40, got {stride} bytes")
        return TensorMap(
            offset,
            name,
            arg["element"],
            arg["swizzle"],
            tuple(shape),
            tuple(strides[1:]),
            tuple(arg["box"]),
            before,
        )
