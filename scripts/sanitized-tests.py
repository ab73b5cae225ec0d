#!/usr/bin/env python3
"""Runs the suite in a build with sanitizers, and collects what they report.

A test can pass with an error of memory inside: under `not`, or where the value read
after its end is still there. So the sanitizers write into a folder, and each kind of
report counts once, whatever its test says. A build of the preset `sanitize` is
expected, with its unit tests:

  cmake --preset sanitize -B build/sanitize
  ninja -C build/sanitize all AttnUnitTests

usage: scripts/sanitized-tests.py [--build=FOLDER] [--filter=REGEX] [--jobs=N] [--seconds=N]
       scripts/sanitized-tests.py --read=FOLDER   what the reports in a folder say
  --filter    only these tests, as lit takes it
  --seconds   most processor time of one command of a test; those beyond are listed apart
The exit status is 1 when a sanitizer reported something of ours, or a test failed by
anything but its time.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time

import fuzz

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIT = f"{fuzz.LLVM_BIN}/lit"
# Where one report of a file ends and the next one starts.
START = re.compile(r"^(?==+\n==\d+==ERROR)|^(?=\S+:\d+:\d+: runtime error: )", re.M)


def read_reports(folder: pathlib.Path) -> tuple[dict[str, list[str]], int]:
    """Of each kind of ours, its reports; and how many are upstream's."""
    ours, upstream = collections.defaultdict(list), 0
    for path in sorted(folder.iterdir()):
        for report in START.split(path.read_text(errors="replace")):
            said = re.search(r"ERROR: \w+: (\S+)", report)
            name, is_ours = fuzz.name_end(said[1] if said else "", report)
            if not name:
                continue
            if is_ours:
                ours[name].append(report)
            else:
                upstream += 1
    return ours, upstream


def show_reports(folder: pathlib.Path) -> int:
    """Prints one report of each kind; how many kinds are ours."""
    ours, upstream = read_reports(folder)
    for name, each in sorted(ours.items()):
        print(f"{len(each)} x {name}\n{each[0][:4000]}")
    print(f"{len(ours)} kinds of reports of ours, {upstream} reports of upstream")
    return len(ours)


def run_lit(options: argparse.Namespace, reports: pathlib.Path) -> list[dict]:
    results = options.build / "sanitized-tests.json"
    results.unlink(missing_ok=True)
    log = f":log_path={reports}/report"
    environment = {
        **os.environ,
        "LLVM_SYMBOLIZER_PATH": fuzz.ENVIRONMENT["LLVM_SYMBOLIZER_PATH"],
        "ASAN_OPTIONS": fuzz.ENVIRONMENT["ASAN_OPTIONS"] + log,
        # A test goes on behind what is undefined, and shows the rest.
        "UBSAN_OPTIONS": "print_stacktrace=1" + log,
    }
    command = [LIT, "-q", f"-j{options.jobs}", "-o", results, f"--filter={options.filter}"]
    command += [options.build / "test", options.build / "unittests"]
    limit = (options.seconds, options.seconds)
    subprocess.run(
        command, env=environment, check=False, stdin=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, limit),
    )  # fmt: skip
    if not results.exists():
        raise SystemExit("lit gave no result")
    return json.loads(results.read_text())["tests"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/sanitize")
    parser.add_argument("--filter", default="", metavar="REGEX")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=int, default=900)
    parser.add_argument("--read", type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    if options.read:
        return int(show_reports(options.read) > 0)
    options.build = options.build.resolve()
    reports = options.build / "sanitizer-reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir()
    start = time.monotonic()
    tests = run_lit(options, reports)
    counts = collections.Counter(test["code"] for test in tests)
    failed = [t for t in tests if t["code"] in ("FAIL", "XPASS", "UNRESOLVED", "TIMEOUT")]
    late = [t for t in failed if re.search(r"CPU time limit exceeded|-24\b|SIGXCPU", t["output"])]
    for test in failed:
        print(f"{'late' if test in late else 'failed'}: {test['name']}")
    print(f"{counts['PASS']} passed, {len(failed) - len(late)} failed, {len(late)} over their "
          f"time in {time.monotonic() - start:.0f} s")  # fmt: skip
    return int(show_reports(reports) > 0 or len(failed) > len(late))


if __name__ == "__main__":
    sys.exit(main())
