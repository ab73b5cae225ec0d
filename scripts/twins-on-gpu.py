#!/usr/bin/env python3
"""Good and bad twins of test/Simulator under compute-sanitizer on a GPU.

The simulator reports every bad twin; this asks which of them compute-sanitizer
reports as well, and whether it reports a good one.

Where ptxas is (no GPU): assemble every twin that has no tcgen05 instruction,
for sm_90a.

    scripts/twins-on-gpu.py make FOLDER

Where the GPU is: run each under the tools that look for errors of its kind.

    PYTHONPATH=python scripts/twins-on-gpu.py run FOLDER [--jobs=8] [--timeout=30]

The exit status is 1 when a good twin is reported or does not run.
"""

import argparse
import concurrent.futures
import ctypes
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TWINS = ROOT / "test/Simulator/Inputs/twins"
#: What the tools look for (compute-sanitizer's manual): memcheck also finds
#: misaligned addresses and faults, synccheck also uses of mbarriers.
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")


def load_mutate():
    spec = importlib.util.spec_from_file_location("mutate_ptx", ROOT / "scripts/mutate-ptx.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutate_ptx"] = module
    spec.loader.exec_module(module)
    return module


def make(options: argparse.Namespace) -> int:
    options.folder.mkdir(parents=True, exist_ok=True)
    mutate, cases, left = load_mutate(), [], []
    for path in sorted(TWINS.glob("*.ptx")):
        launch, kernel, twins = mutate.read_twins(path.read_text())
        for index, (line, what, kinds, text) in enumerate(twins):
            name = f"{path.stem}-{index:02}"
            ptx = options.folder / f"{name}.ptx"
            ptx.write_text(re.sub(r"\.target \w+", ".target sm_90a", text))
            cubin = ptx.with_suffix(".cubin")
            command = [options.ptxas, "-arch=sm_90a", str(ptx), "-o", str(cubin)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                left.append(name)
                continue
            cases.append(
                {"name": name, "kernel": kernel, "line": line, "what": what, "kinds": kinds}
                | {"launch": launch}
            )
    (options.folder / "cases.json").write_text(json.dumps(cases, indent=1))
    print(f"{len(cases)} twins assembled for sm_90a, {len(left)} not: {', '.join(left)}")
    return 0


def launch(options: argparse.Namespace) -> int:
    """One twin, once."""
    from attn.launch import cuda_driver

    cases = json.loads((options.folder / "cases.json").read_text())
    case = next(case for case in cases if case["name"] == options.case)
    settings = case["launch"]
    words, ctas = int(settings.get("words", 1024)), int(settings.get("ctas", 1))
    shared = int(settings.get("shared", 16384))
    with cuda_driver.get_device(0):
        driver = cuda_driver.load()
        image = (options.folder / f"{case['name']}.cubin").read_bytes()
        function = cuda_driver.Function(image, case["kernel"], shared)
        addresses = []
        # Flags that a twin polls lie in the output.
        for _ in ("input", "output"):
            address = ctypes.c_uint64()
            cuda_driver.check(
                driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4 * words)),
                "cuMemAlloc", case["name"],
            )  # fmt: skip
            driver.cuMemsetD8_v2(address, 0, ctypes.c_size_t(4 * words))
            addresses.append(address)
        pointers = (ctypes.c_void_p * 2)(*(ctypes.addressof(address) for address in addresses))
        block = (int(settings.get("threads", 64)), 1, 1)
        # A cluster's size stands in the kernel.
        shape = cuda_driver.LaunchShape((ctas, 1, 1), block, shared_bytes=shared)
        status = function.launch(shape, 0, pointers)
        status = status or driver.cuCtxSynchronize()
    print(f"ran with status {status}")
    return 0


def watch(options: argparse.Namespace, case: dict, tool: str) -> str:
    """Whether it is "clean", "reported", "hangs" or "fails"."""
    command = [options.sanitizer, f"--tool={tool}", "--error-exitcode=9", "--print-limit=5"]
    command += ["--report-api-errors=no"] if tool == "memcheck" else []
    command += [sys.executable, __file__, "launch", str(options.folder), f"--case={case['name']}"]
    # The tool starts the program as a process of its own: a group of both can be
    # stopped together, else a kernel that hangs keeps the GPU.
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=options.timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "hangs"
    if options.logs:
        options.logs.mkdir(parents=True, exist_ok=True)
        (options.logs / f"{case['name']}-{tool}.txt").write_text(output)
    if process.returncode == 9 or re.search(r"[1-9]\d* (error|hazard)", output):
        return "reported"
    return "clean" if "ran with status 0" in output else "fails"


def print_kinds(wrong: list[dict], results: dict) -> None:
    """How many twins of each kind of error each tool reports. A trap or a fault
    that ends the kernel before a tool reports counts for none."""
    print(f"{'kind':30} twins  reported  " + "  ".join(TOOLS))
    for kind in sorted({case["kinds"] for case in wrong}):
        verdicts = [results[case["name"]] for case in wrong if case["kinds"] == kind]
        seen = sum("reported" in verdict.values() for verdict in verdicts)
        tools = "  ".join(
            f"{sum(verdict[tool] == 'reported' for verdict in verdicts):{len(tool)}}"
            for tool in TOOLS
        )
        print(f"{kind:30} {len(verdicts):5}  {seen:8}  {tools}")


def run(options: argparse.Namespace) -> int:
    options.sanitizer = options.sanitizer or shutil.which("compute-sanitizer")
    if not options.sanitizer:
        print("compute-sanitizer not found, give --sanitizer", file=sys.stderr)
        return 2
    cases = json.loads((options.folder / "cases.json").read_text())
    # A kernel that never ends keeps the others from running.
    endless = [case for case in cases if "deadlock" in case["kinds"]]
    cases = [case for case in cases if case not in endless and re.search(options.filter, case["name"])]
    print(f"{len(endless)} twins that may not end are left out")
    results = {case["name"]: {} for case in cases}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {
            pool.submit(watch, options, case, tool): (case["name"], tool)
            for case in cases
            for tool in TOOLS
        }
        for future in concurrent.futures.as_completed(futures):
            name, tool = futures[future]
            results[name][tool] = future.result()
            if results[name][tool] not in ("clean", "reported"):
                print(f"{name}: {tool} {results[name][tool]}", flush=True)
    bad = 0
    for case in cases:
        verdicts = results[case["name"]]
        seen = [tool for tool in TOOLS if verdicts[tool] != "clean"]
        text = ", ".join(f"{tool} {verdicts[tool]}" for tool in seen) or "nothing"
        bad += case["kinds"] == "clean" and bool(seen)
        print(f"{case['name']:14} {case['kinds']:28} {text:40} {case['what'][:60]}")
    wrong = [case for case in cases if case["kinds"] != "clean"]
    print_kinds(wrong, results)
    count = sum(any(v == "reported" for v in results[case["name"]].values()) for case in wrong)
    print(f"{count} of {len(wrong)} bad twins reported, {bad} of {len(cases) - len(wrong)} good ones")
    if options.json:
        options.json.write_text(json.dumps([case | {"tools": results[case["name"]]} for case in cases]))
    return 1 if bad else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    for command in (make, run, launch):
        part = commands.add_parser(command.__name__)
        part.set_defaults(command=command)
        part.add_argument("folder", type=pathlib.Path)
        if command is make:
            part.add_argument("--ptxas", default=shutil.which("ptxas") or "ptxas")
        if command is launch:
            part.add_argument("--case", required=True)
        if command is run:
            part.add_argument("--jobs", type=int, default=8)
            part.add_argument("--timeout", type=float, default=30)
            part.add_argument("--sanitizer", help="path of compute-sanitizer")
            part.add_argument("--json", type=pathlib.Path)
            part.add_argument("--filter", default="", metavar="REGEX")
            part.add_argument("--logs", type=pathlib.Path, help="folder for the tools' outputs")
    options = parser.parse_args()
    return options.command(options)


if __name__ == "__main__":
    sys.exit(main())
