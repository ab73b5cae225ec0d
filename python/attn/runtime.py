"""Launches bundles where there is neither a compiler nor a toolkit.

    import attn.runtime

    kernel = attn.runtime.load("attention.attn")
    kernel(q=q, k=k, v=v, o=o, lse=lse)

Needs the CUDA driver and the standard library. Tensors come from torch, or
have `__cuda_array_interface__` or DLPack.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any

from . import _driver, _tensors, bundle
from .errors import ArgumentError, DriverError
from .record import Binder, Launch, TensorView

#: Resolved launches that a kernel keeps.
_KEPT_LAUNCHES = 256


class _Frame:
    """A parameter buffer and the places of the addresses in it."""

    def __init__(self, binder: Binder) -> None:
        # Tensor maps lie at multiples of 64.
        self._buffer = ctypes.create_string_buffer(binder.parameter_bytes + 64)
        self.start = -(-ctypes.addressof(self._buffer) // 64) * 64

        def get_slot(offset: int) -> ctypes.c_uint64:
            return ctypes.c_uint64.from_address(self.start + offset)

        self.pointers = [(name, get_slot(offset)) for name, offset in binder.pointers]
        self.workspaces = [(index, get_slot(offset)) for index, offset in binder.workspaces]
        #: The array of pointers to parameters that the driver takes.
        self.parameters = (ctypes.c_void_p * len(binder.offsets))(
            *[self.start + offset for offset in binder.offsets]
        )


class LoadedKernel:
    """A kernel that can be launched. Calls from several threads are fine."""

    def __init__(self, contents: bundle.Bundle) -> None:
        """Checks the launch record; a device is touched by the first call."""
        self.bundle = contents
        self._binder = Binder(contents.launch)
        self._functions: dict[int, _driver.Function] = {}
        self._launches: dict[object, Launch] = {}
        self._lock = threading.Lock()
        self._local = threading.local()

    def __repr__(self) -> str:
        return f"<attn.runtime.LoadedKernel {self.name} for {self._binder.chip}>"

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return self._binder.kernel

    @property
    def launch_record(self) -> dict[str, Any]:
        """docs/LaunchRecord.md."""
        return self.bundle.launch

    def __call__(
        self,
        *,
        stream: int | None = None,
        device: int = 0,
        scalars: Mapping[str, float] | None = None,
        **tensors: Any,
    ) -> None:
        """Launches on tensors by the record's names (q, k, v, o, lse, ...), which
        are all needed, those that the kernel writes too.

        `stream` is a CUstream as an integer; without it torch's current stream
        when a torch tensor is among the tensors, else the default stream.
        `device` counts where no tensor says. Raises ArgumentError for tensors
        that the kernel cannot take, BundleError when nothing in the bundle runs
        on the device, DriverError for what the driver refuses."""
        views: dict[str, TensorView] = {}
        uses_torch = False
        for name, value in tensors.items():
            views[name] = _tensors.view(name, value, device)
            uses_torch = uses_torch or _tensors.is_torch(value)
        ordinals = {view.device for view in views.values()}
        if len(ordinals) > 1:
            places = ", ".join(f"{name} on {view.device}" for name, view in views.items())
            raise ArgumentError(f"kernel {self.name}: expected one device, got {places}")
        ordinal = ordinals.pop() if ordinals else device
        launch = self._resolve(views, scalars)
        if 0 in launch.grid:
            return
        if stream is None:
            stream = _get_torch_stream(ordinal) if uses_torch else 0
        opened = _driver.get_device(ordinal)
        if opened.is_current():
            self._launch(launch, views, ordinal, stream)
        else:
            with opened:
                self._launch(launch, views, ordinal, stream)

    def _resolve(self, views: dict[str, TensorView], scalars: Mapping[str, float] | None) -> Launch:
        """The launch for these shapes, computed once."""
        # All but the addresses.
        key: object = tuple([(name, view[:3]) for name, view in views.items()])
        if scalars:
            key = (key, tuple(sorted(scalars.items())))
        launch = self._launches.get(key)
        if launch is None:
            launch = self._binder.resolve(views, scalars)
            with self._lock:
                if len(self._launches) >= _KEPT_LAUNCHES:
                    self._launches.clear()
                self._launches[key] = launch
        return launch

    def _get_function(self, ordinal: int) -> _driver.Function:
        """The kernel on a device, loaded by the first call there. The device's
        context is current."""
        function = self._functions.get(ordinal)
        if function is not None:
            return function
        with self._lock:
            if ordinal not in self._functions:
                device = _driver.get_device(ordinal)
                image = self.bundle.pick(device.major, device.minor)
                if self._binder.shared_bytes > device.shared_bytes:
                    raise DriverError(
                        f"kernel {self.name}: it needs {self._binder.shared_bytes} bytes of "
                        f"shared memory, device {ordinal} has {device.shared_bytes}"
                    )
                self._functions[ordinal] = _driver.Function(
                    image.data, self.name, self._binder.shared_bytes
                )
            return self._functions[ordinal]

    def _launch(
        self, launch: Launch, views: dict[str, TensorView], ordinal: int, stream: int
    ) -> None:
        binder = self._binder
        function = self._get_function(ordinal)
        frame = self._get_frame()
        ctypes.memmove(frame.start, launch.parameters, binder.parameter_bytes)
        for name, slot in frame.pointers:
            slot.value = views[name].address
        for parameter in launch.tensor_maps:
            _driver.encode_tensor_map(
                parameter, views[parameter.tensor], frame.start + parameter.offset, self.name
            )
        workspaces = self._allocate(launch, stream) if launch.workspace_bytes else []
        try:
            for index, slot in frame.workspaces:
                slot.value = workspaces[index]
            status = function.launch(
                launch.grid,
                binder.block,
                binder.cluster,
                binder.shared_bytes,
                stream,
                frame.parameters,
            )
            if status:
                _driver.check(
                    status,
                    "cuLaunchKernel",
                    f"kernel {self.name}: grid {launch.grid}, block {binder.block}, cluster "
                    f"{binder.cluster}, {binder.shared_bytes} bytes of shared memory",
                )
        finally:
            # In the stream's order, so that the kernel still has them.
            for address in workspaces:
                if address:
                    _driver.load().cuMemFreeAsync(address, stream)

    def _get_frame(self) -> _Frame:
        """This thread's frame: the driver copies the parameters before a launch
        returns, so that the next launch may overwrite them."""
        frame: _Frame | None = getattr(self._local, "frame", None)
        if frame is None:
            frame = self._local.frame = _Frame(self._binder)
        return frame

    def _allocate(self, launch: Launch, stream: int) -> list[int]:
        """Workspaces in the stream's order."""
        driver = _driver.load()
        addresses: list[int] = []
        for size, zeroed in zip(launch.workspace_bytes, self._binder.zeroed, strict=True):
            address = ctypes.c_uint64()
            if size:
                what = f"kernel {self.name}: workspace of {size} bytes"
                status = driver.cuMemAllocAsync(ctypes.byref(address), size, stream)
                _driver.check(status, "cuMemAllocAsync", what)
                if zeroed:
                    status = driver.cuMemsetD8Async(address, 0, size, stream)
                    _driver.check(status, "cuMemsetD8Async", what)
            addresses.append(address.value)
        return addresses


def _get_torch_stream(ordinal: int) -> int:
    torch = sys.modules["torch"]
    # What torch's own compiler calls: no Stream object is made.
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None:
        return int(raw(ordinal))
    return int(torch.cuda.current_stream(ordinal).cuda_stream)


def load(source: str | os.PathLike[str] | bytes) -> LoadedKernel:
    """A kernel from a bundle's file or bytes. BundleError and RecordError for
    what is no bundle of a version that this package knows."""
    contents = bundle.parse(source) if isinstance(source, bytes) else bundle.read(source)
    return LoadedKernel(contents)
