"""Derivatives that torch's transforms and its forward mode would take of results, which have none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch._C import _functorch
from torch.autograd import forward_ad

from ..errors import ArgumentError


def is_dual_level() -> bool:
    """Whether tensors may have tangents. Where torch does not say so, they may."""
    return getattr(forward_ad, "_current_level", 0) >= 0


def _has_tangent(tensor: Any) -> bool:
    return is_dual_level() and forward_ad.unpack_dual(tensor).tangent is not None


def _is_followed(tensor: Any, has_gradients: bool) -> bool:
    """Whether a transform, or the forward mode, follows the tensor."""
    if _has_tangent(tensor):
        return True
    while _functorch.is_functorch_wrapped_tensor(tensor):
        if has_gradients and _functorch.is_gradtrackingtensor(tensor) and tensor.requires_grad:
            return True
        tensor = _functorch.get_unwrapped(tensor)
        if _has_tangent(tensor):
            return True
    return False


def refuse(tensors: Iterable[Any]) -> None:
    """Raises ArgumentError for a tensor whose derivative torch would take to be zero: inside of
    torch.func.grad, jvp and the like, or with a tangent. Does not see them while torch compiles."""
    # Compiled code has no tensors yet.
    if torch.compiler.is_compiling():
        return
    # torch.no_grad ends gradients, and leaves tangents as they are.
    has_gradients = torch.is_grad_enabled()
    has_gradients &= _functorch.peek_interpreter_stack() is not None
    if not has_gradients and not is_dual_level():
        return
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor) and _is_followed(tensor, has_gradients):
            raise ArgumentError(
                "results have no derivatives: expected a call outside of torch.func's grad and jvp and "
                "of forward mode, or one on tensor.detach()"
            )
