"""Compiles every cell of the form table.

For each chip and each PTX version in which forms become available there: one
module with all those forms must compile (and assemble, with --ptxas). For each
form that a chip lacks, and for each form one PTX version before it becomes
available: every use must get our diagnostic, and nothing else may.

usage: run-forms.py FORMS TABLE.json WORKDIR --attn-opt=PATH [--ptxas=PATH]
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys

PTX_VERSIONS = [70, 71, 72, 73, 74, 75, 76, 77, 78] + list(range(80, 89)) + [90]

Section = collections.namedtuple("Section", "form parameters attributes body")


def read_sections(path):
    sections = []
    for line in open(path):
        line = line.rstrip("\n")
        if line.startswith("#") or not line.strip():
            continue
        header = re.fullmatch(r"== (.*?) \((.*?)\) ?(.*)", line)
        if header:
            sections.append(Section(*header.groups(), []))
        else:
            sections[-1].body.append(line)
    return sections


def version(ptx):
    return f"{ptx // 10}.{ptx % 10}"


class Module:
    """A gpu.module with one kernel for each section, and where they stand."""

    def __init__(self, chip, ptx, sections):
        self.chip, self.ptx, self.sections = chip, ptx, sections
        lines = [f'gpu.module @forms [#attn.target<chip = "{chip}", ptx = {ptx}>] {{']
        self.ranges = []
        for number, section in enumerate(sections):
            attributes = ", ".join(filter(None, ["nvvm.kernel", section.attributes]))
            first = len(lines) + 1
            lines.append(f"llvm.func @k{number}({section.parameters}) attributes {{{attributes}}} {{")
            lines += section.body + [" llvm.return", "}"]
            self.ranges.append((first, len(lines)))
        lines.append("}")
        self.text = "\n".join(lines) + "\n"

    def section_at(self, line):
        for section, (first, last) in zip(self.sections, self.ranges):
            if first <= line <= last:
                return section
        return None


class Runner:
    def __init__(self, options, table):
        self.options = options
        self.forms = {form["name"]: form for form in table["forms"]}

    def compile(self, module, kind):
        stem = os.path.join(self.options.workdir, f"{module.chip}-{module.ptx}-{kind}")
        with open(stem + ".mlir", "w") as stream:
            stream.write(module.text)
        command = [self.options.attn_opt, stem + ".mlir", "-o", os.devnull, "--mlir-disable-threading",
                   f"--pass-pipeline=builtin.module(gpu.module(attn-emit-ptx{{output={stem}.ptx}}))"]
        result = subprocess.run(command, capture_output=True, text=True)
        return stem, result

    def expect_success(self, module):
        stem, result = self.compile(module, "accepted")
        if result.returncode:
            return [f"{stem}.mlir does not compile:\n{result.stderr}"]
        if not self.options.ptxas:
            return []
        result = subprocess.run(
            [self.options.ptxas, "-arch=" + module.chip, "-O0", stem + ".ptx", "-o", os.devnull],
            capture_output=True, text=True)
        if result.returncode:
            return [f"{stem}.ptx does not assemble:\n{result.stdout}{result.stderr}"]
        return []

    def expect_errors(self, module):
        stem, result = self.compile(module, "refused")
        if result.returncode != 1:
            return [f"{stem}.mlir: expected exit status 1, got {result.returncode}\n{result.stderr}"]
        problems = []
        refused = set()
        for line, text in re.findall(r"\.mlir:(\d+):\d+: error: (.*)", result.stderr):
            section = module.section_at(int(line))
            got = f"got {module.chip} and PTX {version(module.ptx)}"
            if section is None or got not in text:
                problems.append(f"{stem}.mlir:{line}: unexpected error: {text}")
                continue
            form = self.forms[section.form]
            if f"PTX {version(form['ptx'])}," in text or f"needs {form['chips']} and " in text:
                refused.add(id(section))
        for section in module.sections:
            if id(section) not in refused:
                problems.append(f"{stem}.mlir: no error for '{section.form}'")
        return problems


def make_jobs(runner, table, sections):
    for target in table["targets"]:
        chip, least = target["chip"], target["min_ptx"]
        accepted = collections.defaultdict(list)
        refused = collections.defaultdict(list)
        for section in sections:
            form = runner.forms[section.form]
            if form["needs"] not in target["capabilities"]:
                refused[max(target["default_ptx"], form["ptx"])].append(section)
                continue
            accepted[max(form["ptx"], least)].append(section)
            if form["ptx"] > least:
                before = max(ptx for ptx in PTX_VERSIONS if ptx < form["ptx"])
                refused[before].append(section)
        for ptx, chosen in accepted.items():
            yield runner.expect_success, Module(chip, ptx, chosen)
        for ptx, chosen in refused.items():
            yield runner.expect_errors, Module(chip, ptx, chosen)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("forms")
    parser.add_argument("table")
    parser.add_argument("workdir")
    parser.add_argument("--attn-opt", required=True)
    parser.add_argument("--ptxas")
    options = parser.parse_args()
    os.makedirs(options.workdir, exist_ok=True)
    with open(options.table) as stream:
        table = json.load(stream)
    sections = read_sections(options.forms)
    runner = Runner(options, table)
    problems = [f"no use of the form '{name}'" for name in runner.forms
                if not any(section.form == name for section in sections)]
    problems += [f"unknown form '{section.form}'" for section in sections if section.form not in runner.forms]
    if not problems:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(check, module) for check, module in make_jobs(runner, table, sections)]
            for job in jobs:
                problems += job.result()
    print("\n".join(problems))
    print(f"{len(sections)} uses of {len(runner.forms)} forms on {len(table['targets'])} targets, "
          f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
