#!/usr/bin/env python3
"""Asks ptxas about rows that say which plans fit, and writes where they hold.

The sum of registers refuses some plans that ptxas holds. For those the data on spills
(lib/Planner/Data/ptxas-13.0.json) has rows whose verdict is `fits`. Each row that is listed
here has kernels of its plans: plain ones, none of which may spill in a loop over blocks of
keys, and the same with one feature of a problem each. A feature with which one of them spills
is excluded from the row; a plain one that spills is an error.

usage: scripts/fit-rows.py [--write] [--bin=build/bin] [--workers=2]
           [--data=lib/Planner/Data/ptxas-13.0.json]
A kernel takes about 3 s of a core. It needs ptxas, and nvdisasm for the places of spills.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib.util
import json
import pathlib
import sys
import tempfile
from typing import NamedTuple

from sweep_cells import FeatureCell

ROOT = pathlib.Path(__file__).resolve().parent.parent


class FittingRow(NamedTuple):
    """A row, and kernels that say where it holds."""

    schedule: str
    plan: dict
    problem: dict
    #: Flags of all kernels, of the plain ones, and of those with a feature. A feature of a region
    #: has the cell whose source is compiled.
    common: str
    plain: tuple[str, ...]
    features: dict[str, tuple[str | FeatureCell, ...]]


ROWS = (
    FittingRow(
        "ws_tmem", {"tiles": 1, "pair": True, "p_parts": False}, {"head_dim": "> 256"},
        "--schedule=ws_tmem --set=tiles=1,pair=true,value_ctas=1,p_parts=false,block_n=256 --no-split-keys",
        tuple(
            f"--chip={chip} {problem}"
            for chip in ("sm_100a", "sm_103a")
            for problem in (
                "--q=2x64x1x576xbf16 --rope-dim=64 --kv-len=8192", "--q=2x128x1x576xbf16 --rope-dim=64 --kv-len=8192",
                "--q=2x64x1x576xbf16 --rope-dim=64 --kv-len=8192 --page-size=64 --kv-lengths=8192,100",
                "--q=1x8x2048x512xbf16", "--q=1x8x2048x512xbf16 --causal", "--q=1x8x2048x320xbf16 --dv=256 --causal",
            )
        ),
        {
            "score_region": (FeatureCell("sm_100a", "many", "bf16", 512, 512, "score-mod"),),
            "mask_region": (FeatureCell("sm_100a", "many", "bf16", 512, 512, "mask-mod"),),
            "negative_scale": tuple(
                f"--chip={chip} --q=1x8x2048x512xbf16 --scale=-0.05 {mask}"
                for chip in ("sm_100a", "sm_103a") for mask in ("", "--causal", "--window=500,20")
            ),
        },
    ),
)  # fmt: skip


def load_asker(folder: pathlib.Path, scratch: pathlib.Path):
    """What compiles and assembles kernels for scripts/fit-limits.py."""
    spec = importlib.util.spec_from_file_location("fit_limits", ROOT / "scripts/fit-limits.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Asker(folder, scratch)


def make_flags(row: FittingRow, kernel: str | FeatureCell, scratch: pathlib.Path) -> str:
    """The flags of a kernel; the source of a region is stored first."""
    if isinstance(kernel, str):
        return f"{row.common} {kernel}"
    source = scratch / f"{kernel.name}.mlir"
    source.write_text(kernel.source, encoding="utf-8")
    return f"{source} {' '.join(kernel.flags())} {row.common}"


def ask(asker, pool: concurrent.futures.Executor, row: FittingRow, number: int) -> dict:
    """The row as ptxas says where it holds."""
    kernels = [(None, kernel) for kernel in row.plain]
    kernels += [(name, kernel) for name, each in row.features.items() for kernel in each]
    jobs = [
        pool.submit(
            asker.spills_with,
            make_flags(row, kernel, asker.scratch),
            asker.scratch / f"{number}-{each}.ptx",
        )
        for each, (_, kernel) in enumerate(kernels)
    ]
    excluded: dict[str, int] = {}
    for (feature, kernel), job in zip(kernels, jobs, strict=True):
        spills = job.result()
        if spills is False:
            continue
        if feature is None or spills is None:
            raise SystemExit(f"{kernel}: expected no spills, got {'no plan' if spills is None else 'some'}")
        excluded[feature] = 0
    return {"schedule": row.schedule, "verdict": "fits", "plan": row.plan,
            "problem": row.problem | excluded}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "lib/Planner/Data/ptxas-13.0.json")
    options = parser.parse_args()
    lines = options.data.read_text(encoding="utf-8").split("\n")
    with tempfile.TemporaryDirectory(prefix="fit-rows-") as scratch:
        asker = load_asker(options.bin, pathlib.Path(scratch))
        with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
            for number, row in enumerate(ROWS):
                found = ask(asker, pool, row, number)
                print(json.dumps(found))
                start = json.dumps({name: found[name] for name in ("schedule", "verdict", "plan")})[:-1]
                places = [i for i, line in enumerate(lines) if line.strip().startswith(start)]
                if len(places) != 1:
                    raise SystemExit(f"{start}: expected one row of this plan, got {len(places)}")
                comma = "," if lines[places[0]].endswith(",") else ""
                lines[places[0]] = f"  {json.dumps(found)}{comma}"
    if options.write:
        options.data.write_text("\n".join(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
