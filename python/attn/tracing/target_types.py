"""What functions say about types and devices: the arguments of torch's `to`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .trace_errors import fail


class Device:
    """The device of traced values, which is that of the launch."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<the kernel's device>"


DEVICE = Device()

#: numpy's and torch's names of types.
TYPE_NAMES = {"f32": "float32", "i32": "int32", "i64": "int64", "i1": "bool"}
_TYPES = {name: type for type, name in TYPE_NAMES.items()} | {
    "float": "f32",
    "int": "i32",
    "long": "i64",
}
_DEVICES = frozenset(("cpu", "cuda", "meta", "mps", "xpu"))


def is_device(target: object) -> bool:
    """Whether this names a device, as `to` takes it."""
    if isinstance(target, str):
        return target.partition(":")[0] in _DEVICES
    return isinstance(target, (Device, int)) or type(target).__name__ == "device"


def read_type(what: str, dtype: Any) -> str:
    """The type that a dtype of torch or numpy stands for."""
    # numpy's bool had an underscore at its end before 2.0.
    name = (getattr(dtype, "__name__", None) or str(dtype).removeprefix("torch.")).rstrip("_")
    if name not in _TYPES:
        raise fail(f"{what}: expected float32, int32, int64 or bool, got {name}")
    return _TYPES[name]


def read_target(what: str, args: Sequence[object], kwargs: Mapping[str, object]) -> str | None:
    """The type that the arguments of torch's `to` name, if any."""
    unknown = set(kwargs) - {"dtype", "device", "other", "non_blocking", "copy"}
    if unknown:
        raise fail(f"{what}: there is no argument {min(unknown)!r}")
    # Others after the first two say how to copy.
    targets = [*args[:2], *[kwargs.get(name) for name in ("dtype", "device", "other")]]
    found = None
    for target in targets:
        if target is None or isinstance(target, bool) or is_device(target):
            continue
        # Traced values and captured tensors have the name of their type.
        named = getattr(target, "dtype", None)
        found = read_type(what, named if isinstance(named, str) else target)
    return found


def names_devices_only(args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    """Whether the arguments of torch's `to` name devices and no type."""
    return read_target("to()", args, kwargs) is None
