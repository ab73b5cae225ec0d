"""cuDNN's forward attention on 8-bit operands, through its graph interface.

torch has no door to it: the package of requirements-cudnn.txt has, and takes
the libcudnn that torch brings. Units of q, k and v are 1. Probabilities, of which
the largest of a row is 1 there, are scaled to use the range of their type, as
the callers of cuDNN do.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from gpu_cells import Cell

try:
    import cudnn
except ImportError:
    cudnn = None

#: Half of a power of two that f8E4M3FN still holds.
SCALE = 256.0
#: Types of results, the first that the library takes is taken.
RESULTS = (torch.bfloat16, torch.float16, torch.float8_e4m3fn)


def make_output(q: torch.Tensor, dv: int, dtype: torch.dtype) -> torch.Tensor:
    """A dense o of `dv` columns whose dimensions lie in the order of q's."""
    order = sorted(range(4), key=lambda axis: (axis == 3, -q.stride(axis)))
    shape = (*q.shape[:3], dv)
    out = torch.empty([shape[axis] for axis in order], dtype=dtype, device=q.device)
    return out.permute([order.index(axis) for axis in range(4)])


class Forward:
    """A graph for tensors of the shapes and strides of q, k and v, (batch, heads, rows, dim) with
    contiguous columns; `out` has the type of its results. Raises cuDNN's error where there is no
    plan."""

    def __init__(self, cell: Cell, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
        self.handle = cudnn.create_handle()
        for dtype in RESULTS:
            try:
                self._build(cell, (q, k, v), dtype)
                break
            except cudnn.cudnnGraphNotSupportedError:
                if dtype is RESULTS[-1]:
                    raise

    def _build(self, cell: Cell, operands: tuple[torch.Tensor, ...], dtype: torch.dtype) -> None:
        kinds = cudnn.data_type
        types = {
            torch.bfloat16: kinds.BFLOAT16,
            torch.float16: kinds.HALF,
            torch.float8_e4m3fn: kinds.FP8_E4M3,
        }
        graph = cudnn.pygraph(
            io_data_type=kinds.FP8_E4M3, intermediate_data_type=kinds.FLOAT,
            compute_data_type=kinds.FLOAT, handle=self.handle,
        )  # fmt: skip
        inputs = [
            graph.tensor(dim=list(x.shape), stride=list(x.stride()), data_type=types[x.dtype])
            for x in operands
        ]
        one = {"dim": [1] * 4, "stride": [1] * 4, "data_type": kinds.FLOAT}
        names = ("descale_q", "descale_k", "descale_v", "descale_s", "scale_s", "scale_o")
        scales = {name: graph.tensor(**one) for name in names}
        self.out = make_output(operands[0], operands[2].shape[3], dtype)
        o, _, *largest = graph.sdpa_fp8(
            *inputs, **scales, attn_scale=cell.d**-0.5, generate_stats=False,
            use_causal_mask=cell.causal,
        )  # fmt: skip
        o.set_output(True).set_dim(list(self.out.shape)).set_stride(list(self.out.stride()))
        o.set_data_type(types[dtype])
        for each in largest:
            each.set_output(True).set_dim([1] * 4).set_stride([1] * 4).set_data_type(kinds.FLOAT)
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        graph.check_support()
        graph.build_plans()
        device = operands[0].device
        values = dict.fromkeys(names, 1.0) | {"scale_s": SCALE, "descale_s": 1 / SCALE}
        self._fixed = {
            scales[name]: torch.full((1,), value, device=device) for name, value in values.items()
        }
        self._fixed |= {each: torch.zeros(1, device=device) for each in largest}
        self._fixed[o] = self.out
        self._graph, self._inputs = graph, inputs
        self._workspace = torch.empty(
            max(1, graph.get_workspace_size()), dtype=torch.uint8, device=device
        )

    def __call__(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """The results of operands of the same shapes and strides, on torch's stream."""
        cudnn.set_stream(handle=self.handle, stream=torch.cuda.current_stream().cuda_stream)
        tensors = dict(zip(self._inputs, (q, k, v), strict=True)) | self._fixed
        self._graph.execute(tensors, self._workspace, handle=self.handle)
        return self.out


def make_peer(cell: Cell) -> Callable[..., torch.Tensor] | None:
    """A function of (q, k, v); None without the package, or where V has contiguous keys, which
    cuDNN does not take. The graph is made at the first call."""
    if cudnn is None or cell.v_transposed:
        return None
    made: list[Forward] = []

    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        if not made:
            made.append(Forward(cell, q, k, v))
        return made[0](q, k, v)

    return call
