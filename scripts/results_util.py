"""Reads and writes docs/results/*.json: what was measured, with board, date and command.

A file has a title and sections; a section has an id, a title, the board, the date and the
command of the measurement, notes, and tables. A table has a caption, columns and rows.
"""

from __future__ import annotations

import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs/results"


def load(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def find_section(results: dict, key: str) -> dict:
    for section in results["sections"]:
        if section["id"] == key:
            return section
    known = ", ".join(section["id"] for section in results["sections"])
    raise KeyError(f"expected a section of {known}, got {key}")


def make_id(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def make_section(title: str, board=None, date=None, command=None) -> dict:
    return {"id": make_id(title), "title": title, "board": board, "date": date,
            "command": command, "notes": [], "tables": []}  # fmt: skip


def split_row(line: str) -> list[str]:
    """The cells of a line of a Markdown table."""
    parts = re.split(r"(?<!\\)\|", line.strip())
    return [part.strip().replace("\\|", "|") for part in parts[1:-1]]


def add_markdown(section: dict, lines: list[str]) -> None:
    """Appends paragraphs as notes and tables with the paragraph before as caption."""
    words: list[str] = []
    table: dict | None = None
    is_fence = False

    def flush() -> None:
        if words:
            section["notes"].append(("\n" if words[0].startswith("```") else " ").join(words))
        words.clear()

    for line in [*lines, ""]:
        if line.startswith("```"):
            if not is_fence:
                flush()
            is_fence = not is_fence
            words.append(line)
            if not is_fence:
                flush()
        elif is_fence:
            words.append(line)
        elif line.startswith("|"):
            cells = split_row(line)
            if table is None:
                flush()
                caption = section["notes"][-1] if section["notes"] else ""
                if caption.endswith(":"):
                    section["notes"].pop()
                else:
                    caption = ""
                table = {"caption": caption, "columns": cells, "rows": []}
                section["tables"].append(table)
            elif not re.fullmatch(r"[|\s:-]+", line):
                table["rows"].append(cells)
        else:
            table = None
            if not line.strip() or re.match(r"(?:[-*]|\d+\.)\s", line):
                flush()
            if line.strip():
                words.append(line.strip())


def parse_markdown(text: str) -> list[dict]:
    """The sections of a page."""
    sections = [make_section("Overview")]
    lines: list[str] = []
    is_fence = False
    for line in text.split("\n"):
        is_fence ^= line.startswith("```")
        heading = None if is_fence else re.match(r"#+\s+(.*?)\s*$", line)
        if heading:
            add_markdown(sections[-1], lines)
            lines = []
            sections.append(make_section(heading.group(1)))
        elif not re.match(r"<!-- |!\[", line):
            lines.append(line)
    add_markdown(sections[-1], lines)
    return [section for section in sections if section["notes"] or section["tables"]]


def write_table(table: dict) -> str:
    """A table as Markdown."""
    rows = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
    lines = ["| " + " | ".join(str(c).replace("|", "\\|") for c in row) + " |" for row in rows]
    lines[1] = "|---" * len(table["columns"]) + "|"
    return "\n".join(lines) + "\n"


def to_text(results: dict) -> str:
    """JSON with a line for each row, so that changes of rows are changes of lines."""
    rows: list[str] = []

    def mark(value):
        if isinstance(value, dict):
            return {k: mark(v) for k, v in value.items()}
        if isinstance(value, list) and value and all(not isinstance(v, (dict, list)) for v in value):
            if len(value) == 1 or any(len(str(v)) > 100 for v in value):
                return value
            rows.append(json.dumps(value, ensure_ascii=False))
            return f"@@{len(rows) - 1}@@"
        if isinstance(value, list):
            return [mark(v) for v in value]
        return value

    text = json.dumps(mark(results), indent=1, ensure_ascii=False)
    return re.sub(r'"@@(\d+)@@"', lambda match: rows[int(match.group(1))], text) + "\n"
