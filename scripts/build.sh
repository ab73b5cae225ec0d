#!/usr/bin/env bash
# Configures (when needed) and builds with the release preset.
#
# usage: scripts/build.sh [ninja target...]    default: all, tests included
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

scripts/install-deps.sh
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if [ ! -f "$ATTN_BUILD/build.ninja" ]; then
  if ! cmake --preset release -B "$ATTN_BUILD" >"$log" 2>&1; then
    cat "$log" >&2
    die "configuration failed"
  fi
fi
if [ $# = 0 ]; then
  set -- all AttnUnitTests
fi
status=0
ninja -C "$ATTN_BUILD" -j "$ATTN_JOBS" "$@" || status=$?
read_cpu "$log"
before=$(cat "$ATTN_BUILD_SECONDS" 2>/dev/null || echo 0)
echo $((before + cpu)) >"$ATTN_BUILD_SECONDS"
exit $status
