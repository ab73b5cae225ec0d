#!/usr/bin/env python3
"""Include guards carry the file's path.

include/attn/Layout/LinearLayout.h has ATTN_LAYOUT_LINEARLAYOUT_H, a private
header lib/Layout/Basis.h has ATTN_LIB_LAYOUT_BASIS_H, and a td file ends in
_TD. `--fix` renames wrong guards; it cannot add missing ones.
"""

import pathlib
import re
import sys

from lint_util import ROOT, read_text, report, tracked_files

# Passed to the precompiler, never included by name.
EXEMPT = {"cmake/AttnPCH.h"}
GUARD = re.compile(r"^#ifndef[ \t]+(\w+)[ \t]*\n#define[ \t]+\1[ \t]*$", re.M)


def wanted_guard(path: pathlib.Path) -> str:
    parts = list(path.with_suffix("").parts)
    if parts[:2] == ["include", "attn"]:
        parts = ["attn", *parts[2:]]
    elif parts[:1] == ["include"]:
        parts = parts[1:]
    else:
        parts = ["attn", *parts]
    name = re.sub(r"\W", "_", "_".join(parts)).upper()
    return f"{name}_{path.suffix[1:].upper()}"


def main() -> int:
    fix = "--fix" in sys.argv[1:]
    problems = []
    for path in tracked_files("*.h", "*.td"):
        if str(path) in EXEMPT:
            continue
        text = read_text(path) or ""
        wanted = wanted_guard(path)
        match = GUARD.search(text)
        if not match:
            # A td file that nothing includes needs none.
            if path.suffix == ".h" or "#ifndef" in text:
                problems.append(f"{path}: no include guard, expected {wanted}")
        elif match.group(1) != wanted:
            if fix:
                renamed = re.sub(rf"\b{match.group(1)}\b", wanted, text)
                (ROOT / path).write_text(renamed, encoding="utf-8")
            else:
                problems.append(
                    f"{path}: include guard {match.group(1)}, expected {wanted}"
                )
    return report(problems, "include guards")


if __name__ == "__main__":
    sys.exit(main())
