#!/usr/bin/env python3
"""Runs the corpus on a GPU.

usage: record.py --cubins=FOLDER [--assemble] [--out=FILE.npz] [--ptx=NAME] [--timings]
                 [--repeat=N]

With --assemble ptxas makes a cubin of every PTX file for sm_90a; that needs no
GPU. Otherwise the cubins are loaded and every case is launched on an H200; the
results go to FILE.npz as NAME.INDEX. make-expected.py turns them into the test
data. --ptx takes only the cases of one PTX file, --timings takes the launches of the cost model instead; --repeat launches
each case N times, for profilers.
"""

import argparse
import ctypes
import pathlib
import subprocess
import sys

import numpy as np

import corpus
from attn import record
from attn.launch import cuda_driver
from attn.sim import Empty, TensorMap

#: What the simulator fills memory with that nobody wrote.
FILL = 0xCB
_SWIZZLES = {0: "none", 32: "32B", 64: "64B", 128: "128B"}
_ELEMENTS = {"float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16"}
_ELEMENTS |= {"int8": "i8", "int32": "i32", "int64": "i64"}


def assemble(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for ptx in sorted({case.ptx for case in corpus.cases() + corpus.timings()}):
        source = corpus.HERE / "Inputs" / f"{ptx}.ptx"
        target = folder / f"{ptx}.cubin"
        subprocess.run(["ptxas", "-arch=sm_90a", source, "-o", target], check=True)


class Gpu:
    """The driver with what recording needs beyond launching."""

    def __init__(self):
        self.driver = cuda_driver.load()
        self.device = cuda_driver.get_device(0)
        self.device.__enter__()

    def call(self, name, *arguments):
        cuda_driver.check(getattr(self.driver, name)(*arguments), name, "recording")

    def allocate(self, array):
        """Device memory with the array's contents, or the fill."""
        size = int(np.prod(array.shape, dtype=np.int64)) * array.dtype.itemsize
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 256)))
        if isinstance(array, Empty):
            self.call("cuMemsetD8_v2", address, ctypes.c_ubyte(FILL), ctypes.c_size_t(size))
        else:
            raw = np.ascontiguousarray(array)
            self.call("cuMemcpyHtoD_v2", address, ctypes.c_void_p(raw.ctypes.data), ctypes.c_size_t(size))
        return address.value

    def read(self, address, array):
        result = np.empty(array.shape, array.dtype)
        self.call(
            "cuMemcpyDtoH_v2", ctypes.c_void_p(result.ctypes.data), ctypes.c_uint64(address),
            ctypes.c_size_t(result.nbytes),
        )
        return result

    def run(self, case, cubin, repeat):
        places, addresses, values = {}, [], []
        for argument in case.args:
            array = argument.array if isinstance(argument, TensorMap) else argument
            if not isinstance(array, Empty) and not (isinstance(array, np.ndarray) and array.ndim):
                addresses.append(None)
                raw = argument.tobytes()
                values.append(ctypes.create_string_buffer(raw, len(raw)))
                continue
            if id(array) not in places:
                places[id(array)] = self.allocate(array)
            address = places[id(array)]
            addresses.append(address)
            if isinstance(argument, TensorMap):
                storage = ctypes.create_string_buffer(128 + 64)
                start = -ctypes.addressof(storage) % 64
                view = record.TensorView(
                    dtype="", shape=(), strides=(), device=0, address=address
                )
                fields = record.TensorMap(
                    offset=0, tensor="", element=_ELEMENTS[argument.get_element()],
                    dims=tuple(argument.get_dims()), strides=tuple(argument.get_strides()),
                    box=tuple(argument.box), swizzle=_SWIZZLES[argument.swizzle],
                )
                cuda_driver.encode_tensor_map(fields, view, ctypes.addressof(storage) + start, case.name)
                values.append((ctypes.c_char * 128).from_buffer(storage, start))
            else:
                values.append(ctypes.c_uint64(address))
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        function = cuda_driver.Function(cubin, case.kernel, case.shared)
        grid = tuple(case.grid) + (1,) * (3 - len(case.grid))
        for _ in range(repeat):
            status = function.launch(
                grid, (case.block, 1, 1), (case.cluster, 1, 1), case.shared, 0, pointers
            )
            cuda_driver.check(status, "launch", case.name)
        self.call("cuCtxSynchronize")
        return {
            index: self.read(addresses[index], getattr(argument, "array", argument))
            for index, argument in enumerate(case.args)
            if index in case.compare
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cubins", type=pathlib.Path, required=True)
    parser.add_argument("--assemble", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--ptx")
    parser.add_argument("--timings", action="store_true")
    parser.add_argument("--repeat", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.assemble:
        return assemble(arguments.cubins)
    gpu = Gpu()
    results = {}
    for case in corpus.timings() if arguments.timings else corpus.cases():
        if arguments.ptx and case.ptx != arguments.ptx:
            continue
        print(case.name, flush=True)
        cubin = (arguments.cubins / f"{case.ptx}.cubin").read_bytes()
        for index, array in gpu.run(case, cubin, arguments.repeat).items():
            results[f"{case.name}.{index}"] = array
    if arguments.out:
        np.savez_compressed(arguments.out, **results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
