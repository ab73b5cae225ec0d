#!/usr/bin/env python3
"""Makes the wheels of attn and of attn-runtime, which need no LLVM where they are installed.

The library of the first is linked by Zig's C compiler, which knows the symbols of old C
libraries, from the objects of the build folder and the archives of the distribution's LLVM,
zlib, zstd and libstdc++. Its commands are functions of that library. packaging/ has the project
files, the components with their licences, and the versions of the tools. Two runs in one folder
give equal bytes.

usage: scripts/build-wheel.py [--out=FOLDER] [--twice] [--runtime-only] [--machine=NAME]
  --out           where the wheels go (default: wheels in the build folder)
  --twice         make them twice, and fail where the bytes differ
  --runtime-only  make attn-runtime alone, which needs no build
  --machine       the machine that the wheel is for (default: this one's); for aarch64, elsewhere,
                  scripts/cross-build.sh compiles what is linked
"""

import argparse
import hashlib
import os
import pathlib
import platform
import re
import shutil
import struct
import subprocess
import sys
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("ATTN_BUILD", ROOT / "build"))
PACKAGING = ROOT / "packaging"
VENV = ROOT / ".venv-wheel"
#: Where a program's headers say that it has tables of frames (elf.h).
PT_GNU_EH_FRAME = 0x6474E550
#: The oldest C library that the wheel runs with.
GLIBC = "2.28"
#: The version of GCC whose libraries are linked in, as components.toml has them.
GCC = "12"
#: Bytes that the wheels may have.
LIMITS = {"attn": 25_000_000, "attn_runtime": 300_000}
#: What attn-runtime has of the package: what launches bundles, and what that uses.
RUNTIME_PARTS = (
    "arrays.py", "bundle.py", "errors.py", "launch", "options", "py.typed", "record.py", "runtime.py",
)
RUNTIME_INIT = '''"""Launches bundles of compiled attention kernels: `load` is `attn.runtime.load`, which the page
Bundles of attn's documentation describes."""

from .errors import ArgumentError, AttnError, BundleError, DriverError, LaunchError, RecordError
from .runtime import LoadedKernel, PreparedLaunch, load

__all__ = [
    "ArgumentError",
    "AttnError",
    "BundleError",
    "DriverError",
    "LaunchError",
    "LoadedKernel",
    "PreparedLaunch",
    "RecordError",
    "load",
]
'''


class Target:
    """The machine that a wheel is for, and where its parts are."""

    def __init__(self, machine: str) -> None:
        self.machine = machine
        self.is_own = machine == platform.machine()
        self.build = BUILD if self.is_own else BUILD / machine
        #: Where the packages of its archives are installed, or unpacked.
        self.root = pathlib.Path("/") if self.is_own else self.build / "root"
        self.tag = f"manylinux_{GLIBC.replace('.', '_')}_{machine}"

    def compile(self) -> None:
        if self.is_own:
            run("ninja", "-C", self.build, "AttnWheelParts")
        else:
            run(ROOT / "scripts" / "cross-build.sh", self.build)

    def read_parts(self, name: str, suffix: str) -> list[str]:
        return [each for each in (self.build / name).read_text().split() if each.endswith(suffix)]

    def find_compiler_archives(self) -> list[pathlib.Path]:
        """GCC's archives, in the folder of the version whose C++ library is a package of the wheel."""
        names = [f"lib{name}.a" for name in ("stdc++", "gcc_eh", "gcc")]
        folder = self.root / "usr/lib/gcc" / f"{self.machine}-linux-gnu" / GCC
        return [folder / name for name in names]


def run(*command: object, **options: object) -> str:
    """Runs a program; its output, or an error with all that it said."""
    done = subprocess.run(
        [str(each) for each in command], capture_output=True, text=True, check=False, **options
    )
    if done.returncode:
        raise SystemExit(f"error: {command[0]} failed\n{done.stdout}{done.stderr}")
    return done.stdout


def enter_venv() -> None:
    """Goes on in the virtual environment with the pinned tools, which it fills."""
    python = VENV / "bin" / "python"
    if pathlib.Path(sys.prefix) == VENV:
        return
    subprocess.run([ROOT / "scripts" / "install-deps.sh", "--with-wheel"], check=True)
    os.execv(python, [str(python), *sys.argv])


def read_components() -> list[dict]:
    """The table of components, with versions and the texts of licences."""
    from importlib import metadata

    import ziglang

    components = tomllib.loads((PACKAGING / "components.toml").read_text())["component"]
    for each in components:
        if "package" in each:
            query = run("dpkg-query", "-W", "-f", "${Version}", each["package"])
            # Without the epoch, which no author of the component gave.
            each["version"] = query.partition(":")[2] or query
            folder = pathlib.Path("/")
        else:
            each["version"] = metadata.version(each["python"])
            folder = pathlib.Path(ziglang.__file__).parent
        each["text"] = "\n".join(
            (folder / name).read_text(encoding="utf-8", errors="replace") for name in each["texts"]
        )
    return components


def write_licences(folder: pathlib.Path, components: list[dict]) -> None:
    """Writes a file for each component. A text that several have stands in the first one's, which
    the others name: it is as long as all others together."""
    folder.mkdir()
    files: dict[str, str] = {}
    for each in components:
        head = f"{each['name']}, version {each['version']}\n{each['licence']}\n\n"
        name = f"{each['id']}.txt"
        first = files.setdefault(each["text"], name)
        text = each["text"] if first == name else f"The text is that of {first} in this folder.\n"
        (folder / name).write_text(head + text, encoding="utf-8")


def write_sbom(path: pathlib.Path, version: str, components: list[dict]) -> None:
    """The components as a bill of materials that tools read."""
    import datetime
    import uuid

    from cyclonedx.contrib.license.factories import LicenseFactory
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output.json import JsonV1Dot6

    make_licence = LicenseFactory().make_from_string
    whole = Component(
        name="attn", version=version, type=ComponentType.LIBRARY, bom_ref="attn",
        licenses=[make_licence("Apache-2.0 WITH LLVM-exception")],
    )
    parts = [
        Component(
            name=each["name"], version=each["version"], type=ComponentType.LIBRARY,
            bom_ref=each["id"], licenses=[make_licence(each["licence"])],
        )
        for each in components
    ]
    told = " ".join(f"{each['id']} {each['version']}" for each in components)
    bom = Bom(components=parts, serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"attn {version} {told}"))
    # The day of the build is none of its contents.
    bom.metadata.timestamp = datetime.datetime.fromtimestamp(0, datetime.timezone.utc)
    bom.metadata.component = whole
    bom.register_dependency(whole, parts)
    path.parent.mkdir()
    path.write_text(JsonV1Dot6(bom).output_as_string(indent=2) + "\n", encoding="utf-8")


def link(
    target: Target, path: pathlib.Path, soname: str, exports: pathlib.Path, own: list[str], prefixes: tuple[str, ...]
) -> None:
    """Links `own` objects, and what they use of the archives, to a library of the wheel, which
    exports nothing that does not begin with one of `prefixes`."""
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", f"{target.machine}-linux-gnu.{GLIBC}"]
    shim = path.with_name("glibc_shim.o")
    run(*zig, "-O2", "-fPIC", "-c", PACKAGING / "glibc_shim.c", "-o", shim)
    multiarch = target.root / "usr/lib" / f"{target.machine}-linux-gnu"
    run(
        *zig, "-shared", "-nostdlib++", "-Wl,-s", "-Wl,--gc-sections",
        f"-Wl,--version-script={exports}", f"-Wl,-soname,{soname}", *own, shim, "-Wl,--start-group",
        *target.read_parts("wheel-parts.txt", ".a"), *target.find_compiler_archives(),
        multiarch / "libz.a", multiarch / "libzstd.a", "-Wl,--end-group",
        "-lc", "-lm", "-ldl", "-lpthread", "-o", path,
    )  # fmt: skip
    clear_unwinding(path)
    exported = run("nm", "-D", "--defined-only", path).split("\n")
    strangers = [line for line in exported if line and not line.split()[-1].startswith(prefixes)]
    if strangers:
        raise SystemExit(f"error: {path.name} exports more than its interface\n" + "\n".join(strangers))


def clear_unwinding(path: pathlib.Path) -> None:
    """Fills the tables by which exceptions find frames with zeros, which take no room in a wheel.
    Nobody throws, and frames without symbols have no names."""
    data = bytearray(path.read_bytes())
    (program, sections) = struct.unpack_from("<QQ", data, 0x20)
    (program_size, programs, section_size, count, names) = struct.unpack_from("<HHHHH", data, 0x36)
    for place in range(program, program + programs * program_size, program_size):
        if struct.unpack_from("<I", data, place)[0] == PT_GNU_EH_FRAME:
            struct.pack_into("<I", data, place, 0)
    headers = [
        struct.unpack_from("<IIQQQQ", data, sections + number * section_size) for number in range(count)
    ]
    for name, _, _, _, offset, size in headers:
        start = headers[names][4] + name
        if data[start : data.index(0, start)] in (b".eh_frame", b".eh_frame_hdr"):
            data[offset : offset + size] = bytes(size)
    path.write_bytes(data)


def link_libraries(target: Target, compiler: pathlib.Path, driver: pathlib.Path) -> None:
    """Links the compiler, and the stand-in for the CUDA driver, which programs load by its name."""
    target.compile()
    objects = target.read_parts("wheel-parts.txt", ".o")
    exports = ROOT / "lib" / "CAPI" / "exports.map"
    link(target, compiler, "libAttnC.so.1", exports, objects, ("attn",))
    objects = target.read_parts("wheel-driver-parts.txt", ".o")
    exports = ROOT / "tools" / "cuda-driver" / "driver.map"
    link(target, driver, "libcuda.so.1", exports, objects, ("cu", "attnSim", "_cu", "CuteDSLRT_"))


def copy_package(source: pathlib.Path, folder: pathlib.Path, names: tuple[str, ...] = ()) -> None:
    """Copies the modules that git tracks, all or those of `names`."""
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=source).split()
    for name in sorted(listed):
        if names and name.partition("/")[0] not in names:
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, folder / name)


def stage(folder: pathlib.Path, project: str, page: str, tag: str = "") -> None:
    """What hatchling reads beside the package."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copyfile(PACKAGING / project, folder / "pyproject.toml")
    text = (folder / "pyproject.toml").read_text()
    (folder / "pyproject.toml").write_text(text.replace("manylinux_2_28_x86_64", tag))
    shutil.copyfile(PACKAGING / "hatch_build.py", folder / "hatch_build.py")
    shutil.copyfile(ROOT / "pyproject.toml", folder / "project.toml")
    shutil.copyfile(ROOT / "docs" / page, folder / "README.md")
    shutil.copyfile(ROOT / "LICENSE", folder / "LICENSE")


def stage_attn(folder: pathlib.Path, target: Target) -> None:
    stage(folder, "attn.toml", "Python.md", target.tag)
    copy_package(ROOT / "python" / "attn", folder / "attn")
    library = folder / "attn" / "_lib" / "libAttnC.so"
    library.parent.mkdir()
    driver = library.parent / "driver" / "libcuda.so.1"
    driver.parent.mkdir()
    linked = folder / "linked"
    linked.mkdir()
    link_libraries(target, linked / library.name, linked / driver.name)
    for each in (library, driver):
        shutil.move(linked / each.name, each)
    shutil.rmtree(linked)
    # The cache of kernels tells builds apart by it, on whatever machine they are installed.
    digest = hashlib.sha256(library.read_bytes()).hexdigest()
    (library.parent / "identity").write_text(digest + "\n")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    components = read_components()
    write_licences(folder / "licenses", components)
    write_sbom(folder / "sbom" / "attn.cdx.json", version, components)


def stage_runtime(folder: pathlib.Path) -> None:
    stage(folder, "attn-runtime.toml", "Bundles.md")
    copy_package(ROOT / "python" / "attn", folder / "attn_runtime", RUNTIME_PARTS)
    (folder / "attn_runtime" / "__init__.py").write_text(RUNTIME_INIT)


class WholeDeflate:
    """A compressor of zipfile that takes an entry as a whole, so that it becomes smaller."""

    def __init__(self) -> None:
        self._taken = bytearray()

    def compress(self, part: bytes) -> bytes:
        self._taken += part
        return b""

    def flush(self) -> bytes:
        import deflate

        return bytes(deflate.deflate_compress(bytes(self._taken), 12))


def repack(wheel: pathlib.Path) -> None:
    """Packs a wheel again, with the same entries in fewer bytes."""
    packed = wheel.with_suffix(".repacked")
    # zipfile has no other place to give it a compressor.
    usual, zipfile._get_compressor = zipfile._get_compressor, lambda *_: WholeDeflate()
    try:
        with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as out:
            for entry in source.infolist():
                out.writestr(entry, source.read(entry))
    finally:
        zipfile._get_compressor = usual
    packed.replace(wheel)


def make_wheel(folder: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    """Packs what is staged, and checks its size."""
    before = set(out.glob("*.whl"))
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out, cwd=folder)
    (wheel,) = set(out.glob("*.whl")) - before
    repack(wheel)
    size = wheel.stat().st_size
    limit = LIMITS[wheel.name.partition("-")[0]]
    if size > limit:
        raise SystemExit(f"error: {wheel.name}: expected at most {limit} bytes, got {size}")
    return wheel


def check_tag(wheel: pathlib.Path) -> str:
    """The oldest platform that auditwheel finds the wheel to run on. An error where it is newer
    than the wheel says."""
    told = run(sys.executable, "-m", "auditwheel", "show", wheel)
    found = re.search(r'platform tag:\s+"(manylinux_(\d+)_(\d+)_\w+)"', re.sub(r"\s+", " ", told))
    if not found or (int(found[2]), int(found[3])) > tuple(map(int, GLIBC.split("."))):
        raise SystemExit(f"error: {wheel.name} is not what its tag says\n{told}")
    return found[1]


def make_all(out: pathlib.Path, runtime_only: bool, target: Target) -> list[pathlib.Path]:
    out.mkdir(parents=True, exist_ok=True)
    # Those of other machines stay.
    for old in (*out.glob(f"attn-*{target.tag}.whl"), *out.glob("attn_runtime-*.whl")):
        old.unlink()
    staging = BUILD / "wheel-staging"
    wheels = []
    if not runtime_only:
        stage_attn(staging / "attn", target)
        wheels.append(make_wheel(staging / "attn", out))
        print(f"{wheels[0].name}: auditwheel finds {check_tag(wheels[0])}")
    stage_runtime(staging / "attn-runtime")
    wheels.append(make_wheel(staging / "attn-runtime", out))
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as packed:
            count = len(packed.namelist())
        print(f"{wheel}: {wheel.stat().st_size / 1e6:.2f} MB, {count} files")
    return wheels


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=BUILD / "wheels")
    parser.add_argument("--twice", action="store_true")
    parser.add_argument("--runtime-only", action="store_true")
    parser.add_argument("--machine", choices=("aarch64", "x86_64"), default=platform.machine())
    options = parser.parse_args()
    enter_venv()
    target = Target(options.machine)
    if not target.is_own and options.machine != "aarch64":
        raise SystemExit(f"error: expected a wheel for this machine or aarch64, got {options.machine}")
    wheels = make_all(options.out.absolute(), options.runtime_only, target)
    if options.twice:
        first = [wheel.read_bytes() for wheel in wheels]
        again = make_all(options.out.absolute(), options.runtime_only, target)
        if [wheel.read_bytes() for wheel in again] != first:
            raise SystemExit("error: a second build gives other bytes")
        print("two builds give equal bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
