"""Gives each flag that names a file to read one that has no end, a folder, one that does
not exist and one without contents; and each flag that names one to write a folder and a
place that does not exist. All of them are errors that say which file.

usage: special-files.py BIN SOURCES FOLDER
"""

import pathlib
import subprocess
import sys

BIN, ROOT, FOLDER = (pathlib.Path(text) for text in sys.argv[1:])
HARDWARE = ROOT / "test/Hardware/Inputs"
SASS = f"attn-lint-sass {ROOT}/test/Tools/attn-lint-sass/Inputs/split-q.sass"
SIM = f"attn-sim {HARDWARE}/attn_causal.ptx --launch={HARDWARE}/attn_causal.json"
COMPILE = "attn-compile --q=1x1x64x64xf16"
PROBLEM = ROOT / "examples/causal-gqa.mlir"

# Commands with {} for the file.
READ = [
    "attn-compile {}",
    COMPILE + " --plan-table={}",
    COMPILE + " --verify --in=q={}",
    "attn-opt {}",
    "attn-opt --run-reproducer {}",
    "attn-opt --irdl-file={} " + f"{FOLDER}/module.mlir",
    "attn-opt --attn-plan=plan-table={} " + str(PROBLEM),
    "attn-reduce --reduction-tree=test=x {}",
    "attn-sim {} --launch=" + f"{HARDWARE}/attn_causal.json",
    f"attn-sim {HARDWARE}/attn_causal.ptx " + "--launch={}",
    "attn-sim --recorded={}",
    SIM + " --replay={}",
    SIM + " --skeleton={}",
    SIM + " --in=q={}",
    "attn-sim --compare {} {}",
    "attn-lint-sass {}",
    SASS + " --ptx={}",
    SASS + " --log={}",
    SASS + " --budget={} --name=x",
]  # fmt: skip
# What is right without contents.
MAY_BE_EMPTY = ("attn-opt {}", "attn-reduce", "attn-opt --run-reproducer", "attn-opt --irdl",
                SASS + " --ptx")

WRITE = [
    COMPILE + " -o {}",
    COMPILE + " -o /dev/null --launch-out={}",
    COMPILE + " --bundle={}",
    f"attn-opt {FOLDER}/module.mlir " + "-o {}",
    SIM + " --out=o={}",
    SIM + " --registers=64 --trace={}",
    SIM + " --registers=64 --timeline={}",
]


def check(command: str, path: str, is_empty: bool = False) -> None:
    words = [word.format(path) if "{}" in word else word for word in command.split()]
    done = subprocess.run([BIN / words[0], *words[1:]], capture_output=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=300)  # fmt: skip
    said = done.stderr.decode(errors="replace")
    right = done.returncode in (1, 2) and "error: " in said and "LLVM ERROR" not in said
    # An error about contents may speak of what is in the file alone.
    if not right or (not is_empty and path not in said):
        sys.exit(f"{' '.join(words)}: expected an error about the file, got status "
                 f"{done.returncode} and\n{said}")  # fmt: skip


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "module.mlir").write_text("module {}\n")
    empty = FOLDER / "empty"
    empty.write_text("")
    count = 0
    for command in READ:
        for path in ("/dev/zero", str(FOLDER), str(FOLDER / "missing")):
            check(command, path)
            count += 1
        if not command.startswith(MAY_BE_EMPTY):
            check(command, str(empty), is_empty=True)
            count += 1
    for command in WRITE:
        for path in (str(FOLDER), str(FOLDER / "missing/file")):
            check(command, path)
            count += 1
    print(f"{count} files refused")


if __name__ == "__main__":
    main()
