#!/usr/bin/env python3
"""Plants each bug of test/mutants.toml in turn and asks whether a test turns red.

All bugs are compiled into one copy of the sources, each behind a number that the
environment variable ATTN_MUTANT chooses, so that one build serves them all. For each
bug the tests that it names run first, several bugs at a time; then, one after another,
all tests for those bugs that none of their own noticed. The first red test ends a bug.
A bug that no test notices survives.

With --random it plants bugs that chance draws (scripts/random_mutants.py) in place of the
list. Each is judged by the tests nearest to its file alone. Those that do not compile are left
out, and those of test/mutants-equivalent.toml count as equivalent.

usage: scripts/mutate-source.py [--only=REGEX] [--named] [--jobs=N] [--again]
       scripts/mutate-source.py --random=N [--seed=N] [--under=REGEX] [--list]
       scripts/mutate-source.py --check     that every bug can still be planted
  --named   only the tests that each bug names
  --under   of files whose path matches, such as lib/Analysis or 'Async|Clocks'
  --list    says which bugs were drawn, and plants none
  --jobs    bugs at a time, and tests at a time where all run
  --again   forget earlier verdicts

Verdicts of the same sources and tests stay, so that the next call goes on there. The
last line is "N killed, N survived". The exit status is 1 when one survived.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import hashlib
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import tomllib

import random_mutants

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "test/mutants.toml"
BUILD = pathlib.Path(os.environ.get("ATTN_BUILD", ROOT / "build"))
LIT = pathlib.Path(os.environ.get("LLVM_BIN", "/usr/lib/llvm-22/bin")) / "lit"
# Of all tests of a bug, beyond which it hangs: the whole suite takes a third.
SECONDS = 1800
# Least mutants of the list.
LEAST = 60
NAMED_GREEN = "named tests green"

HEADER = """#ifndef ATTN_MUTANT_H
#define ATTN_MUTANT_H
#include <cstdlib>
inline bool attn_mutant(int number) {
  static const int active = [] {
    const char *text = std::getenv("ATTN_MUTANT");
    return text ? std::atoi(text) : 0;
  }();
  return active == number;
}
#endif
"""
# lit gives its tests a clean environment.
LIT_LINE = '\nimport os\n\nconfig.environment["ATTN_MUTANT"] = os.environ.get("ATTN_MUTANT", "0")\n'


@dataclasses.dataclass
class Mutant:
    number: int
    name: str
    file: str
    old: str
    new: str
    at: str
    tests: list[str]
    statement: bool
    # Where `old` is in the file; for those of the list `at` says it.
    start: int = -1
    # Why nobody can see it.
    equivalent: str = ""

    def find(self, text: str) -> int:
        return self.start if self.start >= 0 else text.index(self.at) + self.at.index(self.old)

    def is_expression(self) -> bool:
        """Whether parentheses can stand around `old`, and around `new`."""
        for text in (self.old, self.new):
            depths = list(itertools.accumulate((c in "([{") - (c in ")]}") for c in text))
            if not text.strip() or min(depths) < 0 or depths[-1]:
                return False
            # Nor are statements and several arguments one.
            if any(c in ",;" and depth == 0 for c, depth in zip(text, depths)):
                return False
        # The end of a qualified name is none.
        return not self.at.partition(self.old)[0].endswith(("::", "->", "."))

    def planted(self) -> str:
        """What stands in place of `old`."""
        if self.file.endswith(".py"):
            chosen = f'__import__("os").environ.get("ATTN_MUTANT") == "{self.number}"'
            return f"(({self.new}) if {chosen} else ({self.old}))"
        if not self.statement:
            return f"(::attn_mutant({self.number}) ? ({self.new}) : ({self.old}))"
        otherwise = self.new or ";"
        chosen = f"if (::attn_mutant({self.number})) {{ {otherwise} }} else {{ {self.old} }}"
        # A list's entry may stand where a declaration does; chance may draw a branch.
        return chosen if self.start < 0 else f"{{ {chosen} }}"


def read_list() -> list[Mutant]:
    entries = tomllib.loads(LIST.read_text())["mutant"]
    mutants = []
    for number, entry in enumerate(entries, 1):
        mutants.append(Mutant(
            number, entry["name"], entry["file"], entry["old"], entry["new"],
            entry.get("at", entry["old"]), entry["tests"], entry.get("statement", False),
        ))  # fmt: skip
    return mutants


def draw(count: int, seed: int, under: str) -> list[Mutant]:
    equivalent = random_mutants.read_equivalent()
    mutants = []
    for number, site in enumerate(random_mutants.draw(count, seed, under), 1):
        key = (site.file, site.function, *map(random_mutants.compact, (site.old, site.new)))
        area = next(area for area in random_mutants.AREAS if site.file.startswith(area))
        mutants.append(Mutant(
            number, random_mutants.name_of(site, number), site.file, site.old, site.new,
            site.old, random_mutants.AREAS[area][0], site.statement, site.start,
            equivalent.get(key, ""),
        ))  # fmt: skip
    return mutants


def problems_of(mutants: list[Mutant]) -> list[str]:
    problems, names, planted = [], set(), {}
    for m in mutants:
        if m.name in names:
            problems.append(f"{m.name}: expected one bug of a name, got two")
        names.add(m.name)
        path = ROOT / m.file
        text = path.read_text() if path.exists() else ""
        places, inside = text.count(m.at), m.at.count(m.old)
        if places != 1:
            problems.append(f"{m.name}: expected its place once in {m.file}, got {places}: {m.at}")
        elif inside != 1:
            problems.append(f"{m.name}: expected '{m.old}' once in its place, got {inside}")
        elif not m.statement and not m.is_expression():
            problems.append(f"{m.name}: expected a whole expression, got '{m.old}' in '{m.at}'")
        elif m.at not in planted.setdefault(m.file, text):
            problems.append(f"{m.name}: expected a place of its own, got another bug's")
        else:
            planted[m.file] = planted[m.file].replace(m.at, m.at.replace(m.old, m.planted()))
        for test in m.tests:
            if not (ROOT / test).exists():
                problems.append(f"{m.name}: there is no test {test}")
            elif test.startswith("unittests/") and not (ROOT / test).is_dir():
                problems.append(f"{m.name}: expected a folder of unit tests, got {test}")
    if len(mutants) < LEAST:
        problems.append(f"expected at least {LEAST} bugs, got {len(mutants)}")
    return problems + random_mutants.problems_of_equivalent()


def write_if_changed(path: pathlib.Path, data: bytes) -> None:
    if path.exists() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def plant(mutants: list[Mutant], tree: pathlib.Path) -> str:
    """Copies the sources with all bugs into `tree`; a hash of what it has."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True,
    ).stdout.decode()  # fmt: skip
    names = sorted(name for name in listed.split("\0") if name and (ROOT / name).is_file())
    by_file: dict[str, list[Mutant]] = {}
    for m in mutants:
        by_file.setdefault(m.file, []).append(m)
    digest = hashlib.sha256()
    for name in names:
        data = (ROOT / name).read_bytes()
        digest.update(name.encode() + b"\0" + data)
        if name in by_file:
            text = data.decode()
            places = sorted(((m.find(text), m) for m in by_file[name]), key=lambda p: -p[0])
            for start, m in places:
                text = text[:start] + m.planted() + text[start + len(m.old) :]
            if not name.endswith(".py"):
                text = re.sub(r"^#include", '#include "attn_mutant.h"\n#include', text, count=1,
                              flags=re.M)  # fmt: skip
            data = text.encode()
        if name in ("test/lit.cfg.py", "unittests/lit.cfg.py"):
            data += LIT_LINE.encode()
        target = tree / name
        write_if_changed(target, data)
        target.chmod((ROOT / name).stat().st_mode)
    write_if_changed(tree / "include/attn_mutant.h", HEADER.encode())
    # Scripts and tests ask git for files.
    if not (tree / ".git").exists():
        subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    subprocess.run(["git", "add", "-A", "-f", "--", *names], cwd=tree, check=True)
    return digest.hexdigest()


def run_lit(tree: pathlib.Path, number: int, tests: list[str], jobs: int) -> tuple[str, float]:
    """The first red test, or an empty string."""
    result = tree / f"build/mutant-{number}.json"
    result.unlink(missing_ok=True)
    start = time.monotonic()
    process = subprocess.Popen(
        [LIT, "-q", f"-j{jobs}", "--max-failures=1", "-o", result,
         *(tree / "build" / test for test in tests)],
        env={**os.environ, "ATTN_MUTANT": str(number), "ATTN_NIGHTLY": "1"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, start_new_session=True,
    )  # fmt: skip
    try:
        text, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        # A bug that hangs has been noticed.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"no end after {SECONDS} s", SECONDS
    seconds = time.monotonic() - start
    if not result.exists():
        raise SystemExit(f"lit gave no result:\n{text[-4000:]}")
    tests_run = json.loads(result.read_text())["tests"]
    result.unlink()
    bad = ("FAIL", "XPASS", "UNRESOLVED", "TIMEOUT")
    return next((t["name"] for t in tests_run if t["code"] in bad), ""), seconds


def build(tree: pathlib.Path, targets: list[str]) -> str:
    """What the build says if it fails."""
    environment = {k: v for k, v in os.environ.items() if k != "ATTN_BUILD"}
    log = tree / "build.log"
    with log.open("w") as file:
        done = subprocess.run(["scripts/build.sh", "-k", "0", *targets], cwd=tree,
                              env=environment, stdout=file, stderr=subprocess.STDOUT,
                              check=False)  # fmt: skip
    return log.read_text() if done.returncode else ""


def fail_to_build(log: str) -> None:
    raise SystemExit("the sources with all bugs do not build:\n" + "\n".join(log.splitlines()[-30:]))


def build_drawn(mutants: list[Mutant], tree: pathlib.Path) -> tuple[str, list[Mutant]]:
    """Builds, without those that do not compile; a hash of the sources, and what is left."""
    targets = sorted({
        target for m in mutants for area, (_, built) in random_mutants.AREAS.items()
        if m.file.startswith(area) for target in built
    })  # fmt: skip
    while True:
        digest = plant(mutants, tree)
        print(f"building the sources with {len(mutants)} bugs in {tree}", flush=True)
        # The compiler is told to write in colours.
        log = re.sub(r"\x1b\[[0-9;]*m", "", build(tree, targets))
        if not log:
            return digest, mutants
        bad = set()
        for file, line in re.findall(r"(lib/\S+?):(\d+):\d+: (?:fatal )?error", log):
            if not (tree / file).exists():
                continue
            planted = (tree / file).read_text().splitlines()
            # An error may stand some lines into an expression.
            for text in planted[max(0, int(line) - 8) : int(line)]:
                bad.update(int(n) for n in re.findall(r"attn_mutant\((\d+)\)", text))
        if not bad:
            fail_to_build(log)
        for m in mutants:
            if m.number in bad:
                print(f"{m.name}: left out, or one beside it: it does not compile", flush=True)
        mutants = [m for m in mutants if m.number not in bad]


def share_a_folder(one: Mutant, other: Mutant) -> bool:
    """Whether a test of both writes to the same place; a unit test writes nowhere."""
    ours, theirs = ([t for t in m.tests if not t.startswith("unittests/")] for m in (one, other))
    return any(f"{a}/".startswith(f"{b}/") or f"{b}/".startswith(f"{a}/")
               for a in ours for b in theirs)  # fmt: skip


class Verdicts:
    """What happened to each bug, kept in a file for sources with the same hash."""

    def __init__(self, path: pathlib.Path, digest: str, again: bool) -> None:
        self.path = path
        self.state = json.loads(path.read_text()) if path.exists() else {}
        if self.state.get("digest") != digest or again:
            self.state = {"digest": digest, "verdicts": {}}

    def get(self, m: Mutant) -> str:
        return self.state["verdicts"].get(m.name, "")

    def set(self, m: Mutant, verdict: str, seconds: float) -> None:
        self.state["verdicts"][m.name] = verdict
        self.path.write_text(json.dumps(self.state, indent=1))
        print(f"{m.name}: {verdict} ({seconds:.0f} s)", flush=True)


def judge_by_named(tree: pathlib.Path, mutants: list[Mutant], jobs: int, verdicts: Verdicts) -> None:
    waiting, running = list(mutants), {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        while waiting or running:
            for m in [*waiting]:
                if len(running) < jobs and not any(share_a_folder(m, r) for r in running.values()):
                    running[pool.submit(run_lit, tree, m.number, m.tests, 1)] = m
                    waiting.remove(m)
            done, _ = concurrent.futures.wait(
                running, return_when=concurrent.futures.FIRST_COMPLETED
            )
            for future in done:
                red, seconds = future.result()
                verdicts.set(running.pop(future), red or NAMED_GREEN, seconds)


def describe(m: Mutant) -> str:
    old, new = map(random_mutants.compact, (m.old, m.new))
    return f"{old}  ->  {new or 'nothing'}" + (f" (equivalent: {m.equivalent})" if m.equivalent else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--named", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--random", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--under", default="", metavar="REGEX")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--tree", type=pathlib.Path, default=BUILD / "mutants/tree")
    parser.add_argument("--state", type=pathlib.Path, default=BUILD / "mutants/state.json")
    options = parser.parse_args()
    mutants = draw(options.random, options.seed, options.under) if options.random else read_list()
    problems = [] if options.random else problems_of(mutants)
    if problems or options.check:
        print("\n".join(problems) or f"{len(mutants)} bugs can be planted")
        return int(bool(problems))
    if options.list:
        for m in mutants:
            print(f"{m.name}: {m.file}: {describe(m)}")
        return 0
    tree = options.tree
    tree.mkdir(parents=True, exist_ok=True)
    if options.random:
        digest, mutants = build_drawn([m for m in mutants if not m.equivalent or options.again], tree)
    else:
        digest = plant(mutants, tree)
        print(f"building the sources with {len(mutants)} bugs in {tree}", flush=True)
        if log := build(tree, ["all", "AttnUnitTests"]):
            fail_to_build(log)
    chosen = [m for m in mutants if re.search(options.only, m.name)]
    red, seconds = run_lit(tree, 0, sorted({t for m in chosen for t in m.tests}), options.jobs)
    print(f"without a bug: {'red: ' + red if red else 'green'} ({seconds:.0f} s)", flush=True)
    if red:
        return 1
    verdicts = Verdicts(options.state, digest, options.again)
    fresh = [m for m in chosen if not verdicts.get(m)]
    if options.random:
        # All have the same tests, which write to one place.
        for m in fresh:
            red, seconds = run_lit(tree, m.number, m.tests, options.jobs)
            verdicts.set(m, red or NAMED_GREEN, seconds)
    else:
        judge_by_named(tree, fresh, options.jobs, verdicts)
    if not options.named and not options.random:
        for m in (m for m in chosen if verdicts.get(m) == NAMED_GREEN):
            red, seconds = run_lit(tree, m.number, ["test", "unittests"], options.jobs)
            verdicts.set(m, red or "survived", seconds)
    survivors = [m for m in chosen if verdicts.get(m) in ("survived", NAMED_GREEN)]
    for m in survivors:
        print(f"survived: {m.name}: {m.file}: {describe(m)}")
    print(f"{len(chosen) - len(survivors)} killed, {len(survivors)} survived")
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main())
