#!/usr/bin/env python3
"""Runs a GPU test of this folder without a GPU, on the stand-in driver.

    PYTHONPATH=python python3 python/tests/on_stand_in.py --chip=sm_90a gpu_check.py FOLDER

Needs torch, of any build. Tensors on "cuda" are CPU tensors whose memory the driver is told of,
`torch.cuda` has the stand-in's streams, events and graphs. Only kernels of this package run in
streams: torch's own operations are done at once, which is where the host waits for all streams.

The status is the test's; 1 where it is 0 and a launch was found to be wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import itertools
import os
import pathlib
import runpy
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any

import attn.sim
import torch
from attn import torch_op, torch_serving
from attn.sim import stand_in
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode

of_thread = threading.local()
#: CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT.
MULTIPROCESSORS = 16
HERE = pathlib.Path(__file__).resolve().parent


class HostMemory:
    """The storages of CPU tensors, as far as kernels may use them."""

    def __init__(self, library: stand_in.StandIn) -> None:
        self.library = library
        self.known: dict[int, StorageWeakRef] = {}

    def forget(self) -> None:
        """Drops the storages that are gone. torch's memory of a GPU goes to another stream once
        what used it is over, which the host's does not wait for."""
        gone = [each for each, storage in self.known.items() if storage.expired()]
        if gone and not getattr(of_thread, "is_capturing", False):
            check("cuCtxSynchronize")
        for address in gone:
            self.library.unregister(address)
            del self.known[address]

    def add(self, value: Any) -> None:
        """Takes the tensors of a result in."""
        if isinstance(value, (tuple, list)):
            for each in value:
                self.add(each)
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.is_meta:
            return
        if torch._C._functorch.is_functorch_wrapped_tensor(value):
            return
        storage = value.untyped_storage()
        address = storage.data_ptr()
        if getattr(of_thread, "is_capturing", False):
            of_thread.captured.append(value)
        # One that was dropped since, and whose address has come again.
        if address in self.known and self.known[address].expired():
            self.library.unregister(address)
            del self.known[address]
        if storage.nbytes() and address not in self.known:
            name = f"tensor of shape {list(value.shape)}"
            self.library.register(address, storage.nbytes(), name)
            self.known[address] = StorageWeakRef(storage)


def to_cpu(value: Any) -> Any:
    """A device, or what names one; others stay as they are."""
    if isinstance(value, torch.device) or (isinstance(value, str) and value.startswith("cuda")):
        device = torch.device(value)
        return torch.device("cpu") if device.type == "cuda" else value
    return value


class OnTheHost(TorchFunctionMode):
    """Does on the CPU what is asked for on "cuda"."""

    def __init__(self, memory: HostMemory) -> None:
        super().__init__()
        self.memory = memory

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        # Gone storages first: their addresses may come again.
        self.memory.forget()
        if function is torch.Tensor.cuda:
            return args[0]
        if function is torch.device:
            return to_cpu(torch._C._disabled_torch_function_impl(function, types, args, kwargs or {}))
        named = {key: to_cpu(value) for key, value in (kwargs or {}).items()}
        result = function(*[to_cpu(each) for each in args], **named)
        self.memory.add(result)
        return result


class Stream:
    """A stream of the driver."""

    def __init__(self, handle: int | None = None, **_: Any) -> None:
        value = ctypes.c_void_p(handle)
        if handle is None:
            check("cuStreamCreate", ctypes.byref(value), 1)
        self.cuda_stream = value.value or 0

    def synchronize(self) -> None:
        check("cuStreamSynchronize", ctypes.c_void_p(self.cuda_stream))

    def wait_stream(self, other: Stream) -> None:
        event = Event()
        event.record(other)
        event.wait(self)

    def wait_event(self, event: Event) -> None:
        event.wait(self)

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event


class Event:
    """An event of the driver; times are numbers of events."""

    numbers = itertools.count()

    def __init__(self, **_: Any) -> None:
        self.handle = ctypes.c_void_p()
        self.number = 0
        check("cuEventCreate", ctypes.byref(self.handle), 0)

    def record(self, stream: Stream | None = None) -> None:
        self.number = next(self.numbers)
        check(
            "cuEventRecord", self.handle, ctypes.c_void_p((stream or current_stream()).cuda_stream)
        )

    def wait(self, stream: Stream | None = None) -> None:
        check(
            "cuStreamWaitEvent",
            ctypes.c_void_p((stream or current_stream()).cuda_stream),
            self.handle,
            0,
        )

    def synchronize(self) -> None:
        check("cuEventSynchronize", self.handle)

    def elapsed_time(self, other: Event) -> float:
        return other.number - self.number


class CUDAGraph:
    """A captured graph."""

    def __init__(self) -> None:
        self.executable = ctypes.c_void_p()
        #: Tensors that were made as it was captured: they live as long as the graph.
        self.tensors: list[Any] = []

    def replay(self) -> None:
        # Nothing of torch is under way any more.
        check("cuCtxSynchronize")
        check("cuGraphLaunch", self.executable, ctypes.c_void_p(current_stream().cuda_stream))


@contextlib.contextmanager
def capture(graph: CUDAGraph, *_: Any, **__: Any) -> Iterator[None]:
    """torch.cuda.graph: captures what a stream of its own gets."""
    captured, stream = ctypes.c_void_p(), Stream()
    check("cuStreamBeginCapture_v2", ctypes.c_void_p(stream.cuda_stream), 0)
    of_thread.is_capturing, of_thread.captured = True, graph.tensors
    with use_stream(stream):
        yield
    of_thread.is_capturing = False
    check("cuStreamEndCapture", ctypes.c_void_p(stream.cuda_stream), ctypes.byref(captured))
    check(
        "cuGraphInstantiateWithFlags",
        ctypes.byref(graph.executable),
        captured,
        ctypes.c_ulonglong(0),
    )


@contextlib.contextmanager
def use_stream(stream: Stream) -> Iterator[None]:
    """torch.cuda.stream."""
    before = current_stream()
    of_thread.stream = stream
    yield
    of_thread.stream = before


def current_stream(device: Any = None) -> Stream:
    """torch.cuda.current_stream."""
    stream: Stream = getattr(of_thread, "stream", None) or Stream(0)
    return stream


def check(name: str, *arguments: Any) -> None:
    """Calls the driver."""
    driver = stand_in.load()
    driver.check(getattr(driver.library, name)(*arguments), name)


def describe_device(library: stand_in.StandIn, chip: str) -> types.SimpleNamespace:
    """What torch.cuda.get_device_properties says, as far as kernels' libraries ask."""
    count = ctypes.c_int()
    check("cuDeviceGetAttribute", ctypes.byref(count), MULTIPROCESSORS, 0)
    major, minor = library.get_capability(0)
    return types.SimpleNamespace(
        name=f"attn simulator {chip}", major=major, minor=minor, multi_processor_count=count.value
    )


def replace_cuda(library: stand_in.StandIn, chip: str) -> None:
    """Lets torch.cuda be the stand-in's, and operators of this package be called directly."""
    cuda: Any = torch.cuda
    cuda.is_available, cuda.device_count, cuda.current_device = (
        (lambda: True),
        (lambda: 1),
        (lambda: 0),
    )
    cuda.get_device_capability = lambda device=None: library.get_capability(0)
    cuda.get_device_properties = lambda device=None: describe_device(library, chip)
    cuda.get_device_name = lambda device=None: f"attn simulator {chip}"
    cuda.synchronize = lambda device=None: check("cuCtxSynchronize")
    cuda.current_stream, cuda.stream, cuda.graph = current_stream, use_stream, capture
    cuda.default_stream = lambda device=None: Stream(0)
    cuda.Stream, cuda.Event, cuda.CUDAGraph = Stream, Event, CUDAGraph
    cuda.is_current_stream_capturing = lambda: False
    cuda._sleep = lambda cycles: None
    cuda.empty_cache = lambda: None
    # torch's allocator of a GPU is not there: nothing comes of it.
    cuda.memory_stats, cuda.mem_get_info = lambda: {"allocation.all.allocated": 0}, lambda: (0, 0)
    torch._C._cuda_getCurrentRawStream = lambda device: current_stream().cuda_stream
    tensor: Any = torch.Tensor
    tensor.is_cuda, tensor.is_cpu = property(lambda self: True), property(lambda self: False)
    tensor.get_device = lambda self: 0
    torch_op._OBSERVERS.clear()
    torch_op._get_stream = torch._C._cuda_getCurrentRawStream
    torch_op._attention_out = torch_op._run_out
    for form in (torch_serving._DECODE, torch_serving._LATENT_DECODE, torch_serving._PREFILL):
        form._operators = [form.run, form.run_lse, form.launch]
    operators: Any = torch.ops.attn
    operators.merge_states = torch_serving._merge_new
    operators.merge_states_out = torch_serving._merge_out


def break_strides() -> None:
    """Makes the rows of tensor maps 16 bytes longer."""
    from attn.launch import cuda_driver

    encode = cuda_driver.encode_tensor_map

    def encode_wrong(parameter: Any, *rest: Any) -> None:
        first, *others = parameter.strides
        encode(dataclasses.replace(parameter, strides=(first + 16, *others)), *rest)

    cuda_driver.encode_tensor_map = encode_wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument(
        "--break-strides", action="store_true", help="of tensor maps: the test has to fail"
    )
    parser.add_argument("--cute", action="store_true", help="kernels are CuTe DSL's, too")
    parser.add_argument("test", help="a file of this folder, or another one's path")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    os.environ[stand_in.CHIPS] = options.chip
    os.environ.setdefault("ATTN_SIM_SITES", "1")
    if options.cute:
        attn.sim.cute(options.chip)
    library = stand_in.load()
    library.set_device(0)
    replace_cuda(library, options.chip)
    if options.break_strides:
        break_strides()
    sys.argv = [options.test, *options.arguments]
    sys.path.insert(0, str((HERE / options.test).parent))
    status: Any = 0
    with OnTheHost(HostMemory(library)):
        try:
            runpy.run_path(str(HERE / options.test), run_name="__main__")
        except SystemExit as end:
            status = end.code
    found, errors = library.count_findings()
    print(f"{options.test} on {options.chip}: {errors} errors among {found} findings")
    return int(bool(status) or errors > 0)


if __name__ == "__main__":
    sys.exit(main())
