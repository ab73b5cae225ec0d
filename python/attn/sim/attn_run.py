"""attn-run: a program that launches GPU kernels, on a machine without a GPU.

    attn-run --chips=sm_80,sm_90a python program.py

runs the program once for each chip, with the stand-in for the CUDA driver
(docs/StandInDriver.md) in front of the loader's path, and says at the end what was launched and
found. The status is the program's; 1 where it is 0 and something was found.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

from ..errors import ArgumentError, AttnError
from . import cute_setup, stand_in, triton_setup

#: Severities that make --fail-on fail, by its value.
_FAILS = {"error": {"error"}, "any": {"error", "hw-only", "note"}, "never": set()}


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="attn-run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--chips", default="sm_90a", help="run once for each of these (default: %(default)s)"
    )
    parser.add_argument(
        "--corners",
        action="store_true",
        help="run each chip again with other orders of warps (seeds 1 and 2)",
    )
    parser.add_argument(
        "--report",
        metavar="FILE",
        help="write what was found: .json, .sarif (of the last run with findings), else text",
    )
    parser.add_argument(
        "--fail-on",
        choices=sorted(_FAILS),
        default="error",
        help="findings that make the status 1 (default: %(default)s)",
    )
    parser.add_argument(
        "--record", metavar="FOLDER", help="record launches with findings, for attn-sim --recorded"
    )
    parser.add_argument(
        "--suppress", metavar="FILE", help="findings that do not count, with reasons"
    )
    parser.add_argument(
        "--strict", action="store_true", help="report races of loads whose value nobody uses"
    )
    parser.add_argument(
        "--estimate",
        action="store_true",
        help="estimate each launch's time on the chip (docs/CycleModel.md), and what limits it",
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, help="the program and its arguments")
    options = parser.parse_args(arguments)
    if options.program[:1] == ["--"]:
        del options.program[0]
    if not options.program:
        parser.error("expected a program to run, got none")
    return options


def _run_once(
    options: argparse.Namespace,
    chip: str,
    seed: int | None,
    report: pathlib.Path,
    forms: list[str],
) -> tuple[int, dict[str, Any] | None]:
    """Runs the program on one chip, which writes its report in each of the forms. Returns its
    status and its report; None where it has launched nothing, or has ended without one."""
    environment = dict(os.environ)
    triton_setup.prepare_environment(chip, environment)
    cute_setup.prepare_environment(chip, environment, str(report.with_suffix(".cute")))
    folder = str(stand_in.find_folder())
    paths = [folder, *filter(None, [environment.get("LD_LIBRARY_PATH")])]
    environment["LD_LIBRARY_PATH"] = os.pathsep.join(paths)
    # Interpreters find the driver object for Triton, and this package, on their path.
    own = pathlib.Path(__file__).resolve().parent
    modules = [str(own / "autoload"), environment.get("PYTHONPATH"), str(own.parents[1])]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, modules))
    reports = [str(report.with_suffix(form)) for form in forms]
    environment["ATTN_SIM_REPORT"] = ":".join(reports)
    environment["ATTN_SIM_LABEL"] = report.stem
    environment["ATTN_SIM_SITES"] = "1"
    if seed is not None:
        environment["ATTN_SIM_SEED"] = str(seed)
    if options.record:
        environment["ATTN_SIM_RECORD"] = str(pathlib.Path(options.record, report.stem))
    if options.estimate:
        environment["ATTN_SIM_ESTIMATE"] = "1"
    if options.strict:
        environment["ATTN_SIM_STRICT"] = "1"
    if options.suppress:
        environment["ATTN_SIM_SUPPRESS"] = options.suppress
    try:
        status = subprocess.run(options.program, env=environment, check=False).returncode
    except OSError as error:
        print(f"attn-run: {options.program[0]}: {error.strerror}", file=sys.stderr)
        return 127, None
    if not report.exists():
        return status, None
    return status, json.loads(report.read_text())


def _format_estimate(kernel: dict[str, Any]) -> str:
    """The columns of what the cycle model says; dashes where it refuses a kernel."""
    if "limiter" not in kernel:
        return f" {'-':>13} -"
    return f" {kernel['estimated_microseconds']:13.1f} {kernel['limiter']}"


def _print_table(runs: list[tuple[str, dict[str, Any] | None]], has_estimates: bool) -> None:
    print(
        f"{'chip':10} {'kernel':40} {'launches':>8} {'warp instructions':>18} {'seconds':>9} "
        f"{'findings':>8}" + f" {'estimated us':>13} limiter" * has_estimates,
        file=sys.stderr,
    )
    for name, report in runs:
        for kernel in (report or {}).get("kernels", []):
            print(
                f"{name:10} {kernel['kernel'][:40]:40} {kernel['launches']:8} "
                f"{kernel['warp_instructions']:18} {kernel['seconds']:9.3f} "
                f"{kernel['findings']:8}" + _format_estimate(kernel) * has_estimates,
                file=sys.stderr,
            )
        if report is None:
            print(f"{name:10} launched nothing", file=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    """Runs a command line, and returns the status."""
    options = _parse(arguments)
    status = 0
    runs: list[tuple[str, dict[str, Any] | None]] = []
    asked = pathlib.Path(options.report or "").suffix
    form = asked if asked in (".json", ".sarif") else ".txt"
    paths = []
    try:
        stand_in.check_absent()
        with tempfile.TemporaryDirectory() as folder:
            if ":" in folder:
                # The stand-in's variable has several paths with it between them.
                raise ArgumentError(
                    f"expected a folder for temporary files without ':', got {folder}; set TMPDIR"
                )
            for chip in options.chips.split(","):
                for seed in (None, 1, 2) if options.corners else (None,):
                    name = chip if seed is None else f"{chip}-{seed}"
                    path = pathlib.Path(folder) / f"{name}.json"
                    code, report = _run_once(options, chip, seed, path, [".json", ".github", form])
                    paths.append(path)
                    runs.append((name, report))
                    status = status or code
            if options.report:
                joined = _join([path.with_suffix(form) for path in paths], form)
                pathlib.Path(options.report).write_text(joined)
            # GitHub shows these annotations beside the lines of a change.
            if os.environ.get("GITHUB_ACTIONS"):
                print(_join([path.with_suffix(".github") for path in paths], ".github"), end="")
    except AttnError as error:
        print(f"attn-run: {error}", file=sys.stderr)
        return 2
    _print_table(runs, options.estimate)
    found = [each for _, report in runs for each in (report or {}).get("findings", [])]
    fails = [each for each in found if each["severity"] in _FAILS[options.fail_on]]
    return status or int(any("suppressed" not in each for each in fails))


def _join(paths: list[pathlib.Path], form: str) -> str:
    """The reports of all runs as one. Each run has written its own in this form; those that
    launched nothing have none."""
    parts = {path.stem: path.read_text() for path in paths if path.exists()}
    if form == ".json":
        runs = {path.stem: json.loads(parts.get(path.stem, "null")) for path in paths}
        return json.dumps({"version": 1, "runs": runs}, indent=2) + "\n"
    if form != ".sarif":
        return "".join(parts.values())
    whole: dict[str, Any] = {"version": "2.1.0", "runs": []}
    for name, part in parts.items():
        read = json.loads(part)
        runs = [{**run, "automationDetails": {"id": name}} for run in read["runs"]]
        whole = {**read, "runs": [*whole["runs"], *runs]}
    return json.dumps(whole, indent=2) + "\n"


if __name__ == "__main__":
    sys.exit(main())
