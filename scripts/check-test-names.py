#!/usr/bin/env python3
"""Tests of the dialect say in their names what they test.

test/Dialect/Attn holds `<family>[-<aspect>]-<kind>.mlir`: a family is a td file
of ops, types or attributes (ChannelOps.td: channel), a kind one of KINDS. Each
family of ops has `<family>[-<aspect>]-invalid.mlir` and `<family>-ops.mlir`, in
which each of its ops occurs.
test/Dialect/Attn/Transforms holds `<pass>[-<aspect>][-invalid]`, where a pass is
named without `attn-`.
"""

import re
import sys

from lint_util import read_text, report, tracked_files

IR = "include/attn/Dialect/Attn/IR"
PASSES = "include/attn/Dialect/Attn/Transforms"
# Families whose declarations have no td file of ops.
OTHER_FAMILIES = {"attributes", "layouts", "types"}
# What else a family is tested for: bytecode of older versions, bufferization.
KINDS = ("ops", "invalid", "canonicalize", "bufferize", "bytecode")
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def kebab(name: str) -> str:
    """WarpSpecialize -> warp-specialize."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


def starts_with(name: str, prefixes: set[str]) -> bool:
    return any(name == prefix or name.startswith(prefix + "-") for prefix in prefixes)


def family_problem(stem: str, families: set[str]) -> str | None:
    """What is wrong with the name of a test of an op family."""
    if not NAME.fullmatch(stem):
        return "expected a name in kebab-case"
    if not starts_with(stem, families):
        return "expected a name that starts with a family: " + ", ".join(sorted(families))
    if stem.rsplit("-", 1)[-1] not in KINDS:
        return "expected a name that ends with " + ", ".join(f"-{kind}" for kind in KINDS)
    return None


def pass_problem(stem: str, passes: set[str]) -> str | None:
    """What is wrong with the name of a test of a pass."""
    if not NAME.fullmatch(stem):
        return "expected a name in kebab-case"
    if not starts_with(stem, passes):
        return "expected a name that starts with a pass, without 'attn-'"
    return None


def op_names(td: str) -> list[str]:
    """The ops that a td file defines: Attn_Op<"tma.load", ... gives tma.load."""
    names = re.findall(r'^def \w+\s*:\s*Attn_Op<"([\w.]+)"', td, re.M)
    # A class of ops writes its part of the name as "turn." # mnemonic.
    for name, prefix in re.findall(r'^class (\w+)<[^>]*>\s*:\s*Attn_Op<"([\w.]+)" #', td, re.M):
        names += [prefix + rest for rest in re.findall(rf'^def \w+\s*:\s*{name}<"(\w+)"', td, re.M)]
    return names


def main() -> int:
    files = [path for path in tracked_files(f"{IR}/Ops/*Ops.td")]
    ops = {kebab(path.stem.removesuffix("Ops")): op_names(read_text(path) or "") for path in files}
    tds = "".join(read_text(path) or "" for path in tracked_files(f"{PASSES}/*.td"))
    passes = set(re.findall(r': Pass<"attn-([a-z-]+)"', tds))
    problems, stems = [], set()
    for path in tracked_files("test/Dialect/Attn/*"):
        folder = path.parent.as_posix()
        if folder == "test/Dialect/Attn":
            problem = family_problem(path.stem, set(ops) | OTHER_FAMILIES)
            stems.add(path.stem)
        elif folder == "test/Dialect/Attn/Transforms":
            problem = pass_problem(path.stem, passes)
        else:
            continue
        if problem:
            problems.append(f"{path}: {problem}")
    for family, names in sorted(ops.items()):
        if f"{family}-ops" not in stems:
            problems.append(f"test/Dialect/Attn: no {family}-ops.mlir")
            continue
        test = f"test/Dialect/Attn/{family}-ops.mlir"
        text = read_text(test) or ""
        for name in names:
            if not re.search(rf"\battn\.{re.escape(name)}(?![\w.])", text):
                problems.append(f"{test}: no 'attn.{name}'")
        if not any(s.startswith(f"{family}-") and s.endswith("-invalid") for s in stems):
            problems.append(f"test/Dialect/Attn: no {family}-invalid.mlir")
    return report(problems, "test names")


if __name__ == "__main__":
    sys.exit(main())
