#!/usr/bin/env python3
"""Each decision has a page of its own, with status and date, and is listed.

docs/Rationale/<Subject>/<Decision>.md starts with a title and a line
"Status: in use. Date: 2026-11-22. Subject: [Subject](../Subject.md)."; the page
of a subject, docs/Rationale/<Subject>.md, with a title and "Status: ... Date:
...". Tables of decisions on subjects' pages and in docs/Rationale/README.md
stand between marks and are what the pages say of themselves.

usage: scripts/check-rationale.py [--fix]
  --fix   write the tables
"""

import pathlib
import re
import sys

from lint_util import ROOT, read_text, report, tracked_files

FOLDER = pathlib.PurePosixPath("docs/Rationale")
BEGIN, END = "<!-- decisions: begin (scripts/check-rationale.py) -->\n", "<!-- decisions: end -->\n"
HEAD = re.compile(
    r"# (?P<title>[^\n]+)\n\nStatus: (?P<status>[^.\n]+(?:\.\d[^.\n]*)*)\. "
    r"Date: (?P<date>\d{4}-\d\d-\d\d)\.(?: Subject: \[[^\]]+\]\(\.\./(?P<subject>\w+)\.md\)\.)?\n"
)


def head_of(text: str) -> re.Match[str] | None:
    """Title, status, date and subject of a page, which may be wrapped."""
    title, _, rest = text.partition("\n\n")
    line, _, _ = rest.partition("\n\n")
    return HEAD.match(title + "\n\n" + " ".join(line.split()) + "\n")


def table(rows: list[tuple[str, re.Match[str]]]) -> str:
    lines = ["| decision | status | date |", "|---|---|---|"]
    for link, head in rows:
        lines.append(f"| [{head['title']}]({link}) | {head['status']} | {head['date']} |")
    return "\n" + "\n".join(lines) + "\n\n"


def with_table(text: str, part: str) -> str | None:
    """The page with `part` between the marks, or None without marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return before + begin + part + end + after if begin and end else None


def main() -> int:
    problems: list[str] = []
    subjects: dict[str, re.Match[str]] = {}
    decisions: dict[str, list[tuple[str, re.Match[str]]]] = {}
    for path in tracked_files(f"{FOLDER}/*.md"):
        if path.name == "README.md":
            continue
        head = head_of(read_text(path) or "")
        is_subject = path.parent.name == FOLDER.name
        if not head or bool(head["subject"]) == is_subject:
            problems.append(f"{path}: expected a title and 'Status: ... Date: YYYY-MM-DD.'"
                            + ("" if is_subject else " and 'Subject: [...](../....md).'"))
        elif is_subject:
            subjects[path.stem] = head
        elif head["subject"] != path.parent.name:
            problems.append(f"{path}: expected the subject {path.parent.name}, got {head['subject']}")
        else:
            decisions.setdefault(path.parent.name, []).append((path.stem, head))
    wanted: dict[str, str] = {}
    index = ""
    for name, head in sorted(subjects.items(), key=lambda item: item[1]["title"].lower()):
        rows = sorted(decisions.get(name, []), key=lambda row: (row[1]["date"], row[0]))
        index += f"\n### [{head['title']}]({name}.md)\n"
        if not rows:
            index += f"\nOne decision: {head['status']}, {head['date']}.\n"
            continue
        index += table([(f"{name}/{stem}.md", each) for stem, each in rows])[:-1]
        wanted[f"{FOLDER}/{name}.md"] = table([(f"{name}/{stem}.md", each) for stem, each in rows])
    wanted[f"{FOLDER}/README.md"] = index + "\n"
    for name in sorted(set(decisions) - set(subjects)):
        problems.append(f"{FOLDER}/{name}: no page {FOLDER}/{name}.md")
    for name, part in wanted.items():
        text = read_text(name) or ""
        changed = with_table(text, part)
        if changed is None:
            problems.append(f"{name}: expected a table of decisions between its marks")
        elif changed != text and "--fix" in sys.argv[1:]:
            (ROOT / name).write_text(changed, encoding="utf-8")
        elif changed != text:
            problems.append(f"{name}: its table differs from the pages: --fix writes it")
    return report(problems, "rationale")


if __name__ == "__main__":
    sys.exit(main())
