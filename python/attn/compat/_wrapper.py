"""What the wrappers have in common: a batch's pages, bounds of graphs, outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import arrays
from ..errors import ArgumentError, ArgumentTypeError
from ..launch import device_tensors
from ..launch.one_process import OfProcess
from ..options import readers
from ..tensors import tensor_views
from . import _checks, _lists


class Wrapper(OfProcess):
    """Pages of the batch that was planned last; in graph mode within fixed bounds."""

    def __init__(
        self, use_cuda_graph: bool, buffers: Mapping[str, Any], max_pages: int | None
    ) -> None:
        self._is_graph = readers.to_bool("use_cuda_graph", use_cuda_graph)
        self._sequences: int | None = None
        self._most_pages: int | None = None
        if max_pages is not None:
            self._most_pages = readers.to_integer("max_pages", max_pages, 1, 2**31 - 1)
        if self._is_graph:
            for name, each in buffers.items():
                if each is None:
                    raise ArgumentError(f"{name}: expected a tensor with use_cuda_graph, got None")
                _lists.check_list(name, each)
            counts, ids, *_ = buffers.values()
            self._sequences = counts.shape[0] - 1
            self._most_pages = self._most_pages or ids.shape[0]
        self._pages = _lists.Pages(self._is_graph)
        self._scales: dict[object, Any] = {}

    @property
    def is_cuda_graph_enabled(self) -> bool:
        return self._is_graph

    def _expect_planned(self) -> None:
        if self._pages.table is None:
            raise ArgumentError(f"{type(self).__name__}: expected plan() before run()")

    def _read_pages(
        self,
        counts: tuple[str, Any],
        ids: tuple[str, Any],
        ends: tuple[str, Any],
        page_size: int,
        bound: int | None,
        are_lengths: bool = False,
    ) -> tuple[tuple[Any, Any, Any, int], int | None]:
        """What `Pages.plan` takes, from lists by the names of their arguments, and the greatest
        id, if somebody looked; `ends` are keys of the last pages, or `are_lengths`. Changes
        nothing, so that a batch that is refused leaves the one before it."""
        for name, each in (counts, ids, ends):
            _lists.check_list(name, each)
            if device_tensors.is_torch(each) != device_tensors.is_torch(ids[1]):
                raise ArgumentTypeError(
                    f"{name}: expected a list of the library of {ids[0]}, got {type(each).__name__}"
                )
        _checks.check_entries(*counts)
        sequences = counts[1].shape[0] - 1
        _lists.expect(
            f"{ends[0]}: sequences, one less than of {counts[0]}", sequences, ends[1].shape[0]
        )
        if self._sequences is not None:
            _lists.expect(f"{counts[0]}: sequences of the graph", self._sequences, sequences)
        greatest = _checks.check_pages(
            counts, ids, ends, page_size, are_lengths, waits=not self._is_graph
        )
        indptr, last = (_lists.move(each, ids[1]) for each in (counts[1], ends[1]))
        if are_lengths:
            lengths = last if last is not ends[1] else _lists.copy(last)
        else:
            lengths = _lists.measure(indptr, last, page_size)
        return (indptr, ids[1], lengths, self._bound_pages(*counts, bound)), greatest

    def _bound_pages(self, name: str, indptr: Any, bound: int | None) -> int:
        """Columns of the table. What lies on a GPU is looked at without a graph only."""
        if bound is None:
            return _lists.round_up(_lists.count_most(indptr))
        if not device_tensors.is_torch(indptr) or indptr.device.type == "cpu":
            most = _lists.count_most(indptr)
            if most > bound:
                raise ArgumentError(
                    f"{name}: expected at most {bound} pages of a sequence, got {most}"
                )
        return bound

    def _keep_scale(self, name: str, q: Any, factor: Any) -> Any:
        """A number as a tensor of one element where q is."""
        number = read_factor(name, factor)
        if tensor_views.is_array(number):
            return number
        key = (number, str(getattr(q, "device", "")))
        if key not in self._scales:
            module = _lists.get_module(q)
            on = {"device": q.device} if device_tensors.is_torch(q) else {}
            self._scales[key] = module.full((1,), number, dtype=module.float32, **on)
        return self._scales[key]


def read_factor(name: str, factor: Any) -> Any:
    """What results are multiplied by, a number or a tensor of one element; 1 without it."""
    if factor is None:
        return 1.0
    plain = readers.to_python(factor)
    if not tensor_views.is_array(plain):
        return readers.to_float(name, plain)
    if list(plain.shape) != [1]:
        raise ArgumentError(f"{name}: expected a number, got a tensor of {list(plain.shape)}")
    if _lists.name_element(plain) not in ("f16", "f32", "f64", "torch.float16", "torch.float32"):
        raise ArgumentTypeError(f"{name}: expected a tensor of f32, got one of {plain.dtype}")
    return plain


def multiply(o: Any, factor: Any) -> None:
    """Values times what `read_factor` gave, in place; a tensor on a GPU is not looked at."""
    if isinstance(factor, float) and factor == 1.0:
        return
    if tensor_views.is_numpy(o) and arrays.find_element(o.dtype) == "bf16":
        bits = arrays.to_bits(o)
        bits[...] = arrays.to_bf16(arrays.from_bf16(bits) * factor)
    elif tensor_views.is_numpy(o):
        import numpy as np

        # What is beyond the type's range is infinite, as on a GPU.
        with np.errstate(over="ignore"):
            o *= factor
    else:
        o *= factor


def read_lse(lse: Any, return_lse: Any) -> bool:
    """Whether an LSE is wanted: memory for one that nobody asked for would stay as it is."""
    has_lse = readers.to_bool("return_lse", return_lse)
    if lse is not None and not has_lse:
        raise ArgumentError("lse: expected None without return_lse, got a tensor")
    return has_lse


def make_outputs(q: Any, dim: int, out: Any, lse: Any, has_lse: bool) -> tuple[Any, Any]:
    """o and its LSE, those of the caller or new ones of torch."""
    if out is None:
        out = q.new_empty((*q.shape[:-1], dim))
    if has_lse and lse is None:
        lse = q.new_empty(q.shape[:-1], dtype=_lists.get_module(q).float32)
    return out, lse if has_lse else None


def call_rows(
    function: Any,
    q: Any,
    dim: int,
    size: tuple[int, int] | None,
    outputs: tuple[Any, Any, bool],
    beside: Any = None,
) -> tuple[Any, Any]:
    """o and its LSE of a call of this package on rows of `q`, (rows, heads, dim). With
    `size`, (sequences, queries), it takes several queries as a dimension behind heads.
    `outputs` are the caller's o and LSE, or None, and whether there is an LSE; `beside`
    has other columns of the rows, which the call takes by this name."""
    out, lse, has_lse = outputs
    is_turned = size is not None and size[1] > 1

    def turn(each: Any) -> Any:
        if not is_turned:
            return each
        # Of torch's always a view, so that outputs reach the caller's memory.
        is_view = device_tensors.is_torch(each)
        split = each.unflatten(0, size) if is_view else each.reshape(*size, *each.shape[1:])
        return split.swapaxes(1, 2)

    more = {} if beside is None else {"beside": turn(beside)}
    if device_tensors.is_torch(q):
        out, lse = make_outputs(q, dim, out, lse, has_lse)
        function(turn(q), **more, out=turn(out), lse=turn(lse) if has_lse else False)
        return out, lse
    got = function(turn(q), **more, lse=has_lse)
    o, log = got if has_lse else (got, None)
    if is_turned:
        o = o.swapaxes(1, 2).reshape(*q.shape[:2], dim)
        log = None if log is None else log.swapaxes(1, 2).reshape(q.shape[:2])
    o, log = _lists.write({"out": out, "lse": lse}, (o, log))
    return o, log


def get_element(name: str, each: Any) -> str:
    """The element type of a tensor as the compiler calls it."""
    if device_tensors.is_torch(each):
        return _lists.read_type(name, each.dtype)
    return tensor_views.view(name, each).dtype
