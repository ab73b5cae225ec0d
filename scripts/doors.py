#!/usr/bin/env python3
"""Tests what users of other packages meet: wheels, torch, transformers, FlexAttention.

The wheels are made twice and have to be equal; the first is installed into a new virtual
environment of each Python that is found, and, where debootstrap is installed and the user is root,
in a minimal Debian of each suite, and the README's example, both commands and the stand-in driver
run there. The oldest one's Python is too old: a newer one is built there, once. In another one a
small repository of Triton's kernels is tested, by the lines of the page on the stand-in driver.
A wheel for aarch64 is tried where one was made, by QEMU.
Then the tests of python/tests/doors run with the pinned torch and transformers, on the simulator.
The limit is 20 minutes of two cores; downloads (some 5 GB for torch, once), the minimal Debians,
which are kept, and the first build are not counted. What counts is processor time, which other work
on the machine does not change.

usage: scripts/doors.py [--only=REGEX] [--no-debian] [--sample | --torch=VERSION,...]
  --only       the steps whose names match
  --no-debian  leave out the minimal Debians
  --sample     make the wheels once, and try one with one Python: what continuous integration does
  --torch      the tests that need no transformers, with each of these versions instead
The last line is "N passed, N failed, N skipped".
"""

import argparse
import os
import pathlib
import platform
import re
import resource
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("ATTN_BUILD", ROOT / "build"))
FOLDER = BUILD / "doors"
WHEELS = BUILD / "wheels"
VERSIONS = range(10, 15)
SUITES = ("bullseye", "bookworm", "trixie", "forky")
#: Suites whose Python is older than what the wheel needs, with the suite that has the sources of one
#: that is not, and their package.
NEWER_PYTHON = {"bullseye": ("bookworm", "python3.11")}
#: Seconds of processor time.
LIMIT = 2400
#: In the names of steps that do not count.
NOT_COUNTED = "not counted"
#: The suite in which a repository of Triton's kernels is tested, what that needs beside Python, and
#: the seconds that it may take on two cores.
TRITON_SUITE = "bookworm"
TRITON_NEEDS = ("gcc", "libc6-dev", "python3-dev")
MOST_SECONDS = 300
#: Loads a kernel through the stand-in driver.
DRIVER = r"""
import attn
import ctypes
import hashlib
from attn.sim import stand_in
cuda = ctypes.CDLL(str(stand_in.find_folder() / "libcuda.so.1"))
held, text = ctypes.c_void_p(), attn.compile(q=(1, 1, 64, 64), dtype="float16", chip="sm_80").ptx.encode()
assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(held), 0) == cuda.cuCtxSetCurrent(held) == 0
assert cuda.cuModuleLoadData(ctypes.byref(held), text) == 0 != cuda.cuModuleLoadData(ctypes.byref(held), b"no PTX")
for chip in ("sm_90a", "sm_100a"):
    ptx = attn.compile(q=(1, 2, 200, 128), dtype="bfloat16", causal=True, chip=chip).ptx
    print("digest", chip, hashlib.sha256(ptx.encode()).hexdigest())
print("tried with", sys.version.split()[0], "of", platform.machine())
"""
#: Run in a folder with README.md, by the interpreter that the wheel is installed for.
TRIAL = r"""
import importlib.metadata, pathlib, platform, re, subprocess, sys
[block] = re.findall(r"```python\n(.*?)```", pathlib.Path("README.md").read_text(), re.S)
exec(compile(block, "README.md", "exec"), {})
import attn
assert "LLVM" in attn.__version__, attn.__version__
folder = pathlib.Path(sys.executable).parent
for command, words in (("attn-compile", ["--q=1x1x64x64xf16", "--verify"]), ("attn-sim", ["--version"])):
    subprocess.run([folder / command, *words], check=True, stdout=subprocess.DEVNULL)
subprocess.run([folder / "attn-run", "--help"], check=True, stdout=subprocess.DEVNULL)
[plugin] = [each for each in importlib.metadata.entry_points(group="pytest11") if each.name == "attn"]
assert plugin.value == "attn.sim.pytest_plugin"
assert subprocess.run([folder / "attn-sim", "--verfy"], capture_output=True).returncode == 1
"""
#: The same where a program of the interpreter cannot start others.
SHORT_TRIAL = r"""
import pathlib, platform, re, sys
[block] = re.findall(r"```python\n(.*?)```", pathlib.Path("README.md").read_text(), re.S)
exec(compile(block, "README.md", "exec"), {})
"""


class Skip(Exception):
    """What a step needs is not here."""


def run(*command: object, **options: object) -> None:
    subprocess.run([str(each) for each in command], check=True, **options)


def count_cpu() -> float:
    """Seconds of processor time of the programs that have run."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def find_wheel() -> pathlib.Path:
    found = sorted(WHEELS.glob(f"attn-*_{platform.machine()}.whl"))
    if not found:
        raise Skip("no wheel was made")
    return found[0]


def find_python(minor: int) -> str:
    """An interpreter of Python 3 that runs: some that are found only say how to get one."""
    homes = sorted(pathlib.Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"))
    for name in (shutil.which(f"python3.{minor}"), *homes):
        if name and subprocess.run([name, "--version"], capture_output=True, check=False).returncode == 0:
            return str(name)
    raise Skip(f"no Python 3.{minor}")


def make_wheels(*options: str) -> None:
    tools = subprocess.run([ROOT / "scripts" / "install-deps.sh", "--with-wheel"], check=False)
    if tools.returncode:
        raise Skip("the tools of wheels cannot be installed")
    run(ROOT / "scripts" / "build-wheel.py", *options)


def try_python(minor: int) -> None:
    wheel, python = find_wheel(), find_python(minor)
    folder = FOLDER / f"python3.{minor}"
    shutil.rmtree(folder, ignore_errors=True)
    run(python, "-m", "venv", folder)
    run(folder / "bin" / "pip", "-q", "install", wheel)
    shutil.copy(ROOT / "README.md", folder)
    (folder / "trial.py").write_text(TRIAL + DRIVER)
    variables = {**os.environ, "ATTN_CACHE_DIR": str(folder / "cache")}
    for name in ("PYTHONPATH", "ATTN_LIBRARY"):
        variables.pop(name, None)
    run(folder / "bin" / "python", "trial.py", cwd=folder, env=variables)


def build_python(root: pathlib.Path, suite: str, newer: str, package: str) -> None:
    """Builds a newer suite's Python in a minimal Debian."""
    lines = (root / "etc/apt/sources.list").read_text().splitlines()
    sources = [re.sub("^deb ", "deb-src ", line).replace(suite, newer) for line in lines]
    (root / "etc/apt/sources.list.d/newer.list").write_text("\n".join(sources) + "\n")
    commands = (
        f"apt-get -q update && mkdir -p /src && cd /src && apt-get -q source --download-only {package}",
        f"cd /src && tar xf {package}_*.orig.tar.* && cd *ython-3*/ && ./configure -q OPT=-O1 "
        "--disable-test-modules && make -s -j2 && make -s install && rm -rf /src",
    )
    for command in commands:
        run("chroot", root, "sh", "-c", command, stdout=subprocess.DEVNULL)


def make_root(root: pathlib.Path, suite: str, *more: str) -> None:
    """Makes a minimal Debian with `more` packages, which is kept for later runs."""
    if not (root / "ready").exists():
        shutil.rmtree(root, ignore_errors=True)
        packages = ",".join(["python3,python3-pip,python3-venv,ca-certificates", *more])
        if suite in NEWER_PYTHON:
            packages = "ca-certificates,gcc,libc6-dev,libffi-dev,libssl-dev,make,xz-utils,zlib1g-dev"
        # A suite that is newer than debootstrap is made as its newest one.
        known = pathlib.Path("/usr/share/debootstrap/scripts") / suite
        newest = () if known.exists() else ("", known.with_name("sid"))
        run("debootstrap", "--variant=minbase", f"--include={packages}", suite, root, *newest)
    for name in ("/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt"):
        shutil.copy(name, root / name[1:])
    if not (root / "ready").exists():
        if suite in NEWER_PYTHON:
            build_python(root, suite, *NEWER_PYTHON[suite])
        (root / "ready").touch()


def prepare_debian(name: str, suite: str, *more: str) -> None:
    if os.getuid() != 0 or not shutil.which("debootstrap"):
        raise Skip("needs root and debootstrap")
    make_root(FOLDER / name, suite, *more)


def try_debian(suite: str) -> None:
    """In a root of its own; pip fetches numpy from there."""
    wheel, root = find_wheel(), FOLDER / suite
    if not (root / "ready").exists():
        raise Skip("there is no minimal Debian")
    trial = root / "trial"
    trial.mkdir(exist_ok=True)
    for file in (wheel, ROOT / "README.md"):
        shutil.copy(file, trial)
    (trial / "trial.py").write_text(TRIAL + DRIVER)
    python = "/usr/local/bin/python3" if suite in NEWER_PYTHON else "python3"
    commands = (
        f"cd /trial && rm -rf v && {python} -m venv v && v/bin/pip -q install /trial/{wheel.name} && "
        "v/bin/python trial.py"
    )
    run("chroot", root, "sh", "-c", commands)


def try_aarch64() -> None:
    """The interpreter and the C library are those that the cross compiler's packages came with."""
    wheels, root = sorted(WHEELS.glob("attn-*_aarch64.whl")), BUILD / "aarch64" / "root"
    if not wheels or not shutil.which("qemu-aarch64-static"):
        raise Skip("needs a wheel by scripts/build-wheel.py --machine=aarch64, and qemu-user-static")
    folder = FOLDER / "aarch64"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (17, 28)]
    of_wheel = ["--only-binary=:all:", *platforms, "--python-version=3.11"]
    run(sys.executable, "-m", "pip", "-q", "install", "--target", folder, *of_wheel, wheels[0])
    shutil.copy(ROOT / "README.md", folder)
    (folder / "trial.py").write_text(SHORT_TRIAL + DRIVER)
    variables = {**os.environ, "ATTN_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(folder)}
    variables.pop("ATTN_LIBRARY", None)
    run("qemu-aarch64-static", "-L", root, root / "usr/bin/python3.11", "trial.py", cwd=folder, env=variables)


def try_triton(name: str) -> None:
    """What docs/StandInDriver.md says to a repository of Triton's kernels: its test, by the lines of
    its file for continuous integration, on two cores. Making the root does not count."""
    wheel, root = find_wheel(), FOLDER / name
    if not (root / "ready").exists():
        raise Skip("there is no minimal Debian")
    trial, page = root / "trial", (ROOT / "docs/StandInDriver.md").read_text()
    shutil.rmtree(trial, ignore_errors=True)
    trial.mkdir()
    shutil.copy(wheel, trial)
    [test] = re.findall(r"```python\n(# test_add.py\n.*?)```", page, re.S)
    [settings] = re.findall(r"```yaml\n(.*?)```", page, re.S)
    (trial / "test_add.py").write_text(test)
    install, check = re.findall(r"- run: (.*)", settings)
    [chips] = re.findall(r"chip: \[(.*)\]", settings)
    install = install.replace(" attn ", f" ./{wheel.name} ", 1)
    lines = ["cd /trial", "python3 -m venv v", ". v/bin/activate", install]
    lines += [re.sub(r"\${{.*?}}", chip, check) for chip in chips.split(", ")]
    begin = time.monotonic()
    try:
        run("taskset", "-c", "0,1", "chroot", root, "sh", "-c", " && ".join(lines))
    finally:
        # Its packages are large.
        shutil.rmtree(trial, ignore_errors=True)
    spent = time.monotonic() - begin
    if spent > MOST_SECONDS:
        raise OSError(f"expected {MOST_SECONDS} s at most, got {spent:.0f}")


def install_torch() -> None:
    run(ROOT / "scripts" / "install-deps.sh", "--with-doors")


def run_tests(venv: pathlib.Path = ROOT / ".venv-doors") -> None:
    """Runs the tests with a virtual environment's torch; those of what it lacks are skipped."""
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    python, tests = venv / "bin" / "python", ROOT / "python" / "tests"
    more = [tests / "calls" / "test_torch_op.py", tests / "serving" / "test_torch_serving.py"]
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests / "doors", *more, env=variables)


def run_tests_with(version: str) -> None:
    """Runs them with another version of torch, which a virtual environment keeps."""
    venv, pins = FOLDER / f"torch-{version}", ROOT / "packaging" / "requirements-doors.txt"
    wanted = re.sub("torch==.*", f"torch=={version}", pins.read_text())
    wanted = re.sub("transformers==.*\n", "", wanted)
    stamp = venv / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        run("python3", "-m", "venv", venv)
        (venv / "wanted.txt").write_text(wanted)
        run(venv / "bin" / "pip", "-q", "install", "--requirement", venv / "wanted.txt")
        (venv / "wanted.txt").rename(stamp)
    run_tests(venv)


def list_steps(debian: bool) -> list[tuple[str, object, tuple[object, ...]]]:
    suites = SUITES if debian else ()
    steps: list[tuple[str, object, tuple[object, ...]]] = []
    steps += [(f"Debian {suite}, {NOT_COUNTED}", prepare_debian, (suite, suite)) for suite in suites]
    if debian:
        more = ("triton", TRITON_SUITE, *TRITON_NEEDS)
        steps += [(f"Debian with a compiler, {NOT_COUNTED}", prepare_debian, more)]
    steps += [(f"torch, {NOT_COUNTED}", install_torch, ())]
    steps += [("wheels", make_wheels, ("--twice",))]
    steps += [(f"wheel, Python 3.{minor}", try_python, (minor,)) for minor in VERSIONS]
    steps += [(f"wheel, Debian {suite}", try_debian, (suite,)) for suite in suites]
    steps += [("wheel, aarch64", try_aarch64, ())]
    if debian:
        steps += [("a repository of Triton's kernels", try_triton, ("triton",))]
    return [*steps, ("torch and transformers", run_tests, ())]


def list_sample() -> list[tuple[str, object, tuple[object, ...]]]:
    own = sys.version_info.minor
    return [("wheels", make_wheels, ()), (f"wheel, Python 3.{own}", try_python, (own,))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--no-debian", action="store_true")
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--torch", default="")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    counts, total = {"passed": 0, "failed": 0, "skipped": 0}, 0.0
    steps = list_sample() if options.sample else list_steps(not options.no_debian)
    if options.torch:
        versions = options.torch.split(",")
        steps = [(f"torch {each}", run_tests_with, (each,)) for each in versions]
    for name, step, arguments in steps:
        if not re.search(options.only, name):
            continue
        start, cpu, verdict, reason = time.monotonic(), count_cpu(), "passed", ""
        try:
            step(*arguments)
        except Skip as error:
            verdict, reason = "skipped", f": {error}"
        except (subprocess.CalledProcessError, OSError) as error:
            verdict, reason = "failed", f": {error}"
        counts[verdict] += 1
        spent = count_cpu() - cpu
        total += 0 if NOT_COUNTED in name else spent
        times = f"{time.monotonic() - start:.0f} s, {spent:.0f} s of a processor"
        print(f"{verdict:8}{name} ({times}){reason}", flush=True)
    if not (options.sample or options.only or options.torch):
        verdict = "passed" if total <= LIMIT else "failed"
        counts[verdict] += 1
        print(f"{verdict:8}limit ({total:.0f} of {LIMIT} s of a processor)")
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
