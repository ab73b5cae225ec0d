#!/usr/bin/env python3
"""Writes the examples of the ODS descriptions as one file of IR.

The examples are separated by `// -----`, so that `attn-opt
--split-input-file` compiles each by itself. Ops without description or
example, and operands and results without a sentence, are listed on the
standard error stream.

usage: scripts/extract-examples.py -o FILE [--strict]
  --strict   what is listed is an error
"""

import argparse
import re
import sys

from doc_examples import DIALECT_TD, examples, ops, tblgen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", required=True, dest="output")
    parser.add_argument("--strict", action="store_true")
    arguments = parser.parse_args()
    page = tblgen(DIALECT_TD, "-gen-dialect-doc", "-dialect=attn")
    found = examples(page)
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write("\n// -----\n\n".join(f"// {e.title}\n{e.code}" for e in found))
    # An op that only makes sense inside another may stand in that one's example.
    code = "\n".join(example.code for example in found)
    missing = []
    known = ops()
    for op in known:
        if not re.search(rf"\b{re.escape(op.name)}(?![\w.])", code):
            missing.append(f"{op.name}: no example")
        if not op.described:
            missing.append(f"{op.name}: no description")
        missing += [
            f"{op.name}: {kind} '{name}' has no sentence"
            for kind, name, sentence in op.variables
            if kind != "attribute" and not sentence
        ]
    for problem in missing:
        print(problem, file=sys.stderr)
    print(f"{len(found)} examples of {len(known)} ops")
    return 1 if arguments.strict and missing else 0


if __name__ == "__main__":
    sys.exit(main())
