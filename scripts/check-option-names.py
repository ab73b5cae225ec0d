#!/usr/bin/env python3
"""An option of a problem is named in few files of lib, include, tools and python/attn.

The options are those of include/attn/Problem/Options.def. What can be derived from
the table must be: a new option needs its row, its attribute in ODS, the code that
computes it and the reference. Options that are operands, or change what the
problem's tensors are, are named by more code; LIMITS has their numbers, which may
only fall. The guides to attn-compile and to the Python package name all of them.

usage: scripts/check-option-names.py [--list]
  --list   print how many files name each option, and which
"""

import re
import sys

from lint_util import read_text, report, tracked_files

#: Files that may name any option.
LIMIT = 8
#: Files that may name these.
LIMITS = {
    "added_lengths": 18,
    "added_page_size": 11,
    "amax": 33,
    "block_keys": 22,
    "block_rows": 22,
    "expected_keys": 13,
    "kv_heads": 25,
    "kv_lengths": 22,
    "kv_splits": 32,
    "mask_mod": 44,
    "out_group": 23,
    "out_mod": 33,
    "out_scale": 22,
    "page_indptr": 18,
    "page_size": 16,
    "rope_dim": 18,
    "row_state": 18,
    "run_keys": 11,
    "scale_group": 15,
    "score_mod": 32,
    "selected": 16,
    "sinks": 21,
    "varlen": 28,
}
#: Names that are words, or letters, of other things too.
WORDS = {"q", "dv", "kv_len", "causal", "window", "scale", "out_type", "layout", "lse", "dynamic"}
#: Where each option stands, and how: NAME, or FLAG with dashes.
GUIDES = {"docs/attn-compile.md": r"--(?:no-)?FLAG\b", "docs/Python.md": r"`NAME[`=]"}
ROW = re.compile(r'^ATTN_(OPTION|FACTOR|COUNT|NATURAL|SWITCH|LENGTHS|NUMBERS|REGION)\((\w+), "(\w+)"', re.M)
#: Calls of servers have arguments for tensors and pools, which users give by name, and
#: some are called as options are: at most this many files beside the others.
SERVER_LIMIT = 8
SERVERS = re.compile(r"python/attn/(serving/\w+|tensors/\w+|torch_serving)\.py")
FOLDERS = ("lib", "include", "tools", "python/attn")
#: Files that are made of the table, and those whose names are other libraries' calls and flags.
EXEMPT = (
    "python/attn/calls/call_signatures.py",
    "python/attn/options/problem_table.py",
    "python/attn/serving/serving_signatures.py",
    "python/attn/serving/settings_table.py",
    "python/attn/compat/",
    "python/attn/doors/",
    "python/attn/options/host_names.py",
    "python/attn/conformance.py",
    "tools/Tool/FlagSynonyms.def",
)


def spellings(member: str, name: str) -> re.Pattern[str]:
    """The name in IR, as a member, an accessor and a flag."""
    capital = member[0].upper() + member[1:]
    dashed = name.replace("_", "-")
    return re.compile(rf"\b(?:{name}|{member}|[gs]et{capital}(?:Attr|Mutable)?|{dashed})\b")


def find_missing(page: str, text: str, names: list[str]) -> list[str]:
    """A problem for each option that the page does not name."""
    problems = []
    for name in names:
        form = GUIDES[page].replace("NAME", name).replace("FLAG", name.replace("_", "-"))
        if not re.search(form, text):
            problems.append(f"{page}: expected a word on option {name}")
    return problems


def main() -> int:
    table = read_text("include/attn/Problem/Options.def") or ""
    rows = ROW.findall(table)
    options = {name: member for _, member, name in rows if name not in WORDS}
    paths = [path for path in tracked_files(*FOLDERS) if not str(path).startswith(EXEMPT)]
    texts = {str(path): read_text(path) or "" for path in paths}
    problems = [] if options else ["Options.def: found no options"]
    for page in GUIDES:
        # Regions have no flag.
        has_regions = "FLAG" not in GUIDES[page]
        names = [name for kind, _, name in rows if has_regions or kind != "REGION"]
        problems += find_missing(page, read_text(page) or "", names)
    for name, member in options.items():
        pattern = spellings(member, name)
        named = sorted(path for path, text in texts.items() if pattern.search(text))
        servers = [path for path in named if SERVERS.fullmatch(path)]
        files = [path for path in named if path not in servers]
        if "--list" in sys.argv[1:]:
            print(f"{name}: {len(files)}: {', '.join(files)}")
            print(f"{name}, servers: {len(servers)}: {', '.join(servers)}")
        groups = (("files", files, LIMITS.get(name, LIMIT)),
                  ("files of server calls", servers, SERVER_LIMIT))  # fmt: skip
        for what, paths, limit in groups:
            if len(paths) > limit:
                problems.append(
                    f"option {name}: expected it in at most {limit} {what}, got {len(paths)}: "
                    f"{', '.join(paths)}"
                )
    return report(problems, "option names")


if __name__ == "__main__":
    sys.exit(main())
