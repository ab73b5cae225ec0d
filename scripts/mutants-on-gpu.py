#!/usr/bin/env python3
"""Copies of sm_90a kernels that the check proves or refutes, on a GPU.

Where compiler and ptxas are (no GPU): wrong copies of kernels at the barrier rung, as many that are
proved as such that are refuted, assembled; each a second time with random delays in front of
signals and behind waits.

    scripts/mutants-on-gpu.py make FOLDER [--count=100]

Where the GPU is: each copy in a process of its own, with its grid and with one cluster that does
all tiles, on two inputs in turn. What it writes is compared, bit by bit, with what the kernel
without a change writes. Some of those that are refuted run under compute-sanitizer too.

    PYTHONPATH=python scripts/mutants-on-gpu.py run FOLDER [--jobs=8] [--sanitized=40]

The exit status is 1 when a proved copy is wrong or does not end.
"""

import argparse
import collections
import concurrent.futures
import ctypes
import importlib.util
import json
import lzma
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: Several tiles for each cluster where one does all, and more blocks than a ring has slots.
KERNELS = (
    "--q=1x4x512x64xf16 --kv-len=700 --chip=sm_90a --set block_m=128 --set epilogue=tma",
    "--q=1x4x512x64xf16 --kv-len=700 --chip=sm_90a --set cluster=2",
    "--q=1x4x512x64xf16 --chip=sm_90a --causal --set cluster=2 --set dynamic=true",
    "--q=1x4x1024x64xf16 --kv-len=700 --chip=sm_90a --set cluster=4",
    "--q=1x4x512x128xf16 --chip=sm_90a --causal",
    "--q=1x4x512x128xf8E4M3FN --kv-len=700 --kv-heads=1 --chip=sm_90a",
    "--q=1x4x512x64xf16 --kv-len=700 --chip=sm_90a --schedule=self_load",
    "--q=1x4x512x64xf16 --kv-len=700 --chip=sm_90a --set pv_behind=true --set turns=true",
)
SIGNALS = re.compile(r"^\s*(?:@!?%\w+\s+)?(?:mbarrier\.arrive|bar\.|barrier\.cluster\.arrive|cp\.async\.bulk)")
POLL = re.compile(r"^\s*mbarrier\.try_wait")
DELAY = (
    "{{ .reg .b32 %delay<3>; .reg .pred %delayed; mov.u32 %delay0, %clock; "
    "mad.lo.u32 %delay0, %delay0, 2654435769, {salt}; shr.u32 %delay1, %delay0, 20; "
    "and.b32 %delay2, %delay0, 786432; setp.eq.u32 %delayed, %delay2, 0; "
    "@%delayed nanosleep.u32 %delay1; }}"
)
HANGS, FAILS, WRONG = 7, 6, 5


def load_script(name: str):
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), ROOT / f"scripts/{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def delayed(ptx: str) -> str:
    """The kernel with a delay of up to 4 us, one time in four, at each signal and behind each wait."""
    out, behind = [], False
    for number, line in enumerate(ptx.split("\n")):
        delay = DELAY.format(salt=(number * 40503 + 12345) & 0x7FFFFFFF)
        if SIGNALS.match(line):
            out.append(delay)
        out.append(line)
        # The branch back to a poll that said no.
        if behind and re.match(r"^\s*@%\w+\s+bra", line):
            out.append(delay)
            behind = False
        behind |= bool(POLL.match(line))
    return "\n".join(out)


def assemble(options: argparse.Namespace, ptx: str) -> bytes | None:
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = pathlib.Path(folder) / "k.ptx", pathlib.Path(folder) / "k.cubin"
        source.write_text(ptx)
        command = [options.ptxas, "-arch=sm_90a", str(source), "-o", str(cubin)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stderr[:300], file=sys.stderr)
            return None
        return cubin.read_bytes()


def is_reached(tools, mutant, record: str) -> bool:
    """Whether a trap in that place stops one cluster that does all tiles."""
    code, _, ptx, _ = tools.compile(mutant.probe, "--no-check-barriers")
    return code == 0 and tools.simulate(ptx, record)[0] != "clean"


def make(options: argparse.Namespace) -> int:
    sys.path.insert(0, str(ROOT / "scripts"))
    from ir_mutants import Mutant, mutants_of

    judge, rng, reached = load_script("mutate-ir"), random.Random(options.seed), {}
    options.folder.mkdir(parents=True, exist_ok=True)
    options.kernels, options.problem = [], list(KERNELS)
    cases, images = [], {}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tools = judge.Tools(options.bin, folder)
        kernels = judge.read_kernels(options, folder)
        for index, (name, text) in enumerate(kernels):
            own = tools.check(text)
            if own["static"] != "proved":
                print(f"{name}: {own['static']}", file=sys.stderr)
                continue
            mutants = mutants_of(text)
            rng.shuffle(mutants)
            share = {v: options.count * (index + 1) // len(kernels) - options.count * index // len(kernels)
                     for v in ("proved", "refused")}  # fmt: skip
            chosen = [(Mutant("the kernel itself", 0, text, ""), own)]
            seen = {own["ptx"]}
            for start in range(0, len(mutants), 16):
                part = mutants[start : start + 16]
                for mutant, verdict in zip(part, pool.map(lambda m: tools.check(m.text), part)):
                    kind = verdict["static"]
                    # A copy with the same PTX says nothing, nor does one in code that is never run.
                    if not share.get(kind, 0) or verdict["ptx"] in seen:
                        continue
                    place = index, mutant.line
                    if place not in reached:
                        reached[place] = is_reached(tools, mutant, own["record"])
                    # Nor does one that computes something else in any order of warps.
                    if kind == "proved" and tools.simulate(verdict["ptx"], verdict["record"])[0] == "wrong values":
                        continue
                    if reached[place]:
                        seen.add(verdict["ptx"])
                        share[kind] -= 1
                        chosen.append((mutant, verdict))
                if not any(share.values()):
                    break
            made = list(pool.map(
                lambda c: (assemble(options, c[1]["ptx"]), assemble(options, delayed(c[1]["ptx"]))), chosen
            ))  # fmt: skip
            for number, ((mutant, verdict), both) in enumerate(zip(chosen, made)):
                if None in both:
                    continue
                case = f"{index}-{number:03}"
                images[case] = [each.hex() for each in both]
                line = text.split("\n")[mutant.line - 1].strip()[:120] if mutant.line else ""
                cases.append({"case": case, "kernel": index, "flags": name, "line": mutant.line,
                              "name": mutant.name, "op": line, "static": verdict["static"],
                              "why": verdict["why"][:200], "record": verdict["record"]})  # fmt: skip
            print(f"{name}: {len(chosen) - 1} copies", flush=True)
    # Many are almost the same.
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 26}]
    contents = json.dumps({"cases": cases, "images": images}).encode()
    data = lzma.compress(contents, format=lzma.FORMAT_XZ, filters=filters)
    (options.folder / "mutants.json.xz").write_bytes(data)
    counts = collections.Counter(case["static"] for case in cases if case["line"])
    print(f"{counts['proved']} proved and {counts['refused']} refuted copies, {len(data)} bytes")
    return 0


def unpack(options: argparse.Namespace) -> list[dict]:
    """The cases; their code and records as files that `launch` reads."""
    contents = json.loads(lzma.decompress((options.folder / "mutants.json.xz").read_bytes()))
    options.scratch.mkdir(parents=True, exist_ok=True)
    for case in contents["cases"]:
        for end, image in zip(("plain", "delayed"), contents["images"][case["case"]]):
            (options.scratch / f"{case['case']}.{end}").write_bytes(bytes.fromhex(image))
        (options.scratch / f"{case['case']}.json").write_text(case["record"])
    return contents["cases"]


class Run:
    """One kernel with its inputs and outputs on the GPU."""

    def __init__(self, path: pathlib.Path, record: dict, grids: list, batch: int) -> None:
        import attn.runtime
        import gpu_inputs
        import numpy
        from attn import bundle

        self.numpy = numpy
        self.kernels = []
        for grid in grids:
            # What the compiler does not know needs the compiler's word for the grid.
            launch = record | ({"grid": grid} if grid else {})
            image = bundle.Image("cubin", "sm_90a", path.read_bytes())
            file = path.with_suffix(f".{os.getpid()}.attn")
            file.write_bytes(bundle.write(launch, [image]))
            self.kernels.append(attn.runtime.load(file))
            file.unlink()
        self.inputs, self.outputs = [], []
        names = ("first", "second")
        for name in names:
            bits = gpu_inputs.make_inputs(name, record, [])
            self.inputs.append({
                t["name"]: gpu_inputs.DeviceTensor(t, bits[t["name"]])
                for t in record["tensors"] if t["access"] == "read"
            })  # fmt: skip
        for _ in range(batch):
            self.outputs.append({
                t["name"]: gpu_inputs.DeviceTensor(t, None)
                for t in record["tensors"] if t["access"] != "read"
            })  # fmt: skip

    def launch(self, kernel: int, slot: int) -> None:
        tensors = self.inputs[slot % 2] | self.outputs[slot]
        self.kernels[kernel](**{name: tensor.view() for name, tensor in tensors.items()})

    def poison(self) -> None:
        from attn.launch import cuda_driver

        for outputs in self.outputs:
            for tensor in outputs.values():
                size = ctypes.c_size_t(tensor.host.nbytes)
                cuda_driver.load().cuMemsetD8Async(tensor.address, 0xA5, size, None)

    def fetch(self, slot: int) -> bytes:
        return b"".join(tensor.fetch().tobytes() for tensor in self.outputs[slot].values())


def wait_for_end(seconds: float) -> None:
    """Ends the process where the GPU does not get done, or fails."""
    from attn.launch import cuda_driver

    driver, end = cuda_driver.load(), time.monotonic() + seconds
    while status := driver.cuStreamQuery(None):
        if status != 600:  # not ready
            print(f"fails {status}", flush=True)
            os._exit(FAILS)
        if time.monotonic() > end:
            print("hangs", flush=True)
            os._exit(HANGS)
        time.sleep(0.0005)


def launch(options: argparse.Namespace) -> int:
    """A case, --launches times; the exit status says how it went."""
    sys.path.insert(0, str(ROOT / "python/tests"))
    from attn.launch import cuda_driver

    record = json.loads((options.folder / f"{options.case}.json").read_text())
    cluster = record["cluster"][0]
    grids = [None, [str(cluster), "1", "1"]] if options.launches > 2 else [[str(cluster), "1", "1"]]
    batch = min(options.launches, 50)
    with cuda_driver.get_device(0):
        original = json.loads((options.folder / f"{options.original}.json").read_text())
        right = Run(options.folder / f"{options.original}.plain", original, [None], 2)
        for slot in (0, 1):
            right.launch(0, slot)
        wait_for_end(options.seconds)
        expected = [right.fetch(0), right.fetch(1)]
        run = Run(options.folder / f"{options.case}.{options.image}", record, grids, batch)
        wrong, done = 0, 0
        while done < options.launches:
            run.poison()
            for slot in range(batch):
                run.launch(done // batch % len(grids), slot)
            wait_for_end(options.seconds)
            wrong += sum(run.fetch(slot) != expected[slot % 2] for slot in range(batch))
            done += batch
        print(f"{wrong} of {done} wrong", flush=True)
    return WRONG if wrong else 0


def watch(options: argparse.Namespace, case: dict, image: str, tool: str, seconds: float) -> str:
    """right, wrong, hangs, fails, or with a tool reported or clean."""
    if time.monotonic() > options.end:
        return "no time"
    launches = 1 if tool else options.launches
    command = [sys.executable, __file__, "launch", str(options.scratch), f"--case={case['case']}",
               f"--original={case['kernel']}-000", f"--image={image}", f"--launches={launches}",
               f"--seconds={seconds}"]  # fmt: skip
    if tool:
        command = [options.sanitizer, f"--tool={tool}", "--error-exitcode=9", "--print-limit=3", *command]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=2 * seconds + 12)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    case.setdefault("said", {})[f"{image} {tool}".strip()] = output.strip()[-400:]
    if tool:
        found = process.returncode == 9 or re.search(r"[1-9]\d* (?:error|hazard)", output)
        ends = {0: "clean", WRONG: "clean", HANGS: "hangs", -signal.SIGKILL: "hangs"}
        return "reported" if found else ends.get(process.returncode, "ends early")
    ends = {0: "right", WRONG: "wrong", HANGS: "hangs", -signal.SIGKILL: "hangs"}
    return ends.get(process.returncode, "fails")


def read_results(options: argparse.Namespace, cases: list[dict]) -> None:
    """Takes what an earlier run had time for."""
    key = lambda case: (case["kernel"], case["line"], case["name"], case["op"])  # noqa: E731
    before = {key(case): case for case in json.loads(options.resume.read_text())}
    for case in cases:
        results = before.get(key(case), {}).get("results", {})
        case["results"] = {name: result for name, result in results.items() if result != "no time"}


def judge_case(options: argparse.Namespace, case: dict) -> None:
    seconds = options.seconds if case["static"] == "refused" else 20.0
    for image in ("plain", "delayed"):
        if image in case["results"]:
            continue
        hangs = case["results"].get("plain") == "hangs"
        case["results"][image] = "not run" if hangs else watch(options, case, image, "", seconds)


def judge_tools(options: argparse.Namespace, case: dict) -> None:
    for tool in ("racecheck", "synccheck"):
        case["results"][tool] = watch(options, case, "plain", tool, 4.0)


def print_results(cases: list[dict]) -> int:
    names = ("right", "wrong", "hangs", "fails", "not run", "no time")
    print("| copies | run | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 2))
    for static in ("kernel", "proved", "refused"):
        for image in ("plain", "delayed"):
            counts = collections.Counter(c["results"][image] for c in cases if c["static"] == static)
            print(f"| {static} | {image} | " + " | ".join(str(counts[n]) for n in names) + " |")
    for static in ("kernel", "refused"):
        tools = [c for c in cases if "racecheck" in c["results"] and c["static"] == static]
        for tool in ("racecheck", "synccheck"):
            counts = collections.Counter(c["results"][tool] for c in tools)
            said = ", ".join(f"{n} {v}" for v, n in sorted(counts.items()))
            print(f"{tool} of {len(tools)} {static}: {said}")
    kinds = collections.defaultdict(collections.Counter)
    seen = ("wrong", "hangs", "fails")
    for case in cases:
        if case["static"] == "refused":
            row, results = kinds[case["why"].split(":")[0]], case["results"]
            row["all"] += 1
            row["plain"] += results["plain"] in seen
            row["delayed"] += results["plain"] in seen or results["delayed"] in seen
            if "racecheck" in results:
                row["under"] += 1
                row["tools"] += "reported" in (results["racecheck"], results["synccheck"])
                row["of"] += results["plain"] in seen
    print("| refuted for | copies | a plain run shows it | with delays | under compute-sanitizer "
          "| plain shows | it reports |\n|---|---|---|---|---|---|---|")  # fmt: skip
    columns = ("all", "plain", "delayed", "under", "of", "tools")
    for kind, row in [*sorted(kinds.items()), ("all", sum(kinds.values(), collections.Counter()))]:
        print(f"| {kind} | " + " | ".join(str(row[c]) for c in columns) + " |")
    bad = [c for c in cases if c["static"] != "refused" and set(c["results"].values()) & set(seen)]
    for case in bad:
        print(f"PROVED, YET {case['results']}: {case['flags']}: {case['line']}: {case['name']}: {case['op']}")
    return 1 if bad else 0


def run(options: argparse.Namespace) -> int:
    options.end = time.monotonic() + options.time
    options.sanitizer = options.sanitizer or shutil.which("compute-sanitizer")
    options.scratch = pathlib.Path(tempfile.mkdtemp())
    cases = unpack(options)
    for case in cases:
        case["results"] = {}
        case["static"] = case["static"] if case["line"] else "kernel"
    if options.resume:
        read_results(options, cases)
    proved = [case for case in cases if case["static"] != "refused"]
    refuted = [case for case in cases if case["static"] == "refused"]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda case: judge_case(options, case), proved))
        print(f"proved ones done, {options.end - time.monotonic():.0f} s left", flush=True)
        list(pool.map(lambda case: judge_case(options, case), refuted))
        print(f"refuted ones done, {options.end - time.monotonic():.0f} s left", flush=True)
        # First those that end: a plain run says of the others already that they hang.
        refuted.sort(key=lambda case: case["results"]["plain"] == "hangs")
        if options.sanitizer:
            controls = [case for case in cases if case["static"] == "kernel"]
            list(pool.map(lambda case: judge_tools(options, case), controls))
            list(pool.map(lambda case: judge_tools(options, case), refuted[: options.sanitized]))
    shutil.rmtree(options.scratch)
    if options.json:
        options.json.write_text(json.dumps([{k: v for k, v in c.items() if k != "record"} for c in cases], indent=0))
    return print_results(cases)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    for command in (make, run, launch):
        part = commands.add_parser(command.__name__)
        part.set_defaults(command=command)
        part.add_argument("folder", type=pathlib.Path)
        if command is not launch:
            part.add_argument("--jobs", type=int, default=8)
        if command is make:
            part.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
            part.add_argument("--ptxas", default=shutil.which("ptxas") or "ptxas")
            part.add_argument("--count", type=int, default=100, help="of each verdict")
            part.add_argument("--seed", type=int, default=1)
        else:
            part.add_argument("--launches", type=int, default=1000)
            part.add_argument("--seconds", type=float, default=4, help="that a launch may take")
        if command is launch:
            part.add_argument("--case", required=True)
            part.add_argument("--original", required=True)
            part.add_argument("--image", required=True)
        if command is run:
            part.add_argument("--sanitized", type=int, default=40, help="refuted ones under compute-sanitizer")
            part.add_argument("--sanitizer", help="path of compute-sanitizer")
            part.add_argument("--resume", type=pathlib.Path, help="what an earlier run wrote with --json")
            part.add_argument("--time", type=float, default=600, help="seconds in all")
            part.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    return options.command(options)


if __name__ == "__main__":
    sys.exit(main())
