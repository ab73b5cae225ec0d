"""The stand-in for the CUDA driver, in processes of their own: one process has one driver."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import pytest
from attn.sim import attn_run, stand_in

FOLDER = stand_in.find_folder()
pytestmark = pytest.mark.skipif(
    pathlib.Path("/proc/driver/nvidia/version").exists(), reason="a driver is here"
)

#: Calls of the driver through ctypes, and a kernel that adds one to 32 words.
PRELUDE = '''
import ctypes
from ctypes import byref, c_char_p, c_size_t, c_uint, c_uint64, c_void_p

lib = ctypes.CDLL("libcuda.so.1")
for name, types in {
    "cuMemAlloc_v2": [c_void_p, c_size_t], "cuMemFree_v2": [c_uint64],
    "cuMemcpyHtoD_v2": [c_uint64, c_void_p, c_size_t],
    "cuMemcpyDtoH_v2": [c_void_p, c_uint64, c_size_t],
    "cuMemsetD32_v2": [c_uint64, c_uint, c_size_t],
    "cuLaunchKernel": [c_void_p] + [c_uint] * 7 + [c_void_p] * 3,
    "cuModuleLoadData": [c_void_p, c_char_p],
}.items():
    getattr(lib, name).argtypes = types

def check(status):
    if status:
        name, text = c_char_p(), c_char_p()
        lib.cuGetErrorName(status, byref(name))
        lib.cuGetErrorString(status, byref(text))
        raise SystemExit(f"{name.value.decode()}: {text.value.decode()}")

PTX = b"""
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
"""
context, module, function, x = c_void_p(), c_void_p(), c_void_p(), c_uint64()

text = ctypes.create_string_buffer(64)

def set_context():
    check(lib.cuInit(0))
    check(lib.cuDevicePrimaryCtxRetain(byref(context), 0))
    check(lib.cuCtxSetCurrent(context))

def start():
    set_context()
    check(lib.cuModuleLoadData(byref(module), PTX))
    check(lib.cuModuleGetFunction(byref(function), module, b"increment"))
    check(lib.cuMemAlloc_v2(byref(x), 128))
    check(lib.cuMemsetD32_v2(x, 7, 32))

def launch(stream=None, arguments=(c_void_p * 1)(ctypes.addressof(x))):
    check(lib.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, None))
'''


def run(body, **environment):
    """Runs a program with the stand-in on the loader's path."""
    given = {
        **os.environ,
        "LD_LIBRARY_PATH": str(FOLDER),
        "ATTN_SIM_CHIPS": "sm_90a",
        **environment,
    }
    program = PRELUDE + textwrap.dedent(body)
    return subprocess.run(
        [sys.executable, "-c", program], env=given, capture_output=True, text=True
    )


def test_a_program_runs():
    ran = run("""
        start(); launch(); launch()
        host = (c_uint * 32)()
        check(lib.cuMemcpyDtoH_v2(host, x, 128))
        print(list(host) == [9] * 32)
        """)
    assert ran.stdout == "True\n", ran.stderr
    assert ran.stderr == ""


def test_a_link_hands_its_input_on():
    ran = run("""
        start()
        link, image, size = c_void_p(), c_void_p(), c_size_t()
        check(lib.cuLinkCreate_v2(0, None, None, byref(link)))
        check(lib.cuLinkAddData_v2(link, 1, PTX, c_size_t(len(PTX) + 1), b"k", 0, None, None))
        check(lib.cuLinkComplete(link, byref(image), byref(size)))
        check(lib.cuModuleLoadData(byref(module), ctypes.string_at(image.value, size.value)))
        check(lib.cuLinkDestroy(link))
        print(lib.cuLinkDestroy(link))
        """)
    assert ran.stdout == "400\n", ran.stderr


def test_streams_race():
    body = """
        start()
        streams = [c_void_p(), c_void_p()]
        for stream in streams:
            check(lib.cuStreamCreate(byref(stream), 1))
        check(lib.cuCtxSynchronize())
        launch(streams[0])
        EVENT
        launch(streams[1])
        """
    ran = run(body.replace("EVENT", ""))
    assert "kernel 'increment' (launch 2) writes what kernel 'increment' (launch 1)" in ran.stderr
    event = (
        "event = c_void_p(); check(lib.cuEventCreate(byref(event), 0)); "
        "check(lib.cuEventRecord(event, streams[0])); "
        "check(lib.cuStreamWaitEvent(streams[1], event, 0))"
    )
    assert run(body.replace("EVENT", event)).stderr == ""


def test_calls_name_their_lines():
    """Of Python, through ctypes as through any other way."""
    body = """
        start()
        stream = c_void_p()
        check(lib.cuStreamCreate(byref(stream), 1))
        check(lib.cuCtxSynchronize())
        launch(stream)
        check(lib.cuMemsetD32_v2(x, 1, 32))
        """
    ran = run(body, ATTN_SIM_SITES="1")
    lines = (PRELUDE + textwrap.dedent(body)).splitlines()
    later = 1 + next(i for i, line in enumerate(lines) if "(x, 1, 32)" in line)
    earlier = 1 + next(i for i, line in enumerate(lines) if "cuLaunchKernel(func" in line)
    expected = (
        f" at <string>:{later} writes what kernel 'increment' (launch 1) at <string>:{earlier} "
    )
    assert expected in ran.stderr, ran.stderr
    assert " at " not in run(body).stderr.split("\n")[0]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "set_context(); launch()",
            "CUDA_ERROR_INVALID_HANDLE: expected a function, got handle 0x0",
        ),
        ("check(lib.cuCtxSynchronize())", "expected cuInit before other calls"),
        ("start(); check(lib.cuDeviceGetName(text, 0, 0))", "expected room for a name, got none"),
        (
            "start(); check(lib.cuDeviceGetPCIBusId(text, 0, 0))",
            "expected room for an id, got none",
        ),
        (
            "start(); check(lib.cuCtxPopCurrent_v2(None)); check(lib.cuCtxPopCurrent_v2(None))",
            "expected a current context to pop, got none",
        ),
        (
            "start(); check(lib.cuCtxDestroy_v2(context))",
            "expected a context that the program has made, got the primary one",
        ),
        (
            "start(); link = c_void_p(); check(lib.cuLinkCreate_v2(0, 0, 0, byref(link))); "
            "check(lib.cuLinkAddData_v2(link, 3, PTX, c_size_t(len(PTX)), 0, 0, 0, 0))",
            "expected PTX to link, got an input of kind 3",
        ),
        (
            "start(); link = c_void_p(); check(lib.cuLinkCreate_v2(0, 0, 0, byref(link)))\n"
            "for name in (b'first', b'second'): "
            "check(lib.cuLinkAddData_v2(link, 1, PTX, c_size_t(len(PTX)), name, 0, 0, 0))",
            "expected one input to link, got 'second' beside it",
        ),
        (
            "start(); link = c_void_p(); check(lib.cuLinkCreate_v2(0, 0, 0, byref(link))); "
            "check(lib.cuLinkComplete(link, text, text))",
            "expected an input to link, got none",
        ),
        (
            "start(); check(lib.cuPointerGetAttribute(text, 99, x))",
            "expected an attribute of a pointer that the stand-in knows, got 99",
        ),
        (
            "start(); check(lib.cuPointerGetAttribute(text, 2, c_uint64(64)))",
            "expected memory that a device knows, got address 0x40",
        ),
        (
            "start(); check(lib.cuModuleGetGlobal_v2(None, None, module, b'y'))",
            "expected a variable of the module, got 'y'",
        ),
        (
            "start(); check(lib.cuFuncGetParamInfo(function, c_size_t(1), None, None))",
            "expected a parameter below 1, got 1",
        ),
        (
            "start(); launch(arguments=(c_void_p * 1)())",
            "': expected an address of parameter 'p', got null",
        ),
        ("start(); launch(arguments=None)", "expected 8 bytes of parameters, got 0"),
        (
            "start(); other = c_void_p(); check(lib.cuDevicePrimaryCtxRetain(byref(other), 1)); "
            "check(lib.cuCtxSetCurrent(other)); launch()",
            "expected a stream of the kernel's device, got another's",
        ),
        (
            "start(); check(lib.cuGetExportTable(None, None))",
            "expected a table that the stand-in driver has, got a private one of the CUDA runtime",
        ),
        (
            "start(); found = c_void_p(); check(lib.cuGetProcAddress_v2(b'other', byref(found), 0, "
            "c_uint64(0), None))",
            "expected a function of the driver, got 'other'",
        ),
        (
            "start(); n = (c_uint64 * 8)(); check(lib.cuTensorMapEncodeTiled(n, 6, 2, x, n, n, n, n, 1, 0, 0, 0))",
            "expected a tensor map without interleave, of rank 5 at most and swizzle 0 to 3, got",
        ),
        (
            "start(); check(lib.cuModuleLoad(byref(module), b'/absent.ptx'))",
            "CUDA_ERROR_FILE_NOT_FOUND",
        ),
        (
            "start(); check(lib.cuMemFree_v2(x)); launch()",
            "reads 4 bytes of memory that was freed by",
        ),
        (
            "start(); x.value = ctypes.addressof(text); launch()",
            # Memory of the host that nobody has registered.
            "ADDRESS: kernel 'increment': reads 4 bytes outside of every allocation",
        ),
        (
            "start(); words = ctypes.create_string_buffer(128); "
            "x.value = ctypes.addressof(words); check(lib.attnSimRegister(words, 128, b'words')); "
            "launch(); print('right', file=__import__('sys').stderr); "
            "check(lib.attnSimUnregister(words)); launch()",
            "right\nincrement:13: error: out-of-bounds: reads 4 bytes outside of every allocation",
        ),
        (
            "start(); check(lib.cuMemFree_v2(x)); check(lib.cuMemFree_v2(x))",
            "which was freed by cuMemFree",
        ),
        (
            "start(); check(lib.cuMemFree_v2(x.value + 4))",
            "expected the start of an allocation to free",
        ),
        (
            "start(); check(lib.cuModuleUnload(module)); launch()",
            "got handle 0x5a0300000010 that was destroyed",
        ),
        (
            "start(); check(lib.cuModuleLoadData(byref(module), b'\\x7fELF1234'))",
            "got machine code (a cubin)",
        ),
        (
            "start(); check(lib.cuDevicePrimaryCtxRetain(byref(context), 3))",
            "expected a device below 2, got 3",
        ),
        (
            "start(); lib.cuCtxSetCurrent(None); check(lib.cuMemAlloc_v2(byref(x), 8))",
            "expected a current context (cuCtxSetCurrent), got none",
        ),
        ("start(); check(lib.cuMemAlloc_v2(None, 8))", "expected a place for the result, got null"),
        (
            "start(); e = c_void_p(); check(lib.cuEventCreate(byref(e), 0)); f = ctypes.c_float(); "
            "check(lib.cuEventElapsedTime(byref(f), e, e))",
            "expected events that were recorded, got one that was not",
        ),
        (
            "import os\nstart()\nif os.fork() == 0: launch()\nelse: os.wait()",
            "not forked from one that used",
        ),
        (
            "start(); check(lib.cuMemcpyDtoH_v2(text, 64, 8))",
            "expected 8 bytes of the device to copy, got address 0x40",
        ),
        (
            "start(); check(lib.cuMemcpyDtoH_v2(text, x.value + 120, 16))",
            "expected memory to copy inside of one allocation, got 16 bytes at",
        ),
        (
            "start(); check(lib.cuFuncSetAttribute(function, 16, 1))",
            "expected an attribute of a function up to 15, got 16",
        ),
        (
            "start(); check(lib.cuFuncSetAttribute(function, 8, 300000))",
            "bytes of dynamic shared memory beside 0 static ones on sm_90a, got 300000",
        ),
    ],
)
def test_bad_calls(body, expected):
    ran = run(body, ATTN_SIM_CHIPS="sm_90a,sm_80")
    assert expected in ran.stderr, ran.stderr


def test_random_calls_do_not_crash():
    given = {"LD_LIBRARY_PATH": str(FOLDER), "ATTN_SIM_QUIET": "1", "ATTN_SIM_MEMORY": str(2**24)}
    given |= {"ATTN_SIM_JOBS": "1", "ATTN_SIM_STEP_LIMIT": "10000"}
    program = pathlib.Path(__file__).with_name("random_driver_calls.py")
    ran = subprocess.run(
        [sys.executable, program, "--sequences=100"],
        env={**os.environ, **given},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    # Enough of them do something.
    statuses = dict(each.split(":") for each in ran.stdout.splitlines()[0].split())
    assert int(statuses["0"]) > 1000 and len(statuses) > 5


def test_functions_that_are_not_there():
    ran = run("""
        lib.cuGetProcAddress_v2.argtypes = [c_char_p, c_void_p, ctypes.c_int, c_uint64, c_void_p]
        found = c_void_p()
        check(lib.cuInit(0))
        check(lib.cuGetProcAddress_v2(b"cuMemAlloc", byref(found), 13000, 0, None))
        print(found.value == ctypes.cast(lib.cuMemAlloc_v2, c_void_p).value)
        check(lib.cuGetProcAddress_v2(b"cuTexRefCreate", byref(found), 13000, 0, None))
        check(ctypes.CFUNCTYPE(ctypes.c_int)(found.value)())
        """)
    assert ran.stdout == "True\n"
    assert "cuTexRefCreate is not part of the stand-in driver" in ran.stderr
    assert "expected a function of the stand-in driver, got 'cuTexRefCreate'" in ran.stderr


def test_private_tables_name_who_asks():
    ran = run("lib.cuGetExportTable(None, None); lib.cuGetExportTable(None, None)")
    said = [line for line in ran.stderr.splitlines() if "a private table" in line]
    assert len(said) == 1 and said[0].startswith("attn: note: '/")
    assert "libffi" in said[0] or "_ctypes" in said[0]


def test_settings():
    assert "ATTN_SIM_SEED: expected a number, got 'x'" in run("start()", ATTN_SIM_SEED="x").stderr
    assert "sm_1" in run("start()", ATTN_SIM_CHIPS="sm_1").stderr
    ran = run(
        "start(); launch()", ATTN_SIM_TABLE="1", ATTN_SIM_CHIPS="sm_80,sm_90", ATTN_SIM_SEED="3"
    )
    assert "increment" in ran.stderr


CAPTURE = """
    start()
    stream, graph, exe, event = c_void_p(), c_void_p(), c_void_p(), c_void_p()
    check(lib.cuStreamCreate(byref(stream), 1))
    check(lib.cuEventCreate(byref(event), 0))
    check(lib.cuCtxSynchronize())
    check(lib.cuStreamBeginCapture_v2(stream, 0))
    """


def test_graphs_by_capture():
    ran = run(
        textwrap.dedent(CAPTURE)
        + textwrap.dedent("""
        state = ctypes.c_int()
        check(lib.cuStreamIsCapturing(stream, byref(state)))
        launch(stream)
        lib.cuMemsetD32Async.argtypes = [c_uint64, c_uint, c_size_t, c_void_p]
        check(lib.cuMemsetD32Async(x, 40, 8, stream))
        launch(stream)
        check(lib.cuStreamEndCapture(stream, byref(graph)))
        count = c_size_t()
        check(lib.cuGraphGetNodes(graph, None, byref(count)))
        check(lib.cuGraphInstantiateWithFlags(byref(exe), graph, c_uint64(0)))
        check(lib.cuGraphDestroy(graph))
        check(lib.cuGraphLaunch(exe, stream))
        check(lib.cuStreamSynchronize(stream))
        host = (c_uint * 32)()
        check(lib.cuMemcpyDtoH_v2(host, x, 128))
        print(state.value, count.value, host[0], host[31])
        check(lib.cuGraphExecDestroy(exe))
        check(lib.cuGraphLaunch(exe, stream))
        """)
    )
    assert ran.stdout == "1 3 41 9\n"
    assert "expected a graph, got handle 0x5a0600000020 that was destroyed" in ran.stderr


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "check(lib.cuStreamSynchronize(stream))",
            "expected a stream that the host can wait for, got a captured one",
        ),
        (
            "check(lib.cuStreamBeginCapture_v2(stream, 0))",
            "expected a stream that is not captured, got one that is",
        ),
        (
            "check(lib.cuStreamBeginCapture_v2(None, 0))",
            "expected a stream of the program's to capture, got the default one",
        ),
        (
            "check(lib.cuStreamEndCapture(None, byref(graph)))",
            "expected a stream that is captured, got one that is not",
        ),
        (
            "check(lib.cuStreamEndCapture(stream, byref(graph))); n = c_size_t(); "
            "check(lib.cuGraphGetNodes(graph, byref(n), byref(n)))",
            "expected to count the nodes of a graph, got a place for them",
        ),
    ],
)
def test_bad_captures(body, expected):
    assert expected in run(textwrap.dedent(CAPTURE) + body).stderr


def test_attn_run(tmp_path, monkeypatch, capsys):
    (tmp_path / "program.py").write_text(
        PRELUDE
        + "import sys\nstart(); launch()\nif sys.argv[1:]: check(lib.cuMemFree_v2(x)); launch()\n"
    )
    command = ["--chips=sm_80,sm_90a", f"--report={tmp_path}/report.json"]
    program = [sys.executable, str(tmp_path / "program.py")]
    assert attn_run.main([*command, *program]) == 0
    runs = json.loads((tmp_path / "report.json").read_text())["runs"]
    assert [runs[chip]["kernels"][0]["launches"] for chip in ("sm_80", "sm_90a")] == [1, 1]
    command[1] = f"--report={tmp_path}/report.sarif"
    assert attn_run.main([*command, "--", *program, "bad"]) == 1
    sarif = json.loads((tmp_path / "report.sarif").read_text())
    # The kernel has no lines of a source: those of the program stand for them.
    place = sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("program.py")
    for run, chip in zip(sarif["runs"], ("sm_80", "sm_90a"), strict=True):
        assert run["automationDetails"]["id"] == chip
        assert [each["ruleId"] for each in run["results"]] == ["use-after-free"]
    command[1] = f"--report={tmp_path}/report.txt"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    attn_run.main([*command, *program, "bad"])
    expected = r"sm_80: increment:\d+: error: use-after-free: reads 4 bytes"
    assert re.search(expected, (tmp_path / "report.txt").read_text())
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0].startswith("::error file=") for line in printed] == [True, True]
    assert attn_run.main(["--", str(tmp_path / "absent")]) == 127


#: Calls the runtime as host code of CuTe DSL does: the fatbin has machine code, a file its PTX.
CUTE = """
import struct
# An ELF file of two sections: the kernel's, and that of their names.
names = b"\\0.text.increment\\0".ljust(24, b"\\0")
section = lambda name, at, size: struct.pack("<I20xQQ24x", name, at, size)
code = b"\\x7fELF".ljust(40, b"\\0") + struct.pack("<Q10x3H", 64 + len(names), 64, 2, 1)
code += names + section(1, 0, 0) + section(0, 64, len(names))
entry = struct.pack("<HHIQ", 2, 0x101, 64, len(code)) + bytes(12) + struct.pack("<I", 90) + bytes(32)
image = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry) + len(code)) + entry + code
library, value, device = c_void_p(), ctypes.c_int(), ctypes.c_int(7)
load = lambda: lib._cudaLibraryLoadData(byref(library), image, None, None, 0, None, None, 0)
"""


def test_machine_code_with_kept_ptx(tmp_path):
    ran = run(textwrap.dedent(CUTE) + "set_context(); print(load())")
    assert ran.stdout == "209\n", ran.stderr
    body = textwrap.dedent(CUTE) + textwrap.dedent("""
        open(TMP + "/k.ptx", "wb").write(PTX)
        check(load())
        check(lib._cudaGetDevice(byref(device)))
        check(lib._cudaLibraryGetKernel(byref(function), library, b"increment"))
        check(lib._cuKernelGetAttribute(byref(value), 0, function, 0))
        check(lib._cudaKernelSetAttributeForDevice(function, 8, 1024, 0))
        check(lib._cudaMalloc(byref(x), c_size_t(128)))
        check(lib._cudaMemset(x, 0, c_size_t(128)))
        arguments = (c_void_p * 1)(ctypes.addressof(x))
        check(lib._cudaLaunchKernel(function, 1, 1, 1, 32, 1, 1, arguments, c_size_t(0), None))
        config = struct.pack("<6IQQQI4x", 1, 1, 1, 32, 1, 1, 0, 0, 0, 0)
        check(lib._cudaLaunchKernelEx(config, function, arguments))
        host = (c_uint * 32)()
        check(lib._cudaMemcpy(host, x, c_size_t(128), 2))
        print(device.value, value.value > 0, set(host))
        """)
    ran = run(body.replace("TMP", repr(str(tmp_path))), ATTN_SIM_PTX=str(tmp_path))
    assert ran.stdout == "0 True {2}\n", ran.stderr


def test_assembler_hands_ptx_on(tmp_path):
    path = stand_in.write_assembler(tmp_path)
    (tmp_path / "k.ptx").write_text(".version 8.0\n")
    subprocess.run([path, "-v", tmp_path / "k.ptx", "-o", tmp_path / "k.o"], check=True)
    assert (tmp_path / "k.o").read_text() == ".version 8.0\n"
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    assert "release 13.0" in version.stdout and "attn" in version.stdout


def test_another_driver_in_the_process(tmp_path):
    shutil.copy(FOLDER / "libcuda.so.1", tmp_path)
    program = f"""
        from attn.sim import stand_in

        ctypes.CDLL({str(tmp_path / "libcuda.so.1")!r})
        stand_in.load()
        """
    given = {"PYTHONPATH": str(pathlib.Path(stand_in.__file__).parents[2])}
    ran = run(program, **given)
    assert f"expected no CUDA driver in the process yet, got {tmp_path}/libcuda.so.1" in ran.stderr


@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "replaced"])
def test_another_stand_in(tmp_path, is_kept):
    """A copy of it that the process has loaded is taken, also where its file is gone."""
    shutil.copy(FOLDER / "libcuda.so.1", tmp_path)
    path = str(tmp_path / "libcuda.so.1")
    program = f"""
import ctypes, os
first = ctypes.CDLL({path!r})
{"" if is_kept else f"os.remove({path!r})"}
from attn.sim import stand_in
print(stand_in.load().library._handle == first._handle)
"""
    given = {"PYTHONPATH": str(pathlib.Path(stand_in.__file__).parents[2])}
    given |= {"ATTN_DRIVER": str(FOLDER), "ATTN_SIM_CHIPS": "sm_90a"}
    ran = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **given}, capture_output=True, text=True
    )
    assert ran.stdout == "True\n", ran.stderr


def test_without_proc(monkeypatch):
    def read_nothing(path, *_, **__):
        raise FileNotFoundError(path)

    monkeypatch.setattr(pathlib.Path, "read_text", read_nothing)
    assert stand_in._find_other(FOLDER / "libcuda.so.1") is None


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    """A folder takes its place that goes with the process."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    program = """
        from attn.sim import triton_setup

        given = {}
        triton_setup.prepare_environment("sm_80", given)
        print(given["TRITON_PTXAS_PATH"])
        """
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(stand_in.__file__).parents[2]))
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True
    )
    assert ran.stdout.startswith(str(tmp_path / "attn-")), ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
