"""Compiles the Triton kernel twice and prints the times of both as JSON.

usage: triton_worker.py CAPABILITY HEAD_DIM CAUSAL
Run by compile-time.py in a process of its own.
"""

import json
import sys
import time

import triton
from triton import knobs

from triton_attention import compile_for


def main() -> int:
    capability, head_dim, causal = (int(argument) for argument in sys.argv[1:])
    compilations = []

    def listener(*, times, cache_hit, **_):
        if cache_hit:
            sys.exit("error: Triton's cache was used")
        stages = {"ir": times.ir_initialization / 1e6}
        stages.update((name, us / 1e6) for name, us in times.lowering_stages)
        compilations.append({"stages": stages})

    knobs.compilation.listener = listener
    for _ in range(2):
        start, cpu = time.perf_counter(), time.process_time()
        kernel = compile_for(capability, head_dim, bool(causal))
        compilations[-1]["total"] = time.perf_counter() - start
        compilations[-1]["cpu"] = time.process_time() - cpu
    if ".target sm_" not in kernel.asm["ptx"]:
        sys.exit("error: Triton gave no PTX")
    print(json.dumps({
        "version": triton.__version__,
        "cpu": time.process_time(),
        "compilations": compilations,
    }))
    return 0


if __name__ == "__main__":
    sys.exit(main())
