#!/usr/bin/env python3
"""include/attn, lib, test and unittests have the same folders.

Every folder of public headers has a library folder and the reverse; folders
with tests have the name of what they test.
"""

import pathlib
import sys

from lint_util import report, tracked_files

# Folders of test/ that are about the whole product, not about one library.
WHOLE_PRODUCT = {"CAPI", "doc", "install", "Integration", "Regression", "Tools", "Driver", "lib"}
# Library folders that declare their interface elsewhere, and the reverse.
LIB_ONLY = {"CAPI", "InitAll"}
INCLUDE_ONLY = {"Tools"}


def folders(root: str, suffixes: set[str]) -> set[pathlib.Path]:
    """Folders under `root` that hold a file with one of the suffixes."""
    found = set()
    for path in tracked_files(f"{root}/*"):
        if path.suffix in suffixes:
            found.add(path.parent.relative_to(root))
    return found


def without(paths: set[pathlib.Path], names: set[str]) -> set[pathlib.Path]:
    return {path for path in paths if path.parts and path.parts[0] not in names}


def main() -> int:
    include = without(folders("include/attn", {".h"}), INCLUDE_ONLY)
    lib = without(folders("lib", {".cpp"}), LIB_ONLY)
    # A group such as Conversion declares its passes once, for all its folders.
    lib_groups = lib | {parent for path in lib for parent in path.parents}
    include_groups = include | {parent for path in include for parent in path.parents}
    problems = [
        f"include/attn/{path}: no sources in lib/{path}" for path in include - lib_groups
    ]
    problems += [
        f"lib/{path}: no headers in include/attn/{path}"
        for path in lib - include
        if path.parent not in include_groups - {pathlib.Path(".")}
    ]
    known = {parent for path in lib | include for parent in (path, *path.parents)}
    for root, suffixes in (("test", {".mlir", ".test"}), ("unittests", {".cpp"})):
        for path in without(folders(root, suffixes), WHOLE_PRODUCT):
            # A folder of test/ may split its library's tests by topic.
            if path not in known and path.parent not in known and "Inputs" not in path.parts:
                problems.append(f"{root}/{path}: no library lib/{path}")
    return report(sorted(problems), "folder mirror")


if __name__ == "__main__":
    sys.exit(main())
