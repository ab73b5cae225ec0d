"""Prints what a bundle holds."""

import sys

from attn import bundle

contents = bundle.read(sys.argv[1])
print("kernel", contents.launch["kernel"], contents.launch["target"]["chip"])
for image in contents.images:
    form = "elf" if image.data[:4] == b"\x7fELF" else "text"
    print(image.kind, image.chip, form)
