#!/usr/bin/env python3
"""What limits the kernels: Nsight Compute's counters for some of the cells.

Takes the folder that gpu-kernels.py made and profiles the first kernel of each
chosen cell, and FlashAttention-2 on the same inputs. Clocks are left alone.

usage: PYTHONPATH=python benchmarks/gpu-profile.py FOLDER
           [--filter='^f16-.*n4096'] [--json=FILE] [--ncu=PATH]
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys

SECTIONS = (
    "SpeedOfLight",
    "ComputeWorkloadAnalysis",
    "MemoryWorkloadAnalysis",
    "SchedulerStats",
    "WarpStateStats",
    "LaunchStats",
    "Occupancy",
)
#: Columns of the table: a metric in base units, and what it is divided by.
COLUMNS = {
    "us": ("gpu__time_duration.sum", 1e3),
    "MHz": ("gpc__cycles_elapsed.avg.per_second", 1e6),
    "tensor%": ("sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active", 1),
    "issue%": ("smsp__issue_active.avg.pct_of_peak_sustained_active", 1),
    "xu%": ("sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active", 1),
    "fma%": ("sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active", 1),
    "alu%": ("sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active", 1),
    "shared%": ("l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed", 1),
    "dram%": ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", 1),
    "regs": ("launch__registers_per_thread", 1),
    "warps": ("sm__warps_active.avg.per_cycle_active", 1),
}
EXTRA = COLUMNS["shared%"][0]
STALL = re.compile(r"^smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio$")


def launch(options: argparse.Namespace) -> None:
    """What runs under ncu: each kernel once cold, then once watched."""
    import gpu_cells
    import gpu_peers
    import gpu_reference
    import torch

    import attn.runtime

    listing = json.loads((options.folder / "kernels.json").read_text(encoding="utf-8"))
    for item in listing["cells"]:
        cell = gpu_cells.from_json(item["cell"])
        if not re.search(options.filter, cell.name):
            continue
        dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[cell.dtype]
        heads = (cell.heads, cell.kv_heads, cell.kv_heads)
        q, k, v = (
            torch.randn(cell.batch, h, cell.rows, cell.d, dtype=dtype, device="cuda") for h in heads
        )
        o = torch.empty_like(q)
        lse = torch.empty(q.shape[:3], dtype=torch.float32, device="cuda")
        kernel = attn.runtime.load(options.folder / item["kernels"][0]["file"])
        slopes, offsets = gpu_reference.make_slopes(cell), gpu_reference.make_offsets(cell)
        more = {} if slopes is None else {"capture0": slopes}
        peers = gpu_peers.make_peers(cell, slopes, offsets)
        calls = {"attn": lambda: kernel(q=q, k=k, v=v, o=o, lse=lse, **more)}
        if "fa2" in peers:
            calls["fa2"] = lambda: peers["fa2"](q, k, v)
        for name, call in calls.items():
            call()
            torch.cuda.synchronize()
            torch.cuda.cudart().cudaProfilerStart()
            call()
            torch.cuda.synchronize()
            torch.cuda.cudart().cudaProfilerStop()
            print(f"profiled {cell.name} {name}", flush=True)


def read_report(text: str) -> list[dict[str, float]]:
    """The metrics of each kernel, from ncu's CSV."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    kernels = []
    for row in list(csv.DictReader(io.StringIO("\n".join(lines))))[1:]:  # the first has the units
        metrics = {}
        for name, value in row.items():
            try:
                metrics[name] = float((value or "").replace(",", ""))
            except ValueError:
                continue
        kernels.append(metrics)
    return kernels


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--filter", default="^f16-.*n4096", metavar="REGEX")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--ncu", default=shutil.which("ncu"))
    parser.add_argument("--launch", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.launch:
        launch(options)
        return 0
    if not options.ncu:
        print("gpu-profile: ncu not found, give --ncu", file=sys.stderr)
        return 2
    command = [options.ncu, "--clock-control", "none", "--profile-from-start", "off"]
    command += ["--kernel-name", "regex:attn_fwd|flash_fwd", "--csv", "--page", "raw"]
    command += ["--print-units", "base"]
    command += [part for section in SECTIONS for part in ("--section", section)]
    command += ["--metrics", EXTRA, sys.executable, __file__, str(options.folder), "--launch"]
    command += [f"--filter={options.filter}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    names = re.findall(r"^profiled (.*)$", done.stdout, re.M)
    kernels = read_report(done.stdout)
    if done.returncode or not names or len(names) != len(kernels):
        print(f"gpu-profile: {len(kernels)} of {len(names)} kernels profiled", file=sys.stderr)
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
        return 1
    rows = []
    for name, metrics in zip(names, kernels):
        stalls = {m[1]: value for key, value in metrics.items() if (m := STALL.match(key))}
        total = sum(stalls.values()) or 1.0
        shares = sorted(((v / total, k) for k, v in stalls.items()), reverse=True)
        row = {"name": name, "stalls": {k: v for v, k in shares}, "metrics": metrics}
        for column, (metric, unit) in COLUMNS.items():
            row[column] = metrics[metric] / unit if metric in metrics else None
        rows.append(row)
    print(f"{'':30}" + "".join(f"{column:>9}" for column in COLUMNS) + "  where warps wait")
    for row in rows:
        cells = (f"{row[c]:9.1f}" if row[c] is not None else f"{'-':>9}" for c in COLUMNS)
        waits = ", ".join(f"{k} {v:.0%}" for k, v in list(row["stalls"].items())[:4])
        print(f"{row['name']:30}" + "".join(cells) + f"  {waits}")
    if options.json:
        options.json.write_text(json.dumps(rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
