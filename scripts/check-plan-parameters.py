#!/usr/bin/env python3
"""Each plan parameter is taken by a plan, or stands in a list with its reason.

A parameter is taken if the planner assigns it, in the model of its schedule or
where plans are completed, if its schedule does, or if a shipped plan has it.
"""

import pathlib
import re
import sys

from lint_util import read_text, report, tracked_files

PLANS = pathlib.Path("include/attn/Dialect/Attn/IR/AttnPlans.td")
SHIPPED = pathlib.Path("lib/Planner/ShippedPlans.json")
#: Folders whose code assigns parameters of any schedule, and what some schedules share.
COMMON = ("Core", "Choice")
SHARED = {"split_q": "Copied", "decode": "Copied", "tiled_d": "Copied"}
#: The variants of docs/Variants.md.
VARIANTS = {
    "split_q.share": "share-kv and share-qkv",
    "split_q.accumulate_s": "f16 accumulators",
    "split_q.accumulate_o": "f16 accumulators",
    "tiled_d.s_split": "split-kv",
    "tiled_d.accumulate_s": "f16 accumulators",
    "tiled_d.accumulate_o": "f16 accumulators",
}
#: Values that only a board can judge, and none has yet.
ABSENT_BOARDS = {
    "mla.start_blocks": "what the begin of a sequence costs in blocks",
    "ws_tmem.one_ring": "whether copies take the port of shared memory from operands",
}
MOST_ABSENT = 12
#: Parameters that something else than the planner takes.
ELSEWHERE = {
    "decode.plan_work": "Python's planner of decode steps",
}
#: What SelectEpilogue.cpp chooses where a plan says `auto`, and users ask for.
CHOSEN_LATER = ("epilogue",)


def find_parameters(text: str) -> list[str]:
    """The parameters of all plans, as `schedule.parameter`."""
    found = []
    for body in re.split(r"\ndef ", text):
        if head := re.match(r'\w+ : Attn_Plan<Attn_Dialect, "\w+", "(\w+)"', body):
            found += [f"{head[1]}.{name}" for name in re.findall(r">:\$(\w+)", body)]
    return found


def is_taken(parameter: str, sources: dict[str, str], shipped: str) -> bool:
    schedule, name = parameter.split(".")
    first, *others = name.split("_")
    member = first + "".join(word.capitalize() for word in others)
    camel = "".join(word.capitalize() for word in schedule.split("_"))
    rooms = {camel, SHARED.get(schedule, camel), *COMMON}
    code = "".join(text for room, text in sources.items() if room in rooms)
    pattern = rf"\.{member} *=(?!=)|StringLiteral \w+ = \"{name}\";"
    return bool(
        re.search(pattern, code) or re.search(rf"#attn\.{schedule}<[^>]*\b{name} = ", shipped)
    )


def main() -> int:
    sources: dict[str, str] = {}
    for path in tracked_files("lib/Schedule/*", "lib/Planner/*"):
        if path.suffix not in (".cpp", ".h"):
            continue
        # A model of the planner has the name of its schedule.
        room = path.parent.name
        if room == "Models":
            room = re.sub(r"(Candidates|Cost|Model)$", "", path.stem)
        sources[room] = sources.get(room, "") + (read_text(path) or "")
    shipped = read_text(SHIPPED) or ""
    problems = []
    listed = VARIANTS | ABSENT_BOARDS | ELSEWHERE
    parameters = find_parameters(read_text(PLANS) or "")
    for parameter in parameters:
        taken = is_taken(parameter, sources, shipped)
        if taken and parameter in listed:
            problems.append(f"{parameter}: a plan takes it, expected it in no list")
        if not taken and parameter not in listed and parameter.split(".")[1] not in CHOSEN_LATER:
            problems.append(f"{parameter}: no plan takes it, expected a reason in a list")
    problems += [f"{name}: expected a plan parameter" for name in listed.keys() - set(parameters)]
    if len(ABSENT_BOARDS) > MOST_ABSENT:
        problems.append(f"expected up to {MOST_ABSENT} values for absent boards")
    return report(problems, "plan parameters")


if __name__ == "__main__":
    sys.exit(main())
