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

from ..errors import AttnError
from . import stand_in, triton_setup

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
    parser.add_argument("--suppress", metavar="FILE", help="findings that do not count, with reasons")
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
    options: argparse.Namespace, chip: str, seed: int | None, report: pathlib.Path
) -> tuple[int, dict[str, Any] | None]:
    """Runs the program on one chip. Returns its status and its report; None where it has
    launched nothing, or has ended without one."""
    environment = dict(os.environ)
    triton_setup.prepare_environment(chip, environment)
    folder = str(stand_in.find_folder())
    paths = [folder, *filter(None, [environment.get("LD_LIBRARY_PATH")])]
    environment["LD_LIBRARY_PATH"] = os.pathsep.join(paths)
    # Interpreters find the driver object for Triton, and this package, on their path.
    own = pathlib.Path(__file__).resolve().parent
    modules = [str(own / "autoload"), environment.get("PYTHONPATH"), str(own.parents[1])]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, modules))
    environment["ATTN_SIM_REPORT"] = str(report)
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


def _print_table(
    runs: list[tuple[str, dict[str, Any] | None]], has_estimates: bool
) -> None:
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
    try:
        stand_in.check_absent()
        with tempfile.TemporaryDirectory() as folder:
            for chip in options.chips.split(","):
                for seed in (None, 1, 2) if options.corners else (None,):
                    name = chip if seed is None else f"{chip}-{seed}"
                    path = pathlib.Path(folder) / f"{name}.json"
                    code, report = _run_once(options, chip, seed, path)
                    runs.append((name, report))
                    status = status or code
    except AttnError as error:
        print(f"attn-run: {error}", file=sys.stderr)
        return 2
    _print_table(runs, options.estimate)
    found = [
        {**finding, "chip": name}
        for name, report in runs
        for finding in (report or {}).get("findings", [])
    ]
    if options.report:
        pathlib.Path(options.report).write_text(_format(options.report, runs, found))
    if os.environ.get("GITHUB_ACTIONS"):
        _annotate(found)
    fails = [each for each in found if each["severity"] in _FAILS[options.fail_on]]
    return status or int(any("suppressed" not in each for each in fails))


def _find_place(finding: dict[str, Any]) -> tuple[str, int]:
    """File and line that a finding belongs to: its own, those of the launch, or of the PTX."""
    site = finding.get("second") or {}
    if "file" in site:
        return site["file"], max(1, site["line"])
    if finding.get("site"):
        file, _, line = finding["site"].rpartition(":")
        return file, max(1, int(line))
    return "kernel.ptx", max(1, site.get("ptx_line", 1))


def _describe(finding: dict[str, Any]) -> str:
    kernel = f"{finding['kernel']}: " if finding.get("kernel") else ""
    return f"{finding['chip']}: {kernel}{finding['message']}"


def _format(path: str, runs: list[Any], found: list[dict[str, Any]]) -> str:
    if path.endswith(".json"):
        whole = {name: report for name, report in runs}
        return json.dumps({"version": 1, "runs": whole}, indent=2) + "\n"
    if path.endswith(".sarif"):
        return json.dumps(_make_sarif(found), indent=2) + "\n"
    lines = []
    for each in found:
        file, line = _find_place(each)
        lines.append(f"{file}:{line}: {each['severity']}: {each['kind']}: {_describe(each)}")
    return "".join(line + "\n" for line in lines)


def _annotate(found: list[dict[str, Any]]) -> None:
    """Prints what GitHub shows beside the lines of a change."""
    levels = {"error": "error", "hw-only": "warning", "note": "notice"}
    for each in found:
        if "suppressed" not in each:
            file, line = _find_place(each)
            print(f"::{levels[each['severity']]} file={file},line={line},title={each['kind']}::{_describe(each)}")


def _make_sarif(found: list[dict[str, Any]]) -> dict[str, Any]:
    def locate(file: str, line: int) -> dict[str, Any]:
        place = {"artifactLocation": {"uri": file}, "region": {"startLine": line}}
        return {"physicalLocation": place}

    levels = {"error": "error", "hw-only": "warning", "note": "note"}
    results = []
    for each in found:
        result: dict[str, Any] = {
            "ruleId": each["kind"],
            "level": levels[each["severity"]],
            "message": {"text": _describe(each)},
            "locations": [locate(*_find_place(each))],
        }
        earlier = {"second": each.get("first"), "site": each.get("earlier_site", "")}
        if each.get("first") or earlier["site"]:
            result["relatedLocations"] = [locate(*_find_place(earlier))]
        if "suppressed" in each:
            result["suppressions"] = [{"kind": "external", "justification": each["suppressed"]}]
        results.append(result)
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": {"name": "attn"}}, "results": results}],
    }


if __name__ == "__main__":
    sys.exit(main())
