#!/usr/bin/env python3
"""Opens every page, picture and plot that the project makes in headless Chromium.

What a browser refuses is seen by nobody else: a page whose script it does not accept is
well-formed, and blank. So each of them is opened, and

- a message on the browser's console is an error;
- so is a timeline that draws too few shapes, or whose picture lacks the colours of what
  warps do;
- so is an SVG with too few shapes, with labels over each other or over its edge;
- so is an image of a page in docs/ that a browser cannot decode.

usage: scripts/check-pages.py [--bin=DIR] [--keep=DIR] [--sample]
  --bin     the folder of the programs (default: build/bin)
  --keep    pages and their screenshots go to this folder
  --sample  one timeline and one plot
Where there is no Chromium (scripts/install-deps.sh --with-chromium, or its path in
$CHROMIUM) the exit status is 2.
"""

from __future__ import annotations

import argparse
import html
import importlib.util
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH, HEIGHT = 1280, 900
#: Of the activities of a kernel with products: compute, special, tensor, copies or loads.
ACTIVITIES = re.compile(r"const colours = \[(.*?)\]")

#: Flags of attn-compile: a kernel of one warpgroup, one of several, CTAs of a cluster.
TIMELINES = {
    "sm_80": ["--q=1x1x64x64xf16", "--causal"],
    "sm_90a": ["--q=1x1x128x64xf16", "--causal", "--chip=sm_90a"],
    "sm_100a": ["--q=1x1x256x128xf16", "--chip=sm_100a"],
}
LAYOUTS = {
    "mma": "shape=64x16 layout=#attn.mma<warps=[4,1]>",
    "blocked": "shape=32x32 layout=#attn.blocked<per_thread=[1,8],warps=4,order=[1,0]>",
}

#: Reports on an inlined SVG.
SVG_PAGE = """<!doctype html><meta charset="utf-8"><body style="margin:0"><div>{svg}</div><script>
(() => {{
const svg = document.querySelector('svg');
const box = svg.getBoundingClientRect();
const texts = [...svg.querySelectorAll('text')].filter(t => t.textContent.trim());
const boxes = texts.map(t => t.getBoundingClientRect());
const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
                       Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > a.height / 3;
const wrong = [];
boxes.forEach((a, i) => {{
  if (a.left < box.left - 1 || a.right > box.right + 1 || a.top < box.top - 1 || a.bottom > box.bottom + 1)
    wrong.push(`'${{texts[i].textContent}}' reaches over the edge`);
  const j = boxes.findIndex((b, j) => j > i && over(a, b));
  if (j >= 0) wrong.push(`'${{texts[i].textContent}}' and '${{texts[j].textContent}}' overlap`);
}});
const shapes = svg.querySelectorAll('rect, path, line, circle, polygon, polyline, ellipse').length;
document.body.dataset.report = JSON.stringify({{ shapes, texts: texts.length, wrong }});
}})();
</script>
"""

#: Reports on images, once all have been tried.
IMAGES_PAGE = """<!doctype html><meta charset="utf-8"><body>{images}<script>
window.addEventListener('load', () => {{
  const all = [...document.images];
  document.body.dataset.report = JSON.stringify(
      {{ shapes: all.length, wrong: all.filter(i => !i.naturalWidth).map(i => `${{i.alt}} is no image`) }});
}});
</script>
"""


def find_chromium() -> str | None:
    names = (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    return next(filter(None, (shutil.which(name) for name in names if name)), None)


class Browser:
    def __init__(self, program: str, folder: pathlib.Path) -> None:
        self.command = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--hide-scrollbars", "--enable-logging=stderr", f"--window-size={WIDTH},{HEIGHT}",
            "--force-device-scale-factor=1", f"--user-data-dir={folder}/profile",
        ]  # fmt: skip

    def open(self, page: pathlib.Path, *flags: str) -> str:
        """The document after its scripts; raises RuntimeError at a message of the console."""
        done = subprocess.run([*self.command, *flags, page.as_uri()], capture_output=True,
                              text=True, check=False, timeout=120)  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"the browser ends with status {done.returncode}\n{done.stderr}")
        if said := [line for line in done.stderr.splitlines() if "CONSOLE" in line]:
            raise RuntimeError("expected nothing on the console, got\n" + "\n".join(said))
        return done.stdout

    def dump(self, page: pathlib.Path) -> str:
        return self.open(page, "--dump-dom")

    def draw(self, page: pathlib.Path) -> pathlib.Path:
        picture = page.with_suffix(".png")
        self.open(page, f"--screenshot={picture}")
        return picture


def read_png(path: pathlib.Path) -> tuple[int, list[bytes]]:
    """Bytes of a pixel, and the rows of a picture of 8 bits a channel."""
    data = path.read_bytes()
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise RuntimeError(f"expected a PNG, got {data[:8]!r}")
    width, _, depth, kind, _, _, interlace = struct.unpack(">IIBBBBB", data[16:29])
    channels = {2: 3, 6: 4}.get(kind)
    if depth != 8 or not channels or interlace:
        raise RuntimeError(f"expected 8 bits of RGB or RGBA, got {depth} of kind {kind}")
    packed, at = b"", 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += 12 + length
    raw, stride = zlib.decompress(packed), width * channels
    rows, above = [], bytearray(stride)
    for start in range(0, len(raw), stride + 1):
        row, filter_type = bytearray(raw[start + 1 : start + 1 + stride]), raw[start]
        for i in range(stride) if filter_type else ():
            left = row[i - channels] if i >= channels else 0
            corner = above[i - channels] if i >= channels else 0
            near = (0, left, above[i], (left + above[i]) // 2, 0)[filter_type]
            if filter_type == 4:
                guess = left + above[i] - corner
                near = min((left, above[i], corner), key=lambda each: abs(guess - each))
            row[i] = (row[i] + near) & 255
        rows.append(bytes(row))
        above = row
    return channels, rows


def count_colour(channels: int, rows: list[bytes], colour: str) -> int:
    wanted = bytes.fromhex(colour)
    return sum(
        row[i : i + 3] == wanted for row in rows for i in range(0, len(row), channels)
    )  # fmt: skip


def check_report(document: str, shapes: int) -> str:
    found = re.search(r'data-report="(.*?)"', document)
    if not found:
        raise RuntimeError("expected the page's script to report, got nothing")
    report = json.loads(html.unescape(found[1]))
    if report["wrong"]:
        raise RuntimeError("\n".join(report["wrong"]))
    if report["shapes"] < shapes:
        raise RuntimeError(f"expected at least {shapes} shapes, got {report['shapes']}")
    return f"{report['shapes']} shapes"


class Checks:
    def __init__(self, browser: Browser, binaries: pathlib.Path, folder: pathlib.Path) -> None:
        self.browser, self.binaries, self.folder = browser, binaries, folder

    def run(self, tool: str, *arguments: str) -> None:
        done = subprocess.run([self.binaries / tool, *arguments], cwd=self.folder,
                              capture_output=True, text=True, check=False)  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{tool} {' '.join(arguments)}\n{done.stderr}")

    def timeline(self, name: str) -> str:
        ptx, record, page = f"{name}.ptx", f"{name}.json", self.folder / f"{name}.html"
        self.run("attn-compile", *TIMELINES[name], "-o", ptx, f"--launch-out={record}")
        self.run("attn-sim", ptx, f"--launch={record}", "--registers=128", "--grid=1",
                 f"--timeline={page}")  # fmt: skip
        found = re.search(r'data-shapes="(\d+)"', self.browser.dump(page))
        shapes = int(found[1]) if found else 0
        if shapes < 100:
            raise RuntimeError(f"expected at least 100 shapes, got {shapes}")
        colours = re.findall("#([0-9a-f]{6})", ACTIVITIES.search(page.read_text())[1])
        channels, rows = read_png(self.browser.draw(page))
        counts = [count_colour(channels, rows, colour) for colour in colours]
        # Of arithmetic, exponentials, products, shared and global memory, copies and waits.
        if sum(count > 50 for count in counts) < 4:
            raise RuntimeError(f"expected four activities in the picture, got pixels {counts}")
        return f"{shapes} shapes, pixels of activities {counts}"

    def inline(self, svg: str, name: str, shapes: int) -> str:
        page = self.folder / f"{name}.html"
        page.write_text(SVG_PAGE.format(svg=svg), encoding="utf-8")
        said = check_report(self.browser.dump(page), shapes)
        # As a document of its own it is XML, in which a mistake is fatal.
        alone = self.folder / f"{name}.svg"
        alone.write_text(svg, encoding="utf-8")
        if "parsererror" in self.browser.dump(alone):
            raise RuntimeError("expected XML, got what the browser cannot read")
        self.browser.draw(page)
        return said

    def layout(self, name: str) -> str:
        empty = self.folder / "empty.mlir"
        empty.write_text("module {}\n")
        target = self.folder / f"layout-{name}"
        self.run("attn-opt", str(empty), "-o", os.devnull,
                 f"--attn-print-layouts=svg output-dir={target} {LAYOUTS[name]}")  # fmt: skip
        (picture,) = target.glob("*.svg")
        return self.inline(picture.read_text(encoding="utf-8"), f"layout-{name}", 100)

    def plot(self) -> str:
        """gpu-plot.py on times that are made up."""
        sys.path.append(str(ROOT / "benchmarks"))
        path = ROOT / "benchmarks/gpu-plot.py"
        spec = importlib.util.spec_from_file_location("gpu_plot", path)
        plot = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(plot)
        rows = []
        for place, cell in enumerate(plot.gpu_cells.make_standard()):
            peers = {name: {"tflops": 200 + place} for name in plot.COLORS if name != "attn"}
            rows.append({"cell": vars(cell), "own": {"own": {"tflops": 900 - place}}, "peers": peers})
        report = {"machine": {"gpu": "a board with a long name"}, "rows": rows}
        report = json.loads(json.dumps(report))
        return self.inline(plot.draw(report, "f16"), "plot", 100)

    def documents(self) -> str:
        """SVGs of docs/, and every image of a page."""
        for path in sorted((ROOT / "docs").rglob("*.svg")):
            self.inline(path.read_text(encoding="utf-8"), path.stem, 20)
        images = []
        for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
            text = page.read_text(encoding="utf-8")
            for target in re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", text):
                alt = f"{page.relative_to(ROOT)}: {target}"
                images.append(f'<img alt="{alt}" src="{(page.parent / target).resolve().as_uri()}">')
        page = self.folder / "images.html"
        page.write_text(IMAGES_PAGE.format(images="".join(images)), encoding="utf-8")
        return check_report(self.browser.dump(page), 1).replace("shapes", "images")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    build = pathlib.Path(os.environ.get("ATTN_BUILD", ROOT / "build"))
    parser.add_argument("--bin", type=lambda text: pathlib.Path(text).resolve(), default=build / "bin")
    parser.add_argument("--keep", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--sample", action="store_true")
    options = parser.parse_args()
    program = find_chromium()
    if not program:
        print("no Chromium: scripts/install-deps.sh --with-chromium installs it", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        checks = Checks(Browser(program, pathlib.Path(temporary)), options.bin, folder)
        everything = [("plot", checks.plot), ("timeline of sm_90a", lambda: checks.timeline("sm_90a"))]
        if not options.sample:
            everything += [
                (f"timeline of {name}", lambda name=name: checks.timeline(name))
                for name in TIMELINES if name != "sm_90a"
            ]  # fmt: skip
            everything += [
                (f"layout {name}", lambda name=name: checks.layout(name)) for name in LAYOUTS
            ]
            everything.append(("images of docs", checks.documents))
        failed = 0
        for name, check in everything:
            try:
                print(f"{name}: {check()}", flush=True)
            except RuntimeError as error:
                failed += 1
                print(f"{name}: {error}", file=sys.stderr)
    print(f"{len(everything)} checked, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
