"""Compares the table of options with the help text's section about problems."""

import json
import re
import sys

rows = json.load(open(sys.argv[1], encoding="utf-8"))
section = open(sys.argv[2], encoding="utf-8").read().split("The problem, without <input>:\n")[1]
section = re.split(r"\n(?=\S)", section)[0]
# A sentence may go on in the next line, and begin there.
section = re.sub(r"\n {20,}", " ", section)
shown = dict(re.findall(r"^ +--?([\w-]+)\S*(?: <\S+>)? +- (.*)$", section, re.M))
wanted = {row["flag"]: row["doc"] for row in rows if row["flag"]}
wanted["no-lse"] = "Turns --lse off"
for flag in sorted(wanted.keys() | shown.keys()):
    if wanted.get(flag) != shown.get(flag):
        sys.exit(f"--{flag}: expected {wanted.get(flag)!r}, got {shown.get(flag)!r}")
