"""Programs of the host: streams, events, copies, programmatic launches."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

import numpy as np
from harness import fault

HEAD = ".version 8.6\n.target {0}\n.address_size 64\n"
#: Adds one to 32 words.
INCREMENT = HEAD.format("sm_80") + """
.visible .entry main(.param .u64 p)
{
.reg .b64 %d<3>;
.reg .b32 %r<3>;
ld.param.u64 %d0, [p];
mov.u32 %r0, %tid.x;
mul.wide.u32 %d1, %r0, 4;
add.u64 %d1, %d0, %d1;
WAIT
ld.global.u32 %r1, [%d1];
add.u32 %r1, %r1, 1;
st.global.u32 [%d1], %r1;
ret;
}
"""
BYTES = c_size_t(128)


def load_increment(gpu: Any) -> c_void_p:
    """The kernel, and its context at rest."""
    function: c_void_p = gpu.load(INCREMENT.replace("WAIT\n", ""))
    return function


@fault("and nothing orders the two")
def missing_event(gpu: Any, is_faulty: bool) -> None:
    """A second stream goes on with what the first one makes."""
    increment, words = load_increment(gpu), gpu.upload([0] * 32)
    first, second, done = gpu.stream(), gpu.stream(), gpu.event()
    gpu.launch(increment, words, stream=first)
    gpu.call("cuEventRecord", done, first)
    if not is_faulty:
        gpu.call("cuStreamWaitEvent", second, done, c_uint(0))
    gpu.launch(increment, words, stream=second)  # found: missing_event


@fault("and nothing orders the two")
def event_recorded_too_early(gpu: Any, is_faulty: bool) -> None:
    """The event stands in front of what the second stream needs."""
    increment, words = load_increment(gpu), gpu.upload([0] * 32)
    first, second, done = gpu.stream(), gpu.stream(), gpu.event()
    if is_faulty:
        gpu.call("cuEventRecord", done, first)
    gpu.launch(increment, words, stream=first)
    if not is_faulty:
        gpu.call("cuEventRecord", done, first)
    gpu.call("cuStreamWaitEvent", second, done, c_uint(0))
    gpu.launch(increment, words, stream=second)  # found: event_recorded_too_early


@fault("and nothing orders the two")
def host_read_before_a_wait(gpu: Any, is_faulty: bool) -> None:
    """A stream that does not block is not waited for by a copy of the default one."""
    increment, words, stream = load_increment(gpu), gpu.upload([0] * 32), gpu.stream()
    gpu.launch(increment, words, stream=stream)
    if not is_faulty:
        gpu.call("cuStreamSynchronize", stream)
    gpu.download(words, 32)  # found: host_read_before_a_wait


@fault("and nothing orders the two")
def result_taken_before_its_copy_ends(gpu: Any, is_faulty: bool) -> None:
    """The host's buffer of an asynchronous copy is sent on."""
    words, other = gpu.upload(range(32)), gpu.upload([0] * 32)
    host = np.zeros(32, dtype=np.uint32)
    address, stream, second = c_void_p(host.ctypes.data), gpu.stream(), gpu.stream()
    gpu.call("cuMemcpyDtoHAsync_v2", address, c_uint64(words), BYTES, stream)
    if not is_faulty:
        gpu.call("cuStreamSynchronize", stream)
    gpu.call("cuMemcpyHtoDAsync_v2", c_uint64(other), address, BYTES, second)  # found: result_taken_before_its_copy_ends
    gpu.call("cuCtxSynchronize")


@fault("and nothing orders the two")
def input_overwritten_while_in_use(gpu: Any, is_faulty: bool) -> None:
    """The next input comes by a stream of copies."""
    increment, words = load_increment(gpu), gpu.upload([0] * 32)
    host = np.arange(32, dtype=np.uint32)
    compute, copies, done = gpu.stream(), gpu.stream(), gpu.event()
    gpu.launch(increment, words, stream=compute)
    gpu.call("cuEventRecord", done, compute)
    if not is_faulty:
        gpu.call("cuStreamWaitEvent", copies, done, c_uint(0))
    address = c_void_p(host.ctypes.data)
    gpu.call("cuMemcpyHtoDAsync_v2", c_uint64(words), address, BYTES, copies)  # found: input_overwritten_while_in_use
    gpu.call("cuCtxSynchronize")


@fault("and nothing orders the two")
def cleared_too_late(gpu: Any, is_faulty: bool) -> None:
    """A counter is set to zero in another stream."""
    increment, words = load_increment(gpu), gpu.allocate(32)
    first, second = gpu.stream(), gpu.stream()
    clears = second if is_faulty else first
    gpu.call("cuMemsetD32Async", c_uint64(words), c_uint(0), c_size_t(32), clears)
    gpu.launch(increment, words, stream=first)  # found: cleared_too_late


@fault("and nothing orders the two")
def freed_in_another_stream(gpu: Any, is_faulty: bool) -> None:
    """Memory goes back while a kernel of another stream may use it."""
    increment, words = load_increment(gpu), gpu.upload([0] * 32)
    first, second = gpu.stream(), gpu.stream()
    gpu.launch(increment, words, stream=first)
    gpu.memory.remove(words)
    gpu.call("cuMemFreeAsync", c_uint64(words), second if is_faulty else first)  # found: freed_in_another_stream


@fault("freed")
def use_after_free(gpu: Any, is_faulty: bool) -> None:
    """A launch gets an address of before."""
    increment, words = load_increment(gpu), gpu.upload([0] * 32)
    if is_faulty:
        gpu.free(words)
    gpu.launch(increment, words)  # found: use_after_free


@fault("and nothing orders the two")
def branches_of_a_graph(gpu: Any, is_faulty: bool) -> None:
    """A captured stream forks, and both branches write."""
    increment, words = load_increment(gpu), gpu.upload([0] * 32)
    first, second, forked, joined = gpu.stream(), gpu.stream(), gpu.event(), gpu.event()
    graph, executable = c_void_p(), c_void_p()
    gpu.call("cuStreamBeginCapture_v2", first, c_uint(0))
    gpu.call("cuEventRecord", forked, first)
    gpu.call("cuStreamWaitEvent", second, forked, c_uint(0))
    gpu.launch(increment, words, stream=second)
    gpu.call("cuEventRecord", joined, second)
    if is_faulty:
        gpu.launch(increment, words, stream=first)  # found: branches_of_a_graph
    gpu.call("cuStreamWaitEvent", first, joined, c_uint(0))
    if not is_faulty:
        gpu.launch(increment, words, stream=first)
    gpu.call("cuStreamEndCapture", first, byref(graph))
    gpu.call("cuGraphInstantiateWithFlags", byref(executable), graph, ctypes.c_ulonglong(0))
    gpu.call("cuGraphLaunch", executable, first)


@fault("which the programmatic launch may overlap", chips=("sm_90a", "sm_100a"))
def early_read(gpu: Any, is_faulty: bool) -> None:
    """A programmatic launch does not wait for the kernel in front of it."""
    increment, words, stream = load_increment(gpu), gpu.upload([0] * 32), gpu.stream()
    wait = "" if is_faulty else "griddepcontrol.wait;\n"
    early = gpu.load(INCREMENT.replace("sm_80", "sm_90").replace("WAIT\n", wait))
    gpu.launch(increment, words, stream=stream)
    gpu.launch(early, words, stream=stream, is_programmatic=True)  # found: early_read


@fault("and nothing orders the two")
def wait_for_an_event_of_before(gpu: Any, is_faulty: bool) -> None:
    """A stream waits for an event that is recorded only then: it waits for nothing."""
    increment, words = load_increment(gpu), gpu.upload([0] * 32)
    first, second, done = gpu.stream(), gpu.stream(), gpu.event()
    gpu.launch(increment, words, stream=first)
    if is_faulty:
        gpu.call("cuStreamWaitEvent", second, done, c_uint(0))
    gpu.call("cuEventRecord", done, first)
    if not is_faulty:
        gpu.call("cuStreamWaitEvent", second, done, c_uint(0))
    gpu.launch(increment, words, stream=second)  # found: wait_for_an_event_of_before


@fault("and nothing orders the two")
def event_of_the_round_before(gpu: Any, is_faulty: bool) -> None:
    """The host waits for the event of the first round, and sends the buffer of the second."""
    increment, words, other = load_increment(gpu), gpu.upload([0] * 32), gpu.upload([0] * 32)
    host = np.zeros(32, dtype=np.uint32)
    address = c_void_p(host.ctypes.data)
    stream, second, events = gpu.stream(), gpu.stream(), [gpu.event(), gpu.event()]
    for done in events:
        gpu.launch(increment, words, stream=stream)
        gpu.call("cuMemcpyDtoHAsync_v2", address, c_uint64(words), BYTES, stream)
        gpu.call("cuEventRecord", done, stream)
    gpu.call("cuEventSynchronize", events[0] if is_faulty else events[1])
    gpu.call("cuMemcpyHtoDAsync_v2", c_uint64(other), address, BYTES, second)  # found: event_of_the_round_before


def allocate_from_pool(gpu: Any, stream: c_void_p) -> int:
    """32 words that a stream allocates."""
    address = c_uint64()
    gpu.call("cuMemAllocAsync", byref(address), BYTES, stream)
    gpu.memory.append(address.value)
    return address.value


@fault("freed")
def used_after_it_went_to_the_pool(gpu: Any, is_faulty: bool) -> None:
    """A stream frees memory, and goes on with it."""
    # By another name: further launches of a kernel only count.
    increment = gpu.load(INCREMENT.replace("WAIT\n", "").replace("main", "reuse"), "reuse")
    stream = gpu.stream()
    words = allocate_from_pool(gpu, stream)
    gpu.call("cuMemsetD32Async", c_uint64(words), c_uint(0), c_size_t(32), stream)
    if is_faulty:
        gpu.memory.remove(words)
        gpu.call("cuMemFreeAsync", c_uint64(words), stream)
    gpu.launch(increment, words, stream=stream)  # found: used_after_it_went_to_the_pool


@fault("never written")
def half_a_copy(gpu: Any, is_faulty: bool) -> None:
    """Sixteen of 32 words are sent."""
    increment, words = load_increment(gpu), gpu.allocate(32)
    host = np.arange(32, dtype=np.uint32)
    gpu.call("cuMemcpyHtoD_v2", c_uint64(words), c_void_p(host.ctypes.data), c_size_t(64 if is_faulty else 128))
    gpu.launch(increment, words)  # found: half_a_copy


def instantiate(gpu: Any, increment: c_void_p, words: int) -> c_void_p:
    """A graph of one launch."""
    stream, graph, executable = gpu.stream(), c_void_p(), c_void_p()
    gpu.call("cuStreamBeginCapture_v2", stream, c_uint(0))
    gpu.launch(increment, words, stream=stream)  # found: two_graphs_at_once
    gpu.call("cuStreamEndCapture", stream, byref(graph))
    gpu.call("cuGraphInstantiateWithFlags", byref(executable), graph, ctypes.c_ulonglong(0))
    return executable


@fault("and nothing orders the two")
def two_graphs_at_once(gpu: Any, is_faulty: bool) -> None:
    """Two graphs that write the same run in two streams; one graph runs once at a time."""
    increment, words = load_increment(gpu), gpu.upload([0] * 32)
    first, second = gpu.stream(), gpu.stream()
    graphs = [instantiate(gpu, increment, words) for _ in range(2)]
    gpu.call("cuGraphLaunch", graphs[0], first)
    gpu.call("cuGraphLaunch", graphs[1 if is_faulty else 0], second)


class Copy2D(ctypes.Structure):
    """CUDA_MEMCPY2D."""

    _fields_ = [
        (f"{side}_{name}", kind)
        for side in ("source", "target")
        for name, kind in (
            ("x", c_size_t),
            ("y", c_size_t),
            ("type", c_uint),
            ("host", c_void_p),
            ("device", c_uint64),
            ("array", c_void_p),
            ("pitch", c_size_t),
        )
    ] + [("width", c_size_t), ("height", c_size_t)]


@fault("and nothing orders the two")
def columns_that_overlap(gpu: Any, is_faulty: bool) -> None:
    """A copy takes columns of a matrix, of which a kernel writes the last ones."""
    increment = load_increment(gpu)
    matrix, target = gpu.upload([0] * 128), gpu.upload([0] * 128)
    first, second = gpu.stream(), gpu.stream()
    # The kernel writes the second half of the rows' 64 words; the copy stops before it.
    gpu.launch(increment, matrix + 128, stream=first)
    width = 132 if is_faulty else 128
    copy = Copy2D(
        source_type=2, source_device=matrix, source_pitch=256,
        target_type=2, target_device=target, target_pitch=256, width=width, height=2,
    )
    gpu.call("cuMemcpy2DAsync_v2", byref(copy), second)  # found: columns_that_overlap
