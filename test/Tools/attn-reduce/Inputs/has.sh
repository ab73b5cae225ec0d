#!/bin/sh
# Interesting (status 1): valid IR that contains the second argument. The file
# comes last.
for file; do :; done
if "$1" "$file" >/dev/null 2>&1 && grep -q "$2" "$file"; then exit 1; fi
