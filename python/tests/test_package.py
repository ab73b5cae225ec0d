"""What the wheel brings beside the modules."""

import importlib.util
import inspect
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = ("attn-compile", "attn-sim")


def test_commands_are_built():
    """What CMake installs for Python is what pip tells it to build."""
    files = (ROOT / "tools").glob("*/CMakeLists.txt")
    found = [each.parent.name for each in files if re.search(r"\bPYTHON\b", each.read_text())]
    assert sorted(found) == list(COMMANDS)
    (targets,) = re.findall(r"^build\.targets = (.*)$", (ROOT / "pyproject.toml").read_text(), re.M)
    assert targets == str(["AttnC", "AttnCudaDriver", *COMMANDS]).replace("'", '"')


def load_backend():
    spec = importlib.util.spec_from_file_location(
        "build_backend", ROOT / "scripts/build_backend.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_missing_packages_are_named(tmp_path, monkeypatch, capsys):
    """Before CMake starts, and before what it needs is downloaded."""
    backend = load_backend()
    major = backend.read_major()
    named = {f"{each}-{major}" for each in ("clang", "lld")} | {
        f"llvm-{major}-dev",
        f"libmlir-{major}-dev",
    }
    named.add(f"mlir-{major}-tools")
    none = backend.find_missing(lambda name: None, {}, tmp_path)
    assert set(none) == named
    # LLVM elsewhere is CMake's to find.
    assert set(backend.find_missing(lambda name: None, {"MLIR_DIR": "x"}, tmp_path)) == {
        f"clang-{major}",
        f"lld-{major}",
    }
    for file in none.values():
        if file.startswith("/"):
            (tmp_path / file[1:]).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file[1:]).touch()
    assert not backend.find_missing(lambda name: name, {}, tmp_path)
    monkeypatch.setattr(backend, "find_missing", lambda: none)
    for hook in (backend.get_requires_for_build_wheel, backend.build_wheel, backend.build_editable):
        with pytest.raises(SystemExit):
            hook("folder")
        text = capsys.readouterr().err
        assert (
            all(f"{package} (no " in text for package in none) and "scripts/install-deps.sh" in text
        )


def test_packages_are_the_installers():
    """What is looked for is what the installer brings."""
    backend = load_backend()
    installer = (ROOT / backend.INSTALLER).read_text().replace("$LLVM_MAJOR", backend.read_major())
    for package in backend.find_missing(lambda name: None, {}, "/nonexistent"):
        assert f'"{package}"' in installer


@pytest.mark.skipif("ATTN_INSTALLED" not in os.environ, reason="the package is not installed")
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command):
    program = pathlib.Path(sys.executable).parent / command
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "LLVM" in done.stdout


def load_script(name):
    spec = importlib.util.spec_from_file_location(
        name.replace("-", "_"), ROOT / f"scripts/{name}.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_runtime_wheel_is_closed(tmp_path):
    """What attn-runtime is made of imports nothing else, and opens a bundle of this compiler."""
    import attn

    script = load_script("build-wheel")
    script.copy_package(ROOT / "python" / "attn", tmp_path / "attn_runtime", script.RUNTIME_PARTS)
    (tmp_path / "attn_runtime" / "__init__.py").write_text(script.RUNTIME_INIT)
    attn.compile(q=(1, 1, 64, 64), dtype="float16").bundle(tmp_path / "k.attn", cubin=False)
    code = (
        "import attn_runtime, sys; kernel = attn_runtime.load('k.attn')\n"
        "assert not {'attn', 'numpy', 'torch'} & set(sys.modules)\n"
        "assert all(hasattr(attn_runtime, name) for name in attn_runtime.__all__)\n"
        "print(kernel.names)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "'q', 'k', 'v', 'o'" in done.stdout


def test_commands_of_the_wheel():
    """The commands that its project file names are those that CMake installs, and say where they
    are where the library has none."""
    hook = (ROOT / "packaging" / "hatch_build.py").read_text()
    named = dict(re.findall(r'"(attn-\w+)": "attn\.commands:(\w+)"', hook))
    assert sorted(named) == list(COMMANDS)
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    for command, function in named.items():
        code = f"from attn import commands; commands.{function}()"
        done = subprocess.run(
            [sys.executable, "-c", code, "--version"],
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            assert (
                f"{command}: error: " in done.stderr
                and f"a build folder has bin/{command}" in done.stderr
            )
        else:
            assert "LLVM" in done.stdout


def test_components_are_told():
    """Each part that is linked has a licence and a source of its version."""
    import tomllib

    table = tomllib.loads((ROOT / "packaging" / "components.toml").read_text())["component"]
    assert {each["id"] for each in table} == {"llvm", "zlib", "zstd", "libstdcxx", "libgcc", "zig"}
    pinned = (ROOT / "packaging" / "requirements.txt").read_text().split()
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", line) for line in pinned)
    for each in table:
        assert each["licence"] and each["texts"] and ("package" in each) != ("python" in each)
        assert "python" not in each or any(
            line.startswith(each["python"] + "==") for line in pinned
        )


@pytest.mark.skipif(
    pathlib.Path("/usr/local/cuda/bin/ptxas").exists(), reason="that one is found first"
)
def test_ptxas_of_a_package_is_found(tmp_path):
    """What the extra `ptxas` installs, where no other one is there."""
    program = tmp_path / "nvidia" / "cu13" / "bin" / "ptxas"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho Fake\necho 'Build of the package'\n")
    program.chmod(0o755)
    paths = [str(tmp_path), *([] if "ATTN_INSTALLED" in os.environ else [str(ROOT / "python")])]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PATH": "/nonexistent"}
    variables.pop("CUDA_HOME", None)
    code = (
        "from attn.compiler import c_library\n"
        "print(c_library.load().attnGetAssemblerVersion().text())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False
    )
    assert "Build of the package" in done.stdout, done.stderr


def list_imports(python, before):
    """The modules that `import attn` loads in a new process, behind those that `before` does."""
    code = (
        f"import sys\n{before}\nold = set(sys.modules)\nimport attn\nprint(*set(sys.modules) - old)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.split()


def test_import_loads_nothing():
    """Names of the package are looked for when they are used."""
    assert list_imports(sys.executable, "import typing") == ["attn"]
    code = "import attn, sys; attn.CompileError; attn.runtime; print(sorted(sys.modules)); print(len(dir(attn)))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert (
        "'attn.runtime'" in done.stdout
        and "'attn.tracing" not in done.stdout
        and "'numpy'" not in done.stdout
    )


def test_import_beside_torch():
    """What the operator needs, and of other packages nothing that torch has not loaded."""
    pytest.importorskip("torch", reason="torch is not installed")
    loaded = list_imports(sys.executable, "import torch")
    assert "attn.torch_op" in loaded and len(loaded) < 60
    assert [each for each in loaded if not each.startswith("attn")] == []


def test_doors_without_torch():
    """What they need is said by the import, and by the call."""
    program = """
import sys
sys.modules["torch"] = sys.modules["transformers"] = None
import attn
for statement in ("import attn.torch", "attn.hf.register()", "attn.flex_attention(1, 2, 3)"):
    try:
        exec(statement)
    except attn.LibraryError as error:
        print(error)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    told = done.stdout.splitlines()
    assert len(told) == 3 and "attn.torch needs torch, which attn[torch] brings" in told[0]
    assert "attn.hf needs torch and transformers" in told[1] and "needs torch" in told[2]


def test_names_are_there():
    """Each name of the package, and each that type checkers see, is found."""
    import attn

    text = (ROOT / "python/attn/__init__.py").read_text()
    checked = text.partition("if _TYPE_CHECKING:")[2].partition("__all__")[0]
    assert set(
        re.findall(r"\b(\w+)(?:,|$|\n)", re.sub(r"from \.[\w.]* import", "", checked))
    ) >= set(attn._HOMES)
    assert {*attn._HOMES, "sim"} == set(attn.__all__)
    for name in (*attn.__all__, "runtime", "record", "kernel", "__version__"):
        assert getattr(attn, name) is not None
    with pytest.raises(AttributeError, match="module 'attn' has no attribute 'atention'"):
        attn.atention  # noqa: B018


def test_all_members_can_be_asked_for():
    import attn

    assert "attention" in dict(inspect.getmembers(attn))
