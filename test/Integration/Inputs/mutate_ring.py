"""One change to the synchronisation of the ring of keys in a file of the rung barrier."""

import re
import sys

WAIT_FULL = r"mbarrier.wait %k\.producer"
WAIT_FREE = r"mbarrier.wait %k\.consumer"
GIVE_BACK = r"mbarrier.arrive %k\.consumer"

name, source = sys.argv[1:]
with open(source) as file:
    lines = file.read().split("\n")


def find(pattern):
    """The last op of its kind, that of blocks without a mask."""
    return [index for index, line in enumerate(lines) if re.search(pattern, line)][-1]


def find_index(line):
    """The index of an op's barrier."""
    return re.search(r"\[(%\w+)\]", line).group(1)


if name == "full-wait-dropped":
    del lines[find(WAIT_FULL)]
elif name == "free-wait-of-full":
    at = find(WAIT_FREE)
    lines[at] = lines[at].replace("%k.consumer", "%k.producer")
elif name == "given-back-twice":
    at = find(GIVE_BACK)
    lines.insert(at, lines[at])
elif name == "given-back-early":
    wait = find(WAIT_FULL)
    arrive = lines.pop(find(GIVE_BACK))
    lines.insert(wait + 1, re.sub(r"\[%\w+\]", f"[{find_index(lines[wait])}]", arrive))
elif name == "count-too-low":
    at = find(r"mbarrier.init %k\.consumer")
    lines[at] = lines[at].replace("count = 4", "count = 3")
elif name == "parity-flipped":
    at = find(WAIT_FULL)
    parity = re.search(r"parity (%\w+)", lines[at]).group(1)
    lines[at] = lines[at].replace(f"parity {parity}", "parity %flipped")
    lines.insert(at, "%flip = arith.constant 1 : i32")
    lines.insert(at + 1, f"%flipped = arith.xori {parity}, %flip : i32")
elif name == "other-slot":
    at = find(r"tma.load .*barrier %k\.producer")
    lines[at] = re.sub(r"(barrier %k\.producer)\[%\w+\]", r"\1[%other]", lines[at])
    lines.insert(at, "%other = arith.constant 0 : i32")
else:
    sys.exit(f"{name}: no such change")
print("\n".join(lines))
