"""Does what docs/HowTo/write-a-kernel.md says, with the commands and changes that stand there.

The page is the only source: each `attn-opt` command on a file of examples/by-hand has the pipeline of
that file, each `diff` fence is a change of the file that its first line names, and the `text` fence
after it is the message that the changed file gets, word for word.

usage: by_hand_page.py BIN PAGE DIR run      proves and runs each file, compares with numpy
       by_hand_page.py BIN PAGE DIR wrong    changes files as the page says
"""

import pathlib
import re
import subprocess
import sys

import numpy as np

COMMAND = re.compile(
    r"attn-opt examples/by-hand/(?P<name>[\w-]+)\.mlir .*?--pass-pipeline='(?P<pipeline>[^']+)'", re.S
)
CHANGE = re.compile(
    r"^```diff\n--- (?P<name>[\w-]+)\.mlir\n(?P<diff>.*?)^```$.*?^```text\n(?P<message>.*?)^```$",
    re.M | re.S,
)


def attention(q, k, v):
    scores = q @ k.T / 8
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return p @ v / p.sum(axis=1, keepdims=True)


def gemm(a, b):
    return a @ b.T


#: By the start of a file's name: inputs with their shapes, the output, and what numpy computes.
PROBLEMS = {
    "copy": ({"a": (128, 64)}, "b", lambda a: a),
    "transpose-tma": ({"a": (200, 136)}, "b", lambda a: a.T),
    "transpose": ({"a": (128, 64)}, "b", lambda a: a.T),
    "attention": (dict.fromkeys("qkv", (256, 64)), "o", attention),
    "gemm-bias-blackwell": (
        {"a": (256, 256), "b": (128, 256), "bias": (128,)}, "c",
        lambda a, b, bias: gemm(a, b) + bias,
    ),
    "gemm-bias": (
        {"a": (128, 256), "b": (64, 256), "bias": (64,)}, "c", lambda a, b, bias: gemm(a, b) + bias,
    ),
    "gemm-blackwell": ({"a": (256, 256), "b": (128, 256)}, "c", gemm),
    "gemm-cluster": ({"a": (1024, 256), "b": (128, 256)}, "c", gemm),
    "gemm-pair": ({"a": (256, 256), "b": (256, 256)}, "c", gemm),
    "gemm": ({"a": (128, 256), "b": (64, 256)}, "c", gemm),
    "take-over": ({}, "c", lambda: 100 + np.arange(8) // 2),
}  # fmt: skip


#: Chips that a file is for in addition to its own, by its own chip or by its name.
LATER = {"sm_80": ["sm_90a", "sm_100a"], "transpose-tma": ["sm_100a"]}


class Page:
    def __init__(self, binaries: str, page: str, folder: str):
        self.binaries, self.folder = binaries, pathlib.Path(folder)
        self.examples = pathlib.Path(page).resolve().parents[2] / "examples/by-hand"
        self.text = pathlib.Path(page).read_text(encoding="utf-8")
        self.pipelines = {each["name"]: each["pipeline"] for each in COMMAND.finditer(self.text)}

    def call(self, program: str, *arguments: str) -> subprocess.CompletedProcess:
        command = [f"{self.binaries}/{program}", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def lower(self, name: str, source: str, label: str) -> subprocess.CompletedProcess:
        """Runs the page's pipeline for a file, on `source`."""
        path = self.folder / f"{label}.mlir"
        path.write_text(source, encoding="utf-8")
        pipeline = f"--pass-pipeline={self.pipelines[name]}"
        return self.call("attn-opt", path, pipeline, "-o", self.folder / f"{label}-nvvm.mlir")

    def compute(self, name: str, label: str) -> str:
        """Runs the lowered file, and says what numpy thinks of the result."""
        start = max((each for each in PROBLEMS if name.startswith(each)), key=len)
        shapes, output, function = PROBLEMS[start]
        rng = np.random.default_rng(1)
        base = str(self.folder / label)
        inputs, flags = [], []
        for tensor, shape in shapes.items():
            kind = np.float32 if tensor == "bias" else np.float16
            values = rng.standard_normal(shape).astype(kind)
            np.save(f"{base}-{tensor}.npy", values)
            inputs.append(values.astype(np.float64))
            flags.append(f"--in={tensor}={base}-{tensor}.npy")
        flags.append(f"--out={output}={base}-{output}.npy")
        done = self.call(
            "attn-compile", f"{base}-nvvm.mlir", "-o", f"{base}.ptx", f"--launch-out={base}.json"
        )
        if done.returncode:
            return done.stderr
        done = self.call("attn-sim", f"{base}.ptx", f"--launch={base}.json", *flags)
        if done.returncode or not re.search(r"^findings: *none$", done.stdout, re.M):
            return done.stdout + done.stderr
        wanted, got = function(*inputs), np.load(f"{base}-{output}.npy").astype(np.float64)
        return "right" if np.abs(wanted - got).max() < 1e-3 * np.abs(wanted).max() else "wrong"

    def run(self) -> None:
        files = {path.stem for path in self.examples.glob("*.mlir")}
        for name in sorted(files | set(self.pipelines)):
            if name not in self.pipelines:
                print(f"{name}: the page has no pipeline for it")
                continue
            source = (self.examples / f"{name}.mlir").read_text(encoding="utf-8")
            chips = [re.search(r'target<chip = "(\w+)"', source)[1]]
            chips += LATER.get(chips[0], []) + LATER.get(name, [])
            for chip in chips:
                label = f"{name}-{chip}"
                done = self.lower(name, source.replace(f'"{chips[0]}"', f'"{chip}"'), label)
                result = done.stderr if done.returncode else self.compute(name, label)
                print(f"{name} on {chip}: {result}")

    def wrong(self) -> None:
        for number, each in enumerate(CHANGE.finditer(self.text)):
            name, lines = each["name"], each["diff"].splitlines()
            old = [line[1:].strip() for line in lines if line[0] != "+"]
            new = [line[1:].strip() for line in lines if line[0] != "-"]
            source = (self.examples / f"{name}.mlir").read_text(encoding="utf-8").splitlines()
            stripped = [line.strip() for line in source]
            places = [
                i for i in range(len(source)) if stripped[i : i + len(old)] == old
            ]  # fmt: skip
            if len(places) != 1:
                print(f"{name}: expected one place for the change, got {len(places)}")
                continue
            source[places[0] : places[0] + len(old)] = new
            label = f"wrong-{number}"
            done = self.lower(name, "\n".join(source), label)
            got = done.stderr if done.returncode else self.compute(name, label)
            missing = [line for line in each["message"].splitlines() if line not in got]
            print(f"{name}: " + (f"expected {missing}, got {got}" if missing else "as the page says"))


if __name__ == "__main__":
    getattr(Page(*sys.argv[1:4]), sys.argv[4])()
