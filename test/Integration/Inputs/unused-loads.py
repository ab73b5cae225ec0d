"""Counts arrivals in another CTA behind loads from shared memory that nothing has used yet.

usage: unused-loads.py FILE.ptx

An arrival with the default scope was seen to overtake such loads on an H100
(docs/Rationale/Clusters.md#signals-scope). Instructions are read in their order in the text, as if
no branch were taken. Exit status 1 if there is such an arrival.
"""

import re
import sys
from collections.abc import Iterator

REGISTER = r"%\w+"
#: What writes no register named first.
NO_RESULT = re.compile(r"(st|mbarrier\.arrive|bar|barrier|setmaxnreg|fence|red|cp|bra|ret)\b")


def list_instructions(text: str) -> Iterator[tuple[int, str]]:
    """Line of its end and text of each instruction, without its guard."""
    whole = ""
    for number, line in enumerate(text.split("\n"), 1):
        line = line.split("//")[0].strip()
        if line.startswith((".", "$")) or line in ("", "{", "}"):
            continue
        whole = f"{whole} {line}".strip()
        if whole.endswith(";"):
            yield number, re.sub(r"^@!?%\w+\s+", "", whole[:-1])
            whole = ""


def main() -> int:
    loaded: dict[str, int] = {}
    loads = arrivals = early = 0
    with open(sys.argv[1]) as file:
        text = file.read()
    for number, instruction in list_instructions(text):
        name, _, operands = instruction.partition(" ")
        if name.startswith("mbarrier.arrive") and "shared::cluster" in name:
            arrivals += 1
            if loaded:
                early += 1
                lines = sorted(set(loaded.values()))
                print(f"line {number}: an arrival behind loads of lines {lines} that nothing used")
        result = re.match(r"\s*(\{[^}]*\}|%\w+(\|%\w+)?)", operands)
        written = re.findall(REGISTER, result[0]) if result and not NO_RESULT.match(name) else []
        # Of products the accumulator is read, too.
        read = operands if name.startswith("wgmma") else operands[result.end() :] if written else operands
        for register in re.findall(REGISTER, read) + written:
            loaded.pop(register, None)
        if re.match(r"(ldmatrix|ld\.shared|ld\.volatile\.shared)", name):
            loads += 1
            loaded |= dict.fromkeys(written, number)
    print(f"{loads} loads, {arrivals} arrivals, {early} behind unused loads")
    return int(early != 0)


if __name__ == "__main__":
    sys.exit(main())
