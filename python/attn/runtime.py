"""Launches bundles where there is neither a compiler nor a toolkit.

    import attn.runtime

    kernel = attn.runtime.load("attention.attn")
    kernel(q=q, k=k, v=v, o=o, lse=lse)

Needs the CUDA driver and the standard library. Tensors come from torch, or
have `__cuda_array_interface__` or DLPack.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import struct
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import bundle
from .errors import ArgumentError, ArgumentTypeError, DriverError
from .launch import cuda_driver, device_reports, device_tensors, events
from .launch.one_process import OfProcess
from .record import Binder, Launch, LaunchStep, Step, TensorView

#: Resolved launches that a kernel keeps.
_KEPT_LAUNCHES = 256

#: Bytes that workspaces in one piece of memory begin at a multiple of.
_SCRATCH_UNIT = 256
#: Addresses of tensor maps are a multiple of it, in bytes.
_MAP_UNIT = 16
#: Streams whose workspaces are kept.
_KEPT_STREAMS = 64
#: Workspaces of zeros that kernels restore, by device, stream and sizes: launches
#: on one stream come one after the other.
_kept: dict[tuple[int, int, tuple[int, ...]], list[int]] = {}
_kept_lock = threading.Lock()


class _Frame:
    """A parameter buffer, the places of the addresses in it, and the shape of the launch."""

    def __init__(self, step: Step, launch: LaunchStep, names: Sequence[str]) -> None:
        # Tensor maps lie at multiples of 64.
        self._buffer = ctypes.create_string_buffer(step.parameter_bytes + 64)
        self.start = -(-ctypes.addressof(self._buffer) // 64) * 64
        ctypes.memmove(self.start, launch.parameters, step.parameter_bytes)

        def get_slot(offset: int) -> ctypes.c_uint64:
            return ctypes.c_uint64.from_address(self.start + offset)

        # (index among the addresses, place).
        pointers = [(names.index(name), offset) for name, offset in step.pointers]
        self._slots = [(index, get_slot(offset)) for index, offset in pointers]
        self.workspaces = [(index, get_slot(offset)) for index, offset in step.workspaces]
        # The usual kernel has its pointers first, in the order of its tensors.
        count = len(names)
        self._pack: Callable[..., None] | None = None
        if pointers == [(index, 8 * index) for index in range(count)]:
            skew = self.start - ctypes.addressof(self._buffer)
            packer = struct.Struct(f"={count}Q").pack_into
            self._pack = functools.partial(packer, self._buffer, skew)
        #: The array of pointers to parameters that the driver takes.
        self.parameters = (ctypes.c_void_p * len(step.offsets))(
            *[self.start + offset for offset in step.offsets]
        )
        self.shape = cuda_driver.LaunchShape(
            launch.grid,
            step.block,
            step.cluster,
            step.shared_bytes,
            step.cooperative,
            step.programmatic,
        )

    def fill(self, addresses: Sequence[int]) -> None:
        """Writes the tensors' addresses."""
        if self._pack is not None:
            self._pack(*addresses)
            return
        for index, slot in self._slots:
            slot.value = addresses[index]


class _PreparedStep:
    """A kernel of a launch, which only lacks addresses."""

    def __init__(
        self, step: Step, launch: LaunchStep, names: Sequence[str], views: Mapping[str, TensorView]
    ) -> None:
        self._step = step
        self.launch = launch
        self._names = names
        self._views = views
        self._maps = [(names.index(each.tensor), each) for each in launch.tensor_maps]
        #: Whole parameters by the tensors' addresses: maps take long to encode.
        self._filled: dict[tuple[int, ...], bytes] = {}
        self.is_empty = 0 in launch.grid
        self.function: cuda_driver.Function | None = None
        self._local = threading.local()

    def fill(self, addresses: Sequence[int]) -> _Frame:
        """This thread's frame with the addresses: the driver copies the
        parameters before a launch returns, so that the next one may overwrite
        them."""
        frame: _Frame | None = getattr(self._local, "frame", None)
        if frame is None:
            frame = self._local.frame = _Frame(self._step, self.launch, self._names)
        if not self._maps:
            frame.fill(addresses)
            return frame
        filled = self._filled.get(key := tuple(addresses))
        if filled is None:
            frame.fill(addresses)
            self._encode_maps(frame, addresses)
            if len(self._filled) >= _KEPT_LAUNCHES:
                self._filled.clear()
            self._filled[key] = ctypes.string_at(frame.start, self._step.parameter_bytes)
        else:
            ctypes.memmove(frame.start, filled, len(filled))
        return frame

    def _encode_maps(self, frame: _Frame, addresses: Sequence[int]) -> None:
        # A tensor without elements may have no address, which the driver does not take.
        some = max(addresses) // _MAP_UNIT * _MAP_UNIT
        for index, parameter in self._maps:
            address = addresses[index] or some
            view = self._views[parameter.tensor]._replace(address=address)
            target = frame.start + parameter.offset
            cuda_driver.encode_tensor_map(parameter, view, target, self._step.kernel)

    def fail(self, status: int, chip: str, launch_record: dict[str, Any]) -> None:
        """Raises DriverError unless `status` is success."""
        step = self._step
        shapes = ", ".join(f"{name} {list(view.shape)}" for name, view in self._views.items())
        cuda_driver.check(
            status,
            "cuLaunchKernelEx",
            f"kernel {step.kernel}: grid {self.launch.grid}, block {step.block}, cluster "
            f"{step.cluster}, {step.shared_bytes} bytes of shared memory, on {shapes}; "
            f"launch record for {chip}",
            launch_record,
        )


class PreparedLaunch(OfProcess):
    """A kernel, or several in order, with tensors of known shapes, which only
    lack their addresses. Calls from several threads are fine."""

    def __init__(
        self,
        kernel: LoadedKernel,
        views: Mapping[str, TensorView],
        scalars: Mapping[str, float] | None = None,
    ) -> None:
        """Checks the tensors; ArgumentError for what the kernel cannot take."""
        self._kernel = kernel
        self._binder = binder = kernel.binder
        self._names = tuple(views)
        self._ordinal = next((view.device for view in views.values()), 0)
        sms = cuda_driver.get_device(self._ordinal).multiprocessors if binder.uses_device else None
        self._launch: Launch = binder.resolve(views, scalars, sms)
        self._has_workspaces = bool(self._launch.workspace_bytes)
        self._steps = [
            _PreparedStep(step, launch, self._names, dict(views))
            for step, launch in zip(binder.steps, self._launch.steps, strict=True)
        ]
        #: True once the device has the code of all steps.
        self._is_loaded = False
        self._is_empty = all(step.is_empty for step in self._steps)
        # All are powers of two.
        self._alignment = max([1, *[binder.alignments[name] for name in self._names]])
        #: Where workspaces of any contents lie in one piece of memory, by index, and its bytes.
        self._offsets: dict[int, int] = {}
        self.scratch_bytes = 0
        for index, (size, each) in enumerate(
            zip(self._launch.workspace_bytes, binder.workspaces, strict=True)
        ):
            if not each.zeroed and not each.persistent and index not in binder.restored:
                self._offsets[index] = self.scratch_bytes
                self.scratch_bytes += -(-size // _SCRATCH_UNIT) * _SCRATCH_UNIT
        restored, sizes = binder.restored, self._launch.workspace_bytes
        #: The bytes of workspaces that stay with a stream.
        self._kept_sizes = tuple(sizes[index] for index in restored)
        #: Where each workspace lies in the piece of memory, None for those that stay; nothing at
        #: all where one is neither.
        self._places = [(index, self._offsets.get(index)) for index in range(len(sizes))]
        if len(self._offsets) + len(restored) != len(sizes):
            self._places = []
        #: Workspaces that stay as long as this object, by index.
        self._persistent: dict[int, int] = {}
        self._lock = threading.Lock()

    @property
    def workspace_bytes(self) -> tuple[int, ...]:
        """Bytes of each workspace."""
        return self._launch.workspace_bytes

    def __call__(
        self,
        addresses: Sequence[int],
        stream: int,
        workspaces: Sequence[int] | None = None,
        scratch: int = 0,
    ) -> None:
        """Launches on tensors at these addresses, in the order of the views. With
        `workspaces`, addresses of memory of `workspace_bytes`, nothing is
        allocated; what has to be zeros at the start is the caller's to clear.
        With `scratch`, the address of `scratch_bytes` that are the launch's until
        the stream has run it, only what such contents matter to is."""
        bits = 0
        for address in addresses:
            bits |= address
        if bits % self._alignment:
            self._binder.check_addresses(dict(zip(self._names, addresses, strict=True)))
        if self._is_empty:
            return
        if self._is_loaded:
            memory = self._find_memory(stream, scratch) if workspaces is None else workspaces
            if memory is not None:
                # Asking for the context at each call would cost more than a launch that fails
                # without it.
                step, status = self._try_start(addresses, memory, stream)
                if not status:
                    return
                if status not in cuda_driver.WITHOUT_CONTEXT:
                    self._fail(step, status)
        device = cuda_driver.get_device(self._ordinal)
        if device.is_current():
            self._run(addresses, stream, workspaces, scratch)
        else:
            with device:
                self._run(addresses, stream, workspaces, scratch)

    def _run(
        self,
        addresses: Sequence[int],
        stream: int,
        workspaces: Sequence[int] | None,
        scratch: int,
    ) -> None:
        """Launches in the device's context."""
        for number, step in enumerate(self._steps):
            if step.function is None:
                step.function = self._kernel.get_function(self._ordinal, number)
        self._is_loaded = True
        if self._has_workspaces and workspaces is None:
            self._run_with_memory(addresses, stream, scratch)
        else:
            self._start(addresses, workspaces or (), stream)

    def _start(self, addresses: Sequence[int], workspaces: Sequence[int], stream: int) -> None:
        """Launches the steps one after the other on the stream."""
        step, status = self._try_start(addresses, workspaces, stream)
        if status:
            self._fail(step, status)

    def _try_start(
        self, addresses: Sequence[int], workspaces: Sequence[int], stream: int
    ) -> tuple[_PreparedStep, int]:
        """Launches the steps until one fails: the last one that was, and its status."""
        step, status = self._steps[0], 0
        for step in self._steps:
            if step.is_empty:
                continue
            frame = step.fill(addresses)
            for index, slot in frame.workspaces:
                slot.value = workspaces[index]
            status = step.function.launch(frame.shape, stream, frame.parameters)  # type: ignore[union-attr]
            if status:
                break
        return step, status

    def _find_memory(self, stream: int, scratch: int) -> Sequence[int] | None:
        """The addresses of all workspaces; None where one of them is still to be allocated."""
        if not self._has_workspaces:
            return ()
        if not self._places or (self.scratch_bytes and not scratch):
            return None
        kept = self._find_kept(stream) if self._kept_sizes else {}
        if len(kept) != len(self._kept_sizes):
            return None
        return [
            kept[index] if offset is None else scratch + offset for index, offset in self._places
        ]

    def _fail(self, step: _PreparedStep, status: int) -> None:
        step.fail(status, self._binder.chip, self._kernel.launch_record)

    def _run_with_memory(self, addresses: Sequence[int], stream: int, scratch: int) -> None:
        """A launch with workspaces."""
        kept = self._find_kept(stream)
        if scratch:
            # Not this launch's to free, as those that stay.
            kept |= {index: scratch + offset for index, offset in self._offsets.items()}
        workspaces = self._allocate(stream, kept)
        try:
            self._start(addresses, workspaces, stream)
        finally:
            # In the stream's order, so that the kernels still have them.
            for index, address in enumerate(workspaces):
                if address and index not in self._persistent and index not in kept:
                    cuda_driver.load().cuMemFreeAsync(address, stream)

    def _find_kept(self, stream: int) -> dict[int, int]:
        """Addresses, by index, of the workspaces that stay since the kernels leave
        them as they found them."""
        indices, sizes = self._binder.restored, self._kept_sizes
        number = cuda_driver.find_stream(stream) if indices else None
        if number is None:
            return {}
        key = (self._ordinal, number, sizes)
        kept = _kept.get(key)
        if kept is None and len(_kept) < _KEPT_STREAMS:
            with _kept_lock:
                kept = _kept.get(key)
                if kept is None:
                    kept = [self._allocate_one(size, True, stream) for size in sizes]
                    _kept[key] = kept
        return dict(zip(indices, kept or (), strict=False))

    def _allocate(self, stream: int, kept: dict[int, int]) -> list[int]:
        """Workspaces in the stream's order; those that stay by the first call."""
        addresses: list[int] = []
        sizes = self._launch.workspace_bytes
        for index, (size, each) in enumerate(zip(sizes, self._binder.workspaces, strict=True)):
            if index in kept:
                addresses.append(kept[index])
                continue
            if not each.persistent:
                addresses.append(self._allocate_one(size, each.zeroed, stream))
                continue
            with self._lock:
                if index not in self._persistent:
                    self._persistent[index] = self._allocate_one(size, each.zeroed, stream)
            addresses.append(self._persistent[index])
        return addresses

    def _allocate_one(self, size: int, zeroed: bool, stream: int) -> int:
        driver = cuda_driver.load()
        address = ctypes.c_uint64()
        if size:
            what = f"kernel {self._binder.kernel}: workspace of {size} bytes"
            status = driver.cuMemAllocAsync(ctypes.byref(address), size, stream)
            cuda_driver.check(status, "cuMemAllocAsync", what)
            if zeroed:
                status = driver.cuMemsetD8Async(address, 0, size, stream)
                cuda_driver.check(status, "cuMemsetD8Async", what)
        return address.value


class _ToldLaunch(PreparedLaunch):
    """One that tells each launch."""

    def __call__(
        self,
        addresses: Sequence[int],
        stream: int,
        workspaces: Sequence[int] | None = None,
        scratch: int = 0,
    ) -> None:
        events.tell(
            "launched: %s on device %d, stream %#x", self._kernel.name, self._ordinal, stream
        )
        super().__call__(addresses, stream, workspaces, scratch)


class LoadedKernel(OfProcess):
    """A kernel that can be launched. Calls from several threads are fine."""

    def __init__(self, contents: bundle.Bundle) -> None:
        """Checks the launch record; a device is touched by the first call."""
        self.bundle = contents
        #: The record, checked.
        self.binder = Binder(contents.launch)
        #: By device, in the order of the steps.
        self._functions: dict[int, list[cuda_driver.Function]] = {}
        #: Of instrumented kernels, by device: the module with their reports.
        self._checked: dict[int, cuda_driver.Module] = {}
        self._prepared: dict[object, PreparedLaunch] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<attn.runtime.LoadedKernel {self.name} for {self.binder.chip}>"

    @property
    def name(self) -> str:
        """The name of the kernel; of several, all of them."""
        return self.binder.kernel

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its tensors, in the record's order."""
        return tuple(self.binder.tensors)

    @property
    def launch_record(self) -> dict[str, Any]:
        """docs/LaunchRecord.md."""
        return self.bundle.launch

    def prepare(
        self, views: Mapping[str, TensorView], scalars: Mapping[str, float] | None = None
    ) -> PreparedLaunch:
        """A launch on tensors of these shapes, all on one device."""
        kind = _ToldLaunch if events.is_told() else PreparedLaunch
        return kind(self, views, scalars)

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
            views[name] = device_tensors.view(name, value, device)
            uses_torch = uses_torch or device_tensors.is_torch(value)
        # All but the addresses.
        key: object = tuple([(name, view[:3], view[4]) for name, view in views.items()])
        if scalars:
            key = (key, tuple(sorted(scalars.items())))
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._prepare(key, views, scalars)
        if stream is None:
            ordinal = next((view.device for view in views.values()), device)
            stream = get_torch_stream(ordinal) if uses_torch else 0
        prepared([view.address for view in views.values()], stream)
        # Reading waits, which a capture does not allow; take_reports has them later.
        if self._checked and not cuda_driver.is_capturing(stream):
            ordinal = next((view.device for view in views.values()), device)
            for report in self.take_reports(ordinal):
                print(report, file=sys.stderr)

    def take_reports(self, ordinal: int = 0) -> list[device_reports.Report]:
        """Waits for the device and returns what the kernel's own checks have
        found since the last call (docs/Instrument.md). Nothing of a kernel that
        is not instrumented, or was not launched on the device."""
        module = self._checked.get(ordinal)
        if module is None:
            return []
        driver = cuda_driver.load()
        with cuda_driver.get_device(ordinal):
            what = f"kernel {self.name}: reports"
            cuda_driver.check(driver.cuCtxSynchronize(), "cuCtxSynchronize", what)

            def read(name: str) -> tuple[int, bytes]:
                address, size = module.find_variable(name)
                buffer = ctypes.create_string_buffer(size)
                status = driver.cuMemcpyDtoH_v2(buffer, address, size)
                cuda_driver.check(status, "cuMemcpyDtoH", what)
                return address, buffer.raw

            address, words = read(device_reports.REPORTS)
            reports = device_reports.parse(
                words, device_reports.read_sites(read(device_reports.SITES)[1])
            )
            if reports:
                # The seed in front of the records stays.
                rest = ctypes.create_string_buffer(len(words) - 4)
                status = driver.cuMemcpyHtoD_v2(address + 4, rest, len(words) - 4)
                cuda_driver.check(status, "cuMemcpyHtoD", what)
        return reports

    def set_seed(self, seed: int, ordinal: int = 0) -> None:
        """Chooses other random pauses for the next launches of a kernel that
        attn-instrument gave some; the kernel was launched on the device."""
        module = self._checked.get(ordinal)
        if module is None:
            raise ArgumentError(
                f"kernel {self.name}: set_seed: expected an instrumented kernel that was launched "
                f"on device {ordinal} before, got none"
            )
        with cuda_driver.get_device(ordinal):
            word = ctypes.c_uint32(seed)
            address, _ = module.find_variable(device_reports.REPORTS)
            status = cuda_driver.load().cuMemcpyHtoD_v2(address, ctypes.byref(word), 4)
            cuda_driver.check(status, "cuMemcpyHtoD", f"kernel {self.name}: seed")

    def _prepare(
        self, key: object, views: Mapping[str, TensorView], scalars: Mapping[str, float] | None
    ) -> PreparedLaunch:
        """The launch for these shapes, kept for the next one."""
        if len({view.device for view in views.values()}) > 1:
            places = ", ".join(f"{name} on {view.device}" for name, view in views.items())
            raise ArgumentError(f"kernel {self.name}: expected one device, got {places}")
        prepared = self.prepare(views, scalars)
        with self._lock:
            if len(self._prepared) >= _KEPT_LAUNCHES:
                self._prepared.clear()
            return self._prepared.setdefault(key, prepared)

    def _load_module(self, device: cuda_driver.Device) -> tuple[cuda_driver.Module, bytes]:
        """The best image that the device's driver takes: a simulator's takes no
        machine code."""
        what = f"kernel {self.name}"
        *better, last = self.bundle.rank(device.major, device.minor)
        for image in better:
            with contextlib.suppress(cuda_driver.NoBinaryError):
                return cuda_driver.Module(image.data, what), image.data
        return cuda_driver.Module(last.data, what), last.data

    def get_function(self, ordinal: int, step: int = 0) -> cuda_driver.Function:
        """The kernel of a step on a device, loaded by the first call there. The
        device's context is current."""
        functions = self._functions.get(ordinal)
        if functions is not None:
            return functions[step]
        with self._lock:
            if ordinal not in self._functions:
                device = cuda_driver.get_device(ordinal)
                module, image = self._load_module(device)
                if device_reports.REPORTS.encode() in image:
                    self._checked[ordinal] = module
                loaded = []
                for each in self.binder.steps:
                    if each.shared_bytes > device.shared_bytes:
                        raise DriverError(
                            f"kernel {each.kernel}: it needs {each.shared_bytes} bytes of "
                            f"shared memory, device {ordinal} has {device.shared_bytes}"
                        )
                    loaded.append(cuda_driver.Function(module, each.kernel, each.shared_bytes))
                self._functions[ordinal] = loaded
            return self._functions[ordinal][step]


def get_torch_stream(ordinal: int) -> int:
    """torch's current stream on a device."""
    torch = sys.modules["torch"]
    # What torch's own compiler calls: no Stream object is made.
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None:
        return int(raw(ordinal))
    return int(torch.cuda.current_stream(ordinal).cuda_stream)


def load(source: str | os.PathLike[str] | bytes) -> LoadedKernel:
    """A kernel from a bundle's file or bytes. BundleError and RecordError for
    what is no bundle of a version that this package knows."""
    if not isinstance(source, (bytes, str, os.PathLike)):
        raise ArgumentTypeError(f"source: expected a path or bytes, got {type(source).__name__}")
    contents = bundle.parse(source) if isinstance(source, bytes) else bundle.read(source)
    return LoadedKernel(contents)
