"""What libraries ask of `torch.cuda`, answered for a simulated device."""

from __future__ import annotations

import contextlib
import time
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Event:
    """A point in time: work is over when it was asked for."""

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self.seconds = 0.0

    def record(self, stream: Any = None) -> None:
        """Notes the time."""
        self.seconds = time.perf_counter()

    def elapsed_time(self, other: Event) -> float:
        """Milliseconds from this event to the other."""
        return 1000 * (other.seconds - self.seconds)

    def synchronize(self) -> None:
        """Returns at once."""

    def wait(self, stream: Any = None) -> None:
        """Returns at once."""

    def query(self) -> bool:
        """Whether it is over."""
        return True


class Stream:
    """The default stream."""

    cuda_stream = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def synchronize(self) -> None:
        """Returns at once."""

    def wait_stream(self, other: Any) -> None:
        """Returns at once."""

    def wait_event(self, event: Any) -> None:
        """Returns at once."""

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event, a new one without one."""
        event = event or Event()
        event.record()
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class CudaAnswers:
    """Stands for `torch.cuda` as far as kernels' libraries ask it."""

    Event = Event
    Stream = Stream

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def is_available(self) -> bool:
        """Whether there is a device."""
        return True

    def device_count(self) -> int:
        """How many devices there are."""
        import ctypes

        count = ctypes.c_int()
        self._driver.library.library.cuDeviceGetCount(ctypes.byref(count))
        return count.value

    def current_device(self) -> int:
        """The number of the current device."""
        return self._driver.device

    def set_device(self, device: Any) -> None:
        """Makes a device the current one."""
        if isinstance(device, int):
            self._driver.set_current_device(device)

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        """Major and minor number of a device."""
        number = device if isinstance(device, int) else self._driver.device
        major, minor = self._driver.get_device_capability(number)
        return major, minor

    def get_device_name(self, device: Any = None) -> str:
        """The name of a device."""
        major, minor = self.get_device_capability(device)
        return f"attn simulator sm_{major}{minor}"

    def get_device_properties(self, device: Any = None) -> Any:
        """Properties of a device, as far as kernels' libraries use them."""
        number = device if isinstance(device, int) else self._driver.device
        values = self._driver.utils.get_device_properties(number)
        major, minor = self.get_device_capability(number)
        return types.SimpleNamespace(
            name=self.get_device_name(number),
            major=major,
            minor=minor,
            multi_processor_count=values["multiprocessor_count"],
            shared_memory_per_block_optin=values["max_shared_mem"],
            shared_memory_per_multiprocessor=values["max_shared_mem"],
            regs_per_multiprocessor=values["max_num_regs"],
            warp_size=values["warpSize"],
            max_threads_per_multi_processor=2048,
            total_memory=2**34,
            L2_cache_size=50 * 2**20,
            is_integrated=False,
        )

    def current_stream(self, device: Any = None) -> Stream:
        """The default stream: there is no other."""
        return Stream()

    default_stream = current_stream

    def synchronize(self, device: Any = None) -> None:
        """Waits for all work, which is over."""
        self._driver.library.library.cuCtxSynchronize()

    @contextlib.contextmanager
    def device(self, device: Any = None) -> Iterator[None]:
        """Nothing changes: CPU tensors are on no device."""
        yield

    device_of = device
    stream = device

    def empty_cache(self) -> None:
        """There is nothing to free."""

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        """Whether the chip has bf16."""
        return True

    def is_current_stream_capturing(self) -> bool:
        """Whether a graph is captured: never."""
        return False

    def _is_in_bad_fork(self) -> bool:
        return False


def patch(answers: CudaAnswers) -> None:
    """Lets `torch.cuda` give these answers."""
    import torch

    for name in dir(answers):
        if not name.startswith("__") and name not in (
            "_driver",
            "device",
            "device_of",
            "Event",
            "Stream",
        ):
            setattr(torch.cuda, name, getattr(answers, name))

    class _Device:
        """As torch.cuda.device: a context of no effect."""

        def __init__(self, *_: Any) -> None:
            pass

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            pass

    for name, value in {
        "Event": Event,
        "Stream": Stream,
        "device": _Device,
        "device_of": _Device,
    }.items():
        setattr(torch.cuda, name, value)
