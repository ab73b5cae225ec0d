#!/usr/bin/env python3
"""Records launches of FlashAttention-4's forward kernels without a GPU.

Compiles the kernels with the CuTe DSL for the chips of CASES and calls their host
code, whose call of the CUDA runtime ends in a small library that this script
builds: what the host code passes to the kernel is written as a recorded launch
(docs/RecordedLaunches.md), with random operands and what float64 makes of them.
scripts/recorded-check.py then runs the folder. Recordings are not part of the
project. Needs, for Python 3.12: pip install 'flash-attn-4[cu13]==4.0.0b36' torch numpy
and a C compiler.

--lengths records each case that it takes with one head and as many queries and
keys, under its name with _nN behind it: what scripts/model-check.py estimates.
--chip compiles the cases of sm_100a for a chip that runs the same kernels, as
sm_103a does.

usage: scripts/record-fa4.py OUT [--filter=REGEX] [--lengths=N,...] [--chip=CHIP] [--list]
The exit status is 1 when a kernel cannot be compiled or recorded.
"""

import argparse
import ctypes
import dataclasses
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# What the compiled host code calls, as it declares it.
RUNTIME = r"""
typedef int (*Launch)(const void *config, void **args);
static Launch launch;
void record_launches(Launch fn) { launch = fn; }
int _cudaLaunchKernelEx(const void *config, const void *kernel, void **args) {
  return launch(config, args);
}
int cuda_dialect_init_library_once(void *a, void *b, void *c, void *d) { return 0; }
void cuda_dialect_unload_library_once(void *a) {}
int _cudaGetDevice(int *device) { *device = 0; return 0; }
int _cudaSetDevice(int device) { return 0; }
int _cudaFuncSetAttribute(void *kernel, int attribute, int value) { return 0; }
int _cudaKernelSetAttributeForDevice(void *kernel, int attribute, int value, int device) {
  return 0;
}
"""
SMS = 148  # of a B200; persistent kernels ask for it
CLUSTER_DIMENSION = 4  # cudaLaunchAttributeClusterDimension


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    chip: str
    dim: int
    dtype: str = "bfloat16"
    causal: bool = False
    batch: int = 1
    heads: int = 2
    kv_heads: int = 2
    queries: int = 512
    keys: int = 512
    dim_v: int = 0  # as dim
    window: tuple = (None, None)
    options: tuple = ()


CASES = [
    Case("sm80_d64_bf16_causal", "sm_80", 64, causal=True),
    Case("sm80_d128_f16_gqa_ragged", "sm_80", 128, "float16", True, 2, 4, 2, 200, 333),
    Case("sm80_d96_bf16", "sm_80", 96),
    Case("sm80_d32_f16", "sm_80", 32, "float16"),
    Case("sm90a_d64_f16", "sm_90a", 64, "float16"),
    Case("sm90a_d64_bf16_causal", "sm_90a", 64, causal=True),
    Case("sm90a_d128_f16_gqa_ragged", "sm_90a", 128, "float16", True, 2, 4, 2, 200, 333),
    Case("sm90a_d128_bf16_window", "sm_90a", 128, window=(100, 50)),
    Case("sm90a_d96_bf16", "sm_90a", 96),
    Case("sm90a_d256_bf16_causal", "sm_90a", 256, causal=True),
    Case("sm90a_d192_128_bf16", "sm_90a", 192, dim_v=128),
    Case("sm100a_d64_bf16", "sm_100a", 64),
    Case("sm100a_d64_f16_causal", "sm_100a", 64, "float16", True),
    Case("sm100a_d64_bf16_causal", "sm_100a", 64, causal=True),
    Case("sm100a_d128_bf16", "sm_100a", 128),
    Case("sm100a_d256_bf16", "sm_100a", 256),
    Case("sm100a_d128_bf16_causal", "sm_100a", 128, causal=True),
    Case("sm100a_d128_f16_gqa_ragged", "sm_100a", 128, "float16", True, 2, 4, 2, 200, 333),
    Case("sm100a_d128_f16_gqa", "sm_100a", 128, "float16", False, 1, 4, 1),
    Case("sm100a_d128_bf16_window", "sm_100a", 128, window=(100, 50)),
    Case("sm100a_d96_bf16_causal", "sm_100a", 96, causal=True),
    Case("sm100a_d192_128_bf16_causal", "sm_100a", 192, causal=True, dim_v=128),
    Case("sm100a_d64_e4m3", "sm_100a", 64, "float8_e4m3fn"),
    Case("sm100a_d128_e4m3", "sm_100a", 128, "float8_e4m3fn"),
    Case("sm100a_d128_e4m3_causal", "sm_100a", 128, "float8_e4m3fn", causal=True),
]


class DLDevice(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLManagedTensor(ctypes.Structure):
    """A DLTensor, then who owns it; see dlpack.h."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device", DLDevice), ("ndim", ctypes.c_int),
        ("dtype", DLDataType), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    ]  # fmt: skip


class DeviceTensor:
    """Host memory that says it is a GPU's: the address is all that is looked at."""

    CODES = {
        "float16": (2, 16), "bfloat16": (4, 16), "float32": (2, 32), "int32": (0, 32),
        "uint8": (1, 8),
    }  # fmt: skip

    def __init__(self, fake):
        self.dtype = str(fake.dtype).removeprefix("torch.")
        self.shape, code = tuple(fake.shape), self.CODES[self.dtype]
        self.size = math.prod(self.shape) * code[1] // 8
        self.memory = ctypes.create_string_buffer(self.size + 4096)
        self.address = (ctypes.addressof(self.memory) + 4095) & ~4095
        rank = len(self.shape)
        self.extents = (ctypes.c_int64 * rank)(*self.shape)
        self.strides = (ctypes.c_int64 * rank)(*fake.stride())
        self.managed = DLManagedTensor(
            self.address, DLDevice(2, 0), rank, DLDataType(*code, 1), self.extents, self.strides
        )

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor", None)


def parameter_sizes(ptx: str, kernel: str) -> list[int]:
    declared = re.search(rf"\.entry {re.escape(kernel)}\((.*?)\)", ptx, re.S)[1]
    sizes = []
    for line in declared.split(",\n"):
        m = re.search(r"\.param (?:\.align \d+ )?\.([a-z]+)(\d+) \S+?(?:\[(\d+)\])?$", line.strip())
        sizes.append(int(m[2]) // 8 * int(m[3] or 1))
    return sizes


def read_config(config: int) -> dict:
    """The fields of a cudaLaunchConfig_t."""
    words = (ctypes.c_uint32 * 14).from_address(config)
    cluster = [1, 1, 1]
    attributes = ctypes.c_uint64.from_address(config + 40).value
    for i in range(words[12]):
        attribute = (ctypes.c_uint32 * 18).from_address(attributes + 72 * i)
        if attribute[0] == CLUSTER_DIMENSION:
            cluster = list(attribute[2:5])
    return {
        "grid": list(words[0:3]), "block": list(words[3:6]), "cluster": cluster,
        "dynamic_shared_bytes": ctypes.c_uint64.from_address(config + 24).value,
    }  # fmt: skip


def read_parameters(args, sizes: list[int], tensors: dict[str, DeviceTensor]) -> list[dict]:
    result = []
    for i, size in enumerate(sizes):
        data = ctypes.string_at(args[i], size)
        if size == 128:
            data = data[:64] + bytes(64)  # the host code sets half of a tensor map
        pointers = []
        for at in range(0, size - 7, 8):
            value = int.from_bytes(data[at : at + 8], "little")
            for name, tensor in tensors.items():
                if tensor.address <= value < tensor.address + tensor.size:
                    pointers.append({"at": at, "tensor": name, "offset": value - tensor.address})
        result.append({"size": size, "hex": data.hex()} | ({"pointers": pointers} if pointers else {}))
    return result


def reference(case: Case, q, k, v, scale: float):
    """O and LSE in float64; a causal mask ends in the last query's last key."""
    import numpy as np

    group = case.heads // case.kv_heads
    k, v = (np.repeat(x, group, axis=2) for x in (k, v))
    s = np.einsum("bqhd,bkhd->bhqk", q, k) * scale
    row = np.arange(case.queries)[:, None] + case.keys - case.queries
    column = np.arange(case.keys)[None, :]
    left, right = case.window
    right = 0 if case.causal else right
    visible = np.ones((case.queries, case.keys), bool)
    if right is not None:
        visible &= column <= row + right
    if left is not None:
        visible &= column >= row - left
    s = np.where(visible, s, -np.inf)
    top = s.max(axis=-1, keepdims=True)
    p = np.exp(s - top)
    total = p.sum(axis=-1, keepdims=True)
    return np.einsum("bhqk,bkhd->bqhd", p / total, v), (top + np.log(total))[..., 0]


def write_recording(case: Case, out: pathlib.Path, ptx: str, launch: dict, tensors: dict) -> None:
    import numpy as np

    generator, arrays, values = np.random.default_rng(list(case.name.encode())), {}, {}
    for name in ("q", "k", "v"):
        x = generator.standard_normal(tensors[name].shape).astype(np.float32)
        if case.dtype == "bfloat16":
            bits = x.view(np.uint32)
            bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
            arrays[name] = bits.astype(np.uint16).view(np.int16)
            values[name] = (bits << 16).astype(np.uint32).view(np.float32).astype(np.float64)
        elif case.dtype == "float8_e4m3fn":
            import torch

            narrow = torch.from_numpy(x).to(torch.float8_e4m3fn)
            arrays[name] = narrow.view(torch.uint8).numpy()
            values[name] = narrow.double().numpy()
        else:
            arrays[name] = x.astype(np.float16).view(np.int16)
            values[name] = x.astype(np.float16).astype(np.float64)
    o, lse = reference(case, values["q"], values["k"], values["v"], case.dim**-0.5)
    folder = out / case.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.ptx").write_text(ptx)
    # Elements of 8 bits pass through the host code as bytes.
    record = launch | {
        "tensors": {
            n: {"shape": list(t.shape), "dtype": case.dtype if t.dtype == "uint8" else t.dtype}
            for n, t in tensors.items()
        }
    }
    (folder / "launch.json").write_text(json.dumps(record, indent=1))
    for name, values in (("o", o), ("lse", lse)):
        arrays[name] = np.ascontiguousarray(values, np.float32)
    np.savez(folder / "data.npz", **arrays)


def record(case: Case, out: pathlib.Path, dump: pathlib.Path, runtime) -> None:
    import torch
    import tvm_ffi
    from flash_attn.cute import interface
    from torch._subclasses.fake_tensor import FakeTensorMode

    compile_kernel, launches = interface.cute.compile, []

    def compile_and_record(*args, **options):
        function = compile_kernel(*args, **options)

        def call(*args):
            tensors = [DeviceTensor(each) for each in args if isinstance(each, torch.Tensor)]
            named = dict(zip(("q", "k", "v", "o", "lse"), tensors, strict=True))
            rest = iter(tensors)

            def passed(each):
                return tvm_ffi.from_dlpack(next(rest)) if isinstance(each, torch.Tensor) else each

            @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
            def launched(config, parameters):
                ptx = next(dump.glob("*.ptx")).read_text()
                kernel = re.search(r"\.visible \.entry (\w+)", ptx)[1]
                sizes = parameter_sizes(ptx, kernel)
                launch = {"kernel": kernel, "chip": case.chip, **read_config(config)}
                launch["params"] = read_parameters(parameters, sizes, named)
                launches.append((ptx, launch, named))
                return 0

            runtime.record_launches(launched)
            function(*[passed(each) for each in args])

        return call

    interface.cute.compile = compile_and_record
    interface.is_fake_mode = lambda: False
    try:
        with FakeTensorMode():
            shapes = [
                (case.batch, case.queries, case.heads, case.dim),
                (case.batch, case.keys, case.kv_heads, case.dim),
                (case.batch, case.keys, case.kv_heads, case.dim_v or case.dim),
            ]
            q, k, v = (
                torch.empty(shape, dtype=getattr(torch, case.dtype), device="cuda")
                for shape in shapes
            )
            interface.flash_attn_func(
                q, k, v, causal=case.causal, window_size=case.window, return_lse=True,
                **dict(case.options),
            )  # fmt: skip
    finally:
        interface.cute.compile = compile_kernel
    (launch,) = launches
    write_recording(case, out, *launch)


def record_here(case: Case, out: pathlib.Path, library: pathlib.Path) -> int:
    import cutlass.utils

    # What it would ask the driver for.
    hardware = cutlass.utils.HardwareInfo
    hardware.__init__ = lambda self, *_, **__: None
    hardware.get_max_active_clusters = lambda self, cluster, *_, **__: SMS // cluster
    hardware.get_device_multiprocessor_count = lambda self, *_: SMS
    record(case, out, library.parent, ctypes.CDLL(library))
    return 0


def with_lengths(cases: list[Case], lengths: list[int]) -> list[Case]:
    """The cases with one head and so many queries and keys."""
    return [
        dataclasses.replace(
            case, name=f"{case.name}_n{n}", queries=n, keys=n, batch=1, heads=1, kv_heads=1
        )
        for case in cases
        for n in lengths
    ]


def for_chip(cases: list[Case], chip: str) -> list[Case]:
    """The cases of sm_100a, compiled for another chip."""
    stem = chip.replace("_", "")
    return [
        dataclasses.replace(case, name=case.name.replace("sm100a", stem), chip=chip)
        for case in cases
        if case.chip == "sm_100a"
    ]


def takes(options: argparse.Namespace, case: Case) -> bool:
    stem = re.sub(r"_n\d+$", "", case.name) if options.lengths else case.name
    return (stem != case.name or not options.lengths) and bool(
        re.search(options.filter, case.name) or re.search(options.filter, stem)
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--filter", default="", metavar="REGEX")
    parser.add_argument("--lengths", default="", metavar="N,...")
    parser.add_argument("--chip", default="")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    lengths = [int(n) for n in options.lengths.split(",") if n]
    known = for_chip(CASES, options.chip) if options.chip else CASES
    cases = [case for case in known + with_lengths(known, lengths) if takes(options, case)]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    library = os.environ.get("ATTN_RECORDER")
    if library:
        (case,) = cases
        return record_here(case, options.out, pathlib.Path(library))
    failed = 0
    for case in cases:
        # In a process of its own, which has the library in front of all others.
        with tempfile.TemporaryDirectory() as folder:
            source, library = f"{folder}/runtime.c", f"{folder}/runtime.so"
            pathlib.Path(source).write_text(RUNTIME)
            subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
            environment = os.environ | {
                "ATTN_RECORDER": library, "LD_PRELOAD": library, "CUTE_DSL_KEEP": "ptx",
                "CUTE_DSL_DUMP_DIR": folder, "CUTE_DSL_ARCH": case.chip,
                "FLASH_ATTENTION_ARCH": case.chip.rstrip("a"),
                "FLASH_ATTENTION_NUM_SMS": str(SMS),
            }  # fmt: skip
            command = [sys.executable, "-W", "ignore", __file__, options.out]
            command.append(f"--filter=^{case.name}$")
            command += [f"--lengths={options.lengths}", f"--chip={options.chip}"]
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
        failed += done.returncode != 0
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        print(f"{case.name:32} {last if done.returncode else 'recorded'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
