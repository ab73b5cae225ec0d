"""This package's own launches through the stand-in for the driver: programs of processes of
their own, on a chip of each generation."""

import os
import subprocess
import sys

import pytest
from attn.sim import stand_in

FOLDER = stand_in.find_folder()

PROGRAM = """
import dataclasses

import attn
import numpy as np
from attn import bundle, runtime
from attn.launch import cuda_driver

chip, is_broken = {chip!r}, {broken}
if is_broken:
    # Rows of tensor maps are 16 bytes longer than the tensor's.
    encode = cuda_driver.encode_tensor_map

    def encode_wrong(parameter, *rest):
        first, *others = parameter.strides
        encode(dataclasses.replace(parameter, strides=(first + 16, *others)), *rest)

    runtime.cuda_driver.encode_tensor_map = encode_wrong

rng = np.random.default_rng()
q = rng.standard_normal((1, 4, 40, 64)).astype(np.float16)
k, v = (rng.standard_normal((1, 2, 70, 64)).astype(np.float16) for _ in "kv")
kernel, kernel_without_keys = (
    attn.compile(
        q=q.shape, kv_heads=2, kv_len=keys, dtype="float16", causal=True, lse=True, chip=chip
    )
    for keys in (70, 0)
)
scores = np.einsum("bhid,bhjd->bhij", q.astype(float), k.astype(float).repeat(2, 1)) / 8
scores[..., np.arange(70)[None, :] > np.arange(40)[:, None]] = -np.inf
weights = np.exp(scores - scores.max(-1, keepdims=True))
weights /= weights.sum(-1, keepdims=True)
expected = np.einsum("bhij,bhjd->bhid", weights, v.astype(float).repeat(2, 1))
got = kernel.run(q=q, k=k, v=v)["o"].astype(float)
print("error", np.linalg.norm(got - expected) / np.linalg.norm(expected))

# Of no keys the driver takes maps, of which nothing is loaded.
got = kernel_without_keys.run(q=q, k=k[:, :, :0], v=v[:, :, :0])
print("without keys", np.all(got["o"] == 0) and np.all(got["lse"] == -np.inf))

# Machine code comes first in a bundle; this driver takes the PTX behind it.
images = [bundle.Image("cubin", chip, b"\\x7fELF" + bytes(60)), bundle.Image("ptx", chip, kernel.ptx.encode())]
loaded = runtime.load(bundle.write(kernel.launch, images))
with cuda_driver.get_device(0):
    loaded.get_function(0)
print("loaded")
"""


def run(chip, broken):
    """Runs the program, as on a machine with that GPU."""
    given = {
        **os.environ,
        "LD_LIBRARY_PATH": str(FOLDER),
        "ATTN_SIM_CHIPS": chip,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    program = PROGRAM.format(chip=chip, broken=broken)
    return subprocess.run(
        [sys.executable, "-c", program], env=given, capture_output=True, text=True
    )


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a", "sm_100a"])
def test_launches_are_right(chip):
    ran = run(chip, False)
    lines = ran.stdout.splitlines()
    assert lines[1:] == ["without keys True", "loaded"], ran.stderr
    assert float(lines[0].split()[1]) < 1e-3
    assert ran.stderr == ""


def test_a_wrong_stride_is_noticed():
    ran = run("sm_90a", True)
    assert "outside of every allocation" in ran.stderr
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in ran.stderr and "error" not in ran.stdout
