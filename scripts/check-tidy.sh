#!/usr/bin/env bash
# clang-tidy over the given C++ files, else over those that differ from main.
# Slow (half a minute a file), so scripts/test.sh does not run it.
#
# usage: scripts/check-tidy.sh [files]
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

[ -f "$ATTN_BUILD/compile_commands.json" ] || die "run scripts/build.sh first"
files=("$@")
if [ ${#files[@]} = 0 ]; then
  mapfile -t files < <(git diff --name-only --diff-filter=d main -- 'lib/*.cpp' 'tools/*.cpp')
fi
[ ${#files[@]} -gt 0 ] || exit 0
# clang-tidy cannot read the precompiled header of the build.
printf '%s\0' "${files[@]}" | xargs -0 -P "$ATTN_JOBS" -n 1 \
  clang-tidy-22 -p "$ATTN_BUILD" --quiet --warnings-as-errors='*'
