"""What `triton.runtime.driver` becomes: Triton's own driver over the stand-in, with the memory
of CPU tensors registered for each launch.
"""

from __future__ import annotations

import contextvars
import ctypes
import functools
import importlib.util
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import triton
from triton._C.libtriton import nvidia as nvidia_library
from triton.backends.nvidia import driver as nvidia
from triton.runtime import _allocation
from triton.runtime.jit import TensorWrapper

from ..errors import DriverError, SimulationError
from . import torch_answers
from .host_array import HostArray
from .stand_in import StandIn

#: Packages whose frames are not where a program launches a kernel.
_OWN = (__name__, "triton.")


def _find_memory(value: Any) -> tuple[int, int] | None:
    """Address and bytes of the memory that an argument has; None where it has none."""
    storage = getattr(value, "untyped_storage", None)
    if storage is not None:
        whole = storage()
        return whole.data_ptr(), whole.nbytes()
    if isinstance(value, (HostArray, Scratch)):
        return value.find_memory()
    return None


def _find_site() -> str | None:
    """The line of the program that launches: the nearest frame outside of Triton and this
    package."""
    frame = sys._getframe(1)
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith(_OWN):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return None


class Scratch:
    """Memory in place of what a program's allocator gives, which a GPU would align."""

    def __init__(self, size: int, alignment: int) -> None:
        self._bytes = ctypes.create_string_buffer(size + alignment)
        self._memory = -(-ctypes.addressof(self._bytes) // alignment) * alignment, size

    def data_ptr(self) -> int:
        """The address."""
        return self._memory[0]

    def find_memory(self) -> tuple[int, int]:
        """Address and bytes."""
        return self._memory


class Launcher(nvidia.CudaLauncher):
    """Launches with the arguments' memory registered."""

    def __init__(self, src: Any, metadata: Any) -> None:
        super().__init__(src, metadata)
        self.names: list[str] = list(getattr(getattr(src, "fn", None), "arg_names", ()))
        # These come before the kernel's own arguments.
        self.leading = 9

    def _register(self, value: Any, name: str, taken: list[int]) -> None:
        if isinstance(value, (tuple, list)):
            for index, each in enumerate(value):
                self._register(each, f"{name}.{index}", taken)
            return
        # The memory of a descriptor, and of a tensor of another type, is its base's.
        while isinstance(value, TensorWrapper) or hasattr(value, "block_shape"):
            value = getattr(value, "base", None)
        memory = _find_memory(value)
        if memory is None or not memory[1]:
            return
        get_driver().library.register(*memory, name)
        taken.append(memory[0])

    def _register_scratch(self, taken: list[int]) -> contextvars.Token[Any]:
        """Lets the kernel use what the program's allocator gives."""
        allocate = _allocation._allocator.get()

        def allocate_and_register(size: int, alignment: int, stream: Any) -> Any:
            memory = allocate(size, alignment, stream)
            if memory.data_ptr() % alignment:
                memory = Scratch(size, alignment)
            self._register(memory, "scratch", taken)
            return memory

        return _allocation._allocator.set(allocate_and_register)

    def __call__(self, *arguments: Any) -> None:
        driver = get_driver()
        before = driver.library.count_findings()[0]
        taken: list[int] = []
        token = self._register_scratch(taken) if self.global_scratch_size else None
        own = arguments[self.leading :]
        try:
            for index, value in enumerate(own):
                name = self.names[index] if index < len(self.names) else f"argument {index}"
                self._register(value, name, taken)
            driver.library.set_site(_find_site())
            super().__call__(*arguments)
        except RuntimeError as error:
            driver.raise_findings(before, error)
            raise
        finally:
            if token is not None:
                _allocation._allocator.reset(token)
            driver.library.set_site(None)
            for address in taken:
                driver.library.unregister(address)
        driver.raise_findings(before)


class SimulatedDriver(nvidia.CudaDriver):
    """Triton's driver object. `report` has what was found so far."""

    def __init__(self, library: StandIn, raises: bool) -> None:
        self.library = library
        self.raises = raises
        library.set_quiet(raises)
        library.set_device(0)
        self.device = 0
        self.utils = nvidia.CudaUtils()
        ask = self.utils.get_device_properties
        # A torch.device of the CPU has no number.
        self.utils.get_device_properties = lambda device=None: ask(
            self.device if device is None else device
        )
        self.launcher_cls = Launcher
        self.get_device_capability = library.get_capability
        self.get_current_device = lambda: self.device
        self.set_current_device = self._set_device
        self.get_current_stream = lambda device=None: 0
        self.interface = torch_answers.CudaAnswers(self)

    def _set_device(self, device: int) -> None:
        self.library.set_device(device)
        self.device = device

    @staticmethod
    def is_active() -> bool:
        """Whether this is the driver to take."""
        return True

    def get_active_torch_device(self) -> Any:
        """Where tensors of programs are."""
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        """What stands for torch.cuda."""
        return self.interface

    def get_benchmarker(self) -> Callable[..., Any]:
        """A benchmark function that launches once: nothing varies from run to run."""
        return bench_once

    def get_empty_cache_for_benchmark(self) -> Any:
        """Memory that stands for the L2 cache's size."""
        import torch

        return torch.empty(4, dtype=torch.int)

    def report(self, form: str = "text", start: int = 0) -> str:
        """What was found from the `start`-th finding on: "text", "json", "sarif" or "github"."""
        return self.library.report(form, start)

    def register(self, *tensors: Any) -> None:
        """Lets kernels use the memory of tensors that are no arguments of a launch, such as those
        whose addresses another tensor holds: as long as the tensors live. Raises DriverError, and
        registers none, where one is neither a CPU tensor nor a HostArray."""
        found = [(tensor, _find_memory(tensor)) for tensor in tensors]
        for tensor, memory in found:
            if memory is None:
                raise DriverError(
                    "expected CPU tensors, or attn.sim.HostArray(array) of numpy's arrays, got "
                    f"{type(tensor).__name__}; nothing was registered"
                )
        for tensor, memory in found:
            if memory is not None and memory[1]:
                self.library.register(*memory, f"tensor of shape {list(tensor.shape)}")
                weakref.finalize(tensor, self.library.unregister, memory[0])

    def raise_findings(self, before: int, cause: BaseException | None = None) -> None:
        """Raises SimulationError where findings have come since there were `before`."""
        if not self.raises or self.library.count_findings()[0] == before:
            return
        text = self.library.report("text", before)
        if ": error: " in text:
            raise SimulationError(text) from cause


class AbsentCublas:
    """In place of Triton's `nvidia.cublas.CublasLt`, which programs make when they are imported:
    cuBLAS needs the CUDA runtime, which needs a real driver. Each product raises DriverError."""

    def __init__(self, workspace: Any) -> None:
        self.workspace = workspace


def _make_refusal(name: str) -> Callable[..., None]:
    """A product of cuBLAS that says what to do without it."""

    def refuse(self: AbsentCublas, *_: Any, **__: Any) -> None:
        raise DriverError(
            f"CublasLt.{name}: expected a GPU for cuBLAS, got the stand-in driver; take "
            "torch.matmul of CPU tensors in its place, or leave this product out"
        )

    return refuse


def replace_cublas() -> None:
    """Lets Triton's products by cuBLAS say that there is none."""
    known = nvidia_library.cublas
    for name in dir(known.CublasLt):
        if not name.startswith("_"):
            setattr(AbsentCublas, name, _make_refusal(name))
    known.CublasLt = AbsentCublas


def bench_once(call: Callable[[], Any], quantiles: Sequence[float] | None = None, **_: Any) -> Any:
    """The time of one call in milliseconds, for each quantile."""
    start = time.perf_counter()
    call()
    spent = 1000 * (time.perf_counter() - start)
    return [spent] * len(quantiles) if quantiles else spent


def tune_briefly() -> None:
    """Lets autotuners take their first configuration that runs: the simulator's time says
    nothing of a GPU's, and compiling all of them takes minutes."""
    from triton.runtime.autotuner import Autotuner

    prune, bench = Autotuner.prune_configs, Autotuner._bench

    def prune_and_begin(self: Any, *arguments: Any, **named: Any) -> Any:
        self.has_found = False
        return prune(self, *arguments, **named)

    def bench_first(self: Any, *arguments: Any, **named: Any) -> Any:
        if getattr(self, "has_found", False):
            return [float("inf")] * 3
        times = bench(self, *arguments, **named)
        self.has_found = min(times) < float("inf")
        return times

    Autotuner.prune_configs, Autotuner._bench = prune_and_begin, bench_first


@functools.cache
def _get_place() -> list[SimulatedDriver]:
    return []


def get_driver() -> SimulatedDriver:
    """The active driver object."""
    return _get_place()[0]


def activate(
    library: StandIn, raises: bool, patches_torch: bool, tunes: bool = False
) -> SimulatedDriver:
    """Makes it Triton's driver. What was set before is replaced."""
    place = _get_place()
    if place:
        place[0].raises = raises
        library.set_quiet(raises)
        return place[0]
    try:
        driver = SimulatedDriver(library, raises)
    except (ImportError, OSError, RuntimeError) as error:
        raise DriverError(
            f"expected Triton to find the stand-in driver, got: {error}; call attn.sim.triton "
            "before anything else uses Triton's driver"
        ) from error
    place.append(driver)
    triton.runtime.driver.set_active(driver)
    triton.testing.do_bench = bench_once
    replace_cublas()
    if not tunes:
        tune_briefly()
    if patches_torch and importlib.util.find_spec("torch") is not None:
        torch_answers.patch(driver.interface)
    return driver
