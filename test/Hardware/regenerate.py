#!/usr/bin/env python3
"""Compiles Sources/ and some problems of our own to Inputs/*.ptx.

usage: regenerate.py [--nvcc=PATH] [--attn-compile=PATH] [NAME...]

NAME is a file in Inputs without .ptx; without one, all are made that the machine
has the compilers for: nvcc 13.0, attn-compile, Triton 3.6 (`pip install
triton==3.6.0`; no GPU). What is skipped is said. Afterwards record.py
has to run on an H200 again.
"""

import argparse
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INPUTS = HERE / "Inputs"

CUDA = {
    "scalar": "compute_80",
    "cooperative": "compute_80",
    "tensor": "compute_80",
    "hopper": "sm_90a",
}

#: attn-compile's flags. Small head dimensions keep the files small.
OURS = {
    "attn_causal": "--q=1x2x80x32xf16 --causal --chip=sm_80",
    "attn_bf16_gqa": "--q=2x4x64x16xbf16 --kv-heads=2 --kv-len=96 --chip=sm_80",
    "attn_window_softcap": "--q=1x2x96x16xf16 --window=20,4 --softcap=8 --chip=sm_86",
    "attn_f32_out": "--q=1x1x70x16xf16 --out-type=f32 --chip=sm_89",
    "attn_sm90": "--q=1x2x128x64xf16 --chip=sm_90a",
    "attn_d64": "--q=1x33x512x64xf16 --chip=sm_80",
    "attn_d128": "--q=1x33x512x128xf16 --chip=sm_80",
    "attn_d64_causal": "--q=1x16x1024x64xbf16 --causal --chip=sm_90a",
    "attn_sm90_sinks": "--q=1x2x100x16xbf16 --sinks --causal --chip=sm_90a",
}

_T = "*fp16"
#: Kernel, chip, types, constants, warps.
TRITON = {
    "triton_softmax_80": ("row_softmax", 80, {"x": _T, "o": "*fp32"}, {"n": 300, "BLOCK": 512}, 4),
    "triton_softmax_90": ("row_softmax", 90, {"x": _T, "o": "*fp32"}, {"n": 300, "BLOCK": 512}, 4),
    "triton_norm_80": (
        "row_norm", 80, {"x": "*bf16", "w": "*fp32", "b": "*fp32", "o": "*bf16"},
        {"n": 200, "BLOCK": 256}, 4,
    ),
    "triton_norm_90": (
        "row_norm", 90, {"x": "*bf16", "w": "*fp32", "b": "*fp32", "o": "*bf16"},
        {"n": 200, "BLOCK": 256}, 4,
    ),
    "triton_ops_80": (
        "fused_ops", 80, {"x": "*i32", "y": "*i32", "o": "*i32", "n": "i32"}, {"BLOCK": 256}, 4,
    ),
    "triton_sort_80": (
        "scan_and_sort", 80, {"x": "*i32", "o": "*i32", "p": "*i32", "h": "*i32"},
        {"BLOCK": 128}, 2,
    ),
    "triton_matmul_80": (
        "matmul", 80, {"a": _T, "b": _T, "c": "*fp32"},
        {"K": 128, "N": 64, "BM": 64, "BN": 32, "BK": 32}, 4,
    ),
    "triton_matmul_tf32_80": (
        "matmul", 80, {"a": "*fp32", "b": "*fp32", "c": "*fp32"},
        {"K": 64, "N": 32, "BM": 32, "BN": 32, "BK": 32}, 4,
    ),
    "triton_matmul_90": (
        "matmul", 90, {"a": _T, "b": _T, "c": "*fp32"},
        {"K": 128, "N": 64, "BM": 64, "BN": 64, "BK": 64}, 4,
    ),
    "triton_matmul_fp8_90": (
        "matmul", 90, {"a": "*fp8e4nv", "b": "*fp8e4nv", "c": "*fp32"},
        {"K": 128, "N": 32, "BM": 64, "BN": 32, "BK": 64}, 4,
    ),
    "triton_matmul_maps_90": (
        "matmul_maps", 90,
        {"a": "tensordesc<fp16[64,64]>", "b": "tensordesc<fp16[64,64]>", "c": "*fp32"},
        {"K": 192, "N": 64, "BM": 64, "BN": 64, "BK": 64}, 4,
    ),
    "triton_attention_80": (
        "attention", 80, {"q": _T, "k": _T, "v": _T, "o": _T, "scale": "fp32"},
        {"N": 128, "D": 32, "BM": 64, "BN": 32}, 4,
    ),
    "triton_attention_90": (
        "attention", 90, {"q": _T, "k": _T, "v": _T, "o": _T, "scale": "fp32"},
        {"N": 128, "D": 32, "BM": 64, "BN": 32}, 4,
    ),
}


def tidy(text):
    """Drops comments, source lines and debug sections: they only take space."""
    lines = []
    inside = False
    for line in text.splitlines():
        inside = inside or line.lstrip().startswith(".section")
        if inside:
            inside = line.strip() != "}"
            continue
        line = re.sub(r"//.*", "", line).strip()
        if line and not re.match(r"\.(loc|file)\b", line) and not re.match(r"\$L__(tmp|func)", line):
            lines.append(line)
    # Newer than what ptxas 13.0 takes.
    return re.sub(r"(?m)^\.version 9\.[1-9]", ".version 9.0", "\n".join(lines)) + "\n"


def make_cuda(nvcc, name):
    source = HERE / "Sources" / f"{name}.cu"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, f"{name}.ptx")
        command = [nvcc, "-ptx", f"-arch={CUDA[name]}", source, "-o", path]
        subprocess.run(command, check=True, capture_output=True)
        return path.read_text()


def make_ours(compiler, name):
    launch = INPUTS / f"{name}.json"
    command = [compiler, *OURS[name].split(), "--emit=ptx", f"--launch-out={launch}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def make_triton(name):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    path = HERE / "Sources" / "triton_kernels.py"
    spec = importlib.util.spec_from_file_location("triton_kernels", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["triton_kernels"] = module
    spec.loader.exec_module(module)
    kernel, chip, types, constants, warps = TRITON[name]
    function = getattr(module, kernel)
    signature = {each: types.get(each, "constexpr") for each in function.arg_names}
    # Buffers are aligned as cuMemAlloc gives them.
    attributes = {
        (index,): [["tt.divisibility", 16]]
        for index, each in enumerate(function.arg_names)
        if types.get(each, "").startswith("*")
    }
    source = ASTSource(function, signature, constexprs=constants, attrs=attributes)
    compiled = triton.compile(source, target=GPUTarget("cuda", chip, 32), options={"num_warps": warps})
    print(f"{name}: {compiled.metadata.shared} bytes of shared memory")
    return compiled.asm["ptx"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nvcc", default=shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    parser.add_argument("--attn-compile", default=str(HERE.parents[1] / "build/bin/attn-compile"))
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    INPUTS.mkdir(exist_ok=True)
    for name in arguments.names or [*CUDA, *OURS, *TRITON]:
        try:
            if name in CUDA:
                text = make_cuda(arguments.nvcc, name)
            elif name in OURS:
                text = make_ours(arguments.attn_compile, name)
            else:
                text = make_triton(name)
        except (OSError, ImportError) as error:
            print(f"{name}: skipped: {error}")
            continue
        (INPUTS / f"{name}.ptx").write_text(tidy(text))


if __name__ == "__main__":
    main()
