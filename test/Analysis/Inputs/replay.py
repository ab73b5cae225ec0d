#!/usr/bin/env python3
"""What the check says of small kernels, and what the simulator says when it runs that order.

Each kernel at the barrier rung gets what a launch needs, the check writes what is wrong with it,
and attn-sim runs what becomes of it in the order of warps that the check has written. Prints a
line for each kernel.

usage: replay.py FOLDER KERNEL.mlir...
"""

import json
import pathlib
import re
import subprocess
import sys

PIPELINE = "builtin.module(gpu.module(attn-check-barriers{{witness={}}}))"
TENSOR = (
    '{access = "%s", dtype = "f16", name = "x", shape = array<i64: 1, 1, 1024, 64>, '
    "strides = array<i64: 65536, 65536, 64, 1>}"
)
MAP = (
    '{box = array<i64: 64, %s, 1, 1>, element = "f16", kind = "tensor_map", rank = 4 : i64, '
    'swizzle = "128B", tensor = "x"}'
)


def with_launch(text: str) -> str:
    """The kernel with a target and, where it has none, a launch of one cluster."""
    size = re.search(r"known_cluster_size = array<i32: (\d+)", text)
    cluster = int(size[1]) if size else 1
    warps = [int(count) for count in re.findall(r'partition "\w+" warps (\d+)', text)]
    threads = 32 * sum(warps) if warps else 128
    access = "write" if "tma.store" in text else "read"
    has_map = "%map:" in text
    rows = re.search(r"tensor_map<1x1x(\d+)x64xf16", text)
    arg = MAP % rows[1] if has_map else '{kind = "pointer", tensor = "x"}'
    # Numbers are trips, of which the witness says how many there are.
    parameters = re.search(r"gpu\.func @\w+\(([^)]*)\)", text)[1]
    if "i32" in parameters:
        number = '{kind = "scalar", name = "n", type = "i32", value = 3}'
        arg = ", ".join(
            number if each.endswith("i32") else arg
            for each in re.split(r", (?=%)", parameters)
        )
    launch = (
        "attn.shared_bytes = 32768 : i64, attn.warps = array<i64: 4, 1>, nvvm.minctasm = 1 : i32"
    )
    if "attn.launch" not in text:
        launch += (
            ', attn.launch = #attn.launch<chip = "sm_90a", '
            f'ptx = 86, grid = ["{cluster}", "1", "1"], block = [{threads}, 1, 1], '
            f"cluster = [{cluster}, 1, 1], tensors = [{TENSOR % access}], args = [{arg}]>"
        )
    if not has_map:
        text = re.sub(r"(gpu\.func @\w+)\(\)", r"\1(%out: !llvm.ptr<1>)", text)
    text = text.replace(
        "gpu.module @kernels {",
        'gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {',
    )
    if " kernel attributes {" not in text:
        text = text.replace(
            ") kernel {", f") kernel attributes {{known_block_size = array<i32: {threads}, 1, 1>}} {{"
        )
    return text.replace("kernel attributes {", "kernel attributes {" + launch + ", ")


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    return done.stdout + done.stderr


def replay(path: pathlib.Path, folder: pathlib.Path) -> str:
    source, ptx = folder / f"{path.stem}.mlir", folder / f"{path.stem}.ptx"
    record, witness = folder / f"{path.stem}.json", folder / f"{path.stem}.witness.json"
    source.write_text(with_launch(path.read_text()))
    witness.unlink(missing_ok=True)
    text = run("attn-opt", str(source), "--pass-pipeline=" + PIPELINE.format(witness), "-o", "/dev/null")
    if not witness.exists():
        return "no witness: " + text[:200]
    fault = json.loads(witness.read_text())["fault"]
    text = run(
        "attn-compile", str(source), "--no-check-barriers", "--debug-lines", "-o", str(ptx),
        f"--launch-out={record}",
    )  # fmt: skip
    if "error" in text:
        return f"{fault}: no kernel: " + text[:200]
    text = run("attn-sim", str(ptx), f"--launch={record}", f"--replay={witness}")
    found = re.search(r"replay: +(.*)", text)
    return f"{fault}: " + (found.group(1) if found else text[:200])


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:]:
        path = pathlib.Path(name)
        print(f"{path.stem}: {replay(path, folder)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
