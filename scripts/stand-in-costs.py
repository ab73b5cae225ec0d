#!/usr/bin/env python3
"""What launches over the stand-in driver cost, with Triton and Python around them: time of a small
launch, alone and beside 1 GiB that it does not touch, of an addition of a million elements and of
a product of two matrices of 1024 x 1024, in processor time; memory for each byte that a kernel touches.

Runs in an interpreter with triton and torch: this one, or the first that $ATTN_TRITON_PYTHON
names; without one the status is 2. The limits are for two cores.

usage: scripts/stand-in-costs.py [--chips=sm_90a,sm_100a] [--json=FILE] [--bin=build/bin]
  --json   write the numbers

Fails where one is over its limit.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[1]
MEMORY = "memory of a byte, bytes"
#: Most of each: milliseconds, a ratio, seconds, bytes.
LIMITS = {
    "small launch, ms": 0.6,
    "beside 1 GiB, ratio": 1.05,
    "million elements, s": 0.5,
    "product of 1024, s": 4.0,
    MEMORY: 2.2,
}
GIB = 2**30
#: Bytes that a copy reads and writes, and its elements of a CTA.
TOUCHED, BLOCK = 2**27, 4096


def find_python() -> str | None:
    """An interpreter with triton and torch."""
    if all(importlib.util.find_spec(name) for name in ("triton", "torch")):
        return sys.executable
    return os.environ.get("ATTN_TRITON_PYTHON", "").split(":")[0] or None


def take_least(
    run: Callable[[], None], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """The least time of a call in seconds: what other processes do only adds to it. A long call's
    is best of a `clock` of processor time."""
    times = []
    for _ in range(repeats):
        begin = clock()
        run()
        times.append(clock() - begin)
    return min(times)


def measure_memory(kind: str) -> int:
    """Bytes that the process has in memory ("VmRSS"), or has had at most ("VmHWM")."""
    status = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(status.split(f"{kind}:")[1].split()[0])


def measure_shadow(chip: str) -> float:
    """Bytes that a launch needs for each byte that its kernel touches, beside the arrays."""
    import attn.sim
    import stand_in_kernels as kernels
    import torch

    attn.sim.triton(chip)
    source, target = (torch.ones(TOUCHED // 8) for _ in range(2))
    kernels.copy[(1,)](source, target, BLOCK=BLOCK)
    before = measure_memory("VmRSS")
    kernels.copy[(TOUCHED // 8 // BLOCK,)](source, target, BLOCK=BLOCK)
    return (measure_memory("VmHWM") - before) / TOUCHED


def measure(chip: str) -> dict[str, float]:
    """The costs on one chip."""
    import attn.sim
    import stand_in_kernels as kernels
    import torch

    attn.sim.triton(chip)
    x, y, o = (torch.ones(128) for _ in range(3))
    large = torch.zeros(GIB // 4)

    def add_small() -> None:
        kernels.add[(1,)](x, y, o, 128, BLOCK=128)

    def add_beside() -> None:
        kernels.add[(1,)](large, y, o, 128, BLOCK=128)

    add_small()
    add_beside()
    # One after the other, so that both meet the same load of the machine.
    pairs = [(take_least(add_small, 50), take_least(add_beside, 50)) for _ in range(10)]
    small, beside = (min(each) for each in zip(*pairs, strict=True))
    costs = {"small launch, ms": 1e3 * small, "beside 1 GiB, ratio": beside / small}
    million = [torch.rand(10**6) for _ in range(3)]
    costs["million elements, s"] = take_least(
        lambda: kernels.add[(977,)](*million, 10**6, BLOCK=1024), 3
    )
    assert torch.equal(million[2], million[0] + million[1])
    a, b = (torch.randn(1024, 1024, dtype=torch.float16) for _ in range(2))
    c = torch.empty_like(a)
    costs["product of 1024, s"] = take_least(
        lambda: kernels.multiply(a, b, c), 2, time.process_time
    )
    torch.testing.assert_close(c, a @ b, rtol=1e-2, atol=1e-1)
    return costs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chips", default="sm_90a,sm_100a")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--here", choices=("costs", "memory"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        run = {"costs": measure, "memory": lambda chip: {MEMORY: measure_shadow(chip)}}[options.here]
        print(json.dumps(run(options.chips)))
        return 0
    python = find_python()
    if python is None:
        print("expected an interpreter with triton and torch, got none")
        return 2
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), str(ROOT / "scripts")])
    os.environ.setdefault("ATTN_DRIVER", str(options.bin.parent / "lib/driver"))
    results, over = {}, 0
    for chip in options.chips.split(","):
        results[chip] = {}
        for what in ("costs", "memory"):
            command = [python, __file__, f"--here={what}", f"--chips={chip}"]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            results[chip] |= json.loads(done.stdout.splitlines()[-1])
        for name, value in results[chip].items():
            is_over = value > LIMITS[name]
            over += is_over
            remark = " OVER" if is_over else ""
            print(f"{chip:8} {name:26} {value:8.3f} of {LIMITS[name]}{remark}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main())
