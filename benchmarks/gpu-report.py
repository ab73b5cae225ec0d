#!/usr/bin/env python3
"""Writes a file of docs/results from what gpu-speed.py and gpu-profile.py measured.

usage: benchmarks/gpu-report.py SPEED.json [PROFILE.json] [--results=docs/results/speed-sm80.json]

Sections of the file that were measured again are replaced, others stay. What was measured
with --models becomes one table, for docs/results/speed-models.json.
With --costs there are also clocks, power and the share of the tensor cores'
peak at that clock, and the costs of a tile and of a block that fit the times.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import pathlib
import statistics
import sys

import gpu_cells

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import results_util  # noqa: E402

NAMES = {"fa2": "FlashAttention-2", "cudnn": "cuDNN", "flex": "FlexAttention", "fa4": "FA4"}
#: FLOP of an SM and clock for 16-bit operands (NVIDIA H100 white paper), and SMs.
TENSOR_RATE = 4096
SMS = 132


def get_own(row: dict) -> dict:
    return next(iter(row["own"].values()))


def get_ratio(row: dict, peer: str) -> float | None:
    own, other = get_own(row), row["peers"].get(peer, {})
    if "tflops" not in own or "tflops" not in other:
        return None
    return own["tflops"] / other["tflops"]


def get_peers(rows: list[dict]) -> list[str]:
    """The peers of the standard cells, in a fixed order."""
    return [peer for peer in ("fa2", "cudnn", "fa4") if any(peer in row["peers"] for row in rows)]


def write_standard(rows: list[dict]) -> list[str]:
    """TFLOP/s and ratios by head dimension, mask and length."""
    lines = []
    peers = get_peers(rows)
    for dtype in gpu_cells.DTYPES:
        some = {}
        for row in rows:
            cell = gpu_cells.from_json(row["cell"])
            if cell.is_standard and cell.dtype == dtype:
                some.setdefault((cell.d, cell.causal), {})[cell.rows] = row
        if not some:
            continue
        lengths = sorted({n for group in some.values() for n in group})
        lines += ["", f"| {dtype} | " + " | ".join(f"{n // 1024}k" for n in lengths) + " |"]
        lines.append("|---" * (len(lengths) + 1) + "|")
        for (d, causal), group in sorted(some.items()):
            words = []
            for n in lengths:
                ratios = [get_ratio(group[n], peer) for peer in peers] if n in group else []
                text = ", ".join("-" if r is None else f"{r:.2f}" for r in ratios)
                words.append(f"{get_own(group[n]).get('tflops', 0):.0f} ({text})" if ratios else "")
            lines.append(f"| D {d}{' causal' if causal else ''} | " + " | ".join(words) + " |")
    return lines


def write_means(rows: list[dict]) -> list[str]:
    lines = ["", "| ratio to | geometric mean | least | cells below 1 |", "|---|---|---|---|"]
    for peer in ("fa2", "cudnn", "fa4"):
        found = []
        for row in rows:
            ratio = get_ratio(row, peer)
            if ratio is not None and gpu_cells.from_json(row["cell"]).is_standard:
                found.append((ratio, row["name"]))
        if found:
            mean = math.exp(statistics.mean(math.log(ratio) for ratio, _ in found))
            below = sum(ratio < 1 for ratio, _ in found)
            lines.append(
                f"| {NAMES[peer]} | {mean:.2f} | {min(found)[0]:.2f} (`{min(found)[1]}`) "
                f"| {below} of {len(found)} |"
            )
    return lines


def write_clocks(rows: list[dict]) -> list[str]:
    """Clock, power and the share of the tensor cores' peak at that clock."""
    groups: dict[tuple, dict[int, str]] = {}
    for row in rows:
        cell, own = gpu_cells.from_json(row["cell"]), get_own(row)
        if cell.is_standard and "mhz" in own:
            share = own["tflops"] * 1e6 / (SMS * TENSOR_RATE * own["mhz"])
            text = f"{own['mhz'] / 1000:.2f}, {own['watts']:.0f}, {share:.0%}"
            groups.setdefault((cell.dtype, cell.d, cell.causal), {})[cell.rows] = text
    lengths = sorted({n for group in groups.values() for n in group})
    lines = ["", "| GHz, W, tensor | " + " | ".join(f"{n // 1024}k" for n in lengths) + " |"]
    lines.append("|---" * (len(lengths) + 1) + "|")
    for (dtype, d, causal), group in sorted(groups.items(), key=str):
        cells = " | ".join(group.get(n, "") for n in lengths)
        lines.append(f"| {dtype} D {d}{' causal' if causal else ''} | {cells} |")
    return lines


def fit(points: list[tuple[float, float, float]]) -> tuple[float, float]:
    """(a, b) with the least relative squares of tiles a + blocks b = time."""
    saa = sab = sbb = sa = sb = 0.0
    for tiles, blocks, time in points:
        x, y = tiles / time, blocks / time
        saa, sab, sbb, sa, sb = saa + x * x, sab + x * y, sbb + y * y, sa + x, sb + y
    det = saa * sbb - sab * sab
    return (sa * sbb - sb * sab) / det, (sb * saa - sa * sab) / det


def write_costs(rows: list[dict]) -> list[str]:
    """Costs of a tile of 128 queries and of 64 x 128 scores, on one SM."""
    times: dict[tuple, dict[str, list]] = {}
    for row in rows:
        cell = gpu_cells.from_json(row["cell"])
        if not cell.is_standard:
            continue
        tiles = cell.batch * cell.heads * -(-cell.rows // 128)
        blocks = cell.flops / (4 * cell.d) / (64 * 128)
        group = times.setdefault((cell.dtype, cell.d, cell.causal), {})
        for name, result in [*row["own"].items(), *row["peers"].items()]:
            if "ms" in result:
                group.setdefault(name, []).append((tiles, blocks, result["ms"] * 1000 * SMS))
    lines = ["", "| | kernel | us a tile | us a block | worst error |", "|---|---|---|---|---|"]
    for (dtype, d, causal), group in sorted(times.items(), key=str):
        for name, points in group.items():
            if len({blocks / tiles for tiles, blocks, _ in points}) < 3:
                continue
            a, b = fit(points)
            error = max(abs((t * a + n * b) / time - 1) for t, n, time in points)
            lines.append(
                f"| {dtype} D {d}{' causal' if causal else ''} | {NAMES.get(name, name)} "
                f"| {a:.2f} | {b:.3f} | {error:.1%} |"
            )
    return lines


def write_features(rows: list[dict]) -> list[str]:
    lines = ["", "| problem | attn, TFLOP/s | beside | ratio |", "|---|---|---|---|"]
    for row in rows:
        if gpu_cells.from_json(row["cell"]).is_standard:
            continue
        for peer, result in row["peers"].items():
            ratio = get_ratio(row, peer)
            if ratio is not None:
                lines.append(
                    f"| `{row['name']}` | {get_own(row)['tflops']:.0f} "
                    f"| {NAMES[peer]} {result['tflops']:.0f} | {ratio:.2f} |"
                )
    return lines


def describe(cell: gpu_cells.Cell) -> str:
    """Sizes and mask of a model's problem in a few words."""
    heads = str(cell.heads) if cell.heads == cell.kv_heads else f"{cell.heads}/{cell.kv_heads}"
    rows = str(cell.rows) if cell.kv_rows is None else f"{cell.rows} on {cell.kv_rows}"
    d = str(cell.d) if cell.dv is None else f"{cell.d}, {cell.dv}"
    mask = "causal" if cell.causal else "none"
    if cell.window is not None:
        mask = f"window of {cell.window + 1}"
    return f"{cell.batch} | {heads} | {rows} | {d} | {mask}{', sinks' if cell.sinks else ''}"


def write_models(rows: list[dict]) -> list[str]:
    """Each model's problem beside all peers, and the ratio to the best."""
    lines = ["", "| model | type | B | H | rows | D | mask | attn | cuDNN | FA2 | FA4 | ratio |"]
    lines.append("|---" * 12 + "|")
    best: list[float] = []
    for row in rows:
        cell, own = gpu_cells.from_json(row["cell"]), get_own(row)
        ratios = [get_ratio(row, peer) for peer in row["peers"]]
        found = [ratio for ratio in ratios if ratio is not None]
        words = []
        for peer in ("cudnn", "fa2", "fa4"):
            result = row["peers"].get(peer, {})
            words.append(f"{result['tflops']:.0f}" if "tflops" in result else "-")
        best += [min(found)] if found else []
        lines.append(
            f"| {cell.model} | {cell.dtype} | {describe(cell)} | {own.get('tflops', 0):.0f} | "
            + " | ".join(words)
            + f" | {f'{min(found):.2f}' if found else '-'} |"
        )
    mean = math.exp(statistics.mean(math.log(ratio) for ratio in best))
    lines += ["", f"Ratio to the best peer: geometric mean {mean:.3f}, least {min(best):.3f}, "
              f"{sum(ratio < 1 for ratio in best)} of {len(best)} below 1."]  # fmt: skip
    return lines


def write_limits(rows: list[dict], profile: list[dict]) -> list[str]:
    """Prediction, measurement and counters of the profiled cells."""
    timed = {row["name"]: row for row in rows}
    lines = ["", "| | predicted | measured | clock, power | limit of the model |"]
    lines.append("|---|---|---|---|---|")
    cells = list(dict.fromkeys(item["name"].split()[0] for item in profile))
    for name in [cell for cell in cells if cell in timed]:
        own = get_own(timed[name])
        guess = own.get("predicted") or {}
        predicted = f"{guess['us'] / 1000:.3f} ms" if guess else "-"
        lines.append(
            f"| `{name}` | {predicted} | {own['ms']:.3f} ms | {own.get('mhz', 0):.0f} MHz, "
            f"{own.get('watts', 0):.0f} W | {guess.get('limiter', '-')} |"
        )
    columns = ("tensor%", "issue%", "shared%", "xu%", "fma%", "regs", "warps")
    lines += ["", "| kernel | " + " | ".join(c.replace("%", " %") for c in columns)]
    lines[-1] += " | where warps wait |"
    lines.append("|---" * (len(columns) + 2) + "|")
    for item in profile:
        values = (f"{item[c]:.0f}" if item[c] is not None else "-" for c in columns)
        waits = [(k, v) for k, v in item["stalls"].items() if k != "selected"][:3]
        text = ", ".join(f"{k} {v:.0%}" for k, v in waits)
        lines.append(f"| `{item['name']}` | " + " | ".join(values) + f" | {text} |")
    return lines


def write_results(path: pathlib.Path, page: str, board: str, command: str) -> None:
    """Replaces the sections of `path` that `page` has; its first one has no heading."""
    file = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    file = file or {"title": path.stem, "sections": []}
    found = {section["id"]: place for place, section in enumerate(file["sections"])}
    for number, section in enumerate(results_util.parse_markdown(page)):
        section |= {"board": board, "date": datetime.date.today().isoformat(), "command": command}
        place = 0 if number == 0 and file["sections"] else found.get(section["id"])
        if place is None:
            file["sections"].append(section)
            continue
        if number == 0:
            section |= {key: file["sections"][0][key] for key in ("id", "title")}
        file["sections"][place] = section
    path.write_text(results_util.to_text(file), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("speed", type=pathlib.Path)
    parser.add_argument("profile", type=pathlib.Path, nargs="?")
    parser.add_argument("--costs", action="store_true")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "docs/results/speed-sm80.json")
    options = parser.parse_args()
    report = json.loads(options.speed.read_text(encoding="utf-8"))
    rows, machine = report["rows"], report["machine"]
    lines = [
        f"{machine['gpu']}, driver {machine['driver']}, PyTorch {machine['torch']}, cuDNN "
        f"{machine['cudnn']}; PTX for {report['chip']}, assembled for {report['cubin']}. "
        f"Each contestant ran twice for {report['seconds']} s and was then timed for as long. "
        "TFLOP/s, and in brackets the ratios to "
        + " and to ".join(NAMES[peer] for peer in get_peers(rows))
        + ".",
    ]
    models = [row for row in rows if gpu_cells.from_json(row["cell"]).model]
    rows = [row for row in rows if row not in models]
    if models:
        lines = [lines[0].split(" TFLOP/s, and")[0] + " TFLOP/s, and the ratio to the best peer."]
        lines += write_models(models)
    if rows:
        lines += write_standard(rows) + write_means(rows)
    if any(not gpu_cells.from_json(row["cell"]).is_standard for row in rows):
        lines += ["", "## Features"] + write_features(rows)
    if options.costs:
        lines += ["", "## Clocks", *write_clocks(rows), "", "## Costs", *write_costs(rows)]
    if options.profile:
        profile = json.loads(options.profile.read_text(encoding="utf-8"))
        lines += ["", "## Prediction and limit"] + write_limits(rows, profile)
    command = f"benchmarks/gpu-speed.py KERNELS{' --models' if models else ''} --json=speed.json"
    write_results(options.results, "\n".join(lines), machine["gpu"], command)
    return 0


if __name__ == "__main__":
    sys.exit(main())
