#!/usr/bin/env python3
"""Times kernels of runs of a fixed number of keys beside those of the free choice.

With `run_keys` a query has the same bits alone, in a chunk of a prompt and in any batch,
for which one order of sums serves decode and prefill. This says what that costs.

  here   benchmarks/run-keys.py --make FOLDER [--filter=REGEX] [--build=build]
  GPU    PYTHONPATH=python benchmarks/run-keys.py --run FOLDER --json=FILE

--run needs torch, and neither the compiler nor a toolkit.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNS = (1024, 4096)
CAUSAL = "--causal=bottom-right"
#: Flags of each cell, its sequences, and the keys that each has.
CELLS = {
    "decode, 64 of 8192, 32 on 8": (["--q=64x32x1x128xbf16", "--kv-heads=8"], 64, 8192),
    "decode, 1 of 131072, 64 on 8": (["--q=1x64x1x128xbf16", "--kv-heads=8"], 1, 131072),
    "chunk of 512 of 8192, 32 on 8": (["--q=1x32x512x128xbf16", "--kv-heads=8", CAUSAL], 1, 8192),
    "chunk of 2048 of 2048, 32 on 8": (["--q=1x32x2048x128xbf16", "--kv-heads=8", CAUSAL], 1, 2048),
    "latent decode, 64 of 8192, 16 heads": (["--q=64x16x1x576xbf16", "--rope-dim=64"], 64, 8192),
    "latent chunk of 64 of 8192, 16 heads": (
        ["--q=1x16x64x576xbf16", "--rope-dim=64", CAUSAL],
        1,
        8192,
    ),
}


def make(options: argparse.Namespace) -> int:
    options.make.mkdir(parents=True, exist_ok=True)
    cells = []
    for number, (name, (flags, batch, keys)) in enumerate(CELLS.items()):
        if not re.search(options.filter, name):
            continue
        kernels = []
        for run in (0, *RUNS):
            file = f"{number}-{run}.attn"
            command = [
                options.build / "bin/attn-compile", *flags, "--page-size=64", "--chip=sm_90a",
                "--kv-lengths=" + ",".join([str(keys)] * batch), *[f"--run-keys={run}"] * bool(run),
                "--bundle-chips=sm_90a", f"--bundle={options.make / file}", "--json", "-o", "/dev/null",
            ]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            kernels.append({"run": run, "file": file, "plan": json.loads(done.stdout)["plan"][0]})
        cells.append({"name": name, "keys": keys, "kernels": kernels})
    text = json.dumps(cells, indent=1)
    (options.make / "kernels.json").write_text(text, encoding="utf-8")
    return 0


def time_kernel(path: pathlib.Path, keys: int) -> float:
    """Microseconds of a launch, in a graph of several."""
    import statistics

    import attn.runtime
    import torch

    types = {"bf16": torch.bfloat16, "f32": torch.float32, "i32": torch.int32}
    kernel = attn.runtime.load(path)
    tensors = {}
    for view in kernel.launch_record["tensors"]:
        shape, name = view["shape"], view["name"]
        if name == "page_table":
            tensors[name] = torch.randperm(shape[0] * shape[1], device="cuda").int().reshape(shape)
        elif name == "kv_lengths":
            tensors[name] = torch.full(shape, keys, dtype=torch.int32, device="cuda")
        else:
            tensors[name] = torch.randn(shape, device="cuda").to(types[view["dtype"]])
    for _ in range(3):
        kernel(**tensors)
    torch.cuda.synchronize()
    launches, graph = 10, torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(launches):
            kernel(**tensors)
    times = []
    for _ in range(15):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1000 / launches)
    return statistics.median(times)


def run(options: argparse.Namespace) -> int:
    cells = json.loads((options.run / "kernels.json").read_text(encoding="utf-8"))
    for cell in cells:
        for kernel in cell["kernels"]:
            kernel["us"] = time_kernel(options.run / kernel["file"], cell["keys"])
        times = [f"{kernel['run'] or 'free'} {kernel['us']:.1f}" for kernel in cell["kernels"]]
        print(f"{cell['name']}: {', '.join(times)} us", flush=True)
        options.json.write_text(json.dumps(cells, indent=1), encoding="utf-8")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--make", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--run", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--filter", default="", metavar="REGEX")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options = parser.parse_args()
    if options.make:
        return make(options)
    if not options.run or not options.json:
        parser.error("expected --make, or --run and --json")
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
