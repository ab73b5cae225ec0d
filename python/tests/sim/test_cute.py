"""CuTe DSL's kernels on the stand-in, through attn-run and attn.sim.cute. They run in the
interpreter that ATTN_CUTE_PYTHON names, this one without; without nvidia-cutlass-dsl they are left
out. scripts/cute-examples.py runs its own examples."""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import types

import numpy as np
import pytest
from attn.sim import attn_run, cute_setup, cute_tensors, stand_in

PYTHON = os.environ.get("ATTN_CUTE_PYTHON") or sys.executable
ROOT = pathlib.Path(__file__).resolve().parents[3]

#: A kernel that doubles 32 numbers; `reads` is how far it reads beyond them.
PROGRAM = """
import cutlass
import cutlass.cute as cute
import numpy as np
from cutlass.cute.runtime import from_dlpack

READS = {reads}

@cute.kernel
def double(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    y[thread] = x[thread + READS] + x[thread]

@cute.jit
def run(x: cute.Tensor, y: cute.Tensor):
    double(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))

x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
run(from_dlpack(x), from_dlpack(y))
print((y == 2 * x).all())
"""

#: Calls that kernel through TVM FFI three times: with a numpy array by name, with arrays in a tuple,
#: and with a torch tensor if there is torch.
TVM_FFI = """
import cutlass.cute as cute
import numpy as np
from cutlass.cute.runtime import from_dlpack

@cute.kernel
def double(x: cute.Tensor, y: cute.Tensor, reads: cute.Int32):
    thread, _, _ = cute.arch.thread_idx()
    y[thread] = x[thread + reads] + x[thread]

@cute.jit
def run(both: tuple, reads: cute.Int32 = 0):
    double(*both, reads).launch(grid=(1, 1, 1), block=(32, 1, 1))

def take(array):
    return from_dlpack(array, enable_tvm_ffi=True)

x, y, z = np.arange(32, dtype=np.float32), np.zeros(32, np.float32), np.zeros(32, np.float32)
compiled = cute.compile(run, (take(x), take(y)), 0, options="--enable-tvm-ffi")
compiled((x, y), reads={reads})
# A tensor of CuTe's is one already.
compiled((x, take(z)), {reads})
print((y == 2 * x).all() and (z == y).all())
"""


@pytest.fixture(scope="module")
def has_cute():
    if subprocess.run([PYTHON, "-c", "import cutlass.cute"], capture_output=True).returncode:
        pytest.skip("no nvidia-cutlass-dsl")


def run(tmp_path, text, *start):
    path = tmp_path / "program.py"
    path.write_text(text)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    given = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "TMPDIR": str(temporary)}
    command = [PYTHON, *start, str(path)]
    ran = subprocess.run(command, env=given, capture_output=True, text=True)
    # Temporary folders go with the process.
    assert not list(temporary.glob("attn-*"))
    return ran


@pytest.mark.usefixtures("has_cute")
@pytest.mark.parametrize("chip", ["sm_80", "sm_90a", "sm_100a"])
def test_attn_run(tmp_path, chip):
    start = ("-m", "attn.sim.attn_run", f"--chips={chip}", PYTHON)
    ran = run(tmp_path, PROGRAM.format(reads=0), *start)
    assert (ran.returncode, ran.stdout) == (0, "True\n"), ran.stderr


@pytest.mark.usefixtures("has_cute")
def test_faults_are_found(tmp_path):
    start = ("-m", "attn.sim.attn_run", PYTHON)
    ran = run(tmp_path, PROGRAM.format(reads=1), *start)
    assert ran.returncode
    assert "out-of-bounds: reads 4 bytes" in ran.stderr


@pytest.mark.usefixtures("has_cute")
def test_without_attn_run(tmp_path):
    setup = 'import attn.sim\n\nattn.sim.cute("sm_90a")\n'
    ran = run(tmp_path, setup + PROGRAM.format(reads=0))
    assert (ran.returncode, ran.stdout) == (0, "True\n"), ran.stderr


@pytest.mark.usefixtures("has_cute")
@pytest.mark.parametrize("chip", ["sm_90a", "sm_100a"])
def test_calls_through_tvm_ffi(tmp_path, chip):
    start = ("-m", "attn.sim.attn_run", f"--chips={chip}", PYTHON)
    ran = run(tmp_path, TVM_FFI.format(reads=0), *start)
    assert (ran.returncode, ran.stdout) == (0, "True\n"), ran.stderr


@pytest.mark.usefixtures("has_cute")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TVM_FFI.format(reads=1), "out-of-bounds: reads 4 bytes"),
        # The launch's error is one of Python's.
        (TVM_FFI.format(reads=1), "CUDADialectError"),
        # So is that of loading the module, whose PTX is gone.
        (
            TVM_FFI.format(reads=0).replace(
                "compiled((x, y)",
                "import os, shutil; shutil.rmtree(os.environ['CUTE_DSL_DUMP_DIR'])\ncompiled((x, y)",
            ),
            "CUDA_ERROR_FILE_NOT_FOUND: expected a folder with PTX",
        ),
    ],
)
def test_faults_through_tvm_ffi(tmp_path, text, expected):
    ran = run(tmp_path, text, "-m", "attn.sim.attn_run", PYTHON)
    assert ran.returncode
    assert expected in ran.stderr


def test_environment(monkeypatch, tmp_path):
    given = {"CUTE_DSL_KEEP": "cubin,ptx", "CUTE_DSL_DUMP_DIR": str(tmp_path)}
    cute_setup.prepare_environment("sm_100a,sm_80", given, "/other")
    assert given["CUTE_DSL_KEEP"] == "cubin,ptx"
    assert given["CUTE_DSL_ARCH"] == "sm_100a"
    assert given[cute_setup.PTX] == given["CUTE_DSL_DUMP_DIR"] == str(tmp_path)
    assert given["CUTE_DSL_LIBS"].endswith("libcuda.so.1")
    del given["CUTE_DSL_DUMP_DIR"]
    cute_setup.prepare_environment("sm_80", given, "/other")
    assert given[cute_setup.PTX] == given["CUTE_DSL_DUMP_DIR"] == "/other"


def test_a_folder_goes_with_the_process(tmp_path):
    """Not with one that was forked from it."""
    program = """
        import os, sys
        from attn.sim import stand_in
        folder = stand_in.make_folder("attn-test-")
        if os.fork() == 0:
            sys.exit()
        os.wait()
        print(folder, os.path.isdir(folder))
        """
    ran = run(tmp_path, textwrap.dedent(program))
    folder, is_there = ran.stdout.split()
    assert is_there == "True" and not os.path.exists(folder)


def test_programs_without_cute(tmp_path, monkeypatch):
    """attn-run leaves no folder, and makes none for CuTe that nobody asks for."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = tmp_path / "found"
    program = "import os, sys; d = os.environ['CUTE_DSL_DUMP_DIR']; "
    program += "open(sys.argv[1], 'w').write(f'{d} {os.path.exists(d)}')"
    assert attn_run.main(["--chips=sm_80", sys.executable, "-c", program, str(found)]) == 0
    folder, is_there = found.read_text().split()
    assert folder.startswith(str(tmp_path)) and is_there == "False"
    assert list(tmp_path.iterdir()) == [found]


def test_a_temporary_folder_with_a_colon(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "a:b"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert attn_run.main([sys.executable, "-c", ""]) == 2
    assert "expected a folder for temporary files without ':', got" in capsys.readouterr().err


def test_numbers_and_empty_arrays(monkeypatch):
    """Numbers of numpy stay numbers; arrays without elements are a GPU's too, with no memory."""
    known = []
    library = types.SimpleNamespace(register=lambda *memory: known.append(memory[:2]))
    monkeypatch.setattr(stand_in, "load", lambda: library)
    fake = types.SimpleNamespace(from_dlpack=lambda value: value)
    monkeypatch.setitem(sys.modules, "tvm_ffi", fake)
    number, taken = np.float32(2), []
    assert cute_tensors._convert(number, taken) is number
    assert isinstance(cute_tensors._convert(np.zeros((0, 4)), taken), cute_tensors.Moved)
    assert cute_tensors.register_first(lambda tensor: tensor)(number) is number
    assert not known and not taken
    array = np.zeros(4)
    cute_tensors._convert((array,), taken)
    assert known == [(array.ctypes.data, 32)] and taken == [array.ctypes.data]
