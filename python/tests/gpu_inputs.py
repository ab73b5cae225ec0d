"""Inputs that two machines agree on to the bit, device memory without torch,
and attention in float64. Shared by the parts of gpu_grid.py."""

from __future__ import annotations

import ctypes
import math
import zlib
from typing import Any

import numpy
from attn.launch import cuda_driver
from attn.record import TensorView

#: What holds an element's bits.
BITS = {
    "f16": numpy.uint16,
    "bf16": numpy.uint16,
    "f32": numpy.uint32,
    "i32": numpy.int32,
    "f8E4M3FN": numpy.uint8,
    "f8E5M2": numpy.uint8,
}
#: Digits behind the point, exponent bits and largest finite bits of 8-bit floats.
NARROW = {"f8E4M3FN": (3, 7, 0x7E), "f8E5M2": (2, 15, 0x7B)}


def list_narrow(dtype: str) -> numpy.ndarray:
    """The finite numbers of an 8-bit type that are not negative, by their bits."""
    digits, bias, last = NARROW[dtype]
    bits = numpy.arange(last + 1)
    exponent, fraction = bits >> digits, (bits & ((1 << digits) - 1)) / (1 << digits)
    return numpy.where(
        exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias)
    )


def draw_normal(name: str, shape: tuple[int, ...], dtype: str) -> numpy.ndarray:
    """About normal values as bits. Only the raw stream of PCG64 is used, which
    NumPy keeps the same in all versions; sums of four uniform numbers are exact."""
    count = math.prod(shape)
    raw = numpy.random.PCG64(zlib.crc32(name.encode())).random_raw(count)
    total = sum((raw >> numpy.uint64(shift)) & numpy.uint64(0xFFFF) for shift in (0, 16, 32, 48))
    values = (total.astype(numpy.float64) - 131070.0) / (65536.0 / math.sqrt(3.0))
    return encode(values, dtype).reshape(shape)


def draw_quarters(name: str, shape: tuple[int, ...], dtype: str) -> numpy.ndarray:
    """Multiples of 1/4 from -1 to 3/4, whose dot products f32 holds exactly."""
    raw = numpy.random.PCG64(zlib.crc32(name.encode())).random_raw(math.prod(shape))
    values = ((raw & numpy.uint64(7)).astype(numpy.float64) - 4.0) / 4.0
    return encode(values, dtype).reshape(shape)


def encode(values: numpy.ndarray, dtype: str) -> numpy.ndarray:
    """Values as bits, rounded to nearest even; NaN is one of any type."""
    if dtype == "f16":
        return values.astype(numpy.float16).view(numpy.uint16)
    if dtype in NARROW:
        table = list_narrow(dtype)
        size = numpy.minimum(numpy.abs(values), table[-1])
        upper = numpy.clip(numpy.searchsorted(table, size), 1, len(table) - 1)
        below, above = size - table[upper - 1], table[upper] - size
        takes_lower = (below < above) | ((below == above) & (upper % 2 == 1))
        rounded = (upper - takes_lower + 128 * numpy.signbit(values)).astype(numpy.uint8)
        return numpy.where(numpy.isnan(values), numpy.uint8(127), rounded)
    bits = values.astype(numpy.float32).view(numpy.uint32)
    if dtype == "f32":
        return bits
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)


def decode(bits: numpy.ndarray, dtype: str) -> numpy.ndarray:
    """Bits as float64."""
    if dtype == "f16":
        return bits.view(numpy.float16).astype(numpy.float64)
    if dtype in NARROW:
        table = numpy.full(128, numpy.nan)
        finite = list_narrow(dtype)
        table[: len(finite)] = finite
        return numpy.where(bits & 128, -1.0, 1.0) * table[bits & 127]
    wide = bits.astype(numpy.uint32) << 16 if dtype == "bf16" else bits
    return wide.view(numpy.float32).astype(numpy.float64)


def order(bits: numpy.ndarray, dtype: str) -> numpy.ndarray:
    """Integers in which neighbouring floating-point numbers differ by 1."""
    wide = bits.astype(numpy.int64)
    sign = 1 << (31 if dtype == "f32" else 15)
    return numpy.where(wide & sign, sign - wide, wide)


def save_npy(path: str, bits: numpy.ndarray, dtype: str) -> None:
    """A file as attn-sim reads it."""
    views = {"f16": numpy.float16, "f32": numpy.float32}
    numpy.save(path, bits.view(views[dtype]) if dtype in views else bits)


def load_npy(path: str, dtype: str) -> numpy.ndarray:
    """The bits of a file that attn-sim wrote."""
    return numpy.load(path).view(BITS[dtype])


def make_inputs(name: str, record: dict[str, Any], lengths: list[int]) -> dict[str, numpy.ndarray]:
    """The bits of every tensor that the kernel reads."""
    inputs = {}
    for tensor in record["tensors"]:
        if tensor["access"] != "read":
            continue
        key, shape = tensor["name"], tuple(tensor["shape"])
        if key.startswith("cu_seqlens"):
            inputs[key] = numpy.cumsum([0, *lengths]).astype(numpy.int32)
        elif key.endswith("_descale"):
            raw = numpy.random.PCG64(zlib.crc32(f"{name}/{key}".encode())).random_raw(shape)
            factors = numpy.array([0.5, 0.75, 1.0, 1.5])[raw & numpy.uint64(3)]
            inputs[key] = encode(factors, tensor["dtype"])
        elif name.endswith("-exact-scores") and key in "qk":
            inputs[key] = draw_quarters(f"{name}/{key}", shape, tensor["dtype"])
        else:
            inputs[key] = draw_normal(f"{name}/{key}", shape, tensor["dtype"])
    return inputs


def attend(q, k, v, problem: dict[str, Any], slopes=None, sinks=None):
    """One head in float64: q (Nq, D), k (Nk, D), v (Nk, Dv). Rows without keys
    have 0 and -inf."""
    i, j = numpy.arange(len(q))[:, None], numpy.arange(len(k))[None, :]
    mask = problem["mask"]
    aligned = i + (len(k) - len(q) if mask.get("align") == "bottom_right" else 0)
    seen = numpy.ones((len(q), len(k)), bool)
    if mask["kind"] == "causal":
        seen = j <= aligned
    elif mask["kind"] == "window":
        if mask["left"] >= 0:
            seen &= j >= aligned - mask["left"]
        if mask["right"] >= 0:
            seen &= j <= aligned + mask["right"]
    scores = problem["scale"] * (q @ k.T)
    if problem.get("softcap", 0) > 0:
        scores = problem["softcap"] * numpy.tanh(scores / problem["softcap"])
    if slopes is not None:
        scores = scores + slopes * (j - i)
    scores = numpy.where(seen, scores, -math.inf)
    top = numpy.max(scores, axis=1, initial=-math.inf, keepdims=True)
    if sinks is not None:
        top = numpy.maximum(top, sinks)
    shift = numpy.where(numpy.isfinite(top), top, 0.0)
    weights = numpy.where(seen, numpy.exp(scores - shift), 0.0)
    total = weights.sum(axis=1, keepdims=True)
    if sinks is not None:
        total = total + numpy.exp(sinks - shift)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        o = numpy.where(total > 0, (weights @ v) / total, 0.0)
        return o, (numpy.log(total) + shift)[:, 0]


def compute_reference(
    record: dict[str, Any], inputs: dict[str, numpy.ndarray], lengths: list[int]
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """O and LSE of a whole problem in float64."""
    problem, types = record["problem"], {t["name"]: t["dtype"] for t in record["tensors"]}
    values = {
        name: bits if types[name] == "i32" else decode(bits, types[name])
        for name, bits in inputs.items()
    }
    q, k, v = (values[name] for name in "qkv")
    group = q.shape[1] // k.shape[1]
    if "q_descale" in values and not lengths:
        q, k, v = (
            x * values[f"{name}_descale"][:, :, None, None]
            for x, name in ((q, "q"), (k, "k"), (v, "v"))
        )
    o, lse = numpy.zeros((*q.shape[:3], v.shape[3])), numpy.zeros(q.shape[:3])
    pieces = [(b, slice(None)) for b in range(q.shape[0])]
    if lengths:
        ends = numpy.cumsum([0, *lengths])
        pieces = [(0, slice(a, b)) for a, b in zip(ends, ends[1:])]
    for b, rows in pieces:
        for head in range(q.shape[1]):
            o[b, head, rows], lse[b, head, rows] = attend(
                q[b, head, rows], k[b, head // group, rows if lengths else slice(None)],
                v[b, head // group, rows if lengths else slice(None)], problem,
                values["capture0"][head] if problem.get("score_mod") else None,
                values["sinks"][head] if "sinks" in values else None,
            )  # fmt: skip
    return o, lse


class DeviceTensor:
    """A tensor with the record's strides in device memory of exactly its size.
    What the kernel is to write, and gaps, hold `POISON`."""

    POISON = 0xA5

    def __init__(self, tensor: dict[str, Any], bits: numpy.ndarray | None) -> None:
        self.shape, self.strides = tuple(tensor["shape"]), tuple(tensor["strides"])
        self.dtype, kind = tensor["dtype"], BITS[tensor["dtype"]]
        width = numpy.dtype(kind).itemsize
        extent = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides))
        self.host = numpy.full(extent * width, self.POISON, numpy.uint8).view(kind)
        if bits is not None:
            self.get_values()[...] = bits
        address = ctypes.c_uint64()
        _call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(self.host.nbytes))
        self.address = address.value
        self._copy("cuMemcpyHtoD_v2", ctypes.c_uint64(self.address), self.host.ctypes)

    def get_values(self) -> numpy.ndarray:
        """The tensor in the host's copy."""
        steps = tuple(stride * self.host.itemsize for stride in self.strides)
        return numpy.lib.stride_tricks.as_strided(self.host, self.shape, steps)

    def _copy(self, name: str, to: Any, source: Any) -> None:
        host = to if name.endswith("DtoH_v2") else source
        pointer = ctypes.c_void_p(host.data)
        arguments = (pointer, source) if host is to else (to, pointer)
        _call(name, *arguments, ctypes.c_size_t(self.host.nbytes))

    def fetch(self) -> numpy.ndarray:
        """What the device holds now."""
        self._copy("cuMemcpyDtoH_v2", self.host.ctypes, ctypes.c_uint64(self.address))
        return self.get_values().copy()

    def are_gaps_untouched(self) -> bool:
        """Whether what is no element still holds the poison, after fetch."""
        inside = numpy.zeros(self.host.shape, bool)
        numpy.lib.stride_tricks.as_strided(inside, self.shape, self.strides)[...] = True
        return bool((self.host[~inside].view(numpy.uint8) == self.POISON).all())

    def free(self) -> None:
        _call("cuMemFree_v2", ctypes.c_uint64(self.address))

    def view(self) -> TensorView:
        return TensorView(self.dtype, self.shape, self.strides, self.address, 0)


def synchronize() -> None:
    _call("cuCtxSynchronize")


def _call(name: str, *arguments: Any) -> None:
    cuda_driver.check(getattr(cuda_driver.load(), name)(*arguments), name, "gpu_grid")
