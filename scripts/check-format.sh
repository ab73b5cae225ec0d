#!/usr/bin/env bash
# clang-format over every tracked C and C++ file.
#
# usage: scripts/check-format.sh [--fix]
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

mapfile -t files < <(git ls-files '*.cpp' '*.h' '*.c')
[ ${#files[@]} -gt 0 ] || exit 0
if [ "${1:-}" = --fix ]; then
  exec clang-format-22 -i "${files[@]}"
fi
printf '%s\0' "${files[@]}" |
  xargs -0 -P "$ATTN_JOBS" -n 16 clang-format-22 --dry-run --Werror
