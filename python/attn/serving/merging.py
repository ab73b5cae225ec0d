"""Partial results over disjoint sets of keys: checks, kernels and launches."""

from __future__ import annotations

from typing import Any

from .. import arrays
from ..errors import ArgumentError
from ..launch import device_tensors
from ..options import readers
from ..record import TensorView
from ..tensors import tensor_views
from ..tensors.argument_checks import check_device
from . import decode_launch, decode_problem

_TYPES = ("f16", "bf16", "f32")


def read_type(dtype: Any) -> str:
    name = "f32" if dtype is None else readers.get_dtype("dtype", dtype)
    if name not in _TYPES:
        raise ArgumentError(f"dtype: expected one of {', '.join(_TYPES)}, got {name}")
    return name


def _check_rows(partial_o: Any, partial_lse: Any) -> None:
    """Rows that are not divided are what can be divided here: f32 of numpy or of torch."""
    is_of_torch = device_tensors.is_torch(partial_o)
    for name, each in (("partial_o", partial_o), ("partial_lse", partial_lse)):
        if not tensor_views.is_array(each) or device_tensors.is_torch(each) != is_of_torch:
            raise ArgumentError(
                f'tensor "{name}": expected both of numpy or both of torch where rows are not '
                f"divided, got {type(each).__module__}.{type(each).__name__}"
            )
        if str(each.dtype).removeprefix("torch.") != "float32":
            raise ArgumentError(f'tensor "{name}": expected elements of f32, got {each.dtype}')
    rows = list(partial_o.shape[:-1])
    tensor_views.expect("partial_lse", "shape", [*rows, 2], list(partial_lse.shape))


def divide_rows(partial_o: Any, partial_lse: Any) -> tuple[Any, Any]:
    """Results and LSEs of rows; where `partial_lse` has maxima and sums of rows that are not
    divided, (..., 2), those that follow from them. A row without keys has a sum of 0. Raises
    ArgumentError for such rows of other shapes, elements or libraries."""
    shapes = [getattr(each, "shape", ()) for each in (partial_o, partial_lse)]
    if not shapes[1] or len(shapes[0]) != len(shapes[1]) or shapes[1][-1] != 2:
        return partial_o, partial_lse
    _check_rows(partial_o, partial_lse)
    maxima, sums = partial_lse[..., 0], partial_lse[..., 1]
    is_empty = sums == 0
    divisor = sums + is_empty
    if tensor_views.is_numpy(partial_lse):
        import numpy as np

        logs = np.log(divisor)
    else:
        logs = divisor.log()
    return partial_o / divisor[..., None], maxima + logs


def check_given(out: Any, lse: Any) -> None:
    if out is None or lse is None:
        raise tensor_views.make_output_error(out, lse)


def _check(name: str, each: TensorView, shape: tuple[int, ...], types: tuple[str, ...]) -> None:
    if each.shape != shape:
        raise ArgumentError(
            f'tensor "{name}": expected shape {list(shape)}, got {list(each.shape)}'
        )
    if each.dtype not in types:
        raise ArgumentError(
            f'tensor "{name}": expected elements of {", ".join(types)}, got {each.dtype}'
        )
    if not tensor_views.is_dense(each):
        raise ArgumentError(
            f'tensor "{name}": expected a dense tensor, got strides {list(each.strides)}'
        )


def _check_partials(o: TensorView, lse: TensorView) -> None:
    if len(o.shape) not in (4, 5):
        raise ArgumentError(
            'tensor "partial_o": expected shape (states, batch, heads, queries, dim) or (states, '
            f"rows, heads, dim), got {list(o.shape)}"
        )
    _check("partial_o", o, o.shape, ("f32",))
    _check("partial_lse", lse, o.shape[:-1], ("f32",))
    check_device("partial_lse", lse, o.device, "partial_o")


def _lift(each: TensorView, has_queries: bool, has_dim: bool) -> TensorView:
    """A dense tensor with a dimension of queries, behind that of heads."""
    shape = each.shape
    if not has_queries:
        shape = (*shape[:-1], 1, shape[-1]) if has_dim else (*shape, 1)
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * max(shape[axis], 1)
    return each._replace(shape=shape, strides=tuple(strides))


def launch_merge(partial_o: Any, partial_lse: Any, out: Any, lse: Any, stream: int | None) -> None:
    """Launches on tensors of a GPU."""
    given = {"partial_o": partial_o, "partial_lse": partial_lse, "o": out, "lse": lse}
    views = {
        name: tensor_views.view("out" if name == "o" else name, tensor)
        for name, tensor in given.items()
    }
    _check_partials(views["partial_o"], views["partial_lse"])
    shape = views["partial_o"].shape
    _check("out", views["o"], shape[1:], _TYPES)
    _check("lse", views["lse"], shape[1:-1], ("f32",))
    device = views["partial_o"].device
    for name, each in views.items():
        if each.device != device or device < 0:
            raise ArgumentError(
                f'tensor "{"out" if name == "o" else name}": expected it on a GPU, that of '
                "partial_o"
            )
    kernel = decode_problem.compile_merge(
        shape[-1], views["o"].dtype, decode_launch.get_chip_of(device)
    )
    has_queries = len(shape) == 5
    lifted = {
        name: _lift(views[name], has_queries, name.endswith("o"))
        for name in decode_problem.load(kernel).names
    }
    prepared = decode_problem.load(kernel).prepare(lifted)
    addresses = [each.address for each in lifted.values()]
    prepared(addresses, decode_launch.get_stream(partial_o, stream, device))


def merge_numpy(partial_o: Any, partial_lse: Any, dtype: Any) -> Any:
    """On arrays in host memory; new results."""
    # Arrays of the host are made dense on the way.
    _check_partials(
        _lift(tensor_views.view("partial_o", partial_o), True, True),
        _lift(tensor_views.view("partial_lse", partial_lse), True, False),
    )
    has_queries = partial_o.ndim == 5
    if not has_queries:
        partial_o, partial_lse = partial_o[..., None, :], partial_lse[..., None]
    kernel = decode_problem.compile_merge(
        partial_o.shape[-1], read_type(dtype), decode_launch.get_chip_of(-1), partial_o.shape[:-1]
    )
    outputs = kernel.run(partial_o=partial_o, partial_lse=partial_lse)
    o, lse = arrays.carry(outputs["o"], dtype), outputs["lse"]
    return (o, lse) if has_queries else (o[..., 0, :], lse[..., 0])
