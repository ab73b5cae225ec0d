"""What calls check of their tensors alike: each error is one sentence with the argument, what it has
to be, and what it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import ArgumentError, ArgumentTypeError
from ..launch import device_tensors
from ..options.argument_names import OUTPUTS
from ..record import TensorView
from .tensor_views import expect


def check_torch(name: str, tensor: Any, beside: str = "q") -> None:
    """Refuses what is no tensor of torch, beside another one that is."""
    if not device_tensors.is_torch(tensor):
        raise ArgumentTypeError(
            f'tensor "{name}": expected a torch tensor as {beside}, got {type(tensor).__name__}'
        )


def check_beside(name: str, tensor: Any, first: Any, beside: str = "q") -> None:
    """Refuses what is no tensor of torch on the device of `first`, which the call names `beside`:
    torch would do nothing at all where one of them is a meta tensor."""
    check_torch(name, tensor, beside)
    if tensor.device != first.device:
        raise ArgumentError(
            f'tensor "{name}": expected it on {first.device} as {beside}, got {tensor.device}'
        )


def check_device(name: str, view: TensorView, device: int, beside: str = "q") -> None:
    """Refuses a tensor on another device than `beside`."""
    if view.device != device:
        raise ArgumentError(
            f'tensor "{name}": expected it on {device_tensors.name_device(device)} as {beside}, '
            f"got {device_tensors.name_device(view.device)}"
        )


def check_devices(views: Mapping[str, TensorView], device: int, beside: str = "q") -> None:
    """Refuses outputs and sinks among the views of a launch that are on another device."""
    for name in ("o", "lse", "o_scales", "amax", "sinks"):
        if name in views:
            check_device(OUTPUTS.get(name, name), views[name], device, beside)


def check_columns(name: str, view: TensorView) -> None:
    """Refuses rows whose columns do not lie side by side."""
    if view.shape[-1] > 1:
        expect(name, "an innermost stride of", 1, view.strides[-1])


def check_heads(name: str, heads: int, kv_heads: int) -> None:
    """Refuses heads that key heads do not divide."""
    if kv_heads < 1 or heads < 1 or heads % kv_heads:
        raise ArgumentError(
            f"{name}: expected a multiple of the {kv_heads} key heads, got {heads} heads"
        )


def check_sinks(sinks: TensorView, heads: int) -> None:
    """Refuses logits that are not one f32 for each head."""
    expect("sinks", "elements of", "f32", sinks.dtype)
    expect("sinks", "shape", [heads], list(sinks.shape))


def check_amax(amax: TensorView) -> None:
    """Refuses a place of the largest size that is not one f32."""
    expect("amax", "elements of", "f32", amax.dtype)
    expect("amax", "shape", [1], list(amax.shape))


def check_lse(lse: TensorView, shape: Sequence[int]) -> None:
    """Refuses an LSE that is not an f32 for each row."""
    expect("lse", "shape", list(shape), list(lse.shape))
    expect("lse", "elements of", "f32", lse.dtype)


def check_out(out: TensorView, shape: Sequence[int]) -> None:
    """Refuses an output of another shape, or whose columns do not lie side by side."""
    expect("out", "shape", list(shape), list(out.shape))
    check_columns("out", out)
