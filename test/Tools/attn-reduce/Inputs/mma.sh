#!/bin/sh
# Interesting (status 1): valid IR with a product in a loop over keys. The file
# comes last.
for file; do :; done
if "$1" "$file" >/dev/null 2>&1 && grep -q 'attn.mma' "$file" &&
  grep -q 'attn.kv_loop' "$file"; then exit 1; fi
