#!/usr/bin/env python3
"""Asks a GPU the questions of probes.ptx and writes its answers as JSON.

Needs the CUDA driver and nothing else: PTX is assembled by the driver. Each
kernel runs in a process of its own, so that one that hangs costs its time limit.

usage: run-probes.py [--ptx=probes.ptx] [--out=h200.json] [--limit=SECONDS]
"""

import argparse
import ctypes
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Kernel: CTAs, threads a CTA, bytes of `out`.
PROBES = {
    "oob_box": (1, 32, 16),
    "swizzle_unaligned": (1, 64, 3072),
    "complete_before_expect": (1, 32, 8),
    "address_bits": (2, 32, 64),
    "arrive_twice": (1, 64, 256),
    "dangling_exit": (1, 32, 4),
    "fresh_parity": (1, 32, 16),
    "multicast": (2, 64, 4096),
    "wgmma_base_offset": (1, 128, 20480),
    "elect_lane": (1, 32, 12),
    "overwrite_without_proxy_fence": (1, 256, 8),
    "remote_arrive_default_scope": (2, 32, 8),
    "exit_after_read": (1, 64, 1024),
    "arrive_states": (1, 32, 28),
}
# Results that count: they start at zero.
COUNTERS = {"overwrite_without_proxy_fence", "remote_arrive_default_scope"}
SHARED = 32768
WORDS = 80 * 20


class Driver:
    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", name, 100, device)
        self.device = name.value.decode()
        version = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(version))
        self.version = version.value

    def call(self, function: str, *args: object) -> None:
        status = getattr(self.cuda, function)(*args)
        if status:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{function}: {(text.value or b'').decode()}")

    def allocate(self, data: bytes) -> ctypes.c_uint64:
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(len(data)))
        self.call("cuMemcpyHtoD_v2", address, data, ctypes.c_size_t(len(data)))
        return address

    def encode_map(self, address: int) -> ctypes.Array:
        raw = ctypes.create_string_buffer(128 + 64)
        at = -(-ctypes.addressof(raw) // 64) * 64
        u64, u32 = ctypes.c_uint64, ctypes.c_uint32
        dtype_u16, none, swizzle_128b = 1, 0, 3
        self.call(
            "cuTensorMapEncodeTiled", ctypes.c_void_p(at), dtype_u16, u32(2), u64(address),
            (u64 * 2)(80, 20), (u64 * 1)(160), (u32 * 2)(64, 8), (u32 * 2)(1, 1),
            none, swizzle_128b, none, none,
        )  # fmt: skip
        return ctypes.create_string_buffer(ctypes.string_at(at, 128), 128)


def run_one(ptx: str, name: str) -> None:
    ctas, threads, size = PROBES[name]
    driver = Driver()
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    text = pathlib.Path(ptx).read_bytes() + b"\0"
    driver.call("cuModuleLoadData", ctypes.byref(module), text)
    driver.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
    source = driver.allocate(b"".join(i.to_bytes(2, "little") for i in range(WORDS)))
    out = driver.allocate((b"\0" if name in COUNTERS else b"\xcb") * size)
    tensor_map = driver.encode_map(source.value)
    args = (ctypes.c_void_p * 3)(
        ctypes.addressof(tensor_map), ctypes.addressof(source), ctypes.addressof(out)
    )
    driver.call(
        "cuLaunchKernel", function, ctas, 1, 1, threads, 1, 1, SHARED, None, args, None
    )
    driver.call("cuCtxSynchronize")
    result = ctypes.create_string_buffer(size)
    driver.call("cuMemcpyDtoH_v2", result, out, ctypes.c_size_t(size))
    words = [int.from_bytes(result.raw[i : i + 4], "little") for i in range(0, size, 4)]
    print(json.dumps({"device": driver.device, "driver": driver.version, "words": words}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ptx", default=str(HERE / "probes.ptx"))
    parser.add_argument("--out", default=str(HERE / "h200.json"))
    parser.add_argument("--limit", type=float, default=20)
    parser.add_argument("--one", choices=PROBES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        run_one(args.ptx, args.one)
        return 0
    answers: dict = {"probes": {}}
    failed = 0
    for name in PROBES:
        command = [sys.executable, __file__, f"--ptx={args.ptx}", f"--one={name}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=args.limit)
            error = done.stderr.strip().split("\n")[-1] if done.returncode else ""
        except subprocess.TimeoutExpired:
            error = f"no answer in {args.limit:g} s"
        if error:
            print(f"{name}: {error}")
            failed += 1
            continue
        answer = json.loads(done.stdout)
        answers["device"], answers["driver"] = answer["device"], answer["driver"]
        answers["probes"][name] = answer["words"]
        print(f"{name}: {answer['words'][:16]}")
    lines = ",\n".join(
        f"    {json.dumps(n)}: {json.dumps(w, separators=(',', ':'))}"
        for n, w in answers["probes"].items()
    )
    head = {k: v for k, v in answers.items() if k != "probes"}
    text = json.dumps(head)[:-1] + ', "probes": {\n' + lines + "\n}}\n"
    pathlib.Path(args.out).write_text(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
