#!/usr/bin/env python3
"""Compiles the kernels that python -m attn.autotune times, for the cells of the
GPU benchmark, each in a folder of its own.

usage: benchmarks/tune-candidates.py FOLDER [--filter=REGEX] [--count=8]
                 [--chip=sm_90a] [--workers=2] [--build=build] [--models]
Cells whose folder has an index.json are not compiled again. Packed sequences are
left out: their records have no lengths.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import time

import gpu_cells

ROOT = pathlib.Path(__file__).resolve().parent.parent


def progress(done: int, total: int, start: float) -> None:
    if sys.stderr.isatty():
        bar = "#" * (30 * done // total)
        left = (time.monotonic() - start) / done * (total - done) if done else 0
        print(f"\r[{bar:<30}] {done}/{total}, {left:.0f} s left ", end="", file=sys.stderr)
        if done == total:
            print(file=sys.stderr)


def build(options: argparse.Namespace, cell: gpu_cells.Cell) -> None:
    folder = options.folder / cell.name.replace("/", "_")
    if (folder / "index.json").exists():
        return
    flags, text = cell.get_compiler_input()
    command = [str(options.build / "bin/attn-compile"), *flags, f"--chip={options.chip}"]
    command += [f"--autotune={options.count}", f"--autotune-dir={folder}"]
    if text is not None:
        command.append("-")
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{cell.name}: {done.stderr.strip()}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--filter", default="", metavar="REGEX", help="only cells that match")
    parser.add_argument("--count", type=int, default=8, help="plans of a cell")
    parser.add_argument("--models", action="store_true", help="the problems of well-known models")
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options = parser.parse_args()
    cells = gpu_cells.make_standard() + gpu_cells.make_features()
    if options.models:
        cells = gpu_cells.make_models()
    cells = [cell for cell in cells if re.search(options.filter, cell.name) and not cell.lengths]
    start, failed = time.monotonic(), 0
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        for index, job in enumerate([pool.submit(build, options, cell) for cell in cells]):
            progress(index, len(cells), start)
            try:
                job.result()
            except RuntimeError as error:
                failed += 1
                print(error, file=sys.stderr)
    progress(len(cells), len(cells), start)
    print(f"{len(cells) - failed} of {len(cells)} problems in {options.folder}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
