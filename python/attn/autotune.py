"""Finds the fastest plan by timing, and keeps what was found.

    attn-compile --q=4x32x4096x128xf16 --chip=sm_90a --autotune=12 --autotune-dir=candidates
    python -m attn.autotune candidates --table=plans.json
    attn-compile --q=4x32x4096x128xf16 --chip=sm_90a --plan-table=plans.json

usage:
  python -m attn.autotune FOLDER [--json=FILE] [--table=FILE] [--filter=REGEX]
                          [--seconds=S] [--limit=S] [--again] [--simulate]
  python -m attn.autotune FOLDER --pack=FILE.zip
  python -m attn.autotune --merge FILE... --table=FILE [--gain=0.01]
  python -m attn.autotune --list FILE

FOLDER holds index.json and its kernels, or folders that do; a zip file that
--pack made serves as well. Timing needs torch, a GPU and the driver, neither the
compiler nor a toolkit; without a GPU kernels are ranked by their estimates, with
--simulate by those of attn-sim. docs/Autotuning.md describes the files.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable
from typing import Any

from . import _cache
from .errors import AttnError

VERSION = 1
_EXTENTS = ("batch", "heads", "kv_heads", "queries", "keys", "head_dim", "value_dim")


class TuneError(AttnError):
    """A folder, a file of results or a table that cannot be read."""


@dataclasses.dataclass
class Candidate:
    """One kernel of a problem."""

    name: str
    plan: str
    estimate_us: float
    #: Median of all calls that were timed; None when none was.
    measured_us: float | None = None
    replays: int = 0
    #: Why it cannot be taken; empty when it can.
    error: str = ""


@dataclasses.dataclass
class Problem:
    """Kernels for one problem on one chip."""

    #: The folder's, such as "f16-d128-n4096".
    name: str
    chip: str
    #: What a table knows the problem by.
    problem: dict[str, Any]
    #: The plan that the compiler would take.
    planned: str
    candidates: list[Candidate]
    #: Name of the GPU that timed it; empty before.
    board: str = ""

    def key(self) -> str:
        """The same for the same problem on the same chip."""
        return json.dumps([self.chip, self.problem], sort_keys=True)

    def ranked(self) -> list[Candidate]:
        """Those that can be taken, fastest first: measured ones before others."""
        able = [each for each in self.candidates if not each.error]
        return sorted(
            able,
            key=lambda c: (c.measured_us is None, c.measured_us or c.estimate_us),
        )

    def find(self, plan: str) -> Candidate | None:
        return next((each for each in self.candidates if each.plan == plan), None)


def parse_problem(name: str, index: Any) -> Problem:
    """A problem of an index or of a file of results."""
    if not isinstance(index, dict) or index.get("version") != VERSION:
        raise TuneError(f"{name}: expected version {VERSION}")
    try:
        fields = {field.name for field in dataclasses.fields(Candidate)}
        candidates = [
            Candidate(**{key: value for key, value in each.items() if key in fields})
            for each in index["candidates"]
        ]
        return Problem(
            index.get("name", name),
            index["chip"],
            index["problem"],
            index["planned"],
            candidates,
            index.get("board", ""),
        )
    except (KeyError, TypeError) as error:
        raise TuneError(f"{name}: expected chip, problem, planned and candidates: {error}") from None


class Source:
    """Files of a folder or of a zip file by their paths."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self._zip = zipfile.ZipFile(path) if path.is_file() else None
        if self._zip is None and not path.is_dir():
            raise TuneError(f"{path}: expected a folder or a zip file")

    def read(self, name: str) -> bytes:
        try:
            return self._zip.read(name) if self._zip else (self.path / name).read_bytes()
        except (OSError, KeyError) as error:
            raise TuneError(f"{self.path}: cannot read {name}: {error}") from None

    def names(self) -> list[str]:
        if self._zip:
            return sorted(self._zip.namelist())
        found = (each for each in self.path.rglob("*") if each.is_file())
        return sorted(each.relative_to(self.path).as_posix() for each in found)

    def problems(self, pattern: str = "") -> list[tuple[str, Problem]]:
        """All problems whose names match, each with its folder."""
        result = []
        for name in self.names():
            folder, _, last = name.rpartition("/")
            if last != "index.json":
                continue
            try:
                index = json.loads(self.read(name))
            except ValueError as error:
                raise TuneError(f"{self.path}: {name}: {error}") from None
            label = folder or self.path.stem
            if re.search(pattern, label):
                result.append((f"{folder}/" if folder else "", parse_problem(label, index)))
        if not result:
            raise TuneError(f"{self.path}: no index.json of a matching problem")
        return result

    def pack(self, target: pathlib.Path) -> int:
        """Writes what timing needs to a zip file; the number of kernels."""
        kernels = [name for name in self.names() if name.endswith(".attn")]
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
            for name in self.names():
                if name.endswith((".attn", "index.json")):
                    packed.writestr(name, self.read(name))
        return len(kernels)


#
# Results and tables
#


def to_json(problem: Problem) -> dict[str, Any]:
    return {"version": VERSION, **dataclasses.asdict(problem)}


def read_results(path: pathlib.Path) -> list[Problem]:
    try:
        contents = json.loads(path.read_text(encoding="utf-8"))
        rows = contents["results"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TuneError(f"{path}: no file of results: {error}") from None
    return [parse_problem(f"{path}: results[{i}]", row) for i, row in enumerate(rows)]


def write_json(path: pathlib.Path, contents: Any) -> None:
    """As a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(json.dumps(contents, indent=1) + "\n")
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)


def make_entry(problem: Problem, gain: float) -> dict[str, Any] | None:
    """The table's entry for a problem, unless the compiler's own choice is within
    `gain` of the fastest plan."""
    ranked = [each for each in problem.ranked() if each.measured_us is not None]
    if not ranked:
        return None
    best, planned = ranked[0], problem.find(problem.planned)
    assert best.measured_us is not None
    if planned is not None and planned.measured_us is not None and not planned.error:
        if planned.measured_us <= best.measured_us * (1 + gain):
            return None
    return {
        "chip": problem.chip,
        "problem": problem.problem,
        "plan": best.plan,
        "microseconds": round(best.measured_us, 3),
        "board": problem.board,
    }


def read_table(path: pathlib.Path) -> list[dict[str, Any]]:
    try:
        contents = json.loads(path.read_text(encoding="utf-8"))
        plans = contents["plans"]
        assert contents["version"] == VERSION and isinstance(plans, list)
    except (OSError, ValueError, KeyError, TypeError, AssertionError) as error:
        raise TuneError(f"{path}: no table of plans of version {VERSION}: {error}") from None
    return plans


def merge(problems: Iterable[Problem], path: pathlib.Path, gain: float) -> tuple[int, int]:
    """Puts the fastest plans into a table, in the place of older entries for the
    same problems. How many problems were measured, and how many entries there
    are of them."""
    entries = {}
    if path.exists():
        for entry in read_table(path):
            entries[json.dumps([entry["chip"], entry["problem"]], sort_keys=True)] = entry
    measured = kept = 0
    for problem in problems:
        if not any(each.measured_us for each in problem.candidates):
            continue
        measured += 1
        entries.pop(problem.key(), None)
        if (entry := make_entry(problem, gain)) is not None:
            kept += 1
            entries[problem.key()] = entry
    write_json(path, {"version": VERSION, "plans": list(entries.values())})
    return measured, kept


def describe(problem: dict[str, Any]) -> str:
    """A problem of a table in one line."""
    text = "{batch}x{heads}x{queries}x{head_dim} {type}".format(**problem)
    if problem["kv_heads"] != problem["heads"]:
        text += f" kv_heads {problem['kv_heads']}"
    if problem["keys"] != problem["queries"]:
        text += f" keys {problem['keys']}"
    if problem["value_dim"] != problem["head_dim"]:
        text += f" dv {problem['value_dim']}"
    text += f" {problem['mask']}" * (problem["mask"] != "none")
    if problem["out_type"] != problem["type"]:
        text += f" to {problem['out_type']}"
    return " ".join([text, *problem["features"]])


#
# Output
#


def progress(done: int, total: int, what: str) -> None:
    if sys.stderr.isatty():
        bar = "#" * (30 * done // total)
        print(f"\r[{bar:<30}] {done}/{total} {what:<44.44}", end="", file=sys.stderr)
        if done == total:
            print(file=sys.stderr)


def format_problem(problem: Problem) -> str:
    lines = [f"{problem.name} on {problem.chip}{f', {problem.board}' if problem.board else ''}"]
    lines.append(f"  {'estimate':>10} {'measured':>10}  plan")
    for each in problem.ranked():
        measured = "-" if each.measured_us is None else f"{each.measured_us:.1f}"
        mark = " (planned)" if each.plan == problem.planned else ""
        lines.append(f"  {each.estimate_us:10.1f} {measured:>10}  {each.plan}{mark}")
    for each in problem.candidates:
        if each.error:
            lines.append(f"  {each.estimate_us:10.1f} {'-':>10}  {each.plan}: {each.error}")
    return "\n".join(lines)


#
# Work
#


def simulate(source: Source, folder: str, problem: Problem) -> None:
    """Replaces the estimates by those of attn-sim, which takes seconds each."""
    for each in problem.candidates:
        path = source.path / folder / each.name
        command = ["attn-sim", f"{path}.ptx", f"--launch={path}.json", "--estimate", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        try:
            each.estimate_us = json.loads(done.stdout)["estimate"]["microseconds"]
        except (ValueError, KeyError):
            each.error = f"attn-sim: {done.stderr.strip()[:120] or 'no estimate'}"


def find_timer(options: argparse.Namespace) -> tuple[Callable[..., None] | None, str]:
    """What times a problem and the board's name, or why there is none."""
    try:
        from . import _timing
    except ImportError as error:
        return None, f"no torch: {error}"
    board = _timing.get_board()
    if board is None:
        return None, "no GPU"
    timer = _timing.Timer(options.seconds)
    return timer.run, board


def tune(options: argparse.Namespace) -> int:
    source = Source(options.folder)
    work = source.problems(options.filter)
    timer, board = find_timer(options)
    if timer is None:
        print(f"not timed: {board}; ranked by estimates")
        for folder, problem in work:
            if options.simulate:
                simulate(source, folder, problem)
            print(format_problem(problem))
        return 0
    path = options.json
    cache = _cache.get_folder()
    if path is None and cache is not None:
        path = cache / "autotune.json"
    known = {each.key(): each for each in read_results(path)} if path and path.exists() else {}
    start, failed = time.monotonic(), 0
    for index, (folder, problem) in enumerate(work):
        old = known.get(problem.key())
        plans = {each.plan for each in problem.candidates}
        if (
            old is not None
            and old.board == board
            and plans <= {each.plan for each in old.candidates}
            and not options.again
        ):
            print(f"{problem.name}: known")
            continue
        if time.monotonic() - start > options.limit:
            print(f"{len(work) - index} problems left out: no time left")
            failed += 1
            break
        progress(index, len(work), problem.name)
        problem.board = board
        timer(problem, lambda name, folder=folder: source.read(f"{folder}{name}.attn"))
        known[problem.key()] = problem
        failed += any(each.error for each in problem.candidates)
        print(format_problem(problem), flush=True)
        if path is not None:
            rows = [to_json(each) for each in known.values()]
            write_json(path, {"version": VERSION, "results": rows})
    progress(len(work), len(work), "done")
    if path is not None:
        print(f"results of {len(known)} problems in {path}")
    if options.table is not None:
        wanted = {problem.key() for _, problem in work}
        report_merge([each for key, each in known.items() if key in wanted], options)
    return 1 if failed else 0


def report_merge(problems: list[Problem], options: argparse.Namespace) -> None:
    measured, kept = merge(problems, options.table, options.gain)
    print(
        f"{options.table}: {kept} plans of {measured} problems; for the others the compiler's "
        f"own plan is within {options.gain:.1%} of the fastest"
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m attn.autotune", description=(__doc__ or "").split("\n", 1)[0]
    )
    parser.add_argument("folder", nargs="?", type=pathlib.Path, help="candidates, or a zip of them")
    parser.add_argument("--json", type=pathlib.Path, help="results (default: in the cache)")
    parser.add_argument("--table", type=pathlib.Path, help="table of plans to put winners into")
    parser.add_argument("--merge", nargs="+", type=pathlib.Path, metavar="RESULTS")
    parser.add_argument("--list", type=pathlib.Path, metavar="TABLE", help="what a table covers")
    parser.add_argument("--pack", type=pathlib.Path, metavar="ZIP", help="only pack the folder")
    parser.add_argument("--gain", type=float, default=0.01, help="least gain that makes an entry")
    parser.add_argument("--filter", default="", metavar="REGEX", help="only problems that match")
    parser.add_argument("--seconds", type=float, default=0.1, help="time of a kernel in a round")
    parser.add_argument("--limit", type=float, default=float("inf"), help="start nothing after it")
    parser.add_argument("--again", action="store_true", help="also time what is known")
    parser.add_argument("--simulate", action="store_true", help="without GPU: ask attn-sim")
    options = parser.parse_args(arguments)
    modes = [options.folder, options.merge, options.list]
    if sum(mode is not None for mode in modes) != 1:
        parser.error("expected one of FOLDER, --merge and --list")
    if options.merge is not None and options.table is None:
        parser.error("--merge needs --table")
    try:
        if options.list is not None:
            for entry in read_table(options.list):
                print(f"{entry['chip']} {describe(entry['problem'])}")
        elif options.merge is not None:
            report_merge([row for path in options.merge for row in read_results(path)], options)
        elif options.pack is not None:
            count = Source(options.folder).pack(options.pack)
            print(f"{count} kernels, {options.pack.stat().st_size} bytes in {options.pack}")
        else:
            return tune(options)
    except TuneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
