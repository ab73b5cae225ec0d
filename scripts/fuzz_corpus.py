"""The real inputs that scripts/fuzz.py changes: what the tests, examples and compiler have.

A corpus is a folder with a folder for each target of attn-fuzz. The parts of an
input, such as PTX and its launch record, are joined by a line of four "@".
"""

import io
import json
import pathlib
import re
import shlex
import struct
import subprocess
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEPARATOR = "\n@@@@\n"
# Longer ones take longer than what they find is worth.
MOST_BYTES = 24000
MOST_PTX_BYTES = 60000

# Small problems over the schedules and what they offer; their kernels and every
# form of them on the way are inputs too.
PROBLEMS = [
    "--q=1x1x64x16xf16 --chip=sm_80",
    "--q=1x2x100x32xbf16 --kv-heads=1 --causal --chip=sm_80 --sinks --softcap=20",
    "--q=1x2x145x16xf16 --varlen=q:17,64,64/k:20,64,9 --causal=bottom-right --chip=sm_80",
    "--q=1x1x64x16xf16 --window=30,17 --dynamic --chip=sm_89",
    "--q=1x2x128x64xf16 --causal --chip=sm_90a --schedule=ws_wgmma",
    "--q=1x1x128x64xf8E4M3FN --descales --chip=sm_90a --schedule=ws_wgmma",
    "--q=1x1x128x64xf16 --window=64,0 --sinks --chip=sm_90a --schedule=self_load",
    "--q=1x1x128x64xbf16 --set=cluster=2 --chip=sm_90a --schedule=ws_wgmma",
    "--q=1x1x70x136xf16 --chip=sm_90a --schedule=ws_columns --causal",
    "--q=1x1x70x128xf16 --chip=sm_90a --schedule=ws_pair --set=block_n=64 --causal",
    "--q=1x1x70x264xf16 --schedule=tiled_d --causal",
    "--q=2x4x1x64xf16 --kv-heads=2 --kv-lengths=70,9 --page-size=16 --schedule=decode",
    "--q=2x4x1x64xbf16 --kv-type=f8E4M3FN --kv-heads=2 --kv-lengths=70,9 --descales --chip=sm_89 --schedule=decode",
    "--q=1x16x1x96xf16 --rope-dim=32 --kv-lengths=70 --page-size=16 --chip=sm_90a --schedule=mla",
    "--q=1x1x128x64xbf16 --kv-len=200 --causal --chip=sm_100a --schedule=ws_tmem",
]
RECORDED = """{
  "kernel": "attn_fwd", "chip": "sm_80",
  "grid": [1, 1, 1], "block": [64, 1, 1], "cluster": [1, 1, 1], "dynamic_shared_bytes": 1024,
  "tensors": {"q": {"shape": [4, 128], "dtype": "float16"}, "o": {"shape": [4, 128], "dtype": "float16"},
              "m": {"shape": [16], "dtype": "float32", "access": "update"}},
  "params": [
    {"size": 8, "hex": "0000000000000000", "pointers": [{"at": 0, "tensor": "q", "offset": 0}]},
    {"size": 8, "hex": "0000000000000000", "pointers": [{"at": 0, "tensor": "o", "offset": 16}]},
    {"size": 4, "hex": "0000803f"}, {"integer": 7}, {"number": 0.5},
    {"size": 128, "tensor_map": {"tensor": "q", "offset": 0, "rank": 2, "dims": [128, 4],
     "stride_bytes": [256], "box": [64, 4], "swizzle_bytes": 128}}
  ]
}"""
SCALE_ROWS = """.version 8.0
.target sm_80
.address_size 64
.visible .entry attn_fwd(.param .u64 q, .param .u64 o, .param .f32 s, .param .u32 n,
                          .param .f64 x, .param .align 64 .b8 map[128])
{
  .reg .b64 %rd<6>; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b16 %h<3>;
  ld.param.u64 %rd1, [q];
  ld.param.u64 %rd2, [o];
  ld.param.f32 %f1, [s];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 2;
  add.u64 %rd4, %rd1, %rd3;
  ld.global.b16 %h1, [%rd4];
  cvt.f32.f16 %f2, %h1;
  mul.f32 %f3, %f2, %f1;
  cvt.rn.f16.f32 %h2, %f3;
  add.u64 %rd5, %rd2, %rd3;
  st.global.b16 [%rd5], %h2;
  ret;
}
"""


class Corpus:
    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def add(self, target: str, name: str, *parts: str | bytes) -> None:
        path = self.folder / target / re.sub(r"[^\w.]+", "_", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = [part if isinstance(part, bytes) else part.encode() for part in parts]
        path.write_bytes(SEPARATOR.encode().join(raw))


def git_files(*patterns: str) -> list[pathlib.Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, capture_output=True, check=False
    ).stdout.decode()  # fmt: skip
    return [ROOT / name for name in listed.split("\0") if name]


def without_comments(text: str) -> str:
    return re.sub(r"^[ \t]*//(?!\s*-----).*\n", "", text, flags=re.M)


def pipelines_of(text: str) -> list[str]:
    """The pass pipelines that a test's RUN lines give to attn-opt."""
    found = []
    for line in re.findall(r"RUN:(.*attn-opt.*)", text):
        for quoted in re.findall(r"--?pass-pipeline='([^']*)'", line):
            found.append(quoted)
        for name, value in re.findall(r" --?(attn-[\w-]+)(?:=(\"[^\"]*\"|\S+))?", line):
            if name != "attn-opt":
                options = "{" + value.strip('"') + "}" if value else ""
                found.append(f"builtin.module({name}{options})")
    return list(dict.fromkeys(found))


def flags_of(text: str) -> list[str]:
    """Options, a line each, of every attn-compile in a test that names its problem."""
    found = []
    for line in re.findall(r"attn-compile (.*)", text):
        line = re.sub(r"[|>&].*|\d>.*|-o \S+", "", line)
        line = re.sub(r"(^| )-q[ =]", r" --q=", line)
        try:
            words = shlex.split(line)
        except ValueError:
            continue
        flags = [w[2:] for w in words if re.match(r"--[a-z]", w) and "%" not in w]
        skipped = ("verify", "print-plan", "size", "in=", "corners", "seed", "json", "autotune")
        flags = [f for f in flags if not f.startswith(skipped)]
        if any(f.startswith("q=") for f in flags):
            names = {"no-lse": "lse=false", "no-shipped-plans": "shipped-plans=false",
                     "no-split-keys": "split-keys=false"}
            found.append("\n".join(names.get(f, f) for f in flags))
    return found


def add_tests(corpus: Corpus) -> None:
    options = ["chip=sm_80", "chip=sm_90a", "chip=sm_90a\nschedule=self_load\nepilogue=tma"]
    for path in git_files("test/**.mlir", "examples/*.mlir"):
        text = path.read_text(errors="replace")
        name = str(path.relative_to(ROOT))
        for i, chunk in enumerate(re.split(r"^// -----.*$", without_comments(text), flags=re.M)):
            if 20 < len(chunk) < MOST_BYTES:
                corpus.add("ir", f"{name}.{i}", chunk)
                if "attn.attention" in chunk:
                    corpus.add("compile", f"{name}.{i}", options[i % 3], chunk)
                for j, pipeline in enumerate(pipelines_of(text)[:3]):
                    corpus.add("passes", f"{name}.{i}.{j}", pipeline, chunk)
    for path in git_files("test/**", "docs/*.md"):
        if path.suffix in (".mlir", ".test", ".md"):
            for i, flags in enumerate(flags_of(path.read_text(errors="replace"))):
                corpus.add("flags", f"{path.name}.{i}", flags)
    for path in git_files("test/**.ptx", "unittests/**.ptx"):
        text = path.read_text(errors="replace")
        if len(text) < MOST_PTX_BYTES:
            corpus.add("ptx", str(path.relative_to(ROOT)), text)
        record = path.with_suffix(".json")
        if record.exists() and len(text) < MOST_BYTES:
            corpus.add("launch", path.name, text, record.read_text())


def add_files(corpus: Corpus) -> None:
    """Inputs of the smaller readers."""
    corpus.add("recorded", "scale-rows", SCALE_ROWS, RECORDED)
    plans = json.loads((ROOT / "lib/Planner/ShippedPlans.json").read_text())
    corpus.add("plans", "shipped", json.dumps(plans))
    tests = ROOT / "test/Dialect/Attn/Transforms/Inputs/plans.json"
    corpus.add("plans", "tests", tests.read_text())
    inputs = ROOT / "test/Tools/attn-lint-sass/Inputs"
    for path in inputs.glob("*budget*.json"):
        kernels = json.loads(path.read_text())["kernels"]
        for name in list(kernels)[:3]:
            small = {"version": 1, "kernels": {name: kernels[name]}}
            corpus.add("budget", f"{path.name}-{name}", name, json.dumps(small))
    texts = [(inputs / f"split-q.{kind}").read_text() for kind in ("ptx", "log", "sass")]
    corpus.add("sass", "split-q", *texts)
    corpus.add("sass", "listing", texts[0], "", "\n".join(texts[2].splitlines()[:120]))
    for name, array in (
        ("f16", np.ones((2, 3), np.float16)), ("i4", np.arange(6, dtype=np.int32)),
        ("fortran", np.asfortranarray(np.ones((4, 2), np.float32))), ("empty", np.ones((0, 3))),
        ("raw", np.ones(4, np.uint16).view("V2")), ("big", np.ones(3, ">f4")),
    ):  # fmt: skip
        file = io.BytesIO()
        np.save(file, array)
        corpus.add("npy", name, file.getvalue())
        file = io.BytesIO()
        np.savez(file, q=array, k=array)
        corpus.add("npz", name, file.getvalue())


def add_compiled(corpus: Corpus, programs: pathlib.Path, environment: dict) -> None:
    """Every form of small kernels; the bundle of one."""
    for number, flags in enumerate(PROBLEMS):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            command = [
                programs / "attn-compile", *flags.split(), f"--dump-dir={folder}/rungs",
                f"--launch-out={folder}/launch.json", "-o", folder / "kernel.ptx",
                f"--bundle={folder}/kernel.attn",
            ]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, check=False,
                                  env=environment)  # fmt: skip
            if done.returncode:
                raise SystemExit(f"{flags}: {done.stderr.strip()}")
            ptx = (folder / "kernel.ptx").read_text()
            record = (folder / "launch.json").read_text()
            chip = (re.search(r"--chip=(\S+)", flags) or ("", "sm_80"))[1]
            if len(ptx) < 2 * MOST_BYTES:
                corpus.add("launch", f"compiled-{number}", ptx, record)
            if len(ptx) < MOST_PTX_BYTES:
                corpus.add("ptx", f"compiled-{number}", ptx)
            corpus.add("flags", f"compiled-{number}", flags.replace("--", "").replace(" ", "\n"))
            bundle = (folder / "kernel.attn").read_bytes()
            # The header is what a reader trusts; the kernel behind it only makes it long.
            corpus.add("bundle", f"compiled-{number}", bundle[:6000])
            corpus.add("bundle", f"whole-{number}", bundle)
            for rung in sorted((folder / "rungs").glob("*.mlir")):
                text = rung.read_text()
                if len(text) < 4 * MOST_BYTES:
                    corpus.add("compile", f"{rung.name}-{number}", f"chip={chip}", text)
                if len(text) < MOST_BYTES:
                    corpus.add("ir", f"{rung.name}-{number}", text)


def make(folder: pathlib.Path, programs: pathlib.Path, environment: dict) -> None:
    """`environment` is what programs with sanitizers need."""
    corpus = Corpus(folder)
    add_tests(corpus)
    add_files(corpus)
    add_compiled(corpus, programs, environment)
    # A zip of no members, and a header that ends early.
    corpus.add("npz", "none", b"PK\x05\x06" + struct.pack("<HHHHIIH", *[0] * 7))
