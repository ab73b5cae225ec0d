"""`attn.attention`: compiles, loads and launches in one call."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Sequence
from typing import Any

from . import _driver, _tensors, bundle, runtime
from .errors import ArgumentError, CompileError, DriverError
from .kernel import compile, targets
from .record import TensorView

_TYPES = ("f16", "bf16", "f8E4M3FN", "f8E5M2")

_lock = threading.Lock()
_loaded: dict[object, runtime.LoadedKernel] = {}


@functools.cache
def _get_chip(major: int, minor: int) -> str:
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


def _get_layout(views: Sequence[TensorView]) -> str | None:
    """The order of dimensions in which all operands are dense, if there is one."""
    for layout, order in (("bhnd", (0, 1, 2, 3)), ("bnhd", (0, 2, 1, 3))):
        if all(_is_dense(view, order) for view in views):
            return layout
    return None


def _is_dense(view: TensorView, order: Sequence[int]) -> bool:
    expected = 1
    for axis in reversed(order):
        if view.shape[axis] > 1 and view.strides[axis] != expected:
            return False
        expected *= max(view.shape[axis], 1)
    return True


def _check(q: TensorView, k: TensorView, v: TensorView) -> None:
    """What no kernel could take; the rest is the compiler's to refuse."""
    for name, view in (("q", q), ("k", k), ("v", v)):
        if len(view.shape) != 4:
            raise ArgumentError(
                f'tensor "{name}": expected shape (batch, head, sequence, dim), got '
                f"{list(view.shape)}"
            )
        if view.dtype != q.dtype or view.dtype not in _TYPES:
            raise ArgumentError(
                f'tensor "{name}": expected one of {", ".join(_TYPES)} for q, k and v alike, got '
                f"{view.dtype}"
            )
        if view.device != q.device:
            raise ArgumentError(
                f'tensor "{name}": expected device {q.device} as q, got {view.device}'
            )
        if view.shape[0] != q.shape[0]:
            raise ArgumentError(
                f'tensor "{name}": expected batch size {q.shape[0]} as q, got {view.shape[0]}'
            )
        if view.shape[3] > 1 and view.strides[3] != 1:
            raise ArgumentError(
                f'tensor "{name}": expected an innermost stride of 1, got {view.strides[3]}'
            )
    if k.shape[3] != q.shape[3]:
        raise ArgumentError(
            f'tensor "k": expected head dimension {q.shape[3]} as q, got {k.shape[3]}'
        )
    if v.shape[1:3] != k.shape[1:3]:
        raise ArgumentError(
            f'tensor "v": expected heads and keys {list(k.shape[1:3])} as k, got '
            f"{list(v.shape[1:3])}"
        )


def _load(chip: str, flags: dict[str, object]) -> runtime.LoadedKernel:
    """The loaded kernel of a problem, compiled by the first call."""
    key = (chip, tuple(flags.items()))
    kernel = _loaded.get(key)
    if kernel is not None:
        return kernel
    compiled = compile(chip=chip, **flags)  # type: ignore[arg-type]
    images = [bundle.Image("ptx", chip, compiled.ptx.encode())]
    try:
        images.insert(0, bundle.Image("cubin", chip, compiled.cubin))
    except CompileError:
        # Without ptxas the driver translates the PTX, or says what is wrong.
        pass
    kernel = runtime.LoadedKernel(bundle.Bundle(compiled.launch, tuple(images)))
    with _lock:
        return _loaded.setdefault(key, kernel)


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    causal: bool | str = False,
    window: tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    scale: float | None = None,
    sinks: Any = None,
    lse: bool = False,
) -> Any:
    """Attention on torch tensors on a GPU, on the current stream.

    q is (batch, heads, queries, dim), k and v have key heads that divide the
    heads; v may have another head dimension. Returns o, laid out as q, or (o,
    lse) with `lse`. Options as in `compile`; `sinks` is one f32 logit per head.

    The first call with new shapes compiles a kernel for them, or takes it from
    the cache; dense operands in the order (batch, head, sequence, dim) or (batch,
    sequence, head, dim) in memory get the fastest one. Forward only. Raises
    ArgumentError, CompileError or DriverError.
    """
    for name, value in (("q", q), ("k", k), ("v", v)):
        if not _tensors.is_torch(value):
            raise ArgumentError(
                f'tensor "{name}": expected a torch tensor, got {type(value).__name__}'
            )
    views = [_tensors.view(name, value, 0) for name, value in (("q", q), ("k", k), ("v", v))]
    _check(*views)
    batch, heads, queries, dim = views[0].shape
    _, kv_heads, keys, dv = views[2].shape
    layout = _get_layout(views)
    dtype = views[0].dtype
    flags: dict[str, object] = {
        # A dynamic kernel is the same for all batches and lengths.
        "q": f"{batch}x{heads}x{queries}x{dim}x{dtype}" if layout else f"1x{heads}x1x{dim}x{dtype}",
        "kv_heads": kv_heads,
        "kv_len": keys if layout else 1,
        "dv": dv,
        "causal": causal,
        "window": window,
        "softcap": softcap,
        "scale": scale,
        "sinks": sinks is not None,
        "lse": lse,
        "layout": layout,
        "dynamic": layout is None,
    }
    device = _driver.get_device(views[0].device)
    kernel = _load(_get_chip(device.major, device.minor), flags)
    # An 8-bit output would need a factor.
    out = {} if dtype in ("f16", "bf16") else {"dtype": _get_torch().bfloat16}
    if layout == "bnhd":
        o = q.new_empty((batch, queries, heads, dv), **out).transpose(1, 2)
    else:
        o = q.new_empty((batch, heads, queries, dv), **out)
    tensors = {"q": q, "k": k, "v": v, "o": o}
    if lse:
        tensors["lse"] = q.new_empty((batch, heads, queries), dtype=_get_torch().float32)
    if sinks is not None:
        tensors["sinks"] = sinks
    kernel(**tensors)
    return (o, tensors["lse"]) if lse else o


def _get_torch() -> Any:
    """torch, which is loaded when there are torch tensors."""
    return sys.modules["torch"]
