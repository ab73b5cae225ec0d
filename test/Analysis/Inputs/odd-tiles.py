"""The last loop of a kernel makes a trip less in every other tile."""

import pathlib
import re
import sys

lines = pathlib.Path(sys.argv[1]).read_text().split("\n")
loops = []
for number, line in enumerate(lines):
    if loop := re.match(r"( *)\S+ = scf\.for (%\w+) = .* to (%\w+) step", line):
        loops.append((number, loop))
number, last = loops[-1]
# The one around it is over tiles.
tile = next(loop[2] for _, loop in reversed(loops) if len(loop[1]) < len(last[1]))
lines[number] = lines[number].replace(f"to {last[3]} step", "to %fewer step")
lines[number:number] = [
    "%lowest = arith.constant 1 : i32",
    f"%odd = arith.andi {tile}, %lowest : i32",
    f"%fewer = arith.subi {last[3]}, %odd : i32",
]
sys.stdout.write("\n".join(lines))
