#!/usr/bin/env python3
"""Compares the errors of softmax policies over classes of inputs.

Where the compiler is: compile a kernel for each element type and policy, and
run them on the simulator.

    scripts/accuracy.py [--types=f16,f8E4M3FN] [--classes=REGEX] [--set=softmax=threshold] [--causal ...]

For a GPU: compile into a folder; there (NumPy and the driver) run what is in it.

    scripts/accuracy.py make FOLDER --dim=128 --keys=4096 --rows=256
    scripts/accuracy.py run FOLDER

A class's error is that of its whole O against float64 on the operands as they
are stored (docs/Reference.md); a row of the table has that of `exact` and, for
each other policy, how many times as large its own is. Behind it stand, for each
policy, the largest error of LSE in nats (of one from 1 on relative to it) and what
cosines of O with the reference lack of 1 at most. The exit status is 1 when the
policy that the compiler chooses exceeds --limit times `exact` with 8-bit operands,
or --limit-16 times with 16-bit ones, when an LSE of any policy is off by more than
--limit-lse, or when a cosine of 16-bit operands lacks more than --limit-cosine where
results are not bf16, whose own rounding takes as much.

The largest probability of a row is 1 under `exact` and needs no rounding, under
others it is rounded as all are. Where one key has nearly all of the weight, that is
the whole error, and `exact` has next to none: 16-bit operands are compared with the
error of `exact` and that of --roundings rounded probabilities together.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python/tests")]

import accuracy_inputs  # noqa: E402
import gpu_inputs  # noqa: E402
import numpy as np  # noqa: E402
from attn import bundle  # noqa: E402
from tool_util import progress  # noqa: E402

EXACT, PLANNED = "exact", "planned"
OUTPUTS = ("o", "lse")
#: Smaller errors count as this: O of a row with one key may have none.
LEAST = 1e-6
#: Bits of the numbers that probabilities are rounded to.
BITS = {"f16": 11, "bf16": 8}


def make(options: argparse.Namespace) -> int:
    """Compiles the kernels. The first policy of each type is `exact`."""
    names = [name for name in accuracy_inputs.CLASSES if re.search(options.classes, name)]
    if not names:
        print(f"accuracy: no class matches '{options.classes}'", file=sys.stderr)
        return 2
    options.folder.mkdir(parents=True, exist_ok=True)
    policies = {EXACT: ["--set=softmax=exact"], PLANNED: []}
    policies |= {text: [f"--set={part}" for part in text.split(",")] for text in options.set}
    kernels = []
    for dtype in options.types.split(","):
        for label, settings in policies.items():
            path = options.folder / f"{len(kernels)}.attn"
            command = [
                options.bin / "attn-compile", f"--q={len(names)}x1x{options.rows}x{options.dim}x{dtype}",
                f"--kv-len={options.keys}", f"--dv={options.dv}", f"--chip={options.chip}", *settings, *options.flag,
                f"--bundle={path}", "--json", "-o", "/dev/null",
            ]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{dtype}, {label}: {done.stderr.strip()}", file=sys.stderr)
                return 1
            plan = json.loads(done.stdout)["plan"][0]
            kernels.append({"dtype": dtype, "policy": label, "file": path.name, "plan": plan})
    table = {key: getattr(options, key) for key in ("rows", "keys", "dim", "dv")}
    table |= {"classes": names, "kernels": kernels}
    (options.folder / "kernels.json").write_text(json.dumps(table, indent=1), encoding="utf-8")
    return 0


def get_rounding(dtype: str) -> float:
    """The mean error of rounding a probability beside 16-bit operands, whose logarithm is as likely
    to be anywhere between two powers of two; 0 beside others."""
    return 2.0 ** -BITS[dtype] * math.sqrt(1 / (8 * math.log(2))) if dtype in BITS else 0.0


def find_lack(got: np.ndarray, wanted: np.ndarray) -> float:
    """What the cosine of two tensors lacks of 1."""
    return 1 - float(np.vdot(got, wanted) / (np.linalg.norm(got) * np.linalg.norm(wanted)))


def simulate(options: argparse.Namespace, path: pathlib.Path, inputs: dict) -> list[np.ndarray]:
    """O and LSE of one kernel by attn-sim, as float64."""
    contents = bundle.read(path)
    types = {tensor["name"]: tensor["dtype"] for tensor in contents.launch["tensors"]}
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "launch.json").write_text(json.dumps(contents.launch), encoding="utf-8")
        ptx = next(image.data for image in contents.images if image.kind == "ptx")
        (root / "kernel.ptx").write_bytes(ptx.rstrip(b"\0"))
        command = [options.bin / "attn-sim", root / "kernel.ptx", f"--launch={root}/launch.json"]
        for key, bits in inputs.items():
            gpu_inputs.save_npy(f"{root}/{key}.npy", bits, types[key])
            command.append(f"--in={key}={root}/{key}.npy")
        command += [f"--out={name}={root}/{name}.npy" for name in OUTPUTS]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr + done.stdout)
        return [
            gpu_inputs.decode(gpu_inputs.load_npy(f"{root}/{name}.npy", types[name]), types[name])
            for name in OUTPUTS
        ]


def launch(_: argparse.Namespace, path: pathlib.Path, inputs: dict) -> list[np.ndarray]:
    """O and LSE of one kernel on the GPU, as float64."""
    import attn.runtime
    from attn.launch import cuda_driver

    kernel = attn.runtime.load(path)
    with cuda_driver.get_device(0):
        tensors = {
            tensor["name"]: gpu_inputs.DeviceTensor(tensor, inputs.get(tensor["name"]))
            for tensor in kernel.launch_record["tensors"]
        }
        kernel(**{name: tensor.view() for name, tensor in tensors.items()})
        gpu_inputs.synchronize()
        outputs = [
            gpu_inputs.decode(tensors[name].fetch(), tensors[name].dtype) for name in OUTPUTS
        ]
        for each in tensors.values():
            each.free()
    return outputs


def attend(
    problem: dict, bits: dict[str, np.ndarray], dtype: str, index: int
) -> tuple[np.ndarray, np.ndarray]:
    """O and LSE of one class in float64."""
    q, k, v = (gpu_inputs.decode(bits[key][index, 0], dtype) for key in "qkv")
    return gpu_inputs.attend(q, k, v, problem)


def run(options: argparse.Namespace) -> int:
    """Runs the kernels of a folder and prints the table of each type."""
    table = json.loads((options.folder / "kernels.json").read_text(encoding="utf-8"))
    names, kernels, failed = table["classes"], table["kernels"], 0
    execute = simulate if options.simulate else launch
    done = 0
    for dtype in dict.fromkeys(kernel["dtype"] for kernel in kernels):
        inputs = accuracy_inputs.make_inputs(
            names, *(table[name] for name in ("rows", "keys", "dim", "dv")), dtype
        )
        first = next(kernel for kernel in kernels if kernel["dtype"] == dtype)
        record = bundle.read(options.folder / first["file"]).launch
        problem = record["problem"]
        out_type = next(each["dtype"] for each in record["tensors"] if each["name"] == "o")
        rounding = options.roundings * get_rounding(dtype)
        expected = [attend(problem, inputs, dtype, index) for index in range(len(names))]
        errors, lse_errors, lacks = {}, {}, {}
        for kernel in kernels:
            if kernel["dtype"] != dtype:
                continue
            progress(done, len(kernels), f"{dtype} {kernel['policy']}")
            o, lse = execute(options, options.folder / kernel["file"], inputs)
            errors[kernel["policy"]] = np.array(
                [
                    max(LEAST, np.linalg.norm(o[i, 0] - each) / np.linalg.norm(each))
                    for i, (each, _) in enumerate(expected)
                ]
            )
            lacks[kernel["policy"]] = np.array(
                [find_lack(o[i, 0], each) for i, (each, _) in enumerate(expected)]
            )
            lse_errors[kernel["policy"]] = np.array(
                [
                    (np.abs(lse[i, 0] - each) / np.maximum(1, np.abs(each))).max()
                    for i, (_, each) in enumerate(expected)
                ]
            )
            done += 1
        progress(done, len(kernels), "done" if done == len(kernels) else dtype)
        base = np.hypot(errors[EXACT], rounding)
        ratios = report(table, dtype, names, errors, base, options.brief)
        limit = options.limit if dtype in gpu_inputs.NARROW else options.limit_16
        if PLANNED in ratios and not ratios[PLANNED].max() <= limit:
            failed = 1
            worst = names[int(ratios[PLANNED].argmax())]
            print(f"{dtype}: '{worst}' has {ratios[PLANNED].max():.2f} times the error of exact, accepted {limit:g}")
        for policy, each in lse_errors.items():
            worst = names[int(each.argmax())]
            print(f"  LSE error of {policy}: {each.max():.1e}, {worst}")
            if not each.max() <= options.limit_lse:
                failed = 1
                print(f"{dtype}: '{worst}' has an LSE error of {each.max():.1e} under {policy}, accepted {options.limit_lse:g}")
        is_limited = dtype in BITS and out_type != "bf16"
        for policy, each in lacks.items():
            worst = names[int(each.argmax())]
            print(f"  cosine under {policy} with results of {out_type}: 1 - {each.max():.1e}, {worst}")
            if is_limited and not each.max() <= options.limit_cosine:
                failed = 1
                print(f"{dtype}: '{worst}' lacks {each.max():.1e} of a cosine of 1 under {policy}, accepted {options.limit_cosine:g}")
    return failed


def describe_dim(table: dict) -> str:
    return f"{table['dim']}" if table["dv"] == table["dim"] else f"{table['dim']}/{table['dv']}"


def report(table, dtype: str, names, errors, base, brief: bool) -> dict[str, np.ndarray]:
    """Prints the table of a type, and returns the ratios to `base`, errors by class, by policy."""
    ratios = {label: e / base for label, e in errors.items() if label != EXACT}
    print(f"{dtype}, {table['rows']} queries, {table['keys']} keys, head dimension {describe_dim(table)}:")
    for kernel in table["kernels"]:
        if kernel["dtype"] == dtype and kernel["policy"] != EXACT:
            print(f"  {kernel['policy']}: {kernel['plan']}")
    width = max(len(label) for label in [*ratios, PLANNED])
    lines = [] if brief else list(enumerate(names))
    print(f"{'':38}{EXACT:>9}" + "".join(f"{label:>{width + 2}}" for label in ratios))
    for index, name in lines:
        row = "".join(f"{r[index]:{width + 2}.2f}" for r in ratios.values())
        print(f"{name:38}{errors[EXACT][index]:9.2e}{row}")
    worst = "".join(f"{r.max():{width + 2}.2f}" for r in ratios.values())
    print(f"{'worst':38}{errors[EXACT].max():9.2e}{worst}")
    for label, r in ratios.items():
        print(f"  worst of {label}: {r.max():.2f}, {names[int(r.argmax())]}")
    return ratios


def compare(options: argparse.Namespace) -> int:
    """Compiles into a folder of its own and runs on the simulator."""
    with tempfile.TemporaryDirectory() as folder:
        options.folder, options.simulate = pathlib.Path(folder), True
        return make(options) or run(options)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", nargs="?", choices=("make", "run"))
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--types", default="f16,bf16,f8E4M3FN,f8E5M2")
    parser.add_argument("--classes", default="", metavar="REGEX")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE,...", help="parameters of a further policy")  # fmt: skip
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--keys", type=int, default=1024)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--dv", type=int, help="columns of values (default: --dim)")
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument("--limit", type=float, default=1.25, help="for 8-bit operands")
    parser.add_argument("--limit-16", type=float, default=1.25, help="for 16-bit operands")
    parser.add_argument("--limit-lse", type=float, default=1e-3, help="for LSE")
    parser.add_argument("--limit-cosine", type=float, default=2e-6, help="what cosines may lack of 1 with 16-bit operands")  # fmt: skip
    parser.add_argument("--roundings", type=float, default=1.0, help="rounded probabilities in what errors of 16-bit operands are compared with")  # fmt: skip
    parser.add_argument("--simulate", action="store_true", help="run: on the simulator, not the GPU")
    parser.add_argument("--brief", action="store_true", help="no lines of classes")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    # All other flags are attn-compile's.
    options, options.flag = parser.parse_known_args()
    options.dv = options.dim if options.dv is None else options.dv
    if options.command and not options.folder:
        parser.error(f"{options.command} needs a folder")
    return {"make": make, "run": run, None: compare}[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
