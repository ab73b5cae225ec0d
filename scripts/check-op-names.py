#!/usr/bin/env python3
"""Passes and analyses ask ops through interfaces, and name no op of one engine.

An op of a new generation of instructions is then an op and its lowering, and no pass
changes. The products, the bulk copies and their waits may be named in the dialect, in
the files that lower them, and where a schedule creates them (Op::create). The ops that
act on channels may be created anywhere.

usage: scripts/check-op-names.py
"""

import re
import sys

from lint_util import read_text, report, tracked_files

PRODUCTS_AND_COPIES = (
    "MmaOp", "WgmmaOp", "WgmmaWaitOp", "WgmmaResumeOp", "TmaLoadOp", "TmaStoreOp",
    "TmaPrefetchOp", "TmaCommitOp", "TmaWaitOp", "Tcgen05CommitOp",
    "Tcgen05MmaOp", "TmemLoadOp", "TmemStoreOp", "TmemWaitOp",
)  # fmt: skip
CHANNEL_USERS = (
    "CursorStartOp", "CursorAdvanceOp", "ChannelAcquireOp", "ChannelReleaseOp", "ScalarSendOp",
)  # fmt: skip
# NVVM has ops of the same names.
NAME = re.compile(
    rf"(?<!NVVM::)\b({'|'.join(PRODUCTS_AND_COPIES + CHANNEL_USERS)})\b(::create\b)?"
)
COMMENT = re.compile(r"//[^\n]*")
DIALECT = re.compile(r"(include/attn|lib)/Dialect/Attn/IR/")
LOWERING = "lib/Dialect/Attn/Transforms/LowerTiles/"
# The files of op families there.
LOWERING_FILES = ("Mma.cpp", "Tcgen05.cpp", "Tma.cpp", "Tmem.cpp", "Wgmma.cpp", "Words.cpp")


def problems_of(path: str, text: str) -> list[str]:
    """The names of ops that the file should ask through interfaces."""
    if DIALECT.match(path):
        return []
    if path.startswith(LOWERING) and path[len(LOWERING) :] in LOWERING_FILES:
        return []
    problems = []
    for number, line in enumerate(COMMENT.sub("", text).split("\n"), start=1):
        for name, creates in NAME.findall(line):
            if creates and (name in CHANNEL_USERS or path.startswith("lib/Schedule/")):
                continue
            problems.append(f"{path}:{number}: ask an interface in place of {name}")
    return problems


def main() -> int:
    problems = []
    for path in tracked_files("lib", "include", "tools"):
        if path.suffix in (".h", ".cpp"):
            problems += problems_of(path.as_posix(), read_text(path) or "")
    return report(problems, "names of ops")


if __name__ == "__main__":
    sys.exit(main())
