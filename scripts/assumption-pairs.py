#!/usr/bin/env python3
"""Lists what recorded launches owe to the assumptions of the hw profile.

For each assumption A1, A2, ... of docs/Simulator.md every recording runs with all
the others granted. What is reported then are pairs of instructions that only
this assumption orders; they are counted by what the two instructions are, with
the lines of one pair in its PTX. The last row takes nothing beyond the manual.
Recordings are not part of the project.

usage: scripts/assumption-pairs.py FOLDER [--filter=REGEX] [--corners] [--all] [--sim=PATH]
The exit status is 2 when there is no recording or one cannot be run.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ASSUMPTIONS = [f"A{number}" for number in range(1, 13)]
# What each corner of the schedules adds to the options; one run may not execute both of a pair.
CORNERS = [[]] + [
    ["--schedule=random", f"--reads={reads}", f"--writes={writes}", *adversary]
    for reads in ("issue", "completion")
    for writes in ("issue", "completion")
    for adversary in ([], ["--adversarial"])
]


def short(text: str) -> str:
    """An instruction without operands and shapes: its first parts say what it does."""
    opcode = text.split(" ")[0]
    if opcode.startswith("@"):
        opcode = text.split(" ")[1]
    parts = opcode.split(".")
    if parts[0] in ("ld", "st"):
        return ".".join(parts[:2])
    if parts[0] == "cp":
        return "cp.async.bulk.tensor" if "tensor" in parts else ".".join(parts[:3])
    return ".".join(parts[:3] if parts[0] == "cp" else parts[:2])


def findings(options: argparse.Namespace, folder: pathlib.Path, granted: list[str]) -> dict:
    """Findings by kind and pair of lines."""
    found = {}
    for corner in CORNERS if options.corners else CORNERS[:1]:
        command = [options.sim, f"--recorded={folder}", "--profile=isa", "--json"]
        command += ["--max-findings=100000", *corner]
        if granted:
            command.append("--assume=" + ",".join(granted))
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 2:
            sys.exit(f"{folder}: {done.stderr.strip()}")
        report = json.loads(done.stdout)
        for each in report.get("run", report)["findings"]:
            if each["severity"] == "note":
                continue
            first, second = each.get("first") or {}, each.get("second") or {}
            key = (each["kind"], first.get("ptx_line"), second.get("ptx_line"))
            found.setdefault(key, (short(first.get("text", "")), short(second.get("text", "")), each))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--filter", default="", metavar="REGEX")
    parser.add_argument("--corners", action="store_true", help="pairs of all corners together")
    parser.add_argument("--all", action="store_true", help="list every pair")
    parser.add_argument("--sim", default=str(ROOT / "build/bin/attn-sim"))
    options = parser.parse_args()
    folders = sorted(p.parent for p in options.folder.glob("*/launch.json"))
    folders = [folder for folder in folders if re.search(options.filter, folder.name)]
    if not folders:
        print(f"no recorded launch in {options.folder}", file=sys.stderr)
        return 2
    for folder in folders:
        for missing in [*ASSUMPTIONS, ""]:
            granted = [name for name in ASSUMPTIONS if name != missing] if missing else []
            found = findings(options, folder, granted)
            print(f"{folder.name}: {f'without {missing}' if missing else 'isa'}: {len(found)} pairs")
            classes = collections.defaultdict(list)
            for key, (first, second, each) in found.items():
                space = each.get("space") or ""
                classes[key[0], space, first, second].append((key[1:], each["message"]))
            for (kind, space, first, second), pairs in sorted(classes.items(), key=lambda c: -len(c[1])):
                where = f"{space} " if space else ""
                print(f"  {len(pairs):4} {kind}: {where}{first or '-'} then {second or '-'}"
                      f", lines {pairs[0][0]}")  # fmt: skip
                for lines, message in sorted(pairs) if options.all else []:
                    print(f"         {lines}: {message}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
