"""How pip builds the package: scikit-build-core, after a look at what it will need.

Without LLVM CMake would fail after minutes of downloads, on a page of its own words: this says
which packages are missing and what installs them.
"""

import os
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
INSTALLER = "scripts/install-deps.sh"


def read_major():
    """LLVM's version, of which the installer knows."""
    return re.search(r"^LLVM_MAJOR=(\d+)$", (ROOT / INSTALLER).read_text(encoding="utf-8"), re.M)[1]


def find_missing(which=shutil.which, environment=os.environ, root="/"):
    """Debian's packages that are missing, and of each what was looked for. What the environment
    says of where LLVM lies is CMake's to find."""
    major = read_major()
    llvm = f"usr/lib/llvm-{major}"
    programs = {f"clang++-{major}": f"clang-{major}"}
    files = {f"{llvm}/bin/ld.lld": f"lld-{major}"}
    if not environment.get("MLIR_DIR") and not environment.get("CMAKE_PREFIX_PATH"):
        files |= {
            f"{llvm}/lib/cmake/llvm/LLVMConfig.cmake": f"llvm-{major}-dev",
            f"{llvm}/lib/cmake/mlir/MLIRConfig.cmake": f"libmlir-{major}-dev",
            f"{llvm}/bin/mlir-tblgen": f"mlir-{major}-tools",
        }
    missing = {package: name for name, package in programs.items() if not which(name)}
    for name, package in files.items():
        by_name = name.endswith("ld.lld") and (which(f"ld.lld-{major}") or which("ld.lld"))
        if not by_name and not (pathlib.Path(root) / name).exists():
            missing[package] = f"/{name}"
    return missing


def describe(missing):
    """What to do about it."""
    lines = [f"attn is built with LLVM {read_major()} and its MLIR, of which this is missing:"]
    lines += [f"  {package} (no {what})" for package, what in missing.items()]
    lines.append(f"on Debian 12 {INSTALLER} installs them, or apt-get install {' '.join(missing)};")
    lines.append("an LLVM elsewhere is named by MLIR_DIR, its folder lib/cmake/mlir")
    return "\n".join(lines)


def _load():
    missing = find_missing()
    if missing:
        print(f"error: {describe(missing)}", file=sys.stderr)
        raise SystemExit(1)
    return _load_unchecked()


def _load_unchecked():
    import scikit_build_core.build

    return scikit_build_core.build


def get_requires_for_build_wheel(*arguments, **options):
    return _load().get_requires_for_build_wheel(*arguments, **options)


def get_requires_for_build_editable(*arguments, **options):
    return _load().get_requires_for_build_editable(*arguments, **options)


def get_requires_for_build_sdist(*arguments, **options):
    return _load_unchecked().get_requires_for_build_sdist(*arguments, **options)


def prepare_metadata_for_build_wheel(*arguments, **options):
    return _load_unchecked().prepare_metadata_for_build_wheel(*arguments, **options)


def prepare_metadata_for_build_editable(*arguments, **options):
    return _load_unchecked().prepare_metadata_for_build_editable(*arguments, **options)


def build_wheel(*arguments, **options):
    return _load().build_wheel(*arguments, **options)


def build_editable(*arguments, **options):
    return _load().build_editable(*arguments, **options)


def build_sdist(*arguments, **options):
    return _load_unchecked().build_sdist(*arguments, **options)
