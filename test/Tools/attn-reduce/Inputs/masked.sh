#!/bin/sh
# Interesting (status 1): valid IR with a masked attention. The file comes last.
for file; do :; done
if "$1" "$file" >/dev/null 2>&1 && grep -q 'attn.mask<' "$file"; then exit 1; fi
