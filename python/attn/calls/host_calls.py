"""`attn.attention` on tensors in host memory: on the simulator, where there is no GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import arrays
from ..compiler import simulation
from ..errors import ArgumentError, SimulationError
from ..kernel import get_native_chip
from ..record import TensorView
from ..tensors import batch_lists, tensor_views
from ..tracing import captured_reads
from . import attention_kernels, shared_kernels
from .attention_kernels import Options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


#: Outputs of a launch.
_OUTPUTS = ("o", "lse", "o_scales", "amax")


def _view(name: str, array: NDArray[np.generic]) -> TensorView:
    """A view of an array, which is dense on its way to the kernel."""
    element = arrays.find_element(array.dtype)
    if element is None:
        raise ArgumentError(f'tensor "{name}": no kernel takes elements of {array.dtype}')
    spec = captured_reads.Spec(element, tuple(array.shape), ()).row_major()
    return TensorView(element, spec.shape, spec.strides, 0, tensor_views.HOST)


def _turn(name: str, array: NDArray[np.generic]) -> NDArray[np.generic]:
    """Packed sequences (rows, head, dim) in the kernel's order."""
    return array.swapaxes(0, 1)[None] if name in ("q", "k", "v") else array


def attend(
    tensors: Mapping[str, NDArray[np.generic]],
    captures: Sequence[Any],
    options: Options,
    outputs: Mapping[str, TensorView] | None = None,
) -> dict[str, NDArray[np.generic]]:
    """Returns o and, where `options` ask for it, its LSE, in the shapes of the call, and o_scales
    and amax where `outputs` have them: views of outputs that are not the usual ones. `tensors`
    has q, k and v, and the optional tensors that are given, amax with what is in it before;
    `captures` are what regions read. Rows of packed sequences that none has are NaN. Raises
    SimulationError for what the simulator finds wrong."""
    views = {name: _view(name, array) for name, array in tensors.items()}
    views |= {name: _make_dense(each) for name, each in (outputs or {}).items()}
    specs = [captured_reads.describe(each).row_major() for each in captures]
    chip = get_native_chip()
    read = attention_kernels.split_reads(specs, options)
    stated = attention_kernels.state(views, read, options, chip)
    inputs = dict(tensors)
    if stated.packed:
        _check_lengths(tensors, options.max_seqlen_q)
        inputs = {name: _turn(name, array) for name, array in tensors.items()}
        kernel = shared_kernels.compile_mixed(stated.mixed)
    elif options.block_size:
        kernel = shared_kernels.compile_mixed(stated.own)
    else:
        kernel = shared_kernels.compile_any(stated.own, stated.mixed, stated.lengths)
    inputs |= {f"capture{n}": captured_reads.to_numpy(each) for n, each in enumerate(captures)}
    scales = stated.views.get("o_scales")
    # Nothing else says how many rows scales in tiles have.
    is_matrix = scales is not None and len(scales.shape) == 2
    sizes = {"o_scales.dim0": scales.shape[0]} if scales is not None and is_matrix else None
    settings = simulation.Settings(verify=False, progress=False, sizes=sizes)
    # The reference of the problem has no regions that read tensors of open extents.
    run = simulation.simulate(kernel.name, kernel.ptx, kernel.launch, None, inputs, settings)
    if not run.passed:
        raise SimulationError(f"kernel {kernel.name}:\n{run.text}")
    results = {name: run.outputs[name] for name in _OUTPUTS if name in run.outputs}
    if not stated.packed:
        return results
    end = int(tensors["cu_seqlens_q"][-1])
    for name, each in results.items():
        if each.ndim == 4:
            results[name] = each = each[0].swapaxes(0, 1)
            _erase(each[end:])
        elif name == "lse":
            results[name] = each = each[0]
            _erase(each[:, end:])
    return results


def _check_lengths(tensors: Mapping[str, NDArray[np.generic]], bound: int | None) -> None:
    """Refuses places of packed sequences that are wrong."""
    rows = tensors["q"].shape[0]
    most = rows if bound is None else bound
    batch_lists.check_counts("cu_seqlens_q", tensors["cu_seqlens_q"], rows, most)
    batch_lists.check_counts("cu_seqlens_k", tensors["cu_seqlens_k"], tensors["k"].shape[0])


def _make_dense(view: TensorView) -> TensorView:
    """The same extents, dense and in host memory."""
    spec = captured_reads.Spec(view.dtype, view.shape, ()).row_major()
    return TensorView(view.dtype, spec.shape, spec.strides, 0, tensor_views.HOST)


def _erase(rows: NDArray[np.generic]) -> None:
    """Rows that no kernel writes are NaN: of every type one with all bits."""
    import numpy as np

    bits = np.full(rows.dtype.itemsize, 0xFF, np.uint8)
    rows[...] = bits.view(rows.dtype)[0]
