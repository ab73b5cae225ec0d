#!/usr/bin/env python3
"""Bugs planted in a kernel whose clusters take over others: the check refuses each, and with the check
off the simulator finds it. The kernel as it is is accepted by both.

usage: requests.py KERNEL FOLDER
"""

import pathlib
import re
import subprocess
import sys

import pairs

REQUEST = """          %slot = arith.andi %4#1, %mask : i32
          attn.cluster_leader {
            %parity = arith.shrui %4#1, %bits : i32
            attn.mbarrier.wait %tile.store[%slot] parity %parity : <2>
            attn.mbarrier.expect_tx %tile.asker[%slot] {bytes = 16 : i64, ctas = 2 : i64} : <2>
            attn.cluster_request %tile[%slot] barrier %tile.asker[%slot] : !attn.mbarriers<2> {ctas = 2 : i64} : <2xi128, #attn.rows, shared>
          }
          %full = arith.shrui %4#2, %bits : i32
          attn.mbarrier.wait %tile.asker[%slot] parity %full : <2>
"""


def asks_again(text):
    """The leader asks once more behind its last tile, and both CTAs wait for the response."""
    text = text.replace("          %4:3 = scf.while", "          %mask = arith.constant 65535 : i32\n"
                        "          %bits = arith.constant 16 : i32\n          %4:3 = scf.while", 1)  # fmt: skip
    ends = "            scf.yield %7, %13, %18 : i32, i32, i32\n          }\n"
    return text.replace(ends, ends + REQUEST, 1)


def looks(text):
    """A branch looks at what is told where there is no other cluster."""
    place = text.index("            scf.yield %7, %13, %18")
    return (
        text[:place]
        + "            %none = arith.cmpi eq, %7, %c4_i32 : i32\n            scf.if %none {\n"
        "              attn.mbarrier.wait %tile.asker[%5] parity %6 : <2>\n            }\n" + text[place:]
    )


# What is wrong, how, and what the check and the simulator say.
BUGS = (
    ("a request follows a denial", asks_again, "request after a denial", "after a request was denied"),
    ("half the bytes of a response are announced",
     pairs.change("bytes = 16", "bytes = 8"), "", ""),
    ("one CTA of two gets responses",
     pairs.change(r"(cluster_request .*mbarriers<2>) \{ctas = 2 : i64\}", r"\1"), "deadlock", "deadlock"),
    ("both CTAs ask",
     pairs.change(r"attn\.cluster_leader \{", "%always = arith.constant true\n            scf.if %always {"),
     "", ""),
    ("a slot is asked for that may be read",
     pairs.change(r".*attn\.mbarrier\.wait %tile\.store.*\n", ""), "", ""),
    ("a response is read that may not be there",
     pairs.change(r".*attn\.mbarrier\.wait %tile\.asker.*\n", ""), "", ""),
    ("slots are handed back to the own CTA",
     pairs.change(r"(mbarrier.arrive %tile.store\[%\w+\]) \{leader\}", r"\1"), "", ""),
)  # fmt: skip


# What the check cannot follow, though it may be right.
UNKNOWN = ("a branch looks at what it is told without a cluster", looks, "something else looks at it")


def main():
    kernel, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    good, path = folder / "good.mlir", folder / "planted.mlir"
    subprocess.run(["attn-compile", kernel, "--emit=barrier", "-o", str(good)], check=True)
    text = re.sub(r"\{cluster\} ", "", good.read_text())
    failures = 0
    for what, plant, by_check, by_simulator in BUGS + (("as it is", lambda text: text, "", ""),):
        path.write_text(plant(text))
        said, found = pairs.check(path), pairs.simulate(path)
        is_good = what == "as it is"
        fails = (said == "accepted") != is_good or (found == "accepted") != is_good
        fails |= by_check not in said or by_simulator not in found
        failures += fails
        print(f"{'FAILED: ' if fails else ''}{what}:\n  {said}\n  {found}")
    what, plant, by_check = UNKNOWN
    path.write_text(plant(text))
    said = pairs.check(path)
    failures += by_check not in said
    print(f"{'' if by_check in said else 'FAILED: '}{what}:\n  {said}")
    print(f"{len(BUGS)} bugs, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
