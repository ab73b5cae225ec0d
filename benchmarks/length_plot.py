"""Draws docs/results/compile-length.json: processor time over keys and tiles, a panel for each
series of problems and a line for each chip."""

from __future__ import annotations

from xml.sax.saxutils import escape

WIDTH, HEIGHT = 300, 150
LEFT, TOP, GAP = 46, 64, 40
COLORS = {"sm_80": "#d9a441", "sm_90a": "#1f6fb4", "sm_100a": "#7a9e4f"}


def text(x: float, y: float, words: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(words)}</text>'


def read(file: dict) -> dict[str, dict[str, list[tuple[str, float]]]]:
    """Size and seconds by series, then chip."""
    series: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for section in file["sections"]:
        if section["title"] not in COLORS:
            continue
        for table in section["tables"]:
            points = [(row[0], float(row[1])) for row in table["rows"]]
            series.setdefault(table["caption"], {})[section["title"]] = points
    return series


def draw_panel(x0: float, y0: float, title: str, lines: dict, top: float) -> list[str]:
    parts = [text(x0 + WIDTH / 2, y0 - 8, title, more='font-weight="bold"')]
    for step in range(5):
        y = y0 + HEIGHT * (1 - step / 4)
        parts.append(f'<path d="M{x0} {y:.1f}h{WIDTH}" stroke="#ddd" fill="none"/>')
        parts.append(text(x0 - 6, y + 4, f"{top * step / 4:.2g}", "end"))
    for chip, points in lines.items():
        places = [
            (x0 + WIDTH * (index + 0.5) / len(points), y0 + HEIGHT * (1 - seconds / top))
            for index, (_, seconds) in enumerate(points)
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" stroke="{COLORS[chip]}" fill="none"/>')
        for (x, y), (size, seconds) in zip(places, points):
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLORS[chip]}">'
                f"<title>{chip}, {size}: {seconds:.2f} s</title></circle>"
            )
    sizes = [size for size, _ in next(iter(lines.values()))]
    for index, size in enumerate(sizes):
        parts.append(text(x0 + WIDTH * (index + 0.5) / len(sizes), y0 + HEIGHT + 15, size))
    return parts


def draw(file: dict) -> str:
    """The SVG; two panels in a row."""
    series = read(file)
    most = max(s for lines in series.values() for points in lines.values() for _, s in points)
    top = next(mark for mark in (0.4, 1, 2, 4, 10, 20, 40, 100, 1000) if most <= mark)
    rows = (len(series) + 1) // 2
    width = LEFT + 2 * (WIDTH + LEFT + GAP)
    height = TOP + rows * (HEIGHT + 2 * GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        text(LEFT, 20, "Processor time of attn-compile, s", "start", 'font-size="15"'),
    ]
    x = float(LEFT)
    for chip, color in COLORS.items():
        parts.append(f'<rect x="{x}" y="30" width="11" height="11" fill="{color}"/>')
        parts.append(text(x + 16, 40, chip, "start"))
        x += 40 + 7 * len(chip)
    for index, (title, lines) in enumerate(series.items()):
        x0 = LEFT + index % 2 * (WIDTH + LEFT + GAP)
        y0 = TOP + index // 2 * (HEIGHT + 2 * GAP)
        parts += draw_panel(x0, y0, title, lines, top)
    return "\n".join([*parts, "</svg>", ""])
