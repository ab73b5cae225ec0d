"""Programs with a fault, and their repaired twins, on the stand-in driver.

A fault of PTX is a text in which lines that end with `//-` are those of the faulty program
alone, and lines that end with `//+` those of the repaired one; `// found` marks the line that
has to be reported. Faults of Python mark it by `# found: NAME`.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import json
import pathlib
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from ctypes import byref, c_uint, c_uint64, c_void_p
from typing import Any

import numpy as np
from attn.errors import DriverError

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Fault:
    """A program, and what has to be found in it."""

    name: str
    #: Runs it: with the fault, or repaired.
    run: Callable[[Any, bool], None]
    #: A part of the message.
    message: str
    chips: tuple[str, ...] = ("sm_80", "sm_90a", "sm_100a")
    #: The PTX, where it is one; the reported line is the marked one of it.
    ptx: str | None = None
    #: The module of Python that has the marked line.
    source: str = ""


FAULTS: list[Fault] = []


def fault(message: str, chips: Sequence[str] = ("sm_80", "sm_90a", "sm_100a")) -> Callable[..., Any]:
    """Adds a function of Python as a program: `run(gpu, is_faulty)`."""

    def add(run: Callable[[Any, bool], None]) -> Callable[[Any, bool], None]:
        FAULTS.append(Fault(run.__name__, run, message, tuple(chips), None, run.__code__.co_filename))
        return run

    return add


def select(text: str, is_faulty: bool) -> str:
    """The PTX of one of the two programs. Lines keep their numbers."""
    other = "//+" if is_faulty else "//-"
    return "\n".join("" if line.rstrip().endswith(other) else line for line in text.splitlines()) + "\n"


def ptx_fault(
    name: str,
    body: str,
    message: str,
    *,
    launch: Callable[[Any, Any], None],
    target: str = "sm_80",
    chips: Sequence[str] = ("sm_80", "sm_90a", "sm_100a"),
) -> None:
    """Adds a kernel `main`; `launch(gpu, function)` launches it."""
    text = f".version 8.6\n.target {target}\n.address_size 64\n" + body

    def run(gpu: Any, is_faulty: bool) -> None:
        launch(gpu, gpu.load(select(text, is_faulty)))

    FAULTS.append(Fault(name, run, message, tuple(chips), text))


class Gpu:
    """The driver's functions that the programs call. What they make is dropped by `reset`."""

    def __init__(self, stand_in: Any) -> None:
        self.stand_in = stand_in
        self.library = stand_in.library
        self.memory: list[int] = []
        self.kept: list[Any] = []

    def call(self, name: str, *arguments: Any) -> None:
        """A function of the driver; the line of the caller is what reports name."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        if frame is not None:
            self.stand_in.set_site(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        status = getattr(self.library, name)(*arguments)
        self.stand_in.set_site(None)
        self.stand_in.check(status, name)

    def load(self, ptx: str, name: str = "main") -> c_void_p:
        """A kernel of a module."""
        module, function = c_void_p(), c_void_p()
        self.call("cuModuleLoadData", byref(module), ptx.encode())
        self.call("cuModuleGetFunction", byref(function), module, name.encode())
        return function

    def allocate(self, words: int) -> int:
        """Device memory that nobody has written."""
        address = c_uint64()
        self.call("cuMemAlloc_v2", byref(address), ctypes.c_size_t(4 * words))
        self.memory.append(address.value)
        return address.value

    def upload(self, words: Sequence[int]) -> int:
        """Device memory with these words."""
        host = np.asarray(words, dtype=np.uint32)
        address = self.allocate(len(host))
        self.call("cuMemcpyHtoD_v2", c_uint64(address), c_void_p(host.ctypes.data), ctypes.c_size_t(host.nbytes))
        return address

    def free(self, address: int) -> None:
        """Frees memory."""
        self.memory.remove(address)
        self.call("cuMemFree_v2", c_uint64(address))

    def download(self, address: int, words: int) -> np.ndarray:
        """Words of device memory, when the default stream is done."""
        host = np.empty(words, dtype=np.uint32)
        self.call("cuMemcpyDtoH_v2", c_void_p(host.ctypes.data), c_uint64(address), ctypes.c_size_t(host.nbytes))
        return host

    def stream(self) -> c_void_p:
        """A stream that waits for events alone."""
        stream = c_void_p()
        self.call("cuStreamCreate", byref(stream), c_uint(1))
        return stream

    def event(self) -> c_void_p:
        """An event."""
        event = c_void_p()
        self.call("cuEventCreate", byref(event), c_uint(0))
        return event

    def launch(
        self,
        function: c_void_p,
        *arguments: int,
        grid: int = 1,
        block: int = 32,
        stream: c_void_p | None = None,
        cluster: int = 0,
        is_programmatic: bool = False,
    ) -> None:
        """Launches with arguments of 64 bits."""
        values = [c_uint64(each) for each in arguments]
        pointers = (c_void_p * max(1, len(values)))(*[ctypes.addressof(each) for each in values])
        attributes = (LaunchAttribute * 2)()
        count = 0
        if cluster:
            attributes[count].id = 4
            attributes[count].value[0:3] = [cluster, 1, 1]
            count += 1
        if is_programmatic:
            attributes[count].id = 6
            attributes[count].value[0] = 1
            count += 1
        config = LaunchConfig(grid, 1, 1, block, 1, 1, 0, stream, attributes, count)
        self.call("cuLaunchKernelEx", byref(config), function, pointers, None)

    def reset(self) -> None:
        """Waits for all work, and frees what a program has made."""
        with contextlib.suppress(DriverError):
            self.call("cuCtxSynchronize")
        for address in self.memory:
            self.call("cuMemFree_v2", c_uint64(address))
        self.memory.clear()


class LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", c_uint), ("unused", c_uint), ("value", c_uint * 16)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [
        *((f"{what}_{axis}", c_uint) for what in ("grid", "block") for axis in "xyz"),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("count", c_uint),
    ]


def find_marked(program: Fault) -> tuple[str, int]:
    """File and line that a program's fault has to be reported at; no file for PTX."""
    if program.ptx is not None:
        lines = program.ptx.splitlines()
        return "", 1 + next(i for i, line in enumerate(lines) if "// found" in line)
    lines = pathlib.Path(program.source).read_text().splitlines()
    marked = re.compile(rf"# found:.*\b{program.name}\b")
    return program.source, 1 + next(i for i, line in enumerate(lines) if marked.search(line))


def get_places(finding: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """The lines that a finding names as its own: of the kernel, and of the host."""
    site = finding.get("second") or {}
    if "file" in site:
        yield site["file"], site["line"]
    elif site.get("ptx_line"):
        yield "", site["ptx_line"]
    if "site" in finding:
        file, _, line = finding["site"].rpartition(":")
        yield file, int(line)


def run_program(gpu: Gpu, program: Fault, is_faulty: bool) -> list[dict[str, Any]]:
    """Runs one of the two programs. Returns the errors that were found."""
    before = gpu.stand_in.count_findings()[0]
    # A fault may end the launch.
    with contextlib.suppress(DriverError, RuntimeError) if is_faulty else contextlib.nullcontext():
        program.run(gpu, is_faulty)
    found = json.loads(gpu.stand_in.report("json", before))["findings"]
    gpu.reset()
    return [each for each in found if each["severity"] == "error"]


def judge(gpu: Gpu, program: Fault) -> list[str]:
    """What is wrong with the reports of a program and of its twin."""
    problems = []
    found = run_program(gpu, program, True)
    wanted = find_marked(program)
    at = [place for finding in found for place in get_places(finding)]
    if wanted not in at:
        problems.append(f"expected a report at {wanted[0]}:{wanted[1]}, got {at or 'none'}")
    elif not any(program.message in finding["message"] for finding in found):
        problems.append(f"expected '{program.message}', got {[each['message'] for each in found]}")
    try:
        twin = run_program(gpu, program, False)
    except (DriverError, RuntimeError) as error:
        return [*problems, f"twin: {error}"]
    problems += [f"twin: {each['message']} at {list(get_places(each))}" for each in twin]
    return problems
