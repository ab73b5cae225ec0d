"""The kernel cache: memory, disk, damage, and several processes at once."""

import json
import os
import pathlib
import subprocess
import sys

import attn
import pytest
from attn.compiler import c_library, kernel_cache
from attn.kernel import _Request

pytestmark = pytest.mark.usefixtures("empty_cache")

SMALL = {"q": "1x1x32x64xf16"}


def list_kernels(folder):
    """The files of a cache folder, without the one about the compiler."""
    return [path for path in folder.iterdir() if path.name != "compiler"]


def count_runs(monkeypatch):
    """A list that grows with each compilation."""
    runs = []
    real = _Request.run
    monkeypatch.setattr(_Request, "run", lambda self, rung: runs.append(rung) or real(self, rung))
    return runs


def run_python(script, **environment):
    variables = {**os.environ, **environment}
    if "ATTN_INSTALLED" not in variables:
        variables["PYTHONPATH"] = str(pathlib.Path(attn.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", script], env=variables, stdout=subprocess.PIPE, text=True
    )


def test_memory_and_disk(monkeypatch):
    runs = count_runs(monkeypatch)
    first = attn.compile(**SMALL)
    assert attn.compile(**SMALL) is first
    kernel_cache.clear_memory()
    second = attn.compile(**SMALL)
    assert runs == ["ptx"] and second is not first
    assert (second.ptx, second.plan, second.launch) == (first.ptx, first.plan, first.launch)
    assert second.remarks == first.remarks
    attn.compile(**SMALL, causal=True)
    attn.compile(**SMALL, chip="sm_86")
    attn.compile(**SMALL, plan={"block_n": 32})
    assert len(runs) == 4


def test_damaged_and_foreign_files(monkeypatch, empty_cache):
    runs = count_runs(monkeypatch)
    ptx = attn.compile(**SMALL).ptx
    (path,) = list_kernels(empty_cache)
    whole = path.read_bytes()
    for contents in (b"", whole[:40], whole[:-1], b"x" + whole[1:], b"another version"):
        path.write_bytes(contents)
        kernel_cache.clear_memory()
        assert attn.compile(**SMALL).ptx == ptx
        assert path.read_bytes() == whole
    assert len(runs) == 6


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_what_is_no_file(monkeypatch, empty_cache):
    """A pipe would wait for its other end."""
    runs = count_runs(monkeypatch)
    kernel = attn.compile(**SMALL)
    for path in list(empty_cache.iterdir()):
        path.unlink()
        os.mkfifo(path)
    kernel_cache.clear_memory()
    assert attn.compile(**SMALL).ptx == kernel.ptx and len(runs) == 2
    for path in list(empty_cache.iterdir()):
        path.unlink()
        path.mkdir()
    kernel_cache.clear_memory()
    assert attn.compile(**SMALL).ptx == kernel.ptx and len(runs) == 3


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        b"7",
        b"[]",
        b"{}",
        b"\xff",
        b'{"remarks": 3}',
        b"[" * 100000,
        "launch",
        "remarks",
        "ptx",
        "plan",
    ],
)
def test_other_contents_with_the_right_hash(monkeypatch, empty_cache, contents):
    runs = count_runs(monkeypatch)
    kernel = attn.compile(**SMALL)
    for path in list(empty_cache.iterdir()):
        raw = contents
        if isinstance(raw, str):
            raw = json.dumps(
                json.loads(path.read_bytes()[32:]) | {contents: {"version": 2}}
            ).encode()
        kernel_cache.write(path.name, raw)
    kernel_cache.clear_memory()
    assert attn.compile(**SMALL).ptx == kernel.ptx and len(runs) == 2
    other = run_python("import attn; attn.targets()", ATTN_LIBRARY="/nonexistent/libAttnC.so")
    assert other.wait() == 0


def test_exchanged_files(empty_cache, monkeypatch):
    """What lies under another's name is not taken for it."""
    runs = count_runs(monkeypatch)
    kernels = [attn.compile(**SMALL, causal=causal).ptx for causal in (False, True)]
    first, second = list_kernels(empty_cache)
    contents = first.read_bytes(), second.read_bytes()
    first.write_bytes(contents[1])
    second.write_bytes(contents[0])
    kernel_cache.clear_memory()
    assert [attn.compile(**SMALL, causal=causal).ptx for causal in (False, True)] == kernels
    assert len(runs) == 4 and (first.read_bytes(), second.read_bytes()) == contents


def make_ptxas(folder, version):
    """A ptxas that writes its version as machine code."""
    program = folder / "bin" / "ptxas"
    program.parent.mkdir(exist_ok=True)
    program.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = --version ] && printf "ptxas\\nBuild {version}\\n" && exit\n'
        f'while [ "$1" != -o ]; do shift; done\nprintf "{version}" > "$2"\n'
    )
    program.chmod(0o755)


def test_cubins_of_another_ptxas(monkeypatch, tmp_path, empty_cache):
    runs = count_runs(monkeypatch)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    make_ptxas(tmp_path, "one")
    kernel = attn.compile(**SMALL)
    assert kernel.cubin == kernel.cubin == b"one"
    make_ptxas(tmp_path, "two")
    assert kernel.cubin == attn.compile(**SMALL).cubin == b"two"
    make_ptxas(tmp_path, "one")
    assert kernel.cubin == b"one"
    assert runs == ["ptx", "cubin", "cubin"]
    # Machines without a compiler, or without a ptxas, take what the last one
    # that filled the cache made.
    make_ptxas(tmp_path, "two")
    kernel_cache.clear_memory()
    (empty_cache / "compiler").unlink()
    attn.compile(**SMALL, causal=True)
    script = f"import attn; print(attn.compile(**{SMALL!r}).cubin)"
    worker = run_python(script, ATTN_LIBRARY="/nonexistent/libAttnC.so")
    assert worker.communicate()[0] == "b'two'\n"
    monkeypatch.setattr(c_library.load(), "attnGetAssemblerVersion", lambda: c_library.ref(""))
    assert attn.compile(**SMALL).cubin == b"two" and runs == ["ptx", "cubin", "cubin", "ptx"]


def test_without_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTN_CACHE_DIR", "")
    assert attn.compile(**SMALL).ptx
    assert kernel_cache.get_folder() is None
    # A file where the folder should be.
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ATTN_CACHE_DIR", str(tmp_path / "file" / "cache"))
    kernel_cache.clear_memory()
    assert attn.compile(**SMALL).ptx


def test_default_folder(monkeypatch):
    monkeypatch.delenv("ATTN_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert str(kernel_cache.get_folder()) == "/x/attn"


def test_processes(empty_cache):
    script = f"import attn; print(attn.compile(**{SMALL!r}).ptx)"
    workers = [run_python(script) for _ in range(4)]
    outputs = {worker.communicate()[0] for worker in workers}
    assert all(worker.returncode == 0 for worker in workers)
    assert len(outputs) == 1 and ".entry" in outputs.pop()
    # Nothing half-written stays behind.
    assert len(list_kernels(empty_cache)) == 1 and not list(empty_cache.glob(".*"))


def test_machine_without_compiler(empty_cache):
    """What another machine compiled is enough."""
    kernel = attn.compile(**SMALL)
    script = f"""
import attn
kernel = attn.compile(**{SMALL!r})
print(kernel.chip, attn.targets()[0].chip, kernel.ptx.count(".entry"))
try:
    attn.compile(**{SMALL!r}, causal=True)
except attn.LibraryError as error:
    print(error)
"""
    text = run_python(script, ATTN_LIBRARY="/nonexistent/libAttnC.so").communicate()[0]
    first, second = text.splitlines()
    assert first == f"{kernel.chip} {attn.targets()[0].chip} 1"
    assert second.startswith("cannot load the compiler: /nonexistent")
    (empty_cache / "compiler").unlink()
    worker = run_python("import attn; attn.targets()", ATTN_LIBRARY="/nonexistent")
    worker.communicate()
    assert worker.returncode == 1


def test_file_of_another_version(monkeypatch, empty_cache):
    runs = count_runs(monkeypatch)
    first = attn.compile(**SMALL)
    (old,) = list_kernels(empty_cache)
    for name, value in (
        ("compiler.kernel_cache.VERSION", 99),
        ("compiler.builds.get_identity", lambda: "another"),
    ):
        monkeypatch.setattr(f"attn.{name}", value)
        kernel_cache.clear_memory()
        assert attn.compile(**SMALL).ptx == first.ptx
    assert len(runs) == 3 and len(list_kernels(empty_cache)) == 3 and old.exists()


def test_killed_writers_leave_nothing_half_written(empty_cache):
    """Processes that are killed while they write, and a reader beside them."""
    script = """
from attn.compiler import kernel_cache
while True:
    for byte in b"ab":
        kernel_cache.write("file", bytes([byte]) * 1000000)
        print("written", flush=True)
"""
    seen = set()
    for _ in range(2):
        workers = [run_python(script) for _ in range(2)]
        for worker in workers:
            worker.stdout.readline()
        for _ in range(10):
            contents = kernel_cache.read("file")
            assert contents is not None and len(contents) == 1000000
            seen |= set(contents)
        for worker in workers:
            worker.kill()
            worker.communicate()
        contents = kernel_cache.read("file")
        assert contents is not None and len(set(contents)) == 1
    assert seen <= set(b"ab")


def test_failed_write_leaves_nothing(monkeypatch, empty_cache):
    def fail(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", fail)
    assert attn.compile(**SMALL).ptx
    assert not list(empty_cache.iterdir())


def test_keys_do_not_collide():
    assert kernel_cache.make_key("a", "bc") != kernel_cache.make_key("ab", "c")
