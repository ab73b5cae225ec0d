#!/usr/bin/env python3
"""Every relative link of a Markdown page leads to a file or a heading."""

import re
import sys

from lint_util import ROOT, read_text, report, tracked_files

LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")


def anchors_of(text: str) -> set[str]:
    """Anchors that a Markdown renderer makes for the headings."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    found = set(re.findall(r'<a (?:id|name)="([^"]+)"', text))
    for heading in re.findall(r"^#+\s+(.*?)\s*$", text, re.M):
        slug = re.sub(r"[^\w\- ]", "", heading.replace("\\", "").lower())
        found.add(slug.replace(" ", "-"))
    return found


def main() -> int:
    problems = []
    for path in tracked_files("*.md"):
        text = read_text(path) or ""
        visible = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
        visible = re.sub(r"`[^`\n]*`", "", visible)
        for target in LINK.findall(visible):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            file = (ROOT / path.parent / name) if name else ROOT / path
            if not file.exists():
                problems.append(f"{path}: no such file: {target}")
            elif anchor and file.suffix == ".md":
                if anchor not in anchors_of(file.read_text(encoding="utf-8")):
                    problems.append(f"{path}: no such heading: {target}")
    return report(problems, "links")


if __name__ == "__main__":
    sys.exit(main())
