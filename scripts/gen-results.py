#!/usr/bin/env python3
"""Writes tables and plots of docs from docs/results/*.json.

A page has marks, between which stands what a section of a file says:

    <!-- generated: begin (scripts/gen-results.py FILE SECTION TABLE [COLUMN,...]) -->
    <!-- generated: end -->

TABLE counts from 0 among the section's tables; columns are named, all by default. Three
summaries are computed: "FILE means", "FILE models" and "all files".

usage: scripts/gen-results.py [--check]
       scripts/gen-results.py --show FILE [SECTION]
       scripts/gen-results.py --digits
  --check   fail where a page or a plot is not current
  --show    print a file, or one of its sections, as Markdown
  --digits  print the share of sentences with digits in each page
"""

from __future__ import annotations

import importlib.util
import math
import pathlib
import re
import statistics
import sys

import results_util as results
from lint_util import GENERATED_PAGES, ROOT, read_text, report, tracked_files

MARKS = re.compile(
    r"(<!-- generated: begin \(scripts/gen-results\.py (?P<what>[^)]*)\) -->\n)"
    r".*?(<!-- generated: end -->\n)",
    re.S,
)
#: What may have as many numbers as it needs.
EXEMPT = (*GENERATED_PAGES, "docs/spec.md", "docs/Reference.md", "docs/Targets.md")
#: File of each plot of cells by length, with the names of peers in its cells' brackets.
PLOTS = {"speed-hopper": ("cudnn", "fa4"), "speed-sm80": ("fa2", "cudnn")}
CELL = re.compile(r"(\d+) \(([\d.]+), ([\d.]+)\)")


def describe(section: dict) -> str:
    """Says where, when and how a section was measured."""
    parts = [section["board"] or "", section["date"] or ""]
    if section["command"]:
        parts.append(f"`{section['command']}`")
    return ", ".join(part for part in parts if part)


def read_cells(name: str) -> dict:
    """Returns {dtype: {(d, is causal): {length: (TFLOP/s, ratio, ratio)}}}."""
    found: dict = {}
    for table in results.load(name)["sections"][0]["tables"]:
        dtype, *lengths = table["columns"]
        for row in table["rows"]:
            head = re.fullmatch(r"D (\d+)( causal)?", row[0])
            if head:
                cells = {}
                for length, text in zip(lengths, row[1:]):
                    match = CELL.fullmatch(text)
                    cells[1024 * int(length[:-1])] = tuple(float(x) for x in match.groups())
                group = found.setdefault(dtype, {})
                group[int(head.group(1)), bool(head.group(2))] = cells
    return found


def write_means(name: str) -> str:
    """Geometric means of a file's cells by head dimension and mask."""
    peers = PLOTS[name]
    names = {"cudnn": "cuDNN", "fa2": "FlashAttention-2", "fa4": "FlashAttention-4"}
    columns = ["head dimension", "mask", "TFLOP/s"]
    columns += [f"times {names[peer]} (least)" for peer in peers]
    groups: dict = {}
    for group in read_cells(name).values():
        for key, cells in group.items():
            groups.setdefault(key, []).extend(cells.values())
    rows = []
    for (d, causal), cells in sorted(groups.items()):
        row = [d, "causal" if causal else "none"]
        row.append(f"{min(c[0] for c in cells):.0f} to {max(c[0] for c in cells):.0f}")
        for place in (1, 2):
            mean = statistics.geometric_mean([c[place] for c in cells])
            row.append(f"{mean:.2f} ({min(c[place] for c in cells):.2f})")
        rows.append(row)
    return results.write_table({"columns": columns, "rows": rows})


def write_models(name: str) -> str:
    """The models in a sentence each of the table's ends, and the mean."""
    table = results.load(name)["sections"][0]["tables"][0]
    ratios = [(float(row[-1]), row[0]) for row in table["rows"]]
    mean = math.exp(statistics.mean(math.log(ratio) for ratio, _ in ratios))
    row = [len(ratios), f"{mean:.2f}"]
    row += [f"{each[0]:.2f} ({each[1]})" for each in (min(ratios), max(ratios))]
    columns = ["problems", "times the best peer, geometric mean", "least", "most"]
    return results.write_table({"columns": columns, "rows": [row]})


def write_files() -> str:
    """All files with their sections' boards and dates."""
    rows = []
    for path in sorted(results.RESULTS.glob("*.json")):
        sections = results.load(path.stem)["sections"]
        dates = sorted(section["date"] for section in sections if section["date"])
        boards = {part for s in sections for part in (s["board"] or "").split(" and ") if part}
        rows.append([f"[{path.name}](results/{path.name})", results.load(path.stem)["title"],
                     ", ".join(sorted(boards)), dates[-1] if dates else "",
                     sum(len(table["rows"]) for s in sections for table in s["tables"])])  # fmt: skip
    columns = ["file", "about", "boards", "last", "rows"]
    return results.write_table({"columns": columns, "rows": rows})


def write_block(what: str) -> str:
    """What stands between marks."""
    words = what.split()
    if words == ["all", "files"]:
        return write_files()
    if words[1:] == ["means"]:
        section = results.load(words[0])["sections"][0]
        return f"{describe(section)}\n\n{write_means(words[0])}"
    if words[1:] == ["models"]:
        section = results.load(words[0])["sections"][0]
        return f"{describe(section)}\n\n{write_models(words[0])}"
    section = results.find_section(results.load(words[0]), words[1])
    table = section["tables"][int(words[2])]
    if len(words) > 3:
        rest, names = " ".join(words[3:]), []
        while True:
            name = next((c for c in sorted(table["columns"], key=len, reverse=True)
                         if rest == c or rest.startswith(c + ",")), None)  # fmt: skip
            if name is None:
                raise ValueError(f"expected columns of {table['columns']}, got {rest}")
            names.append(name)
            if rest == name:
                break
            rest = rest[len(name) + 1 :]
        places = [table["columns"].index(name) for name in names]
        table = {"columns": names, "rows": [[row[p] for p in places] for row in table["rows"]]}
    return f"{describe(section)}\n\n{results.write_table(table)}"


def with_blocks(text: str) -> str:
    """A page with what stands between its marks now."""
    return MARKS.sub(lambda m: f"{m[1]}{write_block(m['what'])}{m[3]}", text)


def load_benchmark(name: str):
    """Returns the module in a file of benchmarks/."""
    path = ROOT / f"benchmarks/{name}.py"
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draw_plots() -> dict[pathlib.Path, str]:
    """The SVGs, by path. What peers reach is our rate over its ratio, which are rounded."""
    plot = load_benchmark("gpu-plot")
    found = {
        results.RESULTS / "compile-length.svg":
            load_benchmark("length_plot").draw(results.load("compile-length"))
    }  # fmt: skip
    for name, peers in PLOTS.items():
        board = results.load(name)["sections"][0]["board"]
        for dtype, groups in read_cells(name).items():
            panels = {}
            for key, cells in groups.items():
                panel = panels[key] = {"attn": {n: cell[0] for n, cell in cells.items()}}
                for place, peer in enumerate(peers):
                    panel[peer] = {n: cell[0] / cell[place + 1] for n, cell in cells.items()}
            title = f"{board}, {dtype}: TFLOP/s by sequence length"
            found[results.RESULTS / f"{name}-{dtype}.svg"] = plot.draw_panels(panels, title)
    return found


def count_digits(text: str) -> tuple[int, int]:
    """Sentences outside of tables and code, and those of them that have digits."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    text = MARKS.sub("", text)
    text = re.sub(r"^(?:\||#|<|!\[).*$", "", text, flags=re.M)
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)
    sentences = [s for s in re.split(r"[.:;?!](?:\s+|$)|\n\n+", text) if len(s.split()) > 1]
    return len(sentences), sum(bool(re.search(r"\d", s)) for s in sentences)


def print_digits() -> None:
    total = with_digits = 0
    for path in tracked_files("README.md", "docs/*.md"):
        if path.as_posix() in EXEMPT:
            continue
        number, some = count_digits(read_text(path) or "")
        total, with_digits = total + number, with_digits + some
        print(f"{some / max(number, 1):5.0%} of {number:4} sentences  {path}")
    print(f"{with_digits / max(total, 1):5.0%} of {total:4} sentences  all")


def show(name: str, key: str | None) -> None:
    file = results.load(name)
    for section in [results.find_section(file, key)] if key else file["sections"]:
        print(f"## {section['title']} ({section['id']})\n\n{describe(section)}\n")
        for note in section["notes"]:
            print(f"{note}\n")
        for table in section["tables"]:
            print(f"{table['caption']}\n\n{results.write_table(table)}".lstrip("\n"))


def main() -> int:
    arguments = sys.argv[1:]
    if arguments[:1] == ["--show"]:
        show(arguments[1], arguments[2] if len(arguments) > 2 else None)
        return 0
    if arguments == ["--digits"]:
        print_digits()
        return 0
    wanted = draw_plots()
    for path in tracked_files("docs/*.md"):
        text = read_text(path) or ""
        if MARKS.search(text):
            wanted[ROOT / path] = with_blocks(text)
    problems = []
    for path, text in wanted.items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if "--check" in arguments:
            problems.append(f"{path.relative_to(ROOT)} is not current: scripts/gen-results.py writes it")
        else:
            path.write_text(text, encoding="utf-8")
    return report(problems, "results")


if __name__ == "__main__":
    sys.exit(main())
