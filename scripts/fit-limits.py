#!/usr/bin/env python3
"""Asks ptxas about each limit of the register model, and writes what it said.

A limit (include/attn/Planner/Facts/RegisterLimits.def) is where code changes for lack of
registers: the most columns of a kind of kernels, or the registers of a role of warps. Here
each has probes, kernels that it decides about. They are compiled with the limit as it is and
one step beyond, and assembled; spill instructions count in loops over blocks of keys, in any
role of warps, as everywhere. Where kernels spill with the limit as it is, steps back are
tried until none does, and where that does not help the limit stays; with --raise steps beyond
are taken as long as none does.

The data file gets the values, and for each limit `seen`: how many kernels were assembled,
how many of them spill with the value, and how many one step beyond it. Limits without probes
keep null there: what they say is no matter of spills.

usage: scripts/fit-limits.py [--only=REGEX] [--raise] [--write] [--bin=build/bin]
           [--workers=2] [--data=lib/Planner/Data/registers-13.0.json]
A probe takes about 2 s of a core. It needs ptxas, and nvdisasm for the places of spills.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

from tool_util import add_nvdisasm, find_ptxas

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: The most steps that are taken from where a limit is.
MOST_STEPS = 4


class Probes(NamedTuple):
    """Kernels about which a limit decides."""

    #: What is added to the limit so that kernels have fewer registers to spare.
    step: int
    #: Flags for all, and those of each kernel.
    common: str
    each: tuple[str, ...]


SERVED = "--kv-heads=8 --kv-len=4096 --kv-lengths=4096,100,17,0"
PAGES = f"{SERVED} --page-size=16"
DECODE = f"--chip=sm_80 --schedule=decode {SERVED}"
WGMMA = "--chip=sm_90a --schedule=ws_wgmma"
LATENT = "--rope-dim=64 --kv-len=4096 --kv-lengths=4096,100,17,0 --page-size=64 --chip=sm_90a --schedule=mla --set=score=own"


def dims(pattern: str, *columns: int) -> tuple[str, ...]:
    return tuple(pattern.replace("D", str(each)) for each in columns)


PROBES = {
    "copied.converted_registers": Probes(-16, "--chip=sm_110", (*dims("--q=1x8x2048xDxf8E4M3FN --causal", 64, 128, 256), "--q=4x32x1x128xf8E4M3FN --kv-heads=8 --kv-len=4096")),
    "copied.narrow_results": Probes(32, "--chip=sm_80 --schedule=tiled_d --set=accumulate_o=f16", dims("--q=1x8x2048xDxf16 --causal", 384, 512, 768)),
    "copied.open_columns": Probes(16, DECODE, dims("--q=4x32x1xDxbf16", 208, 224, 240)),
    "copied.open_registers": Probes(8, DECODE, dims("--q=4x32x1xDxbf16", 208, 224, 240, 256)),
    "copied.open_scaled_columns": Probes(16, f"{DECODE} --kv-type=f8E4M3FN --scale-group=32", dims("--q=4x32x1xDxbf16", 512)),
    "copied.renewed_registers": Probes(8, "--chip=sm_80 --schedule=split_q", dims("--q=1x8x2048xDxbf16 --causal", 64, 96, 160, 256)),
    "decode.columns": Probes(16, DECODE, dims("--q=4x32x1xDxbf16", 208, 224)),
    "decode.held_columns": Probes(32, f"{DECODE} --kv-type=f8E4M3FN --descales", dims("--q=4x32x1xDxbf16", 416, 448)),
    "decode.held_scaled_columns": Probes(16, f"{DECODE} --kv-type=f8E4M3FN --scale-group=16", dims("--q=4x32x1xDxbf16", 304, 320)),
    "decode.narrow_columns": Probes(16, f"{DECODE} --kv-type=f8E4M3FN --descales", dims("--q=4x32x1xDxbf16", 192, 208)),
    "mla.held_load_registers": Probes(-8, f"{LATENT} --set=q_in_regs=true", dims("--q=4xDx1x576xbf16", 64, 128)),
    "mla.load_registers": Probes(-8, LATENT, dims("--q=4xDx1x576xbf16", 16, 64, 128)),
    "mla.results_registers": Probes(-8, LATENT, dims("--q=4xDx1x576xbf16", 16, 64, 128)),
    "mla.simple_load_registers": Probes(-8, f"{LATENT} --kv-type=f8E4M3FN", dims("--q=4xDx1x576xbf16", 64, 128)),
    "mla.widened_load_registers": Probes(-8, f"{LATENT.replace('size=64', 'size=16')} --kv-type=f8E4M3FN", dims("--q=4xDx1x576xbf16", 64, 128)),
    "mla.widened_scores_registers": Probes(-8, f"{LATENT} --kv-type=f8E4M3FN", dims("--q=4xDx1x576xbf16", 64, 128)),
    "split_q.held_scaled_columns": Probes(32, "--chip=sm_80 --schedule=split_q --kv-type=f8E4M3FN --scale-group=32 --kv-heads=2", dims("--q=1x8x2048xDxbf16", 224, 256)),
    "ws_columns.loader_registers": Probes(-8, "--chip=sm_90a --schedule=ws_columns", dims("--q=1x8x2048xDxbf16 --causal", 320, 512, 1024)),
    "ws_columns.other_columns": Probes(64, "--chip=sm_90a --schedule=ws_columns --set=softmax_columns=64", dims("--q=1x8x2048xDxbf16 --causal", 384, 448)),
    "ws_pair.loader_registers": Probes(-8, "--chip=sm_90a --schedule=ws_pair", dims("--q=1x8x2048xDxbf16 --causal", 384, 512)),
    "ws_tmem.bet_keys": Probes(16, "--chip=sm_100a --schedule=ws_tmem --set=softmax=optimistic", dims("--q=1x8x2048xDxbf16 --causal", 128)),
    "ws_tmem.bet_keys_beside": Probes(16, "--chip=sm_100a --schedule=ws_tmem --set=softmax=optimistic", dims("--q=1x8x2048xDxbf16 --causal", 64, 96)),
    "ws_tmem.half_results_registers": Probes(-8, "--schedule=ws_tmem --set=tiles=1,pair=true,value_ctas=1,p_parts=false,block_n=256 --rope-dim=64 --kv-len=8192", tuple(f"--chip={chip} --q=2x{heads}x1x576xbf16 {keys}" for chip in ("sm_100a", "sm_103a") for heads in (64, 128) for keys in ("--no-split-keys", "--kv-splits=2", "--page-size=64 --kv-lengths=8192,100"))),
    "ws_tmem.loader_columns": Probes(16, "--chip=sm_100a --schedule=ws_tmem", dims("--q=1x8x2048xDxbf16 --dv=128 --causal", 128, 144, 160)),
    "ws_tmem.loader_registers": Probes(-8, "--chip=sm_100a --schedule=ws_tmem", dims("--q=1x8x2048xDxbf16", 64, 96, 128)),
    "ws_tmem.lone_loader_registers": Probes(-8, "--chip=sm_100a --schedule=ws_tmem", dims("--q=1x8x2048xDxbf16 --causal", 192, 256)),
    "ws_tmem.own_loader_registers": Probes(-8, "--chip=sm_100a --schedule=ws_tmem", dims("--q=1x8x2048xDxbf16 --causal", 64, 128) + dims("--q=1x8x2048xDxbf16 --causal=bottom-right --kv-lengths=2048", 72, 96, 128) + dims("--q=1x8x2048xDxbf16 --causal=bottom-right --kv-lengths=2048 --page-size=64", 64, 128)),
    "ws_tmem.pair_registers": Probes(-8, "--chip=sm_100a --schedule=ws_tmem --set=pair=true", dims("--q=1x8x2048xDxbf16 --causal", 128, 256)),
    "ws_tmem.results_registers": Probes(-8, "--chip=sm_100a --schedule=ws_tmem", dims("--q=1x8x2048xDxbf16 --causal", 192, 256)),
    "ws_tmem.wide_loader_registers": Probes(-8, "--chip=sm_100a --schedule=ws_tmem", dims("--q=1x8x2048xDxbf16 --dv=128 --causal", 160, 192)),
    "ws_wgmma.boxes": Probes(1, WGMMA, dims("--q=1x8x2048xDxbf16 --window=500,20", 112, 240)),
    "ws_wgmma.boxes_registers": Probes(-8, WGMMA, (*dims("--q=1x8x2048xDxbf16 --window=500,20", 240, 352), f"--q=4x32x256x256xbf16 {PAGES}")),
    "ws_wgmma.paged_columns": Probes(32, f"{WGMMA} {PAGES}", dims("--q=4x32x256xDxbf16 --causal=bottom-right", 128, 160)),
    "ws_wgmma.rescored_columns_of_three": Probes(64, f"{WGMMA} --set=block_m=192 --set=block_n=80 --set=softmax=optimistic --set=pv_behind=false", dims("--q=1x8x2048xDxbf16", 64, 128)),
    "ws_wgmma.scaled_columns": Probes(16, f"{WGMMA} --kv-type=f8E4M3FN --scale-group=D --kv-heads=2", tuple(f"--q=1x8x2048x{d}xbf16 --scale-group={d}" for d in (224, 240))),
    "ws_wgmma.transposer_registers": Probes(-8, WGMMA, dims("--q=1x8x2048xDxf8E4M3FN", 64, 128, 256)),
    "ws_wgmma.whole_columns": Probes(16, WGMMA, dims("--q=1x8x2048xDxbf16 --causal", 384, 400)),
    "ws_wgmma.whole_columns_f32": Probes(16, f"{WGMMA} --out-type=f32", dims("--q=1x8x2048xDxbf16 --causal", 352, 368, 384)),
    "ws_wgmma.wide_boxes": Probes(1, WGMMA, dims("--q=1x8x2048xDxbf16 --window=500,20", 288, 352)),
    "ws_wgmma.widened_ahead_columns": Probes(16, f"{WGMMA} --kv-type=f8E4M3FN --descales --kv-heads=2", dims("--q=1x8x2048xDxbf16", 192, 208)),
    "ws_wgmma.widened_columns": Probes(-16, f"{WGMMA} --kv-type=f8E4M3FN --descales --kv-heads=2", dims("--q=1x8x2048xDxbf16 --window=500,20", 80, 96)),
    "ws_wgmma.widener_registers": Probes(-8, f"{WGMMA} --kv-type=f8E4M3FN --descales --kv-heads=2", dims("--q=1x8x2048xDxbf16", 64, 128, 256)),
}  # fmt: skip


def name_files(folder: pathlib.Path, name: str, value: int, number: int) -> tuple[pathlib.Path, pathlib.Path]:
    """The model and the PTX of a probe. Several are compiled at once, each with files of its own."""
    stem = f"{name}-{value}-{number}"
    return folder / f"{stem}.json", folder / f"{stem}.ptx"


class Asker:
    """Compiles and assembles probes with the data file as it is changed."""

    def __init__(self, folder: pathlib.Path, scratch: pathlib.Path) -> None:
        self.folder, self.scratch, self.ptxas = folder, scratch, find_ptxas()
        if self.ptxas is None or not add_nvdisasm():
            raise SystemExit("expected ptxas and nvdisasm on the PATH, got none")

    def spills(self, data: dict, name: str, value: int, flags: str, number: int) -> bool | None:
        """True if the probe spills in a loop over blocks; nothing where no plan is legal."""
        changed = dict(data)
        changed["limits"] = [row | {"value": value} if row["name"] == name else row for row in data["limits"]]
        model, ptx = name_files(self.scratch, name, value, number)
        model.write_text(json.dumps(changed), encoding="utf-8")
        return self.spills_with(f"{flags} --register-model={model}", ptx)

    def spills_with(self, flags: str, ptx: pathlib.Path) -> bool | None:
        """The same of the kernels that flags ask for, whose code is stored as `ptx`."""
        done = subprocess.run(
            [self.folder / "attn-compile", *flags.split(), "--set=spills=allow", "--no-shipped-plans", "-o", ptx],
            capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode:
            return None
        text = ptx.read_text(encoding="utf-8")
        chip = re.search(r"(?m)^\.target (\w+)", text)[1]
        done = subprocess.run(
            [self.ptxas, f"-arch={chip}", "-v", ptx, "-o", "/dev/null"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            return True  # more registers than a role has: no kernel
        if not re.search(r"[1-9]\d* bytes (stack|spill)", done.stderr):
            return False
        for kernel in re.findall(r"\.entry (\w+)", text):
            said = subprocess.run(
                [self.folder / "attn-lint-sass", ptx, f"--kernel={kernel}", "--json"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            for loop in json.loads(said.stdout)["block_loops"]:
                if loop["spill_stores"] + loop["spill_loads"]:
                    return True
        return False


def count(
    asker: Asker, pool: concurrent.futures.Executor, data: dict, name: str, value: int
) -> tuple[int, int]:
    """How many kernels there are with a value of a limit, and how many of them spill."""
    probes = PROBES[name]
    jobs = [
        pool.submit(asker.spills, data, name, value, f"{probes.common} {flags}", number)
        for number, flags in enumerate(probes.each)
    ]
    said = [job.result() for job in jobs]
    known = [each for each in said if each is not None]
    return len(known), sum(known)


def fit(asker: Asker, pool: concurrent.futures.Executor, data: dict, row: dict, raises: bool) -> None:
    """Finds where a limit is, and what ptxas says there."""
    name, step = row["name"], PROBES[row["name"]].step
    value = row["value"]
    at_first = (kernels, spilled) = count(asker, pool, data, name, value)
    for _ in range(MOST_STEPS):
        if not spilled:
            break
        value -= step
        kernels, spilled = count(asker, pool, data, name, value)
    if spilled:  # for another reason than the limit
        value, (kernels, spilled) = row["value"], at_first
    beyond = count(asker, pool, data, name, value + step)
    for _ in range(MOST_STEPS if raises else 0):
        if beyond[1] or not beyond[0]:
            break
        value, (kernels, spilled) = value + step, beyond
        beyond = count(asker, pool, data, name, value + step)
    row["value"] = value
    if not kernels:  # no plan is legal
        row["seen"] = None
        return
    row["seen"] = {
        "kernels": kernels, "spill": spilled, "beyond": value + step,
        "kernels_beyond": beyond[0], "spill_beyond": beyond[1],
    }  # fmt: skip


def write(path: pathlib.Path, limits: list[dict]) -> None:
    """Stores the limits; the rest of the file stays as it is written."""
    text = path.read_text(encoding="utf-8")
    rows = ",\n".join("  " + json.dumps(row) for row in limits)
    text = re.sub(r'(?s) "limits": \[.*?\n \]', lambda _: f' "limits": [\n{rows}\n ]', text, count=1)
    path.write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--raise", action="store_true", dest="raises")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "lib/Planner/Data/registers-13.0.json")
    options = parser.parse_args()
    data = json.loads(options.data.read_text(encoding="utf-8"))
    named = [row for row in data["limits"] if row["name"] in PROBES and re.search(options.only, row["name"])]
    if not named:
        parser.error(f"expected --only to name a limit with probes, got {options.only!r}")
    with tempfile.TemporaryDirectory(prefix="fit-limits-") as scratch:
        asker = Asker(options.bin, pathlib.Path(scratch))
        with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
            for row in named:
                before = row["value"]
                fit(asker, pool, data, row, options.raises)
                seen = row["seen"]
                if seen is None:
                    print(f"{row['name']}: no probe has a plan", flush=True)
                    continue
                print(
                    f"{row['name']}: {before} -> {row['value']}; {seen['spill']} of {seen['kernels']} kernels "
                    f"spill, {seen['spill_beyond']} of {seen['kernels_beyond']} with {seen['beyond']}",
                    flush=True,
                )
                if options.write:
                    write(options.data, data["limits"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
