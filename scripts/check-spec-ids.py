#!/usr/bin/env python3
"""Every constraint of docs/spec.md occurs in ODS, in a verifier and in a test,
and these name no constraint that the page does not have.

ODS and verifiers name a constraint in a comment, tests in the name of a
function, to which a suffix may be added: @attention_c8_zero.
"""

import re
import sys

from lint_util import read_text, report, tracked_files

ID = re.compile(r"\b(?:attention|combine)_c\d+(?!\d)")
PLACES = {
    "ODS": (("include/*.td",), re.compile(r"/\*.*?\*/|//[^\n]*", re.S)),
    "verifier": (("lib/*.cpp",), re.compile(r"//[^\n]*")),
    "test": (("test/*.mlir",), re.compile(r"func\.func (?:private )?@\w+")),
}


def ids(patterns: tuple[str, ...], part: re.Pattern[str]) -> set[str]:
    """The ids that stand in the parts of the files that `part` matches."""
    found: set[str] = set()
    for path in tracked_files(*patterns):
        for match in part.finditer(read_text(path) or ""):
            found.update(ID.findall(match.group()))
    return found


#: The table of options names constraints, but not all of them.
TABLE = (("include/attn/Problem/Options.def",), re.compile(r'"[^"\n]*"'))


def main() -> int:
    spec = set(re.findall(r"^\| (\w+_c\d+) \|", read_text("docs/spec.md") or "", re.M))
    problems = [] if spec else ["docs/spec.md: no constraints found"]
    for place, (patterns, part) in PLACES.items():
        found = ids(patterns, part)
        problems += [f"docs/spec.md: {name} occurs in no {place}" for name in sorted(spec - found)]
        problems += [f"{place}: {name} is not in docs/spec.md" for name in sorted(found - spec)]
    problems += [f"Options.def: {name} is not in docs/spec.md" for name in sorted(ids(*TABLE) - spec)]
    return report(problems, "spec ids")


if __name__ == "__main__":
    sys.exit(main())
