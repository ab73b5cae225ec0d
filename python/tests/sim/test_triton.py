"""Triton's kernels over the stand-in driver, where Triton is installed: here, or in the
first interpreter that ATTN_TRITON_PYTHON names."""

import importlib.util
import os
import subprocess
import sys

import pytest

PYTHON = os.environ.get("ATTN_TRITON_PYTHON", "").split(":")[0] or sys.executable
pytestmark = pytest.mark.skipif(
    PYTHON == sys.executable and importlib.util.find_spec("triton") is None, reason="no Triton"
)

KERNELS = """
import attn
import numpy as np
import triton
import triton.language as tl

@triton.jit
def add(x, y, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)

@triton.jit
def accumulate(x, o):
    tl.store(o, tl.load(o) + tl.load(x + tl.program_id(0)))

@triton.jit
def shift(x, o, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i + 1))

@triton.jit
def scale(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) * 2)

rng = np.random.default_rng()
wrap = attn.sim.HostArray
x, y, o = (rng.standard_normal(500, dtype=np.float32) for _ in range(3))
"""

JUDGED = """
driver = attn.sim.triton("sm_80,sm_90a,sm_100a")
for device in range(3):
    driver.set_current_device(device)
    print(driver.get_current_target().arch)
    add[(4,)](wrap(x), wrap(y), wrap(o), 500, BLOCK=128)
    np.testing.assert_array_equal(o, x + y)
    # Warps repeat what the first one does, in place: no finding.
    before = x[:16].copy()
    scale[(1,)](wrap(x), BLOCK=16, num_warps=4)
    np.testing.assert_array_equal(x[:16], before * 2)
for launch in (
    lambda: accumulate[(4,)](wrap(x), wrap(o)),
    lambda: shift[(1,)](wrap(x[-64:].copy()), wrap(o), BLOCK=64),
):
    try:
        launch()
    except attn.SimulationError as error:
        print(str(error).splitlines()[0])
"""

#: A kernel that finds memory by an address that it loads, and tensors that it reads as others.
REGISTERED = """
@triton.jit
def follow(table, o):
    tl.store(o, tl.load(tl.load(table).to(tl.pointer_type(tl.float32))))

driver = attn.sim.triton("sm_90a")
import types
from attn.sim import triton_driver
table = np.array([x.ctypes.data], np.int64)
try:
    follow[(1,)](wrap(table), wrap(o))
except attn.SimulationError as error:
    print("not known" if "outside of every allocation" in str(error) else error)
known = wrap(x)
try:
    driver.register(known, x)
except attn.DriverError as error:
    print(error)
try:
    follow[(1,)](wrap(table), wrap(o))
except (attn.SimulationError, RuntimeError):  # The same finding is told once.
    print("not known")
driver.register(known)
# An argument that has the shape of a descriptor's block, but no tensor, has no memory.
shaped = types.SimpleNamespace(block_shape=[16])
triton_driver.Launcher._register(None, shaped, "shaped", [])
follow[(1,)](wrap(table), wrap(o))
print(o[0] == x[0], driver.utils.get_device_properties(None)["multiprocessor_count"] > 0)
try:
    import torch
except ImportError:
    print(True)
else:
    bits = torch.arange(16, dtype=torch.int32)
    scale[(1,)](triton.reinterpret(bits, tl.uint32), BLOCK=16)
    print(torch.equal(bits, 2 * torch.arange(16, dtype=torch.int32)))
"""

CUBLAS = """
attn.sim.triton("sm_100a")
from triton._C.libtriton import nvidia
blas = nvidia.cublas.CublasLt(x)
for name in ("matmul", "gemm", "other"):
    try:
        getattr(blas, name)(x, y, o)
    except attn.DriverError as error:
        print(error)
    except AttributeError:
        print("no", name)
"""

TEST = """
def test_right():
    add[(4,)](wrap(x), wrap(y), wrap(o), 500, BLOCK=128)
    np.testing.assert_array_equal(o, x + y)

def test_racy():
    accumulate[(4,)](wrap(x), wrap(o))
"""


def run(tmp_path, text, *command):
    """Runs a program, or pytest, in the interpreter with Triton."""
    path = tmp_path / "test_program.py"
    path.write_text(text)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "TRITON_CACHE_DIR": str(tmp_path / "cache"),
        "XDG_CACHE_HOME": str(tmp_path),
        "TRITON_DEFAULT_FP_FUSION": "0",
    }
    arguments = [PYTHON, *command, str(path)]
    if PYTHON != sys.executable:
        environment["PYTHONPATH"] = next(each for each in sys.path if each.endswith("/python"))
    return subprocess.run(arguments, env=environment, capture_output=True, text=True)


def test_kernels_are_judged(tmp_path):
    ran = run(tmp_path, KERNELS + JUDGED)
    lines = ran.stdout.splitlines()
    assert lines[:3] == ["80", "90", "100"] and len(lines) == 5, ran.stdout + ran.stderr
    assert "error: race: " in lines[3] and "[global 'o'" in lines[3]
    assert "error: out-of-bounds: reads 4 bytes outside of every allocation" in lines[4]


def test_memory_that_is_registered(tmp_path):
    ran = run(tmp_path, KERNELS + REGISTERED)
    refusal = (
        "expected CPU tensors, or attn.sim.HostArray(array) of numpy's arrays, got ndarray; "
        "nothing was registered"
    )
    lines = ["not known", refusal, "not known", "True True", "True"]
    assert ran.stdout.splitlines() == lines, ran.stdout + ran.stderr


def test_cublas_is_refused_in_a_sentence(tmp_path):
    ran = run(tmp_path, KERNELS + CUBLAS)
    lines = ran.stdout.splitlines()
    for name, line in zip(("matmul", "gemm"), lines):
        assert line.startswith(f"CublasLt.{name}: expected a GPU for cuBLAS, got the stand-in")
    assert lines[2] == "no other", ran.stdout + ran.stderr


def test_plugin_of_pytest(tmp_path):
    plugin = ["-m", "pytest", "-q", "-p", "attn.sim.pytest_plugin", "--attn-chip=sm_90a"]
    ran = run(tmp_path, KERNELS + TEST, *plugin)
    assert "1 failed, 1 passed" in ran.stdout, ran.stdout + ran.stderr
    assert "the simulator's findings" in ran.stdout
    assert "FAILED" in ran.stdout and "test_racy" in ran.stdout
    ran = run(tmp_path, KERNELS + TEST, *plugin[:-1], "--attn-chip=sm_1")
    assert "ERROR: --attn-chip: " in ran.stderr
