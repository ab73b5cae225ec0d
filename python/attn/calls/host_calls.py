"""`attn.attention` on tensors in host memory: on the simulator, where there is no GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import arrays
from ..compiler import simulation
from ..errors import ArgumentError, SimulationError
from ..kernel import get_native_chip
from ..record import TensorView
from ..tensors import tensor_views
from ..tracing import captured_reads
from . import attention_kernels, shared_kernels
from .attention_kernels import Options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
) -> tuple[NDArray[np.generic], NDArray[np.generic] | None]:
    """Returns o and, where `options` ask for it, its LSE, in the shapes of the call. `tensors` has
    q, k and v, and the optional tensors that are given; `captures` are what regions read. Rows of
    packed sequences that none has are NaN. Raises SimulationError for what the simulator finds
    wrong."""
    import numpy as np

    views = {name: _view(name, array) for name, array in tensors.items()}
    specs = [captured_reads.describe(each).row_major() for each in captures]
    chip = get_native_chip()
    read = attention_kernels.split_reads(specs, options)
    stated = attention_kernels.state(views, read, options, chip)
    inputs = dict(tensors)
    if stated.packed:
        inputs = {name: _turn(name, array) for name, array in tensors.items()}
        kernel = shared_kernels.compile_mixed(stated.mixed)
    elif options.block_size:
        kernel = shared_kernels.compile_mixed(stated.own)
    else:
        kernel = shared_kernels.compile_any(stated.own, stated.mixed, stated.lengths)
    inputs |= {f"capture{n}": captured_reads.to_numpy(each) for n, each in enumerate(captures)}
    settings = simulation.Settings(verify=False, progress=False)
    # The reference of the problem has no regions that read tensors of open extents.
    run = simulation.simulate(kernel.name, kernel.ptx, kernel.launch, None, inputs, settings)
    if not run.passed:
        raise SimulationError(f"kernel {kernel.name}:\n{run.text}")
    o, lse = run.outputs["o"], run.outputs.get("lse")
    if not stated.packed:
        return o, lse
    o = o[0].swapaxes(0, 1)
    end = int(tensors["cu_seqlens_q"][-1])
    o[end:] = np.full((), 0xFFFF, np.uint16).view(o.dtype)
    if lse is None:
        return o, None
    lse = lse[0]
    lse[:, end:] = np.nan
    return o, lse
