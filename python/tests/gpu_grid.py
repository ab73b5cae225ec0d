#!/usr/bin/env python3
"""Compares kernels on a GPU with float64 and, bit by bit, with the simulator.

Where the compiler is (no GPU): compile a few hundred problems to bundles, and
run each kernel's PTX on the simulator.

    PYTHONPATH=python python3 python/tests/gpu_grid.py make FOLDER

Where the GPU is (NumPy and the driver): launch every bundle through
attn.runtime on the same inputs, which a seed gives on both machines.

    PYTHONPATH=python python3 python/tests/gpu_grid.py run FOLDER --json=results.json
    PYTHONPATH=python python3 python/tests/gpu_grid.py sanitize FOLDER --count=64

The exit status is 1 when a kernel is wrong, does not launch, or compute-sanitizer
reports anything.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib.util
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import attn
import attn.runtime
import gpu_inputs
import numpy
from attn import bundle
from attn.launch import cuda_driver

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from tool_util import progress  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOLERANCES = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 2e-3, "f8E4M3FN": 8e-2, "f8E5M2": 8e-2}
#: The tensor cores add products of 8-bit numbers with about 13 digits: of the
#: largest score's size.
NARROW_LSE = 2.0**-10
LSE_TOLERANCE = 1e-3
#: The simulator's O is kept for so many elements of a problem: every n-th row.
KEPT_ELEMENTS = 24576
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")

#: What the grid's axes leave out: flags by name, for f16 and bf16.
FEATURES = {
    "bnhd": ["--q=2x4x130x64x{t}", "--layout=bnhd", "--causal"],
    "batch": ["--q=3x2x65x128x{t}"],
    "dv-smaller": ["--q=1x4x100x128x{t}", "--dv=64"],
    "dv-larger": ["--q=1x4x100x64x{t}", "--dv=128", "--causal"],
    "dv-odd": ["--q=1x4x100x64x{t}", "--dv=40", "--causal=bottom-right", "--kv-len=150"],
    "d24": ["--q=1x4x150x24x{t}", "--causal"],
    "d80": ["--q=1x4x150x80x{t}"],
    "d160": ["--q=1x2x150x160x{t}", "--causal"],
    "scale": ["--q=1x4x200x64x{t}", "--scale=0.9"],
    "scale-large": ["--q=1x4x200x64x{t}", "--scale=4"],
    "softcap": ["--q=1x4x200x128x{t}", "--softcap=30"],
    "sinks": ["--q=1x4x200x64x{t}", "--sinks", "--window=64,0"],
    "sinks-no-keys": ["--q=1x4x80x64x{t}", "--kv-len=20", "--causal=bottom-right", "--sinks"],
    "f32-output": ["--q=1x4x200x64x{t}", "--out-type=f32", "--causal"],
    "no-lse": ["--q=1x4x200x64x{t}", "--no-lse"],
    "one-query": ["--q=4x8x1x128x{t}", "--kv-len=500", "--kv-heads=2"],
    "window-right": ["--q=1x4x300x64x{t}", "--window=-1,20"],
    "window-both": ["--q=1x4x300x128x{t}", "--window=100,50,bottom-right", "--kv-len=400"],
    "varlen": ["--q=1x4x386x64x{t}", "--varlen=q:17,64,300,0,5", "--causal"],
    "varlen-gqa": ["--q=1x8x300x128x{t}", "--kv-heads=2", "--varlen=q:100,1,199"],
    "long": ["--q=1x2x1500x64x{t}", "--causal"],
    "long-d256": ["--q=1x1x700x256x{t}"],
    "epilogue-direct": ["--q=1x4x200x64x{t}", "--epilogue=direct", "--causal"],
    "epilogue-shuffled": ["--q=1x4x200x64x{t}", "--epilogue=shuffled"],
    "epilogue-staged": ["--q=1x4x200x64x{t}", "--epilogue=staged"],
    "threshold": ["--q=1x4x300x64x{t}", "--set=softmax=threshold"],
    "optimistic": ["--q=1x4x300x64x{t}", "--set=softmax=optimistic"],
    "exact": ["--q=1x4x300x64x{t}", "--set=softmax=exact", "--causal"],
    "optimistic-large": ["--q=1x4x300x128x{t}", "--set=softmax=optimistic", "--scale=4"],
    "longest-first": ["--q=1x4x300x64x{t}", "--set=order=longest_first", "--causal"],
    "q-in-shared": ["--q=1x4x300x64x{t}", "--set=q_in_regs=false"],
    "one-stage": ["--q=1x4x300x64x{t}", "--set=stages=1", "--causal"],
    "eight-warps": ["--q=1x4x300x64x{t}", "--set=warps=8", "--causal"],
    "alibi": ["alibi.mlir"],
    # Scores that no rounding can touch: what differs then is behind them.
    "d64-exact-scores": ["--q=1x4x200x64x{t}"],
    "d128-exact-scores": ["--q=1x4x200x128x{t}", "--causal"],
    "d256-exact-scores": ["--q=1x4x200x256x{t}", "--causal"],
}  # fmt: skip

#: What ws_wgmma has beside.
HOPPER = {
    "three-groups": ["--q=1x4x700x64x{t}", "--causal", "--set=block_m=192,block_n=112"],
    "three-groups-rare": ["--q=1x4x500x64x{t}", "--scale=3", "--set=block_m=192,block_n=96"],
    "behind": ["--q=1x4x600x64x{t}", "--set=pv_behind=true"],
    "behind-rare": ["--q=1x4x600x128x{t}", "--scale=2", "--set=pv_behind=true,block_n=96"],
    "behind-turns": [
        "--q=2x20x500x128x{t}",
        "--causal",
        "--set=pv_behind=true,turns=true,block_n=64",
    ],
    "turns": ["--q=1x4x700x128x{t}", "--causal", "--set=turns=true"],
    "cluster": ["--q=1x4x700x128x{t}", "--causal", "--set=cluster=2"],
    "cluster-four": ["--q=1x2x900x64x{t}", "--set=cluster=4"],
    "cluster-dealt": ["--q=1x40x700x128x{t}", "--causal", "--set=cluster=2,dynamic=true"],
    "cluster-dealt-four": ["--q=2x20x900x64x{t}", "--set=cluster=4,dynamic=true,epilogue=tma"],
    "cluster-dealt-packed": [
        "--q=1x16x900x64x{t}",
        "--varlen=q:17,300,519,0,64",
        "--causal",
        "--set=cluster=2",
    ],
    "cluster-dealt-d256": [
        "--q=1x40x300x256x{t}",
        "--causal",
        "--set=block_m=64,cluster=2,dynamic=true,block_n=64",
    ],
    "dealt": ["--q=2x40x500x64x{t}", "--causal", "--set=dynamic=true"],
    "cluster-d256": ["--q=1x4x700x256x{t}", "--kv-heads=2", "--set=cluster=2,block_n=64"],
    "first-diagonal": [
        "--q=1x4x700x64x{t}",
        "--causal",
        "--set=block_m=128,first_block=auto,block_n=128",
    ],
    "first-none": [
        "--q=2x20x500x128x{t}",
        "--causal",
        "--set=block_m=128,first_block=auto,block_n=64",
    ],
    "first-behind": [
        "--q=1x4x900x128x{t}",
        "--causal",
        "--set=block_m=128,first_block=auto,block_n=64,pv_behind=true,turns=true",
    ],
    "first-behind-wide": [
        "--q=1x4x900x64x{t}",
        "--causal",
        "--set=block_m=128,first_block=auto,block_n=128,pv_behind=true",
    ],
    "first-three": [
        "--q=1x4x900x64x{t}",
        "--causal",
        "--set=first_block=auto,block_m=192,block_n=112",
    ],
    "first-end": [
        "--q=1x4x300x256x{t}",
        "--kv-len=544",
        "--set=block_m=128,first_block=auto,block_n=80",
    ],
    "first-offset": [
        "--q=1x4x400x128x{t}",
        "--kv-len=528",
        "--causal=bottom-right",
        "--set=block_m=128,first_block=auto",
    ],
    "first-cluster": [
        "--q=1x4x700x256x{t}",
        "--causal",
        "--kv-heads=2",
        "--set=block_m=128,first_block=auto,cluster=2,block_n=64",
    ],
    "keys": ["--q=1x4x500x64x{t}", "--v-transposed"],
    "keys-causal": ["--q=1x4x700x128x{t}", "--v-transposed", "--causal"],
    "keys-gqa": ["--q=2x8x200x128x{t}", "--v-transposed", "--kv-heads=2", "--window=100,0"],
    "keys-odd": ["--q=1x4x500x128x{t}", "--v-transposed", "--kv-len=333", "--layout=bnhd"],
    "keys-d256": ["--q=1x2x300x256x{t}", "--v-transposed", "--kv-len=500"],
    "keys-behind": ["--q=1x4x600x64x{t}", "--v-transposed", "--scale=2", "--set=pv_behind=true"],
    "keys-swizzles": ["--q=1x4x500x64x{t}", "--v-transposed", "--set=block_m=192,block_n=112"],
    "keys-cluster": [
        "--q=1x40x500x64x{t}",
        "--v-transposed",
        "--causal",
        "--set=cluster=2,dynamic=true",
    ],
    "rescored": ["--q=1x4x400x128x{t}", "--kv-len=1500", "--scale=12"],
    "rescored-three": [
        "--q=1x4x700x64x{t}",
        "--kv-len=1500",
        "--causal",
        "--scale=12",
        "--set=block_m=192,block_n=96,turns=true",
    ],
    "lost-bets": ["--q=1x4x700x128x{t}", "--kv-len=1500", "--scale=0.5"],
    "in-order": ["--q=1x4x400x128x{t}", "--set=qk_ahead=false,block_n=96"],
    "many-tiles": ["--q=2x40x500x64x{t}", "--causal", "--set=group_heads=3"],
    "one-group": ["--q=1x4x300x128x{t}", "--set=block_m=64"],
}
#: What self_load is run with.
SELF_LOAD = {
    "plain": ["--q=1x4x300x64x{t}", "--set=softmax=optimistic"],
    "causal": ["--q=1x4x700x64x{t}", "--causal", "--kv-heads=2"],
    "rare": ["--q=1x4x500x64x{t}", "--scale=3", "--set=softmax=optimistic"],
    "many-tiles": ["--q=2x40x500x64x{t}", "--causal", "--set=group_heads=3"],
    "in-order": ["--q=2x40x300x64x{t}", "--set=qk_ahead=false"],
    "exact": ["--q=1x4x400x128x{t}", "--set=softmax=exact,ctas_per_sm=2"],
    "threshold": ["--q=1x4x400x64x{t}", "--set=softmax=threshold", "--window=100,20"],
    "one-slot": ["--q=1x4x300x64x{t}", "--set=k_stages=1,v_stages=1,qk_ahead=false"],
    "d256": ["--q=1x2x300x256x{t}", "--causal"],
    "keys": ["--q=1x4x500x64x{t}", "--v-transposed", "--causal", "--kv-len=333"],
    "varlen": ["--q=1x4x386x64x{t}", "--varlen=q:17,64,300,0,5", "--causal"],
    "tma": ["--q=1x4x300x64x{t}", "--set=epilogue=tma,block_n=96"],
    "staged": ["--q=1x4x300x64x{t}", "--set=epilogue=staged,block_n=96"],
    "softcap-sinks": ["--q=1x4x200x64x{t}", "--softcap=30", "--sinks"],
}
#: 8-bit operands of self_load.
SELF_LOAD_NARROW = {
    "plain": ["--q=1x4x300x64x{t}"],
    "causal": ["--q=1x4x500x128x{t}", "--causal", "--descales"],
    "in-order": ["--q=1x4x500x128x{t}", "--descales", "--set=qk_ahead=false"],
    "d256": ["--q=1x2x300x256x{t}", "--descales", "--kv-len=500"],
    "gqa": ["--q=2x8x200x128x{t}", "--kv-heads=2", "--descales", "--window=100,0"],
    "varlen": ["--q=1x4x386x64x{t}", "--varlen=q:17,64,300,0,5", "--causal", "--descales"],
    "exact": ["--q=1x4x300x128x{t}", "--set=softmax=exact", "--scale=1"],
    "rare": ["--q=1x4x900x128x{t}", "--set=softmax=optimistic", "--scale=1"],
    "many-tiles": ["--q=2x40x500x64x{t}", "--causal", "--descales"],
    "one-slot": ["--q=1x4x300x64x{t}", "--set=k_stages=1,v_stages=1,qk_ahead=false"],
    "keys": ["--q=1x4x300x64x{t}", "--v-transposed"],
    "keys-causal": ["--q=1x4x500x128x{t}", "--v-transposed", "--causal", "--descales"],
    "keys-d256": ["--q=1x2x300x256x{t}", "--v-transposed", "--descales", "--kv-len=500"],
    "keys-gqa": ["--q=2x8x200x128x{t}", "--v-transposed", "--kv-heads=2", "--window=100,0"],
    "keys-many-tiles": ["--q=2x40x500x64x{t}", "--v-transposed", "--causal", "--descales"],
    "keys-odd": ["--q=1x4x500x128x{t}", "--v-transposed", "--kv-len=333", "--descales"],
    "keys-rare": ["--q=1x4x900x128x{t}", "--v-transposed", "--set=softmax=optimistic", "--scale=1"],
}
#: 8-bit operands of ws_wgmma.
NARROW = {
    "plain": ["--q=1x4x300x64x{t}"],
    "causal": ["--q=1x4x500x128x{t}", "--causal", "--descales"],
    "d256": ["--q=1x2x300x256x{t}", "--descales", "--kv-len=500"],
    "gqa": ["--q=2x8x200x128x{t}", "--kv-heads=2", "--descales", "--window=100,0"],
    "varlen": ["--q=1x4x386x64x{t}", "--varlen=q:17,64,300,0,5", "--causal"],
    "exact": ["--q=1x4x300x128x{t}", "--set=softmax=exact", "--scale=1"],
    "threshold": ["--q=1x4x300x64x{t}", "--set=softmax=threshold", "--scale=1"],
    "rare": ["--q=1x4x900x128x{t}", "--set=softmax=optimistic", "--scale=1"],
    "first": ["--q=1x4x700x128x{t}", "--causal", "--descales", "--set=first_block=auto,block_m=128"],
    "many-tiles": ["--q=2x40x500x64x{t}", "--causal"],
    "dealt": ["--q=2x40x500x64x{t}", "--causal", "--set=dynamic=true"],
    "dealt-d128": ["--q=2x40x300x128x{t}", "--kv-heads=10", "--descales", "--set=dynamic=true,epilogue=tma"],
    "dealt-packed": ["--q=1x40x500x64x{t}", "--varlen=q:17,64,300,0,119", "--causal"],
    "one-group": ["--q=1x4x300x96x{t}", "--set=block_m=64", "--out-type=f16"],
    "keys": ["--q=1x4x300x64x{t}", "--v-transposed"],
    "keys-causal": ["--q=1x4x500x128x{t}", "--v-transposed", "--causal", "--descales"],
    "keys-wide": ["--q=1x4x500x128x{t}", "--v-transposed", "--kv-len=800", "--set=block_n=160"],
    "keys-d256": ["--q=1x2x300x256x{t}", "--v-transposed", "--descales", "--kv-len=500"],
    "keys-gqa": ["--q=2x8x200x128x{t}", "--v-transposed", "--kv-heads=2", "--window=100,0"],
    "keys-layout": ["--q=2x4x200x128x{t}", "--v-transposed", "--layout=bnhd", "--causal"],
    "keys-behind": ["--q=1x4x900x128x{t}", "--v-transposed", "--set=softmax=optimistic,pv_behind=true,turns=true"],
    "keys-plain": ["--q=1x4x500x128x{t}", "--v-transposed", "--causal", "--set=key_quads=false"],
    "keys-odd": ["--q=1x4x500x128x{t}", "--v-transposed", "--kv-len=333", "--descales"],
    "keys-rare": ["--q=1x4x900x128x{t}", "--v-transposed", "--set=softmax=optimistic", "--scale=1"],
    "keys-exact": ["--q=1x4x300x128x{t}", "--v-transposed", "--set=softmax=exact", "--scale=1"],
}  # fmt: skip


def collect_cases(sample: int, chip: str) -> dict[str, list[str]]:
    """Flags of attn-compile by the case's name: the pairwise subset of the
    simulator's grid, `sample` more of it, and the features."""
    spec = importlib.util.spec_from_file_location("sim_grid", ROOT / "scripts/sim-grid.py")
    assert spec and spec.loader
    grid = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(grid)
    cases = grid.make_pairwise()
    cases += grid.random.Random(1).sample(grid.make_grid(), sample)
    flags = {}
    for case in cases:
        command = case.command("", "sm_80")
        flags[case.name] = [f for f in command[1:] if not f.startswith(("--chip", "--v", "--json"))]
    for name, words in FEATURES.items():
        for dtype in ("f16", "bf16"):
            flags[f"{dtype}-{name}"] = [word.format(t=dtype) for word in words]
    if chip != "sm_90a":
        return flags
    for prefix, schedule, table, types in (
        ("ws", "ws_wgmma", HOPPER, ("f16", "bf16")),
        ("self", "self_load", SELF_LOAD, ("f16", "bf16")),
        ("narrow", "ws_wgmma", NARROW, ("f8E4M3FN", "f8E5M2")),
        ("self-narrow", "self_load", SELF_LOAD_NARROW, ("f8E4M3FN", "f8E5M2")),
    ):
        for name, words in table.items():
            for dtype in types:
                command = [word.format(t=dtype) for word in words]
                flags[f"{prefix}-{dtype}-{name}"] = [*command, f"--schedule={schedule}"]
    return flags


def make_case(options: argparse.Namespace, name: str, flags: list[str]) -> dict | str:
    """Compiles and simulates one case; its entry of the list, or what failed."""
    path, lengths = options.folder / f"{name}.attn", []
    text = None
    for flag in flags:
        if flag.startswith("--varlen=q:"):
            lengths = [int(word) for word in flag[len("--varlen=q:") :].split(",")]
    if flags == ["alibi.mlir"]:
        text = (ROOT / "examples/alibi.mlir").read_text(encoding="utf-8")
        text = text.replace("xf16>", "xbf16>") if name.startswith("bf16") else text
        flags = ["-"]
    command = [options.bin / "attn-compile", *flags, f"--chip={options.chip}", "-o", "/dev/null"]
    cubin = options.cubin or ("sm_90" if options.chip == "sm_80" else options.chip)
    command += [f"--bundle={path}", f"--bundle-chips={cubin}"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip()
    contents = bundle.read(path)
    record = contents.launch
    outputs = [t for t in record["tensors"] if t["access"] == "write"]
    inputs = gpu_inputs.make_inputs(name, record, lengths)
    types = {tensor["name"]: tensor["dtype"] for tensor in record["tensors"]}
    kept = {}
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "launch.json").write_text(json.dumps(record), encoding="utf-8")
        (root / "kernel.ptx").write_bytes(
            next(image.data for image in contents.images if image.kind == "ptx").rstrip(b"\0")
        )
        command = [options.bin / "attn-sim", root / "kernel.ptx", f"--launch={root}/launch.json"]
        for key, bits in inputs.items():
            gpu_inputs.save_npy(f"{root}/{key}.npy", bits, types[key])
            command.append(f"--in={key}={root}/{key}.npy")
        command += [f"--out={t['name']}={root}/{t['name']}.npy" for t in outputs]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return (done.stderr + done.stdout).strip()
        for tensor in outputs:
            bits = gpu_inputs.load_npy(f"{root}/{tensor['name']}.npy", tensor["dtype"])
            kept[tensor["name"]] = thin(bits, tensor["name"])
    numpy.savez(options.folder / f"{name}.npz", **kept)
    return {"name": name, "flags": flags, "lengths": lengths}


def thin(bits: numpy.ndarray, name: str) -> numpy.ndarray:
    """All of LSE; of O at most KEPT_ELEMENTS, in whole rows an odd number apart."""
    if name != "o":
        return bits
    step = -(-bits.size // KEPT_ELEMENTS)
    return bits.reshape(-1, bits.shape[-1])[:: step | 1]


def make(options: argparse.Namespace) -> int:
    options.folder.mkdir(parents=True, exist_ok=True)
    cases = {
        name: flags
        for name, flags in collect_cases(options.sample, options.chip).items()
        if re.search(options.filter, name)
    }
    made, failed = [], 0
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        futures = {name: pool.submit(make_case, options, name, cases[name]) for name in cases}
        for index, (name, future) in enumerate(futures.items()):
            progress(index, len(cases), name)
            entry = future.result()
            if isinstance(entry, str):
                failed += 1
                print(f"{name}: {entry}", file=sys.stderr)
            else:
                made.append(entry)
    progress(len(cases), len(cases), "done")
    (options.folder / "cases.json").write_text(json.dumps(made, indent=1), encoding="utf-8")
    print(f"{len(made)} of {len(cases)} kernels compiled and simulated in {options.folder}")
    return 1 if failed else 0


def launch(options: argparse.Namespace, entry: dict) -> tuple[dict, dict, dict]:
    """Launches a case; its record, inputs, and outputs as bits."""
    kernel = attn.runtime.load(options.folder / f"{entry['name']}.attn")
    record = kernel.launch_record
    inputs = gpu_inputs.make_inputs(entry["name"], record, entry["lengths"])
    tensors = {
        tensor["name"]: gpu_inputs.DeviceTensor(tensor, inputs.get(tensor["name"]))
        for tensor in record["tensors"]
    }
    kernel(**{name: tensor.view() for name, tensor in tensors.items()})
    gpu_inputs.synchronize()
    outputs = {}
    for tensor in record["tensors"]:
        if tensor["access"] == "write":
            outputs[tensor["name"]] = tensors[tensor["name"]].fetch()
            if not tensors[tensor["name"]].are_gaps_untouched():
                raise ValueError(f"{tensor['name']}: the kernel wrote between elements")
    for each in tensors.values():
        each.free()
    return record, inputs, outputs


def compare_bits(got: numpy.ndarray, simulated: numpy.ndarray, dtype: str) -> dict:
    """How an output differs from the simulator's. `ulp` counts numbers of the
    type between the two; `row_ulp` the difference in units of the last place
    of the row's largest element, which does not grow near zero."""
    same = got == simulated
    a, b = (gpu_inputs.decode(x, dtype) for x in (got, simulated))
    with numpy.errstate(invalid="ignore"):
        difference = numpy.where(same, 0.0, numpy.abs(a - b))
    largest = numpy.max(numpy.where(numpy.isfinite(b), numpy.abs(b), 0.0), axis=-1, keepdims=True)
    digits = {"f16": 10, "bf16": 7, "f32": 23}[dtype]
    unit = 2.0 ** (numpy.floor(numpy.log2(numpy.maximum(largest, 1e-30))) - digits)
    distance = numpy.abs(gpu_inputs.order(got, dtype) - gpu_inputs.order(simulated, dtype))
    return {
        "elements": int(same.size),
        "equal": int(same.sum()),
        "within_1": int((distance <= 1).sum()),
        "ulp": int(distance.max(initial=0)),
        "row_ulp": float((difference / unit).max(initial=0.0)),
        "absolute": float(difference.max(initial=0.0)),
    }


def check(options: argparse.Namespace, entry: dict) -> dict:
    """One row of the results."""
    record, inputs, outputs = launch(options, entry)
    types = {tensor["name"]: tensor["dtype"] for tensor in record["tensors"]}
    expected, expected_lse = gpu_inputs.compute_reference(record, inputs, entry["lengths"])
    o = gpu_inputs.decode(outputs["o"], types["o"])
    norm = math.sqrt(float((expected**2).sum()))
    row = {"name": entry["name"], "dtype": types["q"], "out": types["o"]}
    row["o_error"] = math.sqrt(float(((o - expected) ** 2).sum())) / (norm or 1.0)
    reasons = [] if row["o_error"] <= TOLERANCES[types["q"]] else ["O is wrong"]
    if "lse" in outputs:
        lse = gpu_inputs.decode(outputs["lse"], "f32")
        with numpy.errstate(invalid="ignore"):
            distance = numpy.where(lse == expected_lse, 0.0, numpy.abs(lse - expected_lse))
        row["lse_error"] = float(distance.max(initial=0.0))
        bound = LSE_TOLERANCE
        if types["q"] in gpu_inputs.NARROW:
            finite = numpy.abs(expected_lse[numpy.isfinite(expected_lse)])
            bound = NARROW_LSE * max(4.0, float(finite.max(initial=0.0)))
        if not row["lse_error"] <= bound:
            reasons.append("LSE is wrong")
    simulated = numpy.load(options.folder / f"{entry['name']}.npz")
    row["bits"] = {
        name: compare_bits(thin(outputs[name], name), simulated[name], types[name])
        for name in outputs
    }
    row["reasons"] = reasons
    return row


def run(options: argparse.Namespace) -> int:
    entries = json.loads((options.folder / "cases.json").read_text(encoding="utf-8"))
    entries = [entry for entry in entries if re.search(options.filter, entry["name"])]
    start, rows = time.monotonic(), []
    device = cuda_driver.get_device(0)
    with device:
        for index, entry in enumerate(entries):
            progress(index, len(entries), entry["name"])
            try:
                rows.append(check(options, entry))
            except (attn.AttnError, ValueError) as error:
                rows.append({"name": entry["name"], "reasons": [str(error)]})
            if rows[-1]["reasons"]:
                print(f"FAILED {entry['name']}: {'; '.join(rows[-1]['reasons'])}", flush=True)
    progress(len(entries), len(entries), "done")
    if options.json:
        report = {"device": [device.major, device.minor], "rows": rows}
        options.json.write_text(json.dumps(report), encoding="utf-8")
    summarise(rows)
    failed = sum(bool(row["reasons"]) for row in rows)
    print(f"{len(rows) - failed} passed, {failed} failed, {time.monotonic() - start:.0f} s")
    return 1 if failed else 0


def summarise(rows: list[dict]) -> None:
    """By type: errors against float64, and differences from the simulator."""
    print(
        f"{'q, o':12} {'cases':>5} {'O error':>8} {'LSE err':>8}  {'same cases':>10} "
        f"{'elements':>9} {'equal':>8} {'<= 1 ulp':>8} {'row ulp':>8} {'LSE equal':>9} {'LSE abs':>8}"
    )
    kinds = sorted({(row["dtype"], row["out"]) for row in rows if "bits" in row})
    for kind in kinds:
        some = [r for r in rows if "bits" in r and (r["dtype"], r["out"]) == kind]
        o, lse = ([r["bits"][n] for r in some if n in r["bits"]] for n in ("o", "lse"))
        elements = sum(b["elements"] for b in o)
        share = [sum(b[key] for b in o) / elements for key in ("equal", "within_1")]
        lse_share = sum(b["equal"] for b in lse) / max(sum(b["elements"] for b in lse), 1)
        print(
            f"{', '.join(kind):12} {len(some):5} {max(r['o_error'] for r in some):8.1e} "
            f"{max((r.get('lse_error', 0) for r in some)):8.1e}  "
            f"{sum(b['equal'] == b['elements'] for b in o):10} {elements:9} "
            f"{share[0]:8.3%} {share[1]:8.3%} {max(b['row_ulp'] for b in o):8.2f} "
            f"{lse_share:9.2%} {max((b['absolute'] for b in lse), default=0.0):8.1e}"
        )


def run_once(options: argparse.Namespace) -> int:
    """Launches cases and nothing else: what a sanitizer watches."""
    entries = json.loads((options.folder / "cases.json").read_text(encoding="utf-8"))
    with cuda_driver.get_device(0):
        for entry in entries[options.first :: options.step]:
            launch(options, entry)
            print(f"launched {entry['name']}", flush=True)
    return 0


def sanitize(options: argparse.Namespace) -> int:
    """Every n-th case under each tool of compute-sanitizer, all tools at once."""
    entries = json.loads((options.folder / "cases.json").read_text(encoding="utf-8"))
    tool = options.sanitizer or shutil.which("compute-sanitizer")
    if not tool:
        print("gpu_grid: compute-sanitizer not found, give --sanitizer", file=sys.stderr)
        return 2
    step = max(1, len(entries) // options.count)
    start, processes = time.monotonic(), {}
    for name in TOOLS:
        command = [tool, f"--tool={name}", "--error-exitcode=9"]
        # Calls of the driver are checked where they are made.
        command += ["--report-api-errors=no"] if name == "memcheck" else []
        command += [sys.executable, __file__]
        command += ["launch", str(options.folder), f"--step={step}"]
        processes[name] = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    failed = 0
    for name, process in processes.items():
        text, _ = process.communicate()
        launched = text.count("launched ")
        summary = re.findall(r"^=+ (.*SUMMARY.*)$", text, re.M)
        good = process.returncode == 0 and launched == len(entries[::step])
        failed += not good
        print(f"{name:10} {launched} kernels, {'; '.join(summary) or 'no summary'}", flush=True)
        if not good:
            print("\n".join(line for line in text.splitlines() if line.startswith("="))[:4000])
    print(f"{time.monotonic() - start:.0f} s")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True)
    for command in (make, run, run_once, sanitize):
        name = "launch" if command is run_once else command.__name__
        part = commands.add_parser(name, help=(command.__doc__ or "").split(".")[0] or None)
        part.set_defaults(command=command)
        part.add_argument("folder", type=pathlib.Path)
        if command in (make, run):
            part.add_argument("--filter", default="", metavar="REGEX")
        if command is make:
            part.add_argument("--sample", type=int, default=200, help="cases beside the pairwise")
            part.add_argument("--chip", default="sm_80")
            part.add_argument("--cubin", help="ptxas's target (default: the chip, sm_90 for sm_80)")
            part.add_argument("--workers", type=int, default=2)
            part.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
        if command is run:
            part.add_argument("--json", type=pathlib.Path)
        if command is run_once:
            part.add_argument("--first", type=int, default=0)
            part.add_argument("--step", type=int, default=1)
        if command is sanitize:
            part.add_argument("--count", type=int, default=64)
            part.add_argument("--sanitizer", help="path of compute-sanitizer")
    options = parser.parse_args()
    status: int = options.command(options)
    return status


if __name__ == "__main__":
    sys.exit(main())
