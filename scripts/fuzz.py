#!/usr/bin/env python3
"""Gives changed inputs to the libraries and programs, and keeps those that end them.

The inputs are those of the tests and examples, and every form of some kernels
(scripts/fuzz_corpus.py); test/lib/Fuzz changes bytes, tokens, numbers, lines and
groups of them. attn-fuzz runs most of them, many in a process. With --programs
they go to attn-opt, attn-compile, attn-sim, attn-lint-sass and attn-targets, one
process each. Every input has limits of time and memory.

What ends a process is sorted by its message or stack, made small, and kept in the
state folder, which also says where the next run goes on. The same seed and corpus
give the same inputs.

With --extremes each integer of the IR inputs becomes the least and largest ones in turn, one
of its kind for each pipeline, in place of drawn changes.

usage: fuzz.py [--inputs=N] [--minutes=M] [--jobs=N] [--programs] [--targets=ir,ptx,...]
       fuzz.py --extremes
       fuzz.py --replay FILE...        what attn-fuzz says of a kept input
The exit status is 1 when something of ours ended a process, now or in an earlier run
of the same state.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import fuzz_corpus

ROOT = pathlib.Path(__file__).resolve().parent.parent
LLVM_BIN = os.environ.get("LLVM_BIN", "/usr/lib/llvm-22/bin")
CHUNK = 6500
PROGRAM_CHUNK = 260
PROGRAM_SECONDS = 60
ENVIRONMENT = {
    **os.environ,
    "LLVM_SYMBOLIZER_PATH": f"{LLVM_BIN}/llvm-symbolizer",
    # libMLIR.so is not instrumented, so that containers filled there look wrong here,
    # and so does what it takes of an allocator's memory that was poisoned here.
    "ASAN_OPTIONS": "detect_leaks=0:detect_container_overflow=0:allow_user_poisoning=0:"
                    "allocator_may_return_null=0:hard_rss_limit_mb=4096:handle_abort=1:external_symbolizer_path="
                    f"{LLVM_BIN}/llvm-symbolizer",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}  # fmt: skip

# What an end is called, tried in this order.
ENDS = [
    re.compile(r"(Assertion [`'].*?' failed)"),
    re.compile(r"(LLVM ERROR: [^\n]*)"),
    re.compile(r"([\w./+-]+:\d+:\d+: runtime error: [^\n]{0,60})"),
    re.compile(r"(terminate called [^\n]*)"),
    re.compile(r"(Traceback)"),
]
FRAME = re.compile(r"^ *#\d+ 0x[0-9a-f]+ (?:in )?(.*?)(?: \(?/| /|\(BuildId|$)", re.M)
NOT_A_PLACE = re.compile(
    r"^(llvm::sys::|\(?SignalHandler|PrintStackTrace|__|raise|abort|gsignal|kill|mem(cpy|move|set)|"
    r"operator (new|delete)|std::|\(|/|_start|main$|mlir::attn::fuzz|runAll|work\b)"
)

PARSER = "mlir::parseAsmSourceFile"
EXTREMES = (-1, 0, 2**62, 2**63 - 1, 2**63)


def name_end(end: str, errors: str) -> tuple[str, bool]:
    """What happened, equal for equal causes, and whether it is ours."""
    frames = [f.strip() for f in FRAME.findall(errors)]
    frames = [re.sub(r"\(.*", "", f) for f in frames if f and not NOT_A_PLACE.match(f)]
    # Who called the parser of IR did nothing wrong.
    parser = next((i for i, f in enumerate(frames) if PARSER in f), len(frames))
    frames = frames[: parser + 1]
    ours = [f for f in frames if "attn::" in f and "attn::fuzz" not in f]
    said = next((m[1] for pattern in ENDS if (m := pattern.search(errors))), "")
    said = re.sub(r"0x[0-9a-f]+|\d{3,}", "N", said)
    place = (ours or frames or [""])[0]
    # A stack that never was in our code is the parser's or the backend's own.
    is_ours = bool(ours) or not frames or "attn" in said
    # A pipeline's text that nests wrongly ends so in every program of MLIR's.
    is_ours &= "Can't add pass" not in said
    return " | ".join(filter(None, [end, said, place])), is_ours


class Fuzzer:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.build = options.build
        self.folder = options.state
        self.corpus = self.folder / "corpus"
        self.driver = self.build / "bin/attn-fuzz"
        self.found = self.folder / "found"
        self.found.mkdir(parents=True, exist_ok=True)
        self.scratch = self.folder / "scratch"
        self.scratch.mkdir(exist_ok=True)
        self.path = self.folder / "state.json"
        if not self.corpus.exists():
            temporary = self.folder / "corpus.new"
            shutil.rmtree(temporary, ignore_errors=True)
            fuzz_corpus.make(temporary, self.build / "bin", ENVIRONMENT)
            temporary.rename(self.corpus)
        if options.targets:
            narrow = self.folder / ("corpus-" + options.targets.replace(",", "-"))
            for target in options.targets.split(","):
                shutil.copytree(self.corpus / target, narrow / target, dirs_exist_ok=True)
            self.corpus = narrow
        fresh = {"next": 0, "done": 0, "program_next": 0, "program_done": 0, "seconds": 0.0,
                 "program_seconds": 0.0, "accepted": {}, "ends": {}}  # fmt: skip
        self.state = json.loads(self.path.read_text()) if self.path.exists() else fresh

    def save(self) -> None:
        temporary = self.path.with_suffix(".new")
        temporary.write_text(json.dumps(self.state, indent=1))
        temporary.rename(self.path)

    def base(self, first: int, count: int) -> list[str]:
        return [
            str(self.driver), f"--corpus={self.corpus}", f"--seed={self.options.seed}",
            f"--first={first}", f"--count={count}", f"--seconds={self.options.seconds}",
            f"--memory={self.options.memory}",
        ]  # fmt: skip

    def run_chunk(self, first: int) -> tuple[list[dict], dict]:
        done = subprocess.run(
            self.base(first, CHUNK), capture_output=True, text=True, errors="replace",
            env=ENVIRONMENT, cwd=self.scratch, check=False,
        )  # fmt: skip
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        if not lines or "done" not in lines[-1]:
            raise SystemExit(f"attn-fuzz ended with {done.returncode}: {done.stderr[-2000:]}")
        return lines[:-1], lines[-1]

    def write_inputs(self, first: int, count: int, folder: pathlib.Path) -> list[pathlib.Path]:
        command = [*self.base(first, count), f"--write={folder}"]
        subprocess.run(command, env=ENVIRONMENT, check=True)
        return sorted(folder.iterdir(), key=lambda p: int(p.name.rsplit("-", 1)[1]))

    def extremes(self, folder: pathlib.Path) -> list[pathlib.Path]:
        """Files with an extreme integer in the place of one of the corpus's."""
        paths, seen = [], set()
        for source in sorted((self.corpus / "passes").iterdir()):
            pipeline, mark, body = source.read_text(errors="replace").partition(
                fuzz_corpus.SEPARATOR
            )
            for match in re.finditer(r"\b([a-z_]+) = (-?\d+)\b", body):
                line = body[body.rfind("\n", 0, match.start()) + 1 : match.start()]
                key = (pipeline.strip(), tuple(re.findall(r"attn\.[\w.]+", line)[:1]), match[1])
                if key in seen:
                    continue
                seen.add(key)
                for value in EXTREMES:
                    path = folder / f"passes-{len(paths)}"
                    changed = body[: match.start(2)] + str(value) + body[match.end(2) :]
                    path.write_text(pipeline + mark + changed)
                    paths.append(path)
        return paths

    def run_extremes(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            paths = self.extremes(pathlib.Path(name))
            with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
                for path, (end, errors, ours) in zip(
                    paths, pool.map(self.replay, paths), strict=True
                ):
                    if not end or f"passes: {end}" in self.state["ends"]:
                        continue
                    file = self.found / f"extreme-{path.name}"
                    shutil.copy(path, file)
                    self.state["ends"][f"passes: {end}"] = {
                        "count": 1, "index": -1, "file": str(file), "ours": ours,
                        "kind": "library", "errors": errors[:3000],
                    }  # fmt: skip
                    print(f"found: {end}: {file}", flush=True)
        print(f"{len(paths)} extreme integers", flush=True)

    def replay(self, path: pathlib.Path, *more: str) -> tuple[str, str, bool]:
        command = [str(self.driver), f"--seconds={self.options.seconds}",
                   f"--memory={self.options.memory}", *more, str(path)]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                              env=ENVIRONMENT, cwd=self.scratch, check=False)  # fmt: skip
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        if len(lines) < 2:
            return "", "", False
        name, is_ours = name_end(lines[0]["end"], lines[0]["errors"])
        return name, lines[0]["errors"], is_ours

    def minimise(self, path: pathlib.Path, name: str, seconds: float) -> None:
        """Takes lines, then pieces of lines, out of a file as long as it ends the same way."""
        end = time.monotonic() + seconds
        trial = path.with_name(path.name + ".trial")

        def still(pieces: list[bytes]) -> bool:
            trial.write_bytes(b"".join(pieces))
            return time.monotonic() < end and self.replay(trial)[0] == name

        for splitter in (rb"(?<=\n)", rb"(?<=[\s,])"):
            pieces = re.split(splitter, path.read_bytes())
            size = max(1, len(pieces) // 2)
            while size and time.monotonic() < end:
                i = 0
                while i < len(pieces):
                    rest = pieces[:i] + pieces[i + size :]
                    if rest and still(rest):
                        pieces = rest
                    else:
                        i += size
                size //= 2
            path.write_bytes(b"".join(pieces))
        trial.unlink(missing_ok=True)

    def record(self, kind: str, end: dict) -> None:
        name, is_ours = name_end(end["end"], end["errors"])
        key = f"{end['target']}: {name}"
        known = self.state["ends"].get(key)
        if known:
            known["count"] += 1
            return
        file = self.found / f"{end['target']}-{kind}{end['index']}"
        self.state["ends"][key] = {
            "count": 1, "index": end["index"], "file": str(file), "ours": is_ours,
            "kind": kind, "errors": end["errors"][:3000],
        }  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            source = self.write_inputs(end["index"], 1, pathlib.Path(folder))[0]
            shutil.copy(source, file)
        print(f"found: {key} ({'ours' if is_ours else 'upstream'}): {file}", flush=True)
        if end["end"] != "time" and kind == "library" and self.options.minimise:
            self.minimise(file, name, self.options.minimise)

    def run_libraries(self) -> None:
        state, options = self.state, self.options
        start, before = time.monotonic(), state["done"]
        deadline = start + 60 * options.minutes if options.minutes else None
        target = options.inputs or (0 if options.minutes else 100000)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            running: dict = {}
            while True:
                over = deadline and time.monotonic() > deadline
                asked = target and state["done"] + CHUNK * len(running) - before >= target
                while len(running) < options.jobs and not over and not asked:
                    running[pool.submit(self.run_chunk, state["next"])] = state["next"]
                    state["next"] += CHUNK
                    asked = target and state["done"] + CHUNK * len(running) - before >= target
                if not running:
                    break
                finished, _ = concurrent.futures.wait(
                    running, return_when=concurrent.futures.FIRST_COMPLETED
                )
                for future in finished:
                    del running[future]
                    ends, summary = future.result()
                    state["done"] += summary["done"]
                    state["seconds"] += summary["seconds"]
                    for name, (passed, seen) in summary["accepted"].items():
                        old = state["accepted"].get(name, [0, 0])
                        state["accepted"][name] = [old[0] + passed, old[1] + seen]
                    for end in ends:
                        self.record("library", end)
                    self.save()
                    rate = (state["done"] - before) / (time.monotonic() - start)
                    print(f"{state['done']} inputs, {rate:.0f} a second", flush=True)

    def commands(self, path: pathlib.Path, folder: pathlib.Path) -> list[list[str]]:
        """The programs that take this input, with files for its parts."""
        target = path.name.split("-")[0]
        parts = path.read_bytes().split(fuzz_corpus.SEPARATOR.encode())
        second = parts[1] if len(parts) > 1 else b""

        def file(name: str, text: bytes) -> str:
            place = folder / f"{path.name}.{name}"
            place.write_bytes(text)
            return str(place)

        def flags(text: bytes) -> list[str]:
            words = [line for line in text.decode(errors="replace").split("\n") if line]
            names = {"lse=false": "no-lse", "shipped-plans=false": "no-shipped-plans",
                     "split-keys=false": "no-split-keys"}
            # A name that is not there, or a file elsewhere, is not for a fuzzer to touch.
            words = [names.get(w, w).replace("\0", "") for w in words]
            kept = [w for w in words if not re.match(r"(o|out|dump|launch-out|bundle|auto)", w)]
            return ["--" + w for w in kept if not w.startswith("emit")]

        out = ["-o", "/dev/null"]
        lint = lambda: ["attn-lint-sass", file("ptx", parts[0]), f"--log={file('log', second)}"]  # noqa: E731
        table = {
            "ir": lambda: ["attn-opt", file("mlir", parts[0]), *out],
            "compile": lambda: ["attn-compile", file("mlir", second), *flags(parts[0]),
                                "--emit=barrier", *out],
            "flags": lambda: ["attn-compile", *flags(parts[0]), "--emit=plan", *out],
            "passes": lambda: ["attn-opt", file("mlir", second), *out, "--pass-pipeline="
                               + parts[0].decode(errors="replace").replace("\0", "").strip()],
            "launch": lambda: ["attn-sim", file("ptx", parts[0]),
                               f"--launch={file('json', second)}", "--step-limit=20000"],
            "plans": lambda: ["attn-compile", "--q=1x2x512x64xf16", "--emit=plan", *out,
                              f"--plan-table={file('json', parts[0])}"],
            "npy": lambda: ["attn-sim", self.naive("ptx"), f"--launch={self.naive('json')}",
                            f"--in=q={file('npy', parts[0])}", "--step-limit=20000"],
            "sass": lint,
            "budget": lambda: ["attn-lint-sass", self.split_q("ptx"), self.split_q("sass"),
                               f"--budget={file('json', second)}"],
            "ptx": lambda: ["attn-sim", file("ptx", parts[0]), f"--launch={self.naive('json')}",
                            "--step-limit=20000"],
        }  # fmt: skip
        if target not in table:
            return []
        command = table[target]()
        return [[str(self.build / "bin" / command[0]), *command[1:]]]

    def naive(self, suffix: str) -> str:
        return str(ROOT / f"test/Tools/attn-sim/Inputs/naive-attention.{suffix}")

    def split_q(self, suffix: str) -> str:
        return str(ROOT / f"test/Tools/attn-lint-sass/Inputs/split-q.{suffix}")

    def run_programs_chunk(self, first: int) -> tuple[list[dict], int]:
        ends, count = [], 0
        with tempfile.TemporaryDirectory(dir=self.scratch) as name:
            folder = pathlib.Path(name)
            inputs = folder / "inputs"
            inputs.mkdir()
            for path in self.write_inputs(first, PROGRAM_CHUNK, inputs):
                for command in self.commands(path, folder):
                    count += 1
                    try:
                        done = subprocess.run(command, capture_output=True, env=ENVIRONMENT,
                                              cwd=folder, timeout=PROGRAM_SECONDS,
                                              check=False)  # fmt: skip
                        errors = done.stderr.decode(errors="replace")
                        code = done.returncode
                    except subprocess.TimeoutExpired:
                        errors, code = "", None
                    # LLVM's own way to say so is an error like another one by then.
                    crashed = code is None or code < 0 or code > 2
                    if crashed or any(p.search(errors) for p in ENDS[:3]):
                        end = "time" if code is None else f"status {code}"
                        ends.append({
                            "index": int(path.name.rsplit("-", 1)[1]), "end": end,
                            "target": path.name.split("-")[0],
                            "errors": " ".join(command)[:500] + "\n" + errors[:6000],
                        })  # fmt: skip
        return ends, count

    def run_programs(self) -> None:
        state, options = self.state, self.options
        if options.memory:
            resource.setrlimit(resource.RLIMIT_AS, (options.memory << 20, options.memory << 20))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        start, before = time.monotonic(), state["program_done"]
        deadline = start + 60 * options.minutes if options.minutes else None
        target = options.inputs or (0 if options.minutes else 2000)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            while (not target or state["program_done"] - before < target) and (
                not deadline or time.monotonic() < deadline
            ):
                first = state["program_next"]
                # Not the libraries' inputs again.
                firsts = [10**12 + first + i * PROGRAM_CHUNK for i in range(options.jobs)]
                for ends, count in pool.map(self.run_programs_chunk, firsts):
                    state["program_done"] += count
                    for end in ends:
                        self.record("program", end)
                state["program_next"] += PROGRAM_CHUNK * options.jobs
                elapsed = time.monotonic() - start
                self.save()
                rate = (state["program_done"] - before) / elapsed
                print(f"{state['program_done']} program runs, {rate:.1f} a second", flush=True)
        state["program_seconds"] += time.monotonic() - start

    def summarise(self) -> int:
        state = self.state
        print(f"{state['done']} inputs in the libraries ({state['seconds']:.0f} s of attn-fuzz), "
              f"{state['program_done']} through the programs")  # fmt: skip
        for name, (passed, seen) in state["accepted"].items():
            if seen:
                print(f"  {name:10} {seen:>9} inputs, {100 * passed / seen:5.1f} % went through")
        groups = {"of ours": [], "over a limit of time or memory": [], "upstream": []}
        for key, end in state["ends"].items():
            # The sanitizer kills a process that takes more memory than it may.
            late = ": time" in key or ": signal 9" in key
            over = "over a limit of time or memory"
            kind = over if late else "of ours" if end["ours"] else "upstream"
            groups[kind].append((key, end))
        for title, ends in groups.items():
            print(f"{len(ends)} ends {title}")
            for key, end in ends:
                print(f"  {end['count']:>6} {key}: {end['file']}")
        return 1 if groups["of ours"] else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--inputs", type=int, default=0, metavar="N", help="more inputs than before")
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--programs", action="store_true", help="one process for each input")
    parser.add_argument("--extremes", action="store_true", help="least and largest integers")
    parser.add_argument("--targets", default="", help="only these, such as ir,ptx")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=10, help="processor time of one input")
    parser.add_argument("--memory", type=int, default=None,
                        help="MiB of address space, 0: no limit; 4096, 0 for a sanitized build")
    parser.add_argument("--minimise", type=float, default=60, metavar="SECONDS")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--state", type=pathlib.Path, help="folder; default BUILD/fuzz")
    parser.add_argument("--fresh", action="store_true", help="forget the state first")
    parser.add_argument("--replay", nargs="+", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    options.build = options.build.resolve()
    if options.memory is None:
        # The address sanitizer reserves more than any limit.
        sanitized = b"__asan_init" in (options.build / "bin/attn-fuzz").read_bytes()
        options.memory = 0 if sanitized else 4096
    options.state = (options.state or options.build / "fuzz").resolve()
    if options.fresh:
        shutil.rmtree(options.state, ignore_errors=True)
    fuzzer = Fuzzer(options)
    if options.replay:
        status = 0
        for path in options.replay:
            name, errors, is_ours = fuzzer.replay(path.resolve(), "--stack")
            print(f"{path}: {name or 'no end'}\n{errors}")
            status |= is_ours
        return int(status)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if options.extremes:
            fuzzer.run_extremes()
        elif options.programs:
            fuzzer.run_programs()
        else:
            fuzzer.run_libraries()
    except KeyboardInterrupt:
        print("stopped; the next run goes on here")
    finally:
        fuzzer.save()
    return fuzzer.summarise()


if __name__ == "__main__":
    sys.exit(main())
