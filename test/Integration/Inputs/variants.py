"""Compiles and executes the variants of docs/Variants.md, and compares their sums and counts
with the page's table. Each is right, without a finding or a bank conflict of ldmatrix.

usage: variants.py COMPILER PAGE [--update] [--only=NAME] [-- FLAG...]
  --update  writes what is found into the page
  --only    one row
  FLAG      of every command
"""

import pathlib
import re
import subprocess
import sys

NARROW = "-q 1x1x256x64xf16 --kv-len=256"
WIDE = "-q 1x1x64x512xf16 --kv-len=128"
TILED = "--schedule=tiled_d --set="
EXACT = "softmax=exact,q_streamed=false"

# The first cell of a row, and the command's flags.
VARIANTS = {
    "split-q": f"{NARROW} --schedule=split_q "
        "--set=block_m=64,block_n=64,warps=4,stages=2,q_in_regs=false,parts=1",
    "split-kv": f"{NARROW} {TILED}block_m=32,block_n=64,warps_m=2,warps_n=4,slice=64,stages=2,{EXACT}",
    "the same, which exchanges scores": f"{NARROW} {TILED}"
        "block_m=32,block_n=64,warps_m=2,warps_n=4,slice=64,stages=2,softmax=optimistic,q_streamed=false",
    "share-kv": f"{NARROW} --schedule=split_q --require-proof "
        "--set=block_m=64,block_n=64,warps=4,stages=2,q_in_regs=false,share=kv",
    "share-qkv": f"{NARROW} --schedule=split_q --require-proof "
        "--set=block_m=64,block_n=64,warps=4,stages=1,q_in_regs=true,share=kv",
    "tiling-qk": f"{WIDE} {TILED}block_m=64,block_n=64,warps_m=4,warps_n=2,slice=16,stages=2,{EXACT}",
    "tiling-qkv": f"{WIDE} {TILED}block_m=64,block_n=64,warps_m=4,warps_n=2,slice=16,stages=2,"
        "softmax=exact,q_streamed=true,spills=allow",
    "depth divided": f"{WIDE} {TILED}block_m=64,block_n=32,warps_m=2,warps_n=4,slice=128,stages=4,"
        f"{EXACT},s_split=depth,spills=allow",
    "f16 results": f"{WIDE} {TILED}block_m=64,block_n=64,warps_m=4,warps_n=1,slice=128,stages=4,"
        f"{EXACT},accumulate_o=f16",
    "warps of 16 rows": f"{WIDE} {TILED}block_m=64,block_n=64,warps_m=4,warps_n=2,slice=128,stages=4,{EXACT}",
    "what is planned: warps of 32 rows": f"{WIDE} {TILED}block_m=64,block_n=64,warps_m=2,warps_n=4,"
        f"slice=128,stages=5,{EXACT}",
    "the same with 128 keys": f"-q 1x1x64x384xf16 --kv-len=128 {TILED}block_m=64,block_n=128,"
        "warps_m=2,warps_n=4,slice=192,stages=2,softmax=exact",
    "the same with 32 rows in all": f"-q 1x1x64x768xf16 --kv-len=128 {TILED}block_m=32,block_n=128,"
        "warps_m=1,warps_n=8,slice=128,stages=3,softmax=exact",
}  # fmt: skip

COLUMNS = ("shared memory", "registers", "warp instructions", "barriers", "ldmatrix", "conflicts")
# Of the plan's line, and of the simulator's report.
WANTED = (
    r"^ +\S+ .* (\d+) +(\d+)  #attn\.",
    r"^executed: +(\d+) warp instructions, .* (\d+) barriers$",
    r"^ldmatrix: +(\d+) instructions, .* (\d+) bank conflicts$",
)


def measure(compiler: str, flags: list[str]) -> list[str]:
    """The numbers of COLUMNS."""
    command = [compiler, *flags, "--verify", "--print-plan", "-o", "/dev/null"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report = done.stdout + done.stderr
    found = [re.search(pattern, report, re.M) for pattern in WANTED]
    if done.returncode or not all(found):
        sys.exit(f"{' '.join(command)}\n{report}")
    return [number for match in found for number in match.groups()]


def main() -> None:
    arguments = sys.argv[1:]
    more = []
    if "--" in arguments:
        place = arguments.index("--")
        arguments, more = arguments[:place], arguments[place + 1 :]
    compiler, page = arguments[0], pathlib.Path(arguments[1])
    text = page.read_text(encoding="utf-8")
    head = "| name | plan | D | " + " | ".join(COLUMNS) + " |\n"
    start = text.index(head) + len(head)
    end = text.index("\n\n", start)
    lines = text[start:end].splitlines()
    rows = {line.split(" | ")[0].lstrip("| "): line for line in lines[1:]}
    if rows.keys() != VARIANTS.keys():
        sys.exit(f"expected the rows {list(VARIANTS)}, got {list(rows)}")
    only = [word[len("--only=") :] for word in arguments if word.startswith("--only=")]
    wrong = []
    for name in only or VARIANTS:
        flags = VARIANTS[name]
        numbers = measure(compiler, [*flags.split(), *more])
        cells = rows[name].strip("| ").split(" | ")
        if cells[3:] == numbers:
            continue
        for column, said, got in zip(COLUMNS, cells[3:], numbers):
            if said != got:
                wrong.append(f"{name}: expected {column} {got}, got {said}")
        text = text.replace(rows[name], "| " + " | ".join([*cells[:3], *numbers]) + " |")
    if "--update" in arguments:
        page.write_text(text, encoding="utf-8")
    elif wrong:
        sys.exit("\n".join(wrong) + f"\n{pathlib.Path(__file__).name} --update corrects the page")
    print(f"{len(only or rows)} variants as {page.name} says")


if __name__ == "__main__":
    main()
