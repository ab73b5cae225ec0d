"""A barrier file whose first store of a row has inline assembly in front that says it does nothing.

usage: lie.py ASSEMBLY < kernel.mlir; $0 gets 0 unless the assembly writes it.
"""

import re
import sys

text = sys.stdin.read()
assembly = sys.argv[1]
if "$0" not in assembly:
    assembly += " mov.u32 $0, 0;"
match = re.search(r"\n( *)attn\.global_store [^\n\[]*\[(%\w+)\]", text)
assert match
ops = (
    f'\n{match[1]}%said = llvm.inline_asm "{{ {assembly} }}", "=r" : () -> i32'
    f"\n{match[1]}%row = arith.addi {match[2]}, %said : i32"
)
sys.stdout.write(text[: match.start()] + ops + text[match.start() : match.start(2)] + "%row" + text[match.end(2) :])
