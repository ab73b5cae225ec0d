#!/usr/bin/env bash
# Configures (when needed) and builds with the release preset.
#
# usage: scripts/build.sh [ninja target...]    default: all, tests included
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

scripts/install-deps.sh
if [ ! -f "$ATTN_BUILD/build.ninja" ]; then
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! cmake --preset release -B "$ATTN_BUILD" >"$log" 2>&1; then
    cat "$log" >&2
    die "configuration failed"
  fi
fi
if [ $# = 0 ]; then
  set -- all AttnUnitTests
fi
ninja -C "$ATTN_BUILD" -j "$ATTN_JOBS" "$@"
