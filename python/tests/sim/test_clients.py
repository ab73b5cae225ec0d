"""Other packages' ways to the driver, through the stand-in: cuda-bindings, CuPy, Numba. They run in
the interpreter that ATTN_CLIENTS_PYTHON names, this one without; what it lacks is left out."""

import os
import pathlib
import subprocess
import sys

import pytest

PYTHON = os.environ.get("ATTN_CLIENTS_PYTHON") or sys.executable
ROOT = pathlib.Path(__file__).resolve().parents[3]

#: A kernel that adds one to 32 words, and the driver's context.
PRELUDE = """
import ctypes

import numpy as np

PTX = b'''
.version 8.0
.target sm_80
.address_size 64
.visible .entry increment(.param .u64 p)
{
.reg .b32 %r<3>;
.reg .b64 %d<3>;
ld.param.u64 %d0, [p];
mov.u32 %r0, %tid.x;
mul.wide.u32 %d1, %r0, 4;
add.u64 %d1, %d0, %d1;
ld.global.u32 %r1, [%d1];
add.u32 %r1, %r1, 1;
st.global.u32 [%d1], %r1;
ret;
}
\\0'''
host = np.arange(32, dtype=np.uint32)
"""

CUDA_BINDINGS = """
from cuda.bindings import driver


def check(answer):
    status, *values = answer
    assert status == driver.CUresult.CUDA_SUCCESS, driver.cuGetErrorString(status)
    return values[0] if len(values) == 1 else values


check(driver.cuInit(0))
check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(check(driver.cuDeviceGet(0))))))
function = check(driver.cuModuleGetFunction(check(driver.cuModuleLoadData(PTX)), b"increment"))
memory = check(driver.cuMemAlloc(128))
check(driver.cuMemcpyHtoD(memory, host.ctypes.data, 128))
check(driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, ((memory,), (None,)), 0))
check(driver.cuMemcpyDtoH(host.ctypes.data, memory, 128))
print((host == np.arange(1, 33)).all())
"""

#: CuPy's arrays need the CUDA runtime, which needs private tables: its driver part alone.
CUPY = """
from cupy_backends.cuda.api import driver

lib = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
assert lib.cuInit(0) == lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
driver.ctxSetCurrent(context.value)
function = driver.moduleGetFunction(driver.moduleLoadData(PTX), "increment")
assert lib.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(128)) == 0
assert lib.cuMemcpyHtoD_v2(memory, ctypes.c_void_p(host.ctypes.data), ctypes.c_size_t(128)) == 0
parameters = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
driver.launchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, ctypes.addressof(parameters), 0)
assert lib.cuMemcpyDtoH_v2(ctypes.c_void_p(host.ctypes.data), memory, ctypes.c_size_t(128)) == 0
print((host == np.arange(1, 33)).all())
"""

#: Numba links what it has compiled: by the driver, since attn-run hides nvJitLink.
NUMBA = """
from numba import cuda


@cuda.jit
def increment(words):
    i = cuda.grid(1)
    if i < words.size:
        words[i] += 1


memory = cuda.to_device(host)
increment[2, 16](memory)
print((memory.copy_to_host() == np.arange(1, 33)).all())
"""


def run(tmp_path, text):
    """Runs a program as attn-run does."""
    path = tmp_path / "program.py"
    path.write_text(PRELUDE + text)
    given = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [PYTHON, "-m", "attn.sim.attn_run", "--chips=sm_90a", PYTHON, str(path)]
    return subprocess.run(command, env=given, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("module", "text"),
    [("cuda.bindings.driver", CUDA_BINDINGS), ("cupy_backends", CUPY), ("numba_cuda", NUMBA)],
)
def test_clients_run(tmp_path, module, text):
    probe = subprocess.run([PYTHON, "-c", f"import numpy, {module}"], capture_output=True)
    if probe.returncode:
        pytest.skip(f"no {module}")
    ran = run(tmp_path, text)
    assert ran.stdout == "True\n", ran.stderr
    assert ran.returncode == 0
