"""The CUDA driver (libcuda.so.1) through ctypes: what a launch needs.

The driver's C interface does not change between versions, so that a launch
depends on nothing but the driver itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Iterator
from ctypes import (
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_int,
    c_size_t,
    c_ubyte,
    c_uint,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

from ..errors import DriverError
from ..record import TensorMap, TensorView

_CLUSTER_DIMENSION = 4
_COOPERATIVE, _PROGRAMMATIC = 2, 6
_MAX_DYNAMIC_SHARED = 8
#: CUmemorytype.
_MEMORY_DEVICE = 2
_COMPUTE_MAJOR, _COMPUTE_MINOR, _SHARED_OPTIN, _MULTIPROCESSORS = 75, 76, 97, 16

#: CUtensorMapDataType of each element type.
_MAP_TYPES = {"f16": 6, "f32": 7, "f64": 8, "bf16": 9, "f8E4M3FN": 0, "f8E5M2": 0, "i8": 0}
_MAP_TYPES |= {"i32": 3, "i64": 5}
#: CUtensorMapSwizzle of each swizzle.
_SWIZZLES = {"none": 0, "32B": 1, "64B": 2, "128B": 3}
_L2_PROMOTION_128B = 2
TENSOR_MAP_BYTES = 128
#: CUresult of a launch in a thread without the kernel's context: not initialised,
#: invalid context, invalid handle, context destroyed.
WITHOUT_CONTEXT = (3, 201, 400, 709)
#: CUresult of an image that has nothing for the device.
_NO_BINARY = 209
#: PTX of a version that the driver's compiler does not know.
_NEWER_PTX = 222


class _Attribute(Structure):
    """CUlaunchAttribute; the value is a union of 64 bytes."""

    _fields_ = [("id", c_uint), ("pad", c_uint), ("value", c_uint32 * 16)]


class _Config(Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("sharedBytes", c_uint),
        ("stream", c_void_p),
        ("attributes", POINTER(_Attribute)),
        ("numAttributes", c_uint),
    ]


class _Copy2D(Structure):
    """CUDA_MEMCPY2D."""

    _fields_ = [
        ("sourceX", c_size_t),
        ("sourceY", c_size_t),
        ("sourceKind", c_uint),
        ("sourceHost", c_void_p),
        ("source", c_uint64),
        ("sourceArray", c_void_p),
        ("sourcePitch", c_size_t),
        ("targetX", c_size_t),
        ("targetY", c_size_t),
        ("targetKind", c_uint),
        ("targetHost", c_void_p),
        ("target", c_uint64),
        ("targetArray", c_void_p),
        ("targetPitch", c_size_t),
        ("width", c_size_t),
        ("height", c_size_t),
    ]


_SIGNATURES: dict[str, list[object]] = {
    "cuInit": [c_uint],
    "cuDeviceGet": [POINTER(c_int), c_int],
    "cuDeviceGetCount": [POINTER(c_int)],
    "cuDeviceGetAttribute": [POINTER(c_int), c_int, c_int],
    "cuDevicePrimaryCtxRetain": [POINTER(c_void_p), c_int],
    "cuCtxGetCurrent": [POINTER(c_void_p)],
    "cuCtxPushCurrent_v2": [c_void_p],
    "cuCtxPopCurrent_v2": [POINTER(c_void_p)],
    "cuModuleLoadData": [POINTER(c_void_p), c_char_p],
    "cuModuleGetFunction": [POINTER(c_void_p), c_void_p, c_char_p],
    "cuModuleGetGlobal_v2": [POINTER(c_uint64), POINTER(c_size_t), c_void_p, c_char_p],
    "cuFuncSetAttribute": [c_void_p, c_int, c_int],
    "cuLaunchKernelEx": [POINTER(_Config), c_void_p, c_void_p, c_void_p],
    "cuMemAlloc_v2": [POINTER(c_uint64), c_size_t],
    "cuMemFree_v2": [c_uint64],
    "cuMemcpyHtoD_v2": [c_uint64, c_void_p, c_size_t],
    "cuMemcpyDtoH_v2": [c_void_p, c_uint64, c_size_t],
    "cuCtxSynchronize": [],
    "cuMemAllocAsync": [POINTER(c_uint64), c_size_t, c_void_p],
    "cuMemFreeAsync": [c_uint64, c_void_p],
    "cuMemsetD8_v2": [c_uint64, c_ubyte, c_size_t],
    "cuMemsetD8Async": [c_uint64, c_ubyte, c_size_t, c_void_p],
    "cuMemsetD32Async": [c_uint64, c_uint, c_size_t, c_void_p],
    "cuMemcpyDtoDAsync_v2": [c_uint64, c_uint64, c_size_t, c_void_p],
    "cuMemcpy2DAsync_v2": [c_void_p, c_void_p],
    "cuGetErrorName": [c_int, POINTER(c_char_p)],
    "cuGetErrorString": [c_int, POINTER(c_char_p)],
}
#: Absent from older drivers; looked up where they are needed.
_OPTIONAL: dict[str, list[object]] = {
    "cuTensorMapEncodeTiled": [
        c_void_p,
        c_int,
        c_uint32,
        c_void_p,
        *[c_void_p] * 4,
        *[c_int] * 4,
    ],
    "cuStreamIsCapturing": [c_void_p, POINTER(c_int)],
    "cuThreadExchangeStreamCaptureMode": [POINTER(c_int)],
    "cuStreamGetId": [c_void_p, POINTER(c_uint64)],
}


@functools.cache
def load() -> ctypes.CDLL:
    """The initialised driver, or DriverError."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DriverError(f"no CUDA driver: {error}") from None
    try:
        for name, arguments in _SIGNATURES.items():
            getattr(driver, name).argtypes = arguments
    except AttributeError as error:
        raise DriverError(
            f"the CUDA driver is too old: {error}; that of CUDA 12 or later has it"
        ) from None
    for name, arguments in _OPTIONAL.items():
        if hasattr(driver, name):
            getattr(driver, name).argtypes = arguments
    status = driver.cuInit(0)
    if status:
        raise DriverError(f"cuInit failed: {describe(driver, status)}")
    return driver


def describe(driver: ctypes.CDLL, status: int) -> str:
    """A status with its name and explanation."""
    name, text = c_char_p(), c_char_p()
    driver.cuGetErrorName(status, byref(name))
    driver.cuGetErrorString(status, byref(text))
    words = [each.value.decode() for each in (name, text) if each.value]
    return ": ".join(words) or f"error {status}"


def check(status: int, call: str, what: str, launch_record: dict[str, Any] | None = None) -> None:
    """Raises DriverError unless `status` is success."""
    if status:
        message = f"{what}: {call} failed: {describe(load(), status)}"
        raise DriverError(message, launch_record)


class Device:
    """A GPU with its primary context, which torch uses too."""

    def __init__(self, ordinal: int) -> None:
        driver = load()
        what = f"device {ordinal}"
        device, self.context = c_int(), c_void_p()
        check(driver.cuDeviceGet(byref(device), ordinal), "cuDeviceGet", what)
        values = []
        for attribute in (_COMPUTE_MAJOR, _COMPUTE_MINOR, _SHARED_OPTIN, _MULTIPROCESSORS):
            value = c_int()
            status = driver.cuDeviceGetAttribute(byref(value), attribute, device)
            check(status, "cuDeviceGetAttribute", what)
            values.append(value.value)
        self.major, self.minor, self.shared_bytes, self.multiprocessors = values
        status = driver.cuDevicePrimaryCtxRetain(byref(self.context), device)
        check(status, "cuDevicePrimaryCtxRetain", what)
        self._get_current = driver.cuCtxGetCurrent
        self._context_value = self.context.value

    def __enter__(self) -> None:
        status = load().cuCtxPushCurrent_v2(self.context)
        check(status, "cuCtxPushCurrent", "device")

    def __exit__(self, *_: object) -> None:
        load().cuCtxPopCurrent_v2(byref(c_void_p()))

    def is_current(self) -> bool:
        """Whether this thread's context is the device's."""
        current = c_void_p()
        self._get_current(byref(current))
        return current.value == self._context_value


@functools.cache
def get_device(ordinal: int) -> Device:
    """The device, opened at the first use."""
    return Device(ordinal)


#: The handle that stands for another stream in each thread.
_PER_THREAD_STREAM = 2


def is_capturing(stream: int) -> bool:
    """Whether a stream is being captured into a graph."""
    driver, capturing = load(), c_int()
    if not hasattr(driver, "cuStreamIsCapturing"):
        return False
    return not driver.cuStreamIsCapturing(stream, byref(capturing)) and bool(capturing.value)


#: CU_STREAM_CAPTURE_MODE_RELAXED.
_RELAXED = 2


@contextlib.contextmanager
def outside_capture() -> Iterator[None]:
    """Allows this thread what captures refuse, and what no stream takes part in: to load code."""
    driver, mode = load(), c_int(_RELAXED)
    known = hasattr(driver, "cuThreadExchangeStreamCaptureMode")
    if known:
        driver.cuThreadExchangeStreamCaptureMode(byref(mode))
    try:
        yield
    finally:
        if known:
            driver.cuThreadExchangeStreamCaptureMode(byref(mode))


def make_copy2d(
    *, source: int, source_pitch: int, target: int, target_pitch: int, width: int, height: int
) -> _Copy2D:
    """A copy of `height` rows of `width` bytes in device memory, for
    cuMemcpy2DAsync."""
    copy = _Copy2D()
    copy.sourceKind = copy.targetKind = _MEMORY_DEVICE
    copy.source, copy.sourcePitch = source, source_pitch
    copy.target, copy.targetPitch = target, target_pitch
    copy.width, copy.height = width, height
    return copy


def find_stream(stream: int) -> int | None:
    """A number that no other stream has or will have; None for a stream that is
    being captured into a graph, whose launches may overlap with others, and where
    the driver does not tell."""
    driver = load()
    if stream == _PER_THREAD_STREAM or not hasattr(driver, "cuStreamGetId"):
        return None
    capturing, number = c_int(), c_uint64()
    if driver.cuStreamIsCapturing(stream, byref(capturing)) or capturing.value:
        return None
    if driver.cuStreamGetId(stream, byref(number)):
        return None
    return number.value


class LaunchShape:
    """What launches of a kernel have in common, as the driver takes it. One thread at a time."""

    def __init__(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, ...],
        cluster: tuple[int, ...] = (1, 1, 1),
        shared_bytes: int = 0,
        cooperative: bool = False,
        programmatic: bool = False,
    ) -> None:
        attributes = (_Attribute * 3)()
        count = 0
        if cluster != (1, 1, 1):
            attributes[count].id = _CLUSTER_DIMENSION
            attributes[count].value[:3] = cluster
            count += 1
        for wanted, number in ((cooperative, _COOPERATIVE), (programmatic, _PROGRAMMATIC)):
            if wanted:
                attributes[count].id = number
                attributes[count].value[0] = 1
                count += 1
        self.config = _Config(
            (c_uint * 3)(*grid), (c_uint * 3)(*block), shared_bytes, 0, attributes, count
        )
        self.reference = byref(self.config)


class NoBinaryError(DriverError):
    """An image has nothing that the driver can run."""


class Module:
    """Machine code or PTX, loaded into a context."""

    def __init__(self, image: bytes, what: str) -> None:
        """Loads `image` into the current context. NoBinaryError where the driver
        takes other images alone: that of a simulator takes PTX."""
        self.handle = c_void_p()
        # PTX text has to end with a zero byte; a cubin does not mind.
        with outside_capture():
            status = load().cuModuleLoadData(byref(self.handle), image + b"\0")
        if status == _NO_BINARY:
            raise NoBinaryError(f"{what}: cuModuleLoadData failed: {describe(load(), status)}")
        if status == _NEWER_PTX:
            raise DriverError(
                f"{what}: the CUDA driver is too old for this PTX; update it, or load a bundle with "
                "machine code, which `attn-compile --bundle` writes where it finds a ptxas"
            )
        check(status, "cuModuleLoadData", what)

    def find_variable(self, name: str) -> tuple[int, int]:
        """Address and bytes of a variable."""
        address, size = c_uint64(), c_size_t()
        status = load().cuModuleGetGlobal_v2(
            byref(address), byref(size), self.handle, name.encode()
        )
        check(status, "cuModuleGetGlobal", f"variable {name}")
        return address.value, size.value


class Function:
    """A kernel in a loaded module of one device."""

    def __init__(self, module: Module, name: str, shared_bytes: int) -> None:
        """Finds the kernel in a module."""
        driver = load()
        what = f"kernel {name}"
        self._function = c_void_p()
        status = driver.cuModuleGetFunction(byref(self._function), module.handle, name.encode())
        check(status, "cuModuleGetFunction", what)
        status = driver.cuFuncSetAttribute(self._function, _MAX_DYNAMIC_SHARED, shared_bytes)
        check(status, "cuFuncSetAttribute", f"{what}: {shared_bytes} bytes of shared memory")
        self._launch = driver.cuLaunchKernelEx

    def launch(self, shape: LaunchShape, stream: int, pointers: ctypes.Array[c_void_p]) -> int:
        """Launches with an array of pointers to the parameters; the status."""
        shape.config.stream = stream
        status: int = self._launch(shape.reference, self._function, pointers, None)
        return status


def encode_tensor_map(parameter: TensorMap, view: TensorView, address: int, kernel: str) -> None:
    """Writes the 128 bytes of a tensor map to `address`, a multiple of 64."""
    driver = load()
    if not hasattr(driver, "cuTensorMapEncodeTiled"):
        raise DriverError(f"kernel {kernel}: the CUDA driver is too old for tensor maps")
    rank = len(parameter.dims)
    status = driver.cuTensorMapEncodeTiled(
        address,
        _MAP_TYPES[parameter.element],
        rank,
        view.address - parameter.before,
        (c_uint64 * rank)(*parameter.dims),
        (c_uint64 * rank)(*parameter.strides),
        (c_uint32 * rank)(*parameter.box),
        (c_uint32 * rank)(*[1] * rank),
        0,
        _SWIZZLES[parameter.swizzle],
        _L2_PROMOTION_128B,
        0,
    )
    check(status, "cuTensorMapEncodeTiled", f'kernel {kernel}: tensor "{parameter.tensor}"')
