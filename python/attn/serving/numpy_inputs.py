"""Arrays of serving calls, as kernels take them that run without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..tracing import captured_reads
from .decode_problem import ROW_TENSORS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .decode_problem import DecodeProblem
    from .settings import Settings


def arrange(tensors: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Arrays by the kernel's names, in its order of dimensions."""
    inputs = {
        name: each
        for name, each in tensors.items()
        if each is not None and not name.endswith("_scale")
    }
    for name in inputs:
        if name.startswith("capture"):
            inputs[name] = captured_reads.to_numpy(inputs[name])
    is_single = inputs["q"].ndim == 3
    for name in ("q", "q_rope", "init_o", "init_lse"):
        if name in inputs and settings.max_seqlen_q is not None:
            inputs[name] = inputs[name].swapaxes(0, 1)[None]
        elif name in inputs and is_single:
            inputs[name] = inputs[name][:, :, None]
    is_latent = settings.value_dim is not None
    pools = {name[0] if name.endswith("_cache") else name for name in inputs}
    for name in sorted(pools & {"k", "v", "added_k", "added_v", *ROW_TENSORS}):
        pool = inputs.pop(f"{name}_cache" if name in ("k", "v") else name)
        if is_latent:
            inputs[name] = pool[:, None] if pool.ndim == 3 else pool.swapaxes(1, 2)
        else:
            inputs[name] = pool.swapaxes(1, 2) if settings.layout == "nhd" else pool
    return inputs


def spread_scales(tensors: Mapping[str, Any], problem: DecodeProblem) -> dict[str, Any]:
    """The descales as arrays with a number for each sequence and key head."""
    import numpy as np

    if problem.descale_strides is None:
        return {}
    shape = (problem.batch, problem.kv_heads)
    return {
        f"{name}_descale": np.array(np.broadcast_to(tensors[f"{name}_scale"], shape))
        for name in "kv"
    }
