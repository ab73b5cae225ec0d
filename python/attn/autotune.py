"""Finds the fastest plan by timing, and keeps what was found.

    attn-compile --q=4x32x4096x128xf16 --chip=sm_90a --autotune=12 --autotune-dir=candidates
    python -m attn.autotune candidates --table=plans.json
    attn-compile --q=4x32x4096x128xf16 --chip=sm_90a --plan-table=plans.json

usage:
  python -m attn.autotune FOLDER [--json=FILE] [--table=FILE] [--filter=REGEX]
                          [--seconds=S] [--limit=S] [--again] [--simulate]
  python -m attn.autotune FOLDER --pack=FILE.zip
  python -m attn.autotune --merge FILE... --table=FILE [--gain=0.01] [--exact]
  python -m attn.autotune --list FILE

FOLDER holds index.json and its kernels, or folders that do; a zip file that
--pack made serves as well. Timing needs torch, a GPU and the driver, neither the
compiler nor a toolkit; without a GPU kernels are ranked by their estimates, with
--simulate by those of attn-sim. docs/Autotuning.md describes the files.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

from .compiler import kernel_cache, long_calls
from .errors import AttnError
from .tuning import table_rows
from .tuning.candidates import Candidate, Problem

VERSION = 1
_EXTENTS = ("batch", "heads", "kv_heads", "queries", "keys", "head_dim", "value_dim")


class TuneError(AttnError):
    """A folder, a file of results or a table that cannot be read."""


def _check(what: str, value: Any, kind: type | tuple[type, ...], wanted: str) -> Any:
    """`value`, whose type a file may have wrong."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    fits = is_number and math.isfinite(value) if kind is float else isinstance(value, kind)
    if not fits:
        raise TuneError(f"{what}: expected {wanted}, got {value!r:.80}")
    return value


def _get(what: str, record: dict[str, Any], name: str, kind: type, wanted: str) -> Any:
    if name not in record:
        raise TuneError(f'{what}: expected "{name}", got none')
    return _check(f"{what}: {name}", record[name], kind, wanted)


def parse_description(what: str, problem: Any) -> dict[str, Any]:
    """What a table knows a problem by."""
    _check(what, problem, dict, "an object")
    for name in ("type", "out_type", "mask"):
        _get(what, problem, name, str, "a string")
    for name in _EXTENTS:
        value = problem.get(name)
        bounds = value if isinstance(value, list) and len(value) == 2 else [value]
        is_text = isinstance(value, str) and re.fullmatch(r"dynamic|any|([<>]=?|!=) -?\d+", value)
        if not is_text and not all(type(each) is int for each in bounds):
            raise TuneError(
                f'{what}: {name}: expected an integer, a pair of them or "dynamic", got {value!r}'
            )
    if problem.get("features") == "any":
        return dict(problem)
    for each in _get(what, problem, "features", list, "a list"):
        _check(f"{what}: features", each, str, "strings")
    return dict(problem)


def parse_candidate(what: str, record: Any) -> Candidate:
    _check(what, record, dict, "an object")
    found = Candidate(
        _get(what, record, "name", str, "a string"),
        _get(what, record, "plan", str, "a string"),
        _get(what, record, "estimate_us", float, "a finite number"),
    )
    if record.get("measured_us") is not None:
        found.measured_us = _get(what, record, "measured_us", float, "a finite number")
    found.replays = _check(f"{what}: replays", record.get("replays", 0), int, "an integer")
    found.error = _check(f"{what}: error", record.get("error", ""), str, "a string")
    return found


def parse_problem(name: str, index: Any) -> Problem:
    """A problem of an index or of a file of results."""
    if not isinstance(index, dict) or index.get("version") != VERSION:
        raise TuneError(f"{name}: expected version {VERSION}")
    candidates = _get(name, index, "candidates", list, "a list")
    return Problem(
        _check(f"{name}: name", index.get("name", name), str, "a string"),
        _get(name, index, "chip", str, "a string"),
        parse_description(f"{name}: problem", index.get("problem")),
        _get(name, index, "planned", str, "a string"),
        [parse_candidate(f"{name}: candidates[{i}]", each) for i, each in enumerate(candidates)],
        _check(f"{name}: board", index.get("board", ""), str, "a string"),
    )


#: What reading a damaged zip file raises beside OSError and KeyError.
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


class Source:
    """Files of a folder or of a zip file by their paths."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        if not path.is_file() and not path.is_dir():
            raise TuneError(f"{path}: expected a folder or a zip file")
        try:
            self._zip = zipfile.ZipFile(path) if path.is_file() else None
        except (OSError, *_ZIP_ERRORS) as error:
            raise TuneError(f"{path}: expected a folder or a zip file: {error}") from None

    def read(self, name: str) -> bytes:
        try:
            return self._zip.read(name) if self._zip else (self.path / name).read_bytes()
        except (OSError, KeyError, *_ZIP_ERRORS) as error:
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
            except (ValueError, RecursionError) as error:
                raise TuneError(f"{self.path}: {name}: {error}") from None
            label = folder or self.path.stem
            if re.search(pattern, label):
                result.append((f"{folder}/" if folder else "", parse_problem(label, index)))
        if not result:
            raise TuneError(f"{self.path}: no index.json of a matching problem")
        return result

    def get_folder(self) -> pathlib.Path:
        """Where the files lie, for programs that read them."""
        if self._zip is not None:
            raise TuneError(f"{self.path}: --simulate: expected a folder, got a zip file")
        return self.path

    def pack(self, target: pathlib.Path) -> int:
        """Writes what timing needs to a zip file, as a whole or not at all; the
        number of kernels."""
        kernels = [name for name in self.names() if name.endswith(".attn")]
        if not kernels:
            raise TuneError(f"{self.path}: no kernels to pack")
        with _replace(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
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
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise TuneError(f"{path}: no file of results: {error}") from None
    _check(f"{path}: results", rows, list, "a list")
    return [parse_problem(f"{path}: results[{i}]", row) for i, row in enumerate(rows)]


@contextlib.contextmanager
def _replace(path: pathlib.Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of another as a whole or not at all."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        if isinstance(error, OSError):
            raise TuneError(f"cannot write {path}: {error.strerror or error}") from None
        raise


def write_json(path: pathlib.Path, contents: Any) -> None:
    """As a whole or not at all."""
    with _replace(path) as file:
        file.write((json.dumps(contents, indent=1) + "\n").encode())


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
    except (OSError, ValueError, KeyError, TypeError, AssertionError, RecursionError) as error:
        raise TuneError(f"{path}: no table of plans of version {VERSION}: {error}") from None
    for number, entry in enumerate(plans):
        what = f"{path}: plans[{number}]"
        _check(what, entry, dict, "an object")
        for name in ("chip", "plan"):
            _get(what, entry, name, str, "a string")
        parse_description(f"{what}: problem", entry.get("problem"))
    return plans


def merge(
    problems: Iterable[Problem], path: pathlib.Path, gain: float, ranges: bool = False
) -> tuple[int, int]:
    """Puts the fastest plans into a table, in the place of older rows that cover the
    same problems; with `ranges` problems of one plan that differ in lengths become one
    row. How many problems were measured, and how many of them another plan is for."""
    rows = read_table(path) if path.exists() else []
    measured = kept = 0
    found: list[dict[str, Any]] = []
    for problem in problems:
        if not any(each.measured_us for each in problem.candidates):
            continue
        measured += 1
        known = {"chip": problem.chip, "problem": problem.problem, "board": problem.board}
        entry = make_entry(problem, gain)
        found = [row for row in found if not table_rows.overlap(known, row)]
        found.append(entry or {**known, "plan": "", "microseconds": 0.0})
        covering = [row for row in rows if table_rows.overlap(known, row)]
        rows = [row for row in rows if row not in covering]
        if entry is not None:
            kept += 1
            # A range that says the same stays.
            same = [row for row in covering if row["plan"] == entry["plan"]]
            rows += [row for row in same if row["problem"] != problem.problem] or [entry]
    if ranges:
        rows = table_rows.join(rows, found)
    write_json(path, {"version": VERSION, "plans": rows})
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
    features = problem["features"]
    return " ".join([text, *(["any features"] if features == "any" else features)])


#
# Output
#


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


def simulate(folder: pathlib.Path, problem: Problem, report: Callable[[str], None]) -> None:
    """Replaces the estimates by those of attn-sim, which takes seconds each."""
    program = shutil.which("attn-sim")
    if program is None:
        raise TuneError("--simulate: no attn-sim on the PATH; pip install brings it")
    for each in problem.candidates:
        report(f"{problem.name} {each.name}")
        path = folder / each.name
        command = [program, f"{path}.ptx", f"--launch={path}.json", "--estimate", "--json"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            found = json.loads(done.stdout)["estimate"]["microseconds"]
            each.estimate_us = _check("attn-sim: estimate", found, float, "a finite number")
        except OSError as error:
            raise TuneError(f"cannot run {program}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError):
            each.error = f"attn-sim: {done.stderr.strip()[:120] or 'no estimate'}"
        except TuneError as error:
            each.error = str(error)


def find_timer(options: argparse.Namespace) -> tuple[Callable[..., None] | None, str]:
    """What times a problem and the board's name, or why there is none."""
    try:
        from .tuning import timing
    except ImportError as error:
        return None, f"no torch: {error}"
    try:
        board = timing.get_board()
    except RuntimeError as error:
        return None, f"no GPU: {error}"
    if board is None:
        return None, "no GPU"
    timer = timing.Timer(options.seconds)
    return timer.run, board


class _Progress:
    """How many problems, or kernels of them, are done."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = -1
        self._start = time.monotonic()
        self._line = long_calls.Line()

    def __call__(self, what: str) -> None:
        """The next one begins."""
        self._done += 1
        passed = time.monotonic() - self._start
        left = passed / self._done * (self._total - self._done) if self._done else -1.0
        self._line(f"{what} ({self._done + 1} of {self._total})", self._done / self._total, left)

    def clear(self) -> None:
        self._line.clear()


def rank(source: Source, work: list[tuple[str, Problem]], options: argparse.Namespace) -> int:
    """Without a GPU: by estimates. The number of problems with kernels that fail."""
    progress = _Progress(sum(len(problem.candidates) for _, problem in work))
    failed = 0
    for folder, problem in work:
        if options.simulate:
            simulate(source.get_folder() / folder, problem, progress)
        progress.clear()
        print(format_problem(problem), flush=True)
        failed += any(each.error for each in problem.candidates)
    return failed


def tune(options: argparse.Namespace) -> int:
    source = Source(options.folder)
    work = source.problems(options.filter)
    timer, board = find_timer(options)
    if timer is None:
        print(f"not timed: {board}; ranked by estimates")
        return 1 if rank(source, work, options) else 0
    path = options.json
    cache = kernel_cache.get_folder()
    if path is None and cache is not None:
        path = cache / "autotune.json"
    known = {each.key(): each for each in read_results(path)} if path and path.is_file() else {}
    progress = _Progress(len(work))
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
            failed += any(each.error for each in old.candidates)
            continue
        if time.monotonic() - start >= options.limit:
            print(f"{len(work) - index} problems left out: no time left")
            failed += 1
            break
        progress(problem.name)
        problem.board = board
        time_problem(timer, source, folder, problem)
        known[problem.key()] = problem
        failed += any(each.error for each in problem.candidates)
        progress.clear()
        print(format_problem(problem), flush=True)
        if path is not None:
            rows = [to_json(each) for each in known.values()]
            write_json(path, {"version": VERSION, "results": rows})
    if path is not None:
        print(f"results of {len(known)} problems in {path}")
    if options.table is not None:
        wanted = {problem.key() for _, problem in work}
        report_merge([each for key, each in known.items() if key in wanted], options)
    return 1 if failed else 0


def time_problem(timer: Callable[..., None], source: Source, folder: str, problem: Problem) -> None:
    """A GPU that fails under a kernel is a failure of the kernels that were not
    timed before."""
    try:
        timer(problem, lambda name: source.read(f"{folder}{name}.attn"))
    except RuntimeError as error:
        for each in problem.candidates:
            if each.measured_us is None:
                each.error = each.error or (str(error).split("\n")[0][:160] or "failed")


def report_merge(problems: list[Problem], options: argparse.Namespace) -> None:
    measured, kept = merge(problems, options.table, options.gain, not options.exact)
    print(
        f"{options.table}: {kept} plans of {measured} problems; for the others the compiler's "
        f"own plan is within {options.gain:.1%} of the fastest"
    )


def parse_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(
            f"expected a regular expression, got {text!r}: {error}"
        ) from None
    return text


def _parse_number(text: str, wanted: str, fits: Callable[[float], bool]) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not fits(number):
        raise argparse.ArgumentTypeError(f"expected {wanted}, got {text!r}")
    return number


def parse_share(text: str) -> float:
    return _parse_number(text, "a share from 0 to 1", lambda number: 0 <= number <= 1)


def parse_seconds(text: str) -> float:
    return _parse_number(text, "seconds, above 0 and at most 3600", lambda n: 0 < n <= 3600)


def parse_limit(text: str) -> float:
    return _parse_number(text, "seconds, 0 or more", lambda number: number >= 0)


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
    parser.add_argument(
        "--gain", type=parse_share, default=0.01, help="least gain that makes an entry"
    )
    parser.add_argument(
        "--exact", action="store_true", help="rows for measured lengths alone, no ranges"
    )
    parser.add_argument(
        "--filter", type=parse_pattern, default="", metavar="REGEX", help="only problems that match"
    )
    parser.add_argument(
        "--seconds", type=parse_seconds, default=0.1, help="time of a kernel in a round"
    )
    parser.add_argument(
        "--limit", type=parse_limit, default=float("inf"), help="start nothing after it"
    )
    parser.add_argument("--again", action="store_true", help="also time what is known")
    parser.add_argument("--simulate", action="store_true", help="without GPU: ask attn-sim")
    options = parser.parse_args(arguments)
    modes = [options.folder, options.merge, options.list]
    if sum(mode is not None for mode in modes) != 1:
        parser.error("expected one of FOLDER, --merge and --list")
    if options.merge is not None and options.table is None:
        parser.error("--merge needs --table")
    try:
        return _run(options)
    except (TuneError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; what was timed before is kept", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> int:
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
    return 0


if __name__ == "__main__":
    sys.exit(main())
