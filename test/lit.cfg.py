"""lit configuration of the compiler's tests.

Features: `ptxas` (ptxas found), `nvdisasm`, `nvdisasm-in-toolkit` (where the
programs look before PATH), `gpu` (a CUDA device is visible),
`mlir-opt` (the distribution's mlir-opt, for the plugin), `doors` (torch and
transformers in .venv-doors), `pytest` (an interpreter with pytest and numpy is found), `numpy` (an interpreter with numpy is found),
`triton` (one with Triton too; ATTN_TRITON_PYTHON names it), `nightly` (whole
grids of the slowest tests run, not a sample), `static-mlir` (attn-compile has
LLVM's archives inside), `sanitized` (a build that programs
without sanitizers cannot load).
Every attn-opt call also sends what it reads through a text and bytecode round trip.
Environment: ATTN_CHECK_ROUNDTRIP=0 leaves the round trips out; ATTN_NIGHTLY=1 gives the
feature `nightly`.
"""

import glob
import os
import shutil
import subprocess
import sys

from lit.llvm import llvm_config
from lit.llvm.subst import ToolSubst

sys.path.append(os.path.join(os.path.dirname(__file__), "../scripts"))
import lit_cpu_time  # noqa: E402

config.name = "ATTN"
config.test_format = lit_cpu_time.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test", ".ptx"]
config.excludes = ["Inputs", "CMakeLists.txt", "lit.cfg.py", "lit.site.cfg.py"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.attn_obj_root, "test")

llvm_config.with_environment("FILECHECK_OPTS", "-enable-var-scope --dump-input-filter=error")
llvm_config.with_environment("PATH", config.attn_tools_dir, append_path=True)
llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)

attn_opt = "attn-opt"
if os.environ.get("ATTN_CHECK_ROUNDTRIP") != "0":
    attn_opt = "attn-opt --verify-roundtrip"

config.substitutions.append(("%attn_src", config.attn_src_root))
config.substitutions.append(("%attn_build", config.attn_obj_root))
# Debian's interpreter first: apt's numpy belongs to it.
debian_python = "/usr/bin/python3"
if not os.access(debian_python, os.X_OK):
    debian_python = shutil.which("python3") or "python3"
config.substitutions.append(("%python", debian_python))

llvm_config.add_tool_substitutions(
    [
        ToolSubst("attn-opt", command=attn_opt, unresolved="ignore"),
        # Users do not wait for the verifier between passes; tests do.
        ToolSubst("attn-compile", extra_args=["--verify-each"], unresolved="ignore"),
    ],
    [config.attn_tools_dir],
)
llvm_config.add_tool_substitutions(
    ["attn-lint-sass", "attn-sim", "attn-reduce", "attn-lsp-server", "attn-test-opt"],
    [config.attn_tools_dir],
)
llvm_config.add_tool_substitutions(
    ["FileCheck", "not", "count", "split-file"], [config.llvm_tools_dir]
)


sanitized = config.attn_build_type == "Sanitize"
if sanitized:
    config.available_features.add("sanitized")
if config.attn_static_mlir:
    config.available_features.add("static-mlir")
if os.environ.get("ATTN_NIGHTLY"):
    config.available_features.add("nightly")

# A stock mlir-opt, for the plugin.
config.substitutions.append(
    ("%attn_plugin", os.path.join(config.attn_obj_root, "lib", "AttnDialectPlugin.so"))
)
mlir_opt = os.path.join(config.llvm_tools_dir, "mlir-opt")
if os.access(mlir_opt, os.X_OK) and not sanitized:
    config.available_features.add("mlir-opt")
    config.substitutions.append(("%mlir_opt", mlir_opt))


def find_cuda_tool(name):
    for folder in (os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if folder and os.access(os.path.join(folder, "bin", name), os.X_OK):
            return os.path.join(folder, "bin", name)
    return shutil.which(name)


# What scripts/install-deps.sh --with-nvdisasm installs.
for folder in glob.glob(
    os.path.join(config.attn_src_root, ".venv-sass/lib/python3*/site-packages/nvidia/cu*/bin")
):
    os.environ["PATH"] += os.pathsep + folder
    llvm_config.with_environment("PATH", folder, append_path=True)
if any(
    folder and os.access(os.path.join(folder, "bin/nvdisasm"), os.X_OK)
    for folder in (os.environ.get("CUDA_HOME"), "/usr/local/cuda")
):
    config.available_features.add("nvdisasm-in-toolkit")
for tool in ("ptxas", "nvdisasm", "cuobjdump"):
    path = find_cuda_tool(tool)
    if path:
        config.available_features.add(tool)
        config.substitutions.append(("%" + tool, path))
if os.path.exists("/dev/nvidia0"):
    config.available_features.add("gpu")


# An interpreter with numpy.
for candidate in (debian_python, os.path.join(config.attn_src_root, ".venv/bin/python"), "python3"):
    try:
        probe = subprocess.run([candidate, "-c", "import numpy"], capture_output=True, check=False)
    except OSError:
        continue
    if probe.returncode == 0:
        config.available_features.add("numpy")
        config.substitutions.append(("%numpy", candidate))
        break

# An interpreter with Triton, whose path ATTN_TRITON_PYTHON may name, or several.
named_pythons = os.environ.get("ATTN_TRITON_PYTHON", "").split(":")
for candidate in filter(None, (*named_pythons, debian_python, "python3")):
    try:
        probe = [candidate, "-c", "import numpy, triton"]
        found = subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except OSError:
        found = False
    if found:
        config.available_features.add("triton")
        config.substitutions.append(("%triton", candidate))
        break

# What scripts/install-deps.sh --with-doors installs.
doors_python = os.path.join(config.attn_src_root, ".venv-doors/bin/python")
if os.access(doors_python, os.X_OK):
    config.available_features.add("doors")
config.substitutions.append(("%doors_python", doors_python))

# Debian's interpreter may lack pytest where a virtual environment has it.
for candidate in (os.path.join(config.attn_src_root, ".venv/bin/python"), debian_python, "python3"):
    probe = [candidate, "-c", "import numpy, pytest"]
    try:
        found = subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except OSError:
        found = False
    if found:
        config.available_features.add("pytest")
        config.substitutions.append(("%pytest", candidate + " -m pytest"))
        break
