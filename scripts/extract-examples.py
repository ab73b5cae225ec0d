#!/usr/bin/env python3
"""Writes the examples of the ODS descriptions as one file of IR.

The examples are separated by `// -----`, so that `attn-opt
--split-input-file` compiles each by itself. Ops without description or
without example are listed on the standard error stream.

usage: scripts/extract-examples.py -o FILE [--strict]
  --strict   an op without description or example is an error
"""

import argparse
import re
import sys

from doc_examples import DIALECT_TD, examples, tblgen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", required=True, dest="output")
    parser.add_argument("--strict", action="store_true")
    arguments = parser.parse_args()
    page = tblgen(DIALECT_TD, "-gen-dialect-doc", "-dialect=attn")
    found = examples(page)
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write("\n// -----\n\n".join(f"// {e.title}\n{e.code}" for e in found))
    # Headings of ops look like: ### `attn.name` (mlir::attn::NameOp)
    titles = re.findall(r"^###+ (`attn\.[\w.]+` \(.*)$", page, re.M)
    covered = {example.title for example in found}
    without = [title for title in titles if title not in covered]
    for title in without:
        print(f"no example: {title}", file=sys.stderr)
    print(f"{len(found)} examples, {len(titles) - len(without)} of {len(titles)} ops")
    return 1 if arguments.strict and without else 0


if __name__ == "__main__":
    sys.exit(main())
