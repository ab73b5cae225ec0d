#!/usr/bin/env python3
"""Bugs planted in a kernel of a pair of CTAs: the check refuses each, and with the check off the
simulator finds it. Each repaired copy is accepted by both.

Prints what both say, and at the end how many there are; the exit status is 1 if one of them is
accepted by either, or refused for something else.

usage: pairs.py KERNEL FOLDER
"""

import pathlib
import re
import subprocess
import sys

SIM = "--profile=isa --assume=A1,A2,A4"
CORNERS = ("", " --schedule=random --seed=1 --adversarial", " --schedule=random --seed=2")
BARRIER = "      attn.cluster_barrier\n"
GROUP = "expected all uses of the tensor core by a kernel to be of one CTA or all of a pair"


def change(pattern, by, number=0):
    """A text with the match of that number replaced."""

    def apply(text):
        match = list(re.finditer(pattern, text))[number]
        return text[: match.start()] + match.expand(by) + text[match.end() :]

    return apply


def move(line, number, before, which=0):
    """A text whose line of that number that matches stands in front of another one."""

    def apply(text):
        match = list(re.finditer(rf"(?m)^.*{line}.*\n", text))[number]
        text = text[: match.start()] + text[match.end() :]
        place = list(re.finditer(rf"(?m)^.*{before}.*\n", text))[which].start()
        return text[:place] + match.group(0) + text[place:]

    return apply


def alone(text):
    """One CTA alone takes columns and gives them back."""
    text = re.sub(
        r"(?s)(      %\d+ = attn\.tmem\.reserve.*?\n)",
        r"      %own = gpu.cluster_block_id x\n      %none = arith.constant 0 : index\n"
        r"      %first = arith.cmpi eq, %own, %none : index\n      scf.if %first {\n\1      }\n",
        text,
        count=1,
    )
    return re.sub(r".*attn\.tmem\.dealloc.*\n", "", text)


def gives_back_early(rank):
    """The CTA of that rank gives its columns back in front of the cluster's last barrier."""

    def apply(text):
        dealloc = re.search(r"(?m)^.*attn\.tmem\.dealloc.*\n", text)[0]
        text = text.replace(dealloc, "")
        place = text.rindex(BARRIER)
        test = (
            "      %x = gpu.cluster_block_id x\n"
            f"      %r = arith.constant {rank} : index\n"
            "      %is = arith.cmpi eq, %x, %r : index\n"
            f"      scf.if %is {{\n  {dealloc}      }}\n"
        )
        rest = (
            "      %isnt = arith.cmpi ne, %x, %r : index\n"
            f"      scf.if %isnt {{\n  {dealloc}      }}\n"
        )
        return text[:place] + test + BARRIER + rest + text[place + len(BARRIER) :]

    return apply


def ends(barriers, where):
    """The barriers of an array end behind the CTA's barrier, in front of the cluster's last one
    ("before") or behind it ("behind"); or ("rank R of PARTITION") in a CTA at the end of one."""
    text_of = "      gpu.barrier\n      attn.elect {\n        INVAL\n      }\n"
    if where.startswith("rank"):
        rank, partition = re.match(r"rank (\d) of (\w+)", where).groups()
        text_of = (
            "        %x = gpu.cluster_block_id x\n"
            f"        %r = arith.constant {rank} : index\n"
            "        %is = arith.cmpi eq, %x, %r : index\n"
            "        scf.if %is {\n          attn.elect {\n            INVAL\n          }\n        }\n"
        )

    def apply(text):
        type = re.search(re.escape(barriers) + r" = attn\.mbarrier\.alloc.*: (.*)", text)[1]
        place = text.rindex(BARRIER)
        if where == "behind":
            place += len(BARRIER)
        elif where != "before":
            place = text.index("\n      }\n", text.index(f'partition "{partition}"')) + 1
        end = text_of.replace("INVAL", f"attn.mbarrier.inval {barriers} : {type}")
        return text[:place] + end + text[place:]

    return apply


# What is wrong, how, and what the check and the simulator say.
BUGS = (
    ("bytes of one CTA are announced",
     change("49152 : i64, leader", "24576 : i64, leader"), "signal in the wrong phase", "race"),
    ("twice the bytes of both",
     change("49152 : i64, leader", "98304 : i64, leader"), "deadlock", "deadlock"),
    ("both CTAs announce, each at its own barrier",
     change("49152 : i64, leader", "24576 : i64"), "", ""),
    ("a load counts at its own CTA",
     change(r"barrier %ab.load\[(%\w+)\] : !attn.mbarriers<2> \{leader\}",
            r"barrier %ab.load[\1] : !attn.mbarriers<2>"), "", ""),
    ("results are handed back to the own CTA",
     change(r"(mbarrier.arrive %d.store\[%\w+\]) \{leader\}", r"\1"), "", ""),
    ("the arrivals of one CTA are counted",
     change("%d.store {count = 8", "%d.store {count = 4"), "", ""),
    ("a slot is handed back to one CTA of two",
     change(r"(commit %ab.mma\[%\w+\]) \{ctas = 2 : i64, pair\}", r"\1 {pair}"),
     "deadlock", "deadlock"),
    ("results are handed to one CTA of two",
     change(r"(commit %d.mma\[%\w+\]) \{ctas = 2 : i64, pair\}", r"\1 {pair}"),
     "deadlock", "deadlock"),
    ("nobody waits for the other CTA at the end",
     change("attn.cluster_barrier", "gpu.barrier", -1), "", ""),
    ("the other CTA does not see the barriers",
     change("attn.cluster_barrier", "gpu.barrier"), "lifetime", ""),
    ("both CTAs multiply",
     change(r"attn\.cluster_leader \{", "%always = arith.constant true\n        scf.if %always {"),
     "", ""),
    ("the other CTA fills slots that are read",
     change(r".*attn\.mbarrier\.wait %ab\.mma.*\n", ""), "", ""),
    ("columns are given back in front of the barrier",
     move(r"attn\.tmem\.dealloc", 0, r"attn\.cluster_barrier", -1), "lifetime", ""),
    ("one CTA gives columns back in front of the barrier", gives_back_early(0), "lifetime", ""),
    ("the other CTA gives columns back in front of the barrier", gives_back_early(1), "lifetime",
     ""),
    ("columns are taken in front of the barrier",
     move(r"attn\.cluster_barrier", 0, r"attn\.fence\.proxy_async"), "lifetime", ""),
    ("one CTA takes columns alone", alone, "deadlock", None),
    ("a product is of one CTA",
     change(r"(accumulate %\w+) \{pair\}", r"\1"), "expected an accumulator of 128 x 64", None),
    ("a commit is of one CTA",
     change(r"(commit %d.mma\[%\w+\]) \{ctas = 2 : i64, pair\}", r"\1 {ctas = 2 : i64}"),
     GROUP, None),
    ("columns are taken by one CTA",
     change(r"\{columns = 128 : i64, pair\}", "{columns = 128 : i64}"), GROUP, None),
    ("columns are given back by one CTA",
     change(r"\{columns = 128 : i64, pair\}", "{columns = 128 : i64}", -1), GROUP, None),
    ("barriers end while the other CTA owes an arrival",
     ends("%d.store", "before"), "lifetime", ""),
    ("barriers end while the other CTA owes a commit",
     ends("%ab.mma", "rank 1 of load"), "lifetime", ""),
    ("barriers end while the other CTA owes bytes",
     ends("%ab.load", "rank 0 of load"), "lifetime", ""),
)  # fmt: skip

# The same in the right place.
REPAIRED = (
    ("as it is", lambda text: text),
    ("barriers of arrivals end behind the cluster's", ends("%d.store", "behind")),
    ("barriers of commits end behind the cluster's", ends("%ab.mma", "behind")),
    ("barriers of bytes end behind the cluster's", ends("%ab.load", "behind")),
)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    said = re.search(r"error: ([^\n]*)", done.stderr + done.stdout)
    if done.returncode and not said:
        return done.stderr[:200]
    return said.group(1) if done.returncode else "accepted"


def check(path):
    return run(
        "attn-opt", str(path), "-o", "/dev/null", "-mlir-print-op-on-diagnostic=false",
        "--pass-pipeline=builtin.module(gpu.module(attn-check-barriers{require-proof}))",
    )  # fmt: skip


def simulate(path):
    ptx, launch = path.with_suffix(".ptx"), path.with_suffix(".json")
    said = run(
        "attn-compile", str(path), "--no-check-barriers", "-o", str(ptx), f"--launch-out={launch}"
    )
    if said != "accepted":
        return said
    for corner in CORNERS:
        said = run("attn-sim", str(ptx), f"--launch={launch}", *(SIM + corner).split())
        if said != "accepted":
            return said
    return said


def main():
    kernel, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    good = folder / "good.mlir"
    subprocess.run(["attn-compile", kernel, "--emit=barrier", "-o", str(good)], check=True)
    text, path = good.read_text(), folder / "planted.mlir"
    failures = 0
    for what, plant, by_check, by_simulator in BUGS:
        path.write_text(plant(text))
        assert path.read_text() != text, what
        said, found = check(path), simulate(path)
        fails = "accepted" in (said, found) or by_check not in said
        # Of some nothing can be made that runs.
        fails |= by_simulator is not None and by_simulator not in found
        failures += fails
        print(f"{'FAILED' if fails else 'refused'} {what}:\n  {said}\n  {found}")
    for what, repair in REPAIRED:
        path.write_text(repair(text))
        said, found = check(path), simulate(path)
        fails = said != "accepted" or found != "accepted"
        failures += fails
        print(f"{'FAILED' if fails else 'accepted'} {what}:\n  {said}\n  {found}")
    print(f"{len(BUGS)} bugs, {len(REPAIRED)} right kernels, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
