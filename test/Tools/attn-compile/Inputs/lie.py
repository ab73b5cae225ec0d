"""A barrier file whose first store of a row has something in front that should not be there.

usage: lie.py load|ASSEMBLY < kernel.mlir: a load from global memory that is nobody's, or inline
assembly that says that it does nothing.
"""

import re
import sys

text = sys.stdin.read()
what = sys.argv[1]
match = re.search(r"\n( *)attn\.global_store [^\n\[]*\[(%\w+)\]", text)
assert match
if what == "load":
    ops = [
        "%eight = arith.constant 8 : i64",
        "%nobodys = llvm.inttoptr %eight : i64 to !llvm.ptr<1>",
        "%said = llvm.load volatile %nobodys : !llvm.ptr<1> -> i32",
    ]
else:
    ops = [f'%said = llvm.inline_asm "{{ {what} mov.u32 $0, 0; }}", "=r" : () -> i32']
ops.append(f"%row = arith.addi {match[2]}, %said : i32")
lines = "".join(f"\n{match[1]}{op}" for op in ops)
sys.stdout.write(text[: match.start()] + lines + text[match.start() : match.start(2)] + "%row" + text[match.end(2) :])
