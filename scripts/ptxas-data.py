#!/usr/bin/env python3
"""Adds to the data on spills what a sweep found: a row for each plan that spilled.

Reads the states of scripts/plan-sweep.py, which name the cells whose kernels have
spill instructions in a loop that runs for each block of keys, with their plans. Each
gets a row of its schedule, all parameters of its plan, chip, head dimensions and mask
before the rows of its schedule, so that the planner takes another plan there. Chips
that differ in nothing else share a row. Spills outside of such loops give no row. A
state that a sweep wrote before it placed spills does not say where they are: those
cells are counted, and give no row; the sweep's next call with that state does them
again. Sweep again after a build: what is taken instead may spill too, and then gets a
row of its own, until a sweep finds none.

usage: scripts/ptxas-data.py STATE... [--data=lib/Planner/Data/ptxas-13.0.json]
           [--ptxas=VERSION] [--bin=build/bin] [--dry-run]
  STATE     build/plan-sweep.jsonl and the like; several parts of one sweep too
  --ptxas   the version that the file is to say
  --bin     folder of attn-compile, which knows the defaults of parameters
  --dry-run print the rows, and write nothing
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import pathlib
import re
import subprocess
import sys

from sweep_cells import make_cells, make_feature_cells, make_grid_cells

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: Features of lib/Planner/Seen/PtxasFeatures.def that flags of a cell decide.
FLAGS = (
    (r"--varlen\b", {"packed_q": 1}),
    (r"--page(d|-size)", {"pages": 1}),
    (r"--causal", {"right": 1, "left": 0}),
    (r"--window=\d", {"left": 1}),
    (r"--out-type=f32", {"f32_results": 1}),
    (r"--kv-lengths", {"key_lengths": 1}),
    (r"--kv-splits", {"partial": 1}),
)
#: Flags that add to the feature score_registers, with how much, as getScoreCost of
#: lib/Schedule/Kernel/Scores.cpp does. Regions have features of their own.
SCORE_REGISTERS = ((r"--softcap", 6), (r"--selected|--added", 8))
#: Features of regions, by the name of a cell's feature. A problem with one is causal.
REGIONS = {"score-mod": "score_region", "mask-mod": "mask_region"}


#: Parameters that change no register of a loop over blocks.
FREE = ("order", "group_heads", "kernel", "combine")


@functools.cache
def list_defaults(compiler: pathlib.Path, schedule: str) -> dict[str, str]:
    """The parameters of a schedule with their defaults."""
    text = subprocess.run(
        [compiler, f"--list-parameters={schedule}"], capture_output=True, text=True, check=True
    ).stdout
    return dict(re.findall(r"(?m)^  (\w+) = (\S+) \(", text))


def read_plan(text: str, compiler: pathlib.Path) -> tuple[str, dict]:
    """The schedule and all parameters of a plan as IR prints it."""
    schedule, body = re.fullmatch(r"#attn\.(\w+)<(.*)>", text).groups()
    given = {name: value.strip() for name, value in re.findall(r"(\w+) = ([^,]+)", body)}
    parameters: dict = {}
    for name, value in (list_defaults(compiler, schedule) | given).items():
        if name not in FREE:
            parameters[name] = int(value) if value.lstrip("-").isdigit() else value
    return schedule, parameters


def make_row(line: dict, cell, compiler: pathlib.Path) -> dict:
    schedule, plan = read_plan(line["plan"], compiler)
    flags = " ".join(cell.flags())
    problem: dict = {}
    shape = re.search(r"--q=\d+x\d+x\d+x(\d+)x", flags)
    if shape:
        problem["head_dim"] = int(shape[1])
        values = re.search(r"--dv=(\d+)", flags)
        problem["value_dim"] = int(values[1]) if values else int(shape[1])
    # Problems with regions are no flags.
    region = REGIONS.get(getattr(cell, "feature", ""))
    if region:
        problem = {"head_dim": cell.key_dim, "value_dim": cell.value_dim, region: 1, "right": 1, "left": 0}
    for pattern, features in FLAGS:
        if re.search(pattern, flags):
            problem.update(features)
    score = sum(registers for pattern, registers in SCORE_REGISTERS if re.search(pattern, flags))
    if score:
        problem["score_registers"] = score
    return {"schedule": schedule, "verdict": "spills", "chips": [cell.chip],
            "plan": plan, "problem": problem, "cell": cell.name}  # fmt: skip


def describe(row: dict) -> str:
    """What a row says, without its chips and the cell in which it was seen."""
    return json.dumps({k: v for k, v in row.items() if k not in ("chips", "cell")}, sort_keys=True)


def join_chips(rows: list[dict]) -> list[dict]:
    """Rows that differ in their chips alone as one, under the name of the first one's cell."""
    joined: dict[str, dict] = {}
    for row in rows:
        known = joined.setdefault(describe(row), row)
        known["chips"] = sorted({*known["chips"], *row["chips"]})
    return list(joined.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("states", nargs="+", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "lib/Planner/Data/ptxas-13.0.json")
    parser.add_argument("--ptxas")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--dry-run", action="store_true")
    options = parser.parse_args()
    cells = {cell.name: cell for cell in (*make_cells(), *make_feature_cells(), *make_grid_cells())}
    data = json.loads(options.data.read_text(encoding="utf-8"))
    known = {(describe(row), chip) for row in data["rows"] for chip in row.get("chips", ())}
    added, seen, outside, unplaced = [], 0, 0, 0
    placed: dict[str, list] = {}
    for path in options.states:
        for text in path.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            if line.get("spills", 0) > 0 or line.get("stack", 0) > 0:
                placed[line["kernel"]] = line.get("loops")
            if line.get("verdict") in ("good", "failed"):
                seen += 1
            # A cell may have taken over what another one's kernel got.
            if line.get("kernel") not in placed or line.get("cell") not in cells:
                continue
            loops = placed[line["kernel"]]
            unplaced += loops is None
            outside += loops == []
            if not loops:
                continue
            row = make_row(line, cells[line["cell"]], options.bin / "attn-compile")
            key = (describe(row), *row["chips"])
            if key not in known:
                known.add(key)
                added.append(row)
    added = join_chips(added)
    for row in added:
        print(json.dumps(row))
    print(
        f"{seen} cells: {outside} spill outside of loops over blocks, {unplaced} somewhere; "
        f"{len(added)} new rows, {len(data['rows'])} before"
    )
    if options.dry_run or not added:
        return 0
    data["rows"] = added + data["rows"]
    data["date"] = datetime.date.today().isoformat()
    data["ptxas"] = options.ptxas or data["ptxas"]
    rows = ",\n".join("  " + json.dumps(row) for row in data.pop("rows"))
    head = ",\n".join(f' "{name}": {json.dumps(value)}' for name, value in data.items())
    options.data.write_text("{\n" + head + ',\n "rows": [\n' + rows + "\n ]\n}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
