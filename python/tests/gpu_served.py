#!/usr/bin/env python3
"""Launches bundles of servers' problems on the GPU, and compares with float64: fixed runs,
selected keys, states to go on from, outputs of 8 bits, latent operands apart, scales of groups
of columns, long heads.

    here: PYTHONPATH=python python3 python/tests/gpu_served.py make FOLDER
    GPU:  PYTHONPATH=python python3 python/tests/gpu_served.py run FOLDER
    GPU:  PYTHONPATH=python python3 python/tests/gpu_served.py sanitize FOLDER

The first command needs attn-compile; with --simulate the second one needs attn-sim and
no GPU. The others need NumPy and this package's sources. Each bundle gets --rounds
batches of random lengths (0, 1, and those around a page and the table's end among them),
pages in random order and entries of a table that point nowhere. What no sequence owns,
outputs and workspaces are poisoned: with NaN, and counters are to be zeros again. Of
fixed runs some sequences of each batch are computed alone as well, by a kernel that was
compiled for one sequence and a longer table: o and lse have to be the same bits. Prints a
table; exit status 1 when something is wrong.
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any

import attn.runtime
import gpu_inputs
import numpy
from attn import bundle
from attn.launch import cuda_driver

ROOT = pathlib.Path(__file__).resolve().parents[2]

GQA = "--q={b}x16x1x128xbf16 --kv-heads=4"
MTP = "--q={b}x12x4x64xf16 --kv-heads=2 --layout=bnhd --causal=bottom-right"
MLA = "--q={b}x16x1x576xbf16 --rope-dim=64 --schedule=mla"
OWN = "--q={b}x64x1x576xbf16 --rope-dim=64 --schedule=mla --set=score=own"
LONG = "--q={b}x8x1x256xbf16 --kv-heads=2"
WIDE = "--q={b}x8x1x512xbf16 --kv-heads=1"
CHUNK = "--q={b}x8x128x128xbf16 --kv-heads=2 --causal=bottom-right"
OUT8, GROUPS = "--out-type=f8E4M3FN --out-scale=100", "--out-type=f8E4M3FN --out-group=128"
ROWS = "--kv-type=f8E4M3FN --scale-group=128 --schedule=decode"
WIDENED = "--kv-type=f8E4M3FN"
#: Flags of attn-compile by name. Those of `own` scores are for sm_90a only.
CASES = {
    "runs-p1": f"{GQA} --page-size=1 --run-keys=256",
    "runs-p16": f"{GQA} --page-size=16 --run-keys=256",
    "runs-p64": f"{GQA} --page-size=64 --run-keys=128",
    "runs-kernel-p16": f"{GQA} --page-size=16 --run-keys=256 --set=combine=kernel",
    "runs-launch-p16": f"{GQA} --page-size=16 --run-keys=256 --set=combine=launch",
    "runs-mtp-p16": f"{MTP} --page-size=16 --run-keys=192",
    "selected-p1": f"{GQA} --page-size=1 --selected",
    "selected-p16": f"{GQA} --page-size=16 --selected",
    "selected-p64": f"{GQA} --page-size=64 --selected --kv-splits=3",
    "selected-runs-p1": f"{GQA} --page-size=1 --selected --run-keys=128",
    "init-p1": f"{GQA} --page-size=1 --init-state --sinks",
    "init-p16": f"{MTP} --page-size=16 --init-state",
    "init-split-p64": f"{GQA} --page-size=64 --init-state --kv-splits=4 --set=combine=launch",
    "all-p1": f"{GQA} --page-size=1 --selected --run-keys=128 --init-state --sinks",
    "all-p16": f"{GQA} --page-size=16 --selected --run-keys=128 --init-state",
    "mla-runs-p1": f"{MLA} --page-size=1 --run-keys=256",
    "mla-runs-p16": f"{MLA} --page-size=16 --run-keys=128",
    "mla-runs-p64": f"{MLA} --page-size=64 --run-keys=256",
    "mla-selected-p1": f"{MLA} --page-size=1 --selected",
    "mla-selected-p16": f"{MLA} --page-size=16 --selected --run-keys=256",
    "mla-init-p16": f"{MLA} --page-size=16 --init-state",
    "mla-init-split-p64": f"{MLA} --page-size=64 --init-state --kv-splits=3"
    " --set=combine=launch,softmax=exact",
    "mla-all-p1": f"{MLA} --page-size=1 --selected --run-keys=128 --init-state",
    "out-p1": f"{GQA} --page-size=1 {OUT8}",
    "out-p16": f"{MTP} --page-size=16 {OUT8} --init-state --sinks",
    "out-split-p16": f"{GQA} --page-size=16 {OUT8} --kv-splits=4 --set=combine=kernel",
    "out-launch-p64": f"{GQA} --page-size=64 {OUT8} --kv-splits=4 --set=combine=launch",
    "out-e5m2-p16": f"{GQA} --page-size=16 --out-type=f8E5M2 --out-scale=64",
    "out-split_q-p64": f"{GQA} --page-size=64 {OUT8} --schedule=split_q",
    "out-wgmma-p64": f"{CHUNK} --page-size=64 {OUT8} --schedule=ws_wgmma",
    "groups-p1": f"{GQA} --page-size=1 {GROUPS}",
    "groups-p16": f"{LONG} --page-size=16 {GROUPS} --sinks",
    "groups-split_q-p16": f"{GQA} --page-size=16 {GROUPS} --schedule=split_q",
    "groups-wgmma-p16": f"{CHUNK} --page-size=16 {GROUPS} --schedule=ws_wgmma",
    "groups-split-p16": f"{GQA} --page-size=16 {GROUPS} --kv-splits=4 --set=combine=kernel",
    "groups-launch-p64": f"{GQA} --page-size=64 {GROUPS} --kv-splits=4 --set=combine=launch",
    "groups-runs-p16": f"{MTP} --page-size=16 --out-type=f8E5M2 --out-group=32 --run-keys=192",
    "mla-groups-p16": f"{MLA} --page-size=16 {GROUPS}",
    "mla-out-p16": f"{MLA} --page-size=16 {OUT8}",
    "mla-apart-p1": f"{MLA} --page-size=1 --rope-apart",
    "mla-apart-p16": f"{MLA} --page-size=16 --rope-apart --init-state --sinks",
    "mla-apart-runs-p64": f"{MLA} --page-size=64 --rope-apart --run-keys=256",
    "mla-apart-narrow-p16": f"{MLA} --page-size=16 --rope-apart --kv-type=f8E4M3FN --scale-group=128",
    "d512-p1": f"{WIDE} --page-size=1 --schedule=decode",
    "d512-p16": f"{WIDE} --page-size=16 --schedule=decode --init-state --sinks",
    "d512-split-p64": f"{WIDE} --page-size=64 --schedule=decode --kv-splits=3",
    "d512-runs-p16": f"{WIDE} --page-size=16 --schedule=decode --run-keys=128",
    "d512-groups-p16": f"{WIDE} --page-size=16 --schedule=decode {GROUPS}",
    "scales-p1": f"{LONG} --page-size=1 {ROWS}",
    "scales-p16": f"{LONG} --page-size=16 {ROWS} --kv-splits=2",
    "own-out-p64": f"{OWN} --page-size=64 {OUT8}",
    "own-groups-p64": f"{OWN} --page-size=64 {GROUPS}",
    "own-apart-p1": f"{OWN} --page-size=1 --rope-apart",
    "own-apart-p16": f"{OWN} --page-size=16 --rope-apart",
    "own-apart-runs-p64": f"{OWN} --page-size=64 --rope-apart --run-keys=256",
    "own-p64": f"{OWN} --page-size=64",
    "own-runs-p16": f"{OWN} --page-size=16 --run-keys=256",
    "own-runs-p64": f"{OWN} --page-size=64 --run-keys=128",
    "own-widened-p1": f"{OWN} --page-size=1 {WIDENED}",
    "own-widened-runs-p16": f"{OWN} --page-size=16 {WIDENED} --run-keys=128",
    "own-widened-p64": f"{OWN} --page-size=64 {WIDENED}",
    "own-widened-out-p64": f"{OWN} --page-size=64 {WIDENED} {OUT8}",
    "own-selected-p1": f"{OWN} --page-size=1 --selected",
    "own-selected-p16": f"{OWN} --page-size=16 --selected --run-keys=128",
}
#: Tensors with something for each row of keys, and those that are written.
OF_KEYS = ("k", "v", "k_rope", "k_scales", "v_scales")
OUTPUTS = ("o", "lse", "o_scales")
#: Cases under the tools of compute-sanitizer, with what the tool may look at.
SANITIZED = {
    "all-p1.sm_90a": ("memcheck", "racecheck", "initcheck"),
    "mla-all-p1.sm_80": ("memcheck", "racecheck", "initcheck"),
    "own-selected-p16.sm_90a": ("memcheck", "racecheck"),
    "own-widened-runs-p16.sm_90a": ("memcheck", "racecheck"),
}
#: Sequences of a batch, the most keys of one, and those that the kernels for one
#: sequence have room for.
BATCH, KEYS, ALONE_KEYS = 8, 1024, 1536
#: Largest relative error of o by the type of q, and absolute one of lse.
TOLERANCES = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 2e-3, "f8E4M3FN": 8e-2, "f8E5M2": 1.6e-1}
#: Largest numbers of types of 8 bits, and how far off scales of outputs may be.
LARGEST = {"f8E4M3FN": 448.0, "f8E5M2": 57344.0}
SCALE_TOLERANCE = 3e-2
LSE_TOLERANCE = 1e-3


def make(options: argparse.Namespace) -> int:
    """Compiles the bundles."""
    options.folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for chip, assembled in (("sm_90a", "sm_90a"), ("sm_80", "sm_90")):
        for name, words in CASES.items():
            is_new = name.startswith("own") or "wgmma" in name
            if not re.search(options.filter, name) or (chip == "sm_80" and is_new):
                continue
            batches = {"": [KEYS] * BATCH}
            if "--run-keys" in words:
                batches[".alone"] = [ALONE_KEYS]
            for end, lengths in batches.items():
                path = options.folder / f"{name}.{chip}{end}.attn"
                command = [options.bin / "attn-compile", *words.format(b=len(lengths)).split()]
                command += ["--kv-lengths=" + ",".join(map(str, lengths)), f"--chip={chip}"]
                command += ["-o", "/dev/null", f"--bundle={path}", f"--bundle-chips={assembled}"]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                print(path.name, done.stderr.strip() or "made", flush=True)
                failed += done.returncode != 0
    return int(failed != 0)


@dataclasses.dataclass
class Sequence:
    """What belongs to one sequence of a batch, as bits."""

    #: By the names of tensors: of queries (head, query, column), of keys, values and what
    #: belongs to their rows (key, head, column).
    rows: dict[str, numpy.ndarray]
    length: int
    #: Pages of the keys that the table selects.
    seen: numpy.ndarray
    #: The state to go on from, (head, query, column) and (head, query), if any.
    init_o: numpy.ndarray | None
    init_lse: numpy.ndarray | None


class Problem:
    """What a bundle computes, and in which tensors."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.tensors = {tensor["name"]: tensor for tensor in record["tensors"]}
        self.facts = record["problem"]
        self.dtype = self.tensors["q"]["dtype"]
        self.batch = self.get_shape("q")[0]
        self.pages, self.kv_heads, self.page, _ = self.get_shape("k")
        self.capacity = self.get_shape("page_table")[1] * self.page
        #: Tensors with rows of queries, and of keys.
        self.of_queries = [name for name in ("q", "q_rope") if name in self.tensors]
        self.of_keys = [name for name in OF_KEYS if name in self.tensors]

    def get_type(self, name: str) -> str:
        return str(self.tensors[name]["dtype"])

    def decode(self, name: str, bits: numpy.ndarray) -> numpy.ndarray:
        return gpu_inputs.decode(bits, self.get_type(name))

    def get_shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.tensors[name]["shape"])

    def draw_lengths(self, random: numpy.random.Generator) -> list[int]:
        ends = [0, 1, self.capacity, self.page, self.page + 1, self.capacity - 1]
        others = numpy.exp(random.random(self.batch) * math.log(self.capacity)).astype(int)
        lengths = [*ends[: self.batch // 2], *others.tolist()][: self.batch]
        return [int(each) for each in random.permutation(lengths)]

    def draw(self, length: int, random: numpy.random.Generator) -> Sequence:
        def bits(name: str, *shape: int) -> numpy.ndarray:
            if name.endswith("_scales"):
                values = random.random(shape, numpy.float32) * 1.5 + 0.5
            else:
                values = random.standard_normal(shape, numpy.float32)
            return gpu_inputs.encode(values, self.get_type(name))

        _, *rows, _ = self.get_shape("q")
        pages = -(-length // self.page)
        seen = numpy.ones(pages, bool)
        if self.facts["selected"]:
            seen = random.random(pages) < random.choice([0.0, 0.5, 0.9])
        state = [None, None]
        if self.facts["init_state"]:
            o = bits("init_o", *rows, self.get_shape("o")[3])
            lse = random.standard_normal(rows, numpy.float32) + numpy.float32(math.log(length + 1))
            # Rows that have no state may hold anything.
            absent = random.random(rows) < 0.3
            lse[absent] = -math.inf
            o[absent] = gpu_inputs.encode(
                numpy.float32([math.nan]), self.tensors["init_o"]["dtype"]
            )
            state = [o, lse.view(numpy.uint32)]
        drawn = {name: bits(name, *rows, self.get_shape(name)[3]) for name in self.of_queries}
        for name in self.of_keys:
            drawn[name] = bits(name, length, self.kv_heads, self.get_shape(name)[3])
        return Sequence(drawn, length, seen, *state)

    def fill(
        self, batch: list[Sequence], sinks: numpy.ndarray | None, random: numpy.random.Generator
    ) -> dict[str, numpy.ndarray]:
        """The bits of all inputs, with the sequences' pages anywhere in the pool."""
        inputs = {}
        for name in self.of_keys:
            nan = gpu_inputs.encode(numpy.float32([math.nan]), self.get_type(name))
            inputs[name] = numpy.tile(nan, self.get_shape(name))
        free = random.permutation(self.pages)
        nowhere = numpy.array([-1, self.pages, self.pages + 7, -(2**31), 2**31 - 1])
        table = random.choice(nowhere, self.get_shape("page_table"))
        used = 0
        for row, each in enumerate(batch):
            for index in numpy.flatnonzero(each.seen):
                number = table[row, index] = free[used]
                used += 1
                start = index * self.page
                for name, pool in inputs.items():
                    piece = each.rows[name][start : start + self.page]
                    pool[number, :, : len(piece)] = piece.transpose(1, 0, 2)
        inputs["page_table"] = table.astype(numpy.int32)
        inputs["kv_lengths"] = numpy.array([each.length for each in batch], numpy.int32)
        for name in self.of_queries:
            inputs[name] = numpy.stack([each.rows[name] for each in batch])
        for name in ("init_o", "init_lse"):
            if name in self.tensors:
                inputs[name] = numpy.stack([getattr(each, name) for each in batch])
        if sinks is not None:
            inputs["sinks"] = sinks
        return inputs

    def attend(
        self, each: Sequence, sinks: numpy.ndarray | None
    ) -> tuple[numpy.ndarray, numpy.ndarray]:
        """o and lse of a sequence in float64."""
        wide = {name: self.decode(name, bits) for name, bits in each.rows.items()}
        for name in "kv":
            if f"{name}_scales" in wide:
                groups = wide[name].shape[2] // wide[f"{name}_scales"].shape[2]
                wide[name] = wide[name] * wide[f"{name}_scales"].repeat(groups, axis=2)
        length, width = each.length, self.get_shape("o")[3]
        v = wide["v"] if "v" in wide else wide["k"][..., :width]
        q, k = (
            numpy.concatenate([wide[n] for n in (name, f"{name}_rope") if n in wide], axis=2)
            for name in "qk"
        )
        heads, queries, columns = q.shape
        # Rows that share keys lie side by side.
        k, v = k.transpose(1, 0, 2), v.transpose(1, 0, 2)
        scores = q.reshape(self.kv_heads, -1, columns) @ k.swapaxes(1, 2)
        scores = scores.reshape(heads, queries, length) * self.facts["scale"]
        keys = numpy.arange(length)
        seen = numpy.repeat(each.seen, self.page)[:length] & numpy.ones((queries, 1), bool)
        if self.facts["mask"]["kind"] == "causal":
            seen &= keys <= numpy.arange(queries)[:, None] + length - queries
        scores = numpy.where(seen, scores, -math.inf)
        # Two more columns stand for what there is beside the keys.
        rest = numpy.full((heads, queries, 2), -math.inf)
        start = numpy.zeros((heads, queries, width))
        if each.init_o is not None and each.init_lse is not None:
            rest[..., 0] = each.init_lse.view(numpy.float32)
            state = self.decode("init_o", each.init_o)
            start = numpy.where(numpy.isinf(rest[..., :1]), 0.0, state)
        if sinks is not None:
            rest[..., 1] = sinks.view(numpy.float32)[:, None]
        logits = numpy.concatenate([scores, rest], axis=2)
        top = logits.max(axis=2, keepdims=True)
        weights = numpy.exp(logits - numpy.where(numpy.isinf(top), 0.0, top))
        total = weights.sum(axis=2, keepdims=True)
        shape = (self.kv_heads, heads * queries // self.kv_heads, length)
        sums = weights[..., :length].reshape(shape) @ v
        o = sums.reshape(start.shape) + weights[..., length, None] * start
        with numpy.errstate(divide="ignore"):
            lse = (numpy.log(total) + numpy.where(numpy.isinf(top), 0.0, top))[..., 0]
        return o / numpy.where(total == 0, 1.0, total), lse

    def read_output(self, got: dict[str, numpy.ndarray]) -> numpy.ndarray:
        """What the numbers of o stand for."""
        o = self.decode("o", got["o"])
        if "o_scales" in got:
            scales = self.decode("o_scales", got["o_scales"])
            return o * scales.repeat(o.shape[3] // scales.shape[3], axis=3)
        return o / (self.facts.get("out_scale") or 1.0)

    def are_scales_right(self, got: dict[str, numpy.ndarray], expected: numpy.ndarray) -> bool:
        """Whether each is the largest magnitude of its columns by that of the type."""
        if "o_scales" not in got:
            return True
        scales = self.decode("o_scales", got["o_scales"])
        most = abs(expected.reshape(*scales.shape, -1)).max(axis=4)
        want = numpy.where(most == 0, 1.0, most / LARGEST[self.get_type("o")])
        return bool((abs(scales - want) <= SCALE_TOLERANCE * want).all())


class Memory:
    """A workspace of exactly its size: counters are zeros, all else is NaN, or, for
    tools that look for what nobody wrote, as the driver gives it."""

    def __init__(self, size: int, zeroed: bool, bare: bool) -> None:
        address = ctypes.c_uint64()
        count = ctypes.c_size_t(max(size, 4))
        gpu_inputs._call("cuMemAlloc_v2", ctypes.byref(address), count)
        self.address, self.size = address.value, size
        if zeroed or not bare:
            value = ctypes.c_ubyte(0 if zeroed else 0xFF)
            gpu_inputs._call("cuMemsetD8_v2", ctypes.c_uint64(self.address), value, count)

    def is_zero(self) -> bool:
        host = numpy.ones(max(self.size, 4), numpy.uint8)
        pointer = ctypes.c_void_p(host.ctypes.data)
        count = ctypes.c_size_t(host.nbytes)
        gpu_inputs._call("cuMemcpyDtoH_v2", pointer, ctypes.c_uint64(self.address), count)
        return not host.any()

    def free(self) -> None:
        gpu_inputs._call("cuMemFree_v2", ctypes.c_uint64(self.address))


class Gpu:
    """Runs bundles on device 0."""

    def __init__(self, bare: bool) -> None:
        self.bare = bare
        self.kernels: dict[pathlib.Path, attn.runtime.LoadedKernel] = {}

    def run(
        self, path: pathlib.Path, inputs: dict[str, numpy.ndarray]
    ) -> tuple[dict[str, numpy.ndarray], list[str]]:
        """The bits of all outputs, and what is wrong beside them. Launched twice on the
        same workspaces, so that the second launch finds what the first one left."""
        if path not in self.kernels:
            self.kernels[path] = attn.runtime.load(path)
        kernel = self.kernels[path]
        tensors = {
            each["name"]: gpu_inputs.DeviceTensor(each, inputs.get(each["name"]))
            for each in kernel.launch_record["tensors"]
        }
        prepared = kernel.prepare({name: each.view() for name, each in tensors.items()})
        described = kernel.binder.workspaces
        memory = [
            Memory(size, each.zeroed, self.bare)
            for size, each in zip(prepared.workspace_bytes, described, strict=True)
        ]
        results, wrong = [], []
        for _ in range(2):
            for index, each in enumerate(described):
                if each.zeroed and not each.restored:
                    memory[index].free()
                    memory[index] = Memory(memory[index].size, True, self.bare)
            places = [each.address for each in memory]
            prepared([each.address for each in tensors.values()], 0, places)
            gpu_inputs.synchronize()
            results.append({n: tensors[n].fetch() for n in OUTPUTS if n in tensors})
        if any(not numpy.array_equal(results[0][n], results[1][n]) for n in results[0]):
            wrong.append("second launch differs")
        if not all(m.is_zero() for m, each in zip(memory, described, strict=True) if each.restored):
            wrong.append("counters not zero")
        if not all(tensors[name].are_gaps_untouched() for name in results[0]):
            wrong.append("gaps written")
        for each in (*tensors.values(), *memory):
            each.free()
        return results[1], wrong


class Simulator:
    """Runs bundles with attn-sim."""

    def __init__(self, binaries: pathlib.Path) -> None:
        self.binaries = binaries

    def run(
        self, path: pathlib.Path, inputs: dict[str, numpy.ndarray]
    ) -> tuple[dict[str, numpy.ndarray], list[str]]:
        contents = bundle.read(path)
        types = {each["name"]: each["dtype"] for each in contents.launch["tensors"]}
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "launch.json").write_text(json.dumps(contents.launch), encoding="utf-8")
            ptx = next(image.data for image in contents.images if image.kind == "ptx")
            (root / "kernel.ptx").write_bytes(ptx.rstrip(b"\0"))
            command = [
                self.binaries / "attn-sim",
                root / "kernel.ptx",
                f"--launch={root}/launch.json",
            ]
            for name, bits in inputs.items():
                gpu_inputs.save_npy(f"{root}/{name}.npy", bits, types[name])
                command.append(f"--in={name}={root}/{name}.npy")
            outputs = [name for name in OUTPUTS if name in types]
            command += [f"--out={name}={root}/{name}.npy" for name in outputs]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                return {}, [(done.stderr + done.stdout).strip()]
            got = {n: gpu_inputs.load_npy(f"{root}/{n}.npy", types[n]) for n in outputs}
        return got, []


def check(path: pathlib.Path, device: Gpu | Simulator, rounds: int, seed: int) -> bool:
    """All rounds of a bundle; a line of the table."""
    start = time.monotonic()
    problem = Problem(bundle.read(path).launch)
    alone = path.with_name(path.stem + ".alone.attn")
    lone = Problem(bundle.read(alone).launch) if alone.exists() else None
    random = numpy.random.default_rng(seed)
    worst, worst_lse, same, wrong = 0.0, 0.0, 0, set()
    for _ in range(rounds):
        lengths = problem.draw_lengths(random)
        batch = [problem.draw(length, random) for length in lengths]
        sinks = None
        if problem.facts["sinks"]:
            heads = problem.facts["heads"]
            sinks = gpu_inputs.encode(random.standard_normal(heads, numpy.float32), "f32")
        got, faults = device.run(path, problem.fill(batch, sinks, random))
        wrong.update(faults)
        if not got:
            break
        o = problem.read_output(got)
        want = [problem.attend(each, sinks) for each in batch]
        expected, logs = (numpy.stack(each) for each in zip(*want, strict=True))
        norm = numpy.linalg.norm(expected)
        error = float(numpy.linalg.norm(o - expected) / norm) if norm else float(abs(o).max())
        # The largest distances count where norms would hide a row.
        distance = abs(o - expected).max() / max(1.0, abs(expected).max())
        worst = max(worst, math.inf if math.isnan(error) else error, float(distance))
        if not problem.are_scales_right(got, expected):
            wrong.add("scales of the output")
        lse = got["lse"].view(numpy.float32).astype(numpy.float64)
        if numpy.isnan(lse).any() or not numpy.array_equal(numpy.isinf(lse), numpy.isinf(logs)):
            wrong.add("lse not finite where it should be, or the reverse")
        finite = numpy.isfinite(lse) & numpy.isfinite(logs)
        if finite.any():
            worst_lse = max(worst_lse, float(abs(lse[finite] - logs[finite]).max()))
        for row in random.permutation(len(batch))[: 3 if lone else 0]:
            assert lone
            single, faults = device.run(alone, lone.fill([batch[row]], sinks, random))
            wrong.update(f"alone: {each}" for each in faults)
            if any(not numpy.array_equal(single[n][0], got[n][row]) for n in single):
                wrong.add(f"{batch[row].length} keys have other bits alone")
            same += 1
    tolerance = max(TOLERANCES[problem.dtype], TOLERANCES[problem.get_type("o")])
    if worst > tolerance or worst_lse > LSE_TOLERANCE:
        wrong.add("not accurate")
    print(
        f"{path.stem:28} {rounds} batches  O {worst:.2e}  LSE {worst_lse:.2e}  "
        f"{f'{same:2} alone' if lone else '        '}  {time.monotonic() - start:4.1f} s  "
        f"{'; '.join(sorted(wrong)).upper()[:400] or 'right'}",
        flush=True,
    )
    return not wrong


def run(options: argparse.Namespace) -> int:
    """Runs the bundles and compares."""
    paths = [
        path
        for path in sorted(options.folder.glob("*.attn"))
        if re.search(options.filter, path.stem) and not path.stem.endswith(".alone")
    ]

    def check_all(device: Gpu | Simulator) -> list[bool]:
        return [check(path, device, options.rounds, options.seed) for path in paths]

    if options.simulate:
        good = check_all(Simulator(options.bin))
    else:
        with cuda_driver.get_device(0):
            good = check_all(Gpu(options.bare))
    print(f"{sum(good)} right, {len(good) - sum(good)} wrong")
    return int(not good or not all(good))


def sanitize(options: argparse.Namespace) -> int:
    """Runs some bundles under the tools of compute-sanitizer, all tools at once."""
    tool = options.sanitizer or shutil.which("compute-sanitizer")
    if not tool:
        print("compute-sanitizer not found, give --sanitizer", file=sys.stderr)
        return 2
    processes = {}
    for name in ("memcheck", "racecheck", "initcheck"):
        cases = [case for case, tools in SANITIZED.items() if name in tools]
        pattern = "^(" + "|".join(map(re.escape, cases)) + ")$"
        command = [tool, f"--tool={name}", "--error-exitcode=9", "--report-api-errors=no"]
        command += [sys.executable, __file__, "run", str(options.folder), "--bare", "--rounds=1"]
        command += [f"--filter={pattern}", f"--seed={options.seed + 1}"]
        processes[name] = (
            len(cases),
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True),
        )
    failed = 0
    for name, (count, process) in processes.items():
        text, _ = process.communicate()
        good = process.returncode == 0 and f"{count} right, 0 wrong" in text
        failed += not good
        summary = re.findall(r"^=+ (.*SUMMARY.*)$", text, re.MULTILINE)
        print(f"{name:10} {count} bundles, {'; '.join(summary) or 'no summary'}", flush=True)
        print("\n".join(line for line in text.splitlines() if not line.startswith("==")))
        if not good:
            print(text[:3000])
    return int(failed != 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    commands = parser.add_subparsers(required=True)
    for command in (make, run, sanitize):
        part = commands.add_parser(command.__name__, help=command.__doc__)
        part.set_defaults(command=command)
        part.add_argument("folder", type=pathlib.Path)
        part.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
        part.add_argument("--seed", type=int, default=0)
        part.add_argument("--filter", default="", metavar="REGEX")
        if command is run:
            part.add_argument("--rounds", type=int, default=4)
            part.add_argument(
                "--simulate", action="store_true", help="with attn-sim, without a GPU"
            )
            part.add_argument(
                "--bare", action="store_true", help="workspaces as the driver gives them"
            )
        if command is sanitize:
            part.add_argument("--sanitizer", help="path of compute-sanitizer")
    options = parser.parse_args()
    status: int = options.command(options)
    return status


if __name__ == "__main__":
    sys.exit(main())
