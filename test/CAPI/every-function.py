"""Checks that testNull and testDestroyed of compile.c call each function of the
header that takes an object.

every-function.py Attn.h compile.c
"""

import pathlib
import re
import sys

header, program = (pathlib.Path(path).read_text() for path in sys.argv[1:])
OBJECTS = "AttnRequest|AttnResult|AttnSimulation|AttnReport"
functions = {
    match[1]
    for match in re.finditer(r"(attn\w+)\(([^)]*)\);", header)
    if re.search(rf"(?:{OBJECTS}) \*", match[2])
}
assert len(functions) > 30, functions

# What the tests call themselves does the rest.
helpers = {
    "set": "attnRequestSetOption",
    "expectFailure": "attnCompile",
    "expectReportError": "attnSimulate",
}
wrong = False
for test in ("testNull", "testDestroyed"):
    body = program[program.index(f"static void {test}(void)") :]
    body = body[: body.index("\n}\n")]
    if test == "testNull":
        body += program[program.index("static void testFailures(void)") :].split("\n}\n")[0]
    called = set(re.findall(r"\b(attn\w+)\(", body))
    called |= {name for helper, name in helpers.items() if f" {helper}(" in body}
    for name in sorted(functions - called):
        print(f"error: {test}: expected a call of {name}, got none")
        wrong = True
sys.exit(wrong)
