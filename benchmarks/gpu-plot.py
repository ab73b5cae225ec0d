#!/usr/bin/env python3
"""Draws the results of gpu-speed.py: one SVG, a panel for each head dimension
and mask, TFLOP/s over the length.

usage: benchmarks/gpu-plot.py RESULTS.json OUT.svg [--dtype=f16]
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from xml.sax.saxutils import escape

import gpu_cells

WIDTH, HEIGHT = 300, 190
LEFT, TOP, GAP = 46, 64, 26
COLORS = {"attn": "#1f6fb4", "fa2": "#9a9a9a", "cudnn": "#d9a441", "fa4": "#7a9e4f"}
NAMES = {"attn": "attn", "fa2": "FlashAttention-2", "cudnn": "cuDNN", "fa4": "FlashAttention-4"}


def collect(report: dict, dtype: str) -> dict:
    """TFLOP/s by (head dimension, causal), then kernel, then length."""
    panels: dict = {}
    for row in report["rows"]:
        cell = gpu_cells.from_json(row["cell"])
        if cell.dtype != dtype or not cell.is_standard:
            continue
        panel = panels.setdefault((cell.d, cell.causal), {})
        results = {"attn": next(iter(row["own"].values())), **row["peers"]}
        for name, result in results.items():
            if name in COLORS and "tflops" in result:
                panel.setdefault(name, {})[cell.rows] = result["tflops"]
    return panels


def text(x: float, y: float, words: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(words)}</text>'


def draw_panel(x0: float, y0: float, title: str, panel: dict, top: float) -> list[str]:
    """Bars in groups by length, with lines at every 100 TFLOP/s."""
    lengths = sorted({rows for kernel in panel.values() for rows in kernel})
    names = [name for name in COLORS if name in panel]
    parts = [text(x0 + WIDTH / 2, y0 - 8, title, more='font-weight="bold"')]
    for mark in range(0, int(top) + 1, 100):
        y = y0 + HEIGHT * (1 - mark / top)
        parts.append(f'<path d="M{x0} {y:.1f}h{WIDTH}" stroke="#ddd" fill="none"/>')
        parts.append(text(x0 - 6, y + 4, str(mark), "end"))
    group = WIDTH / max(len(lengths), 1)
    bar = 0.8 * group / max(len(names), 1)
    for index, rows in enumerate(lengths):
        label = f"{rows // 1024}k" if rows % 1024 == 0 else str(rows)
        parts.append(text(x0 + group * (index + 0.5), y0 + HEIGHT + 15, label))
        for place, name in enumerate(names):
            value = panel[name].get(rows)
            if value is None:
                continue
            x, h = x0 + group * (index + 0.1) + bar * place, HEIGHT * value / top
            parts.append(
                f'<rect x="{x:.1f}" y="{y0 + HEIGHT - h:.1f}" width="{bar - 1:.1f}" '
                f'height="{h:.1f}" fill="{COLORS[name]}"><title>{NAMES[name]}, {label}: '
                f"{value:.0f} TFLOP/s</title></rect>"
            )
    return parts


def draw(report: dict, dtype: str) -> str:
    title = f"{report['machine']['gpu']}, {dtype}: TFLOP/s by sequence length"
    return draw_panels(collect(report, dtype), title)


def draw_panels(panels: dict, title: str) -> str:
    """Draws what collect() returns."""
    dims = sorted({d for d, _ in panels})
    top = max((v for p in panels.values() for k in p.values() for v in k.values()), default=100)
    top = 100 * (int(top) // 100 + 1)
    width = LEFT + len(dims) * (WIDTH + LEFT + GAP)
    height = TOP + 2 * (HEIGHT + 2 * GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        text(LEFT, 20, title, "start", 'font-size="15"'),
    ]
    x = float(LEFT)
    for name in COLORS:
        if any(name in panel for panel in panels.values()):
            parts.append(f'<rect x="{x}" y="30" width="11" height="11" fill="{COLORS[name]}"/>')
            parts.append(text(x + 16, 40, NAMES[name], "start"))
            x += 40 + 7 * len(NAMES[name])
    for column, d in enumerate(dims):
        for line, causal in enumerate((False, True)):
            if (d, causal) in panels:
                words = f"head dimension {d}, {'causal' if causal else 'no mask'}"
                x0 = LEFT + column * (WIDTH + LEFT + GAP)
                y0 = TOP + line * (HEIGHT + 2 * GAP)
                parts += draw_panel(x0, y0, words, panels[d, causal], top)
    return "\n".join([*parts, "</svg>", ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--dtype", default="f16", choices=gpu_cells.DTYPES)
    options = parser.parse_args()
    report = json.loads(options.results.read_text(encoding="utf-8"))
    options.out.write_text(draw(report, options.dtype), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
