#!/usr/bin/env bash
# From a clean checkout to a verified kernel: installs what is missing, builds
# attn-compile, compiles a causal attention for sm_80, runs it on the simulator
# and compares it with the float64 reference.
#
# usage: scripts/quickstart.sh [attn-compile options that replace the default]
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

scripts/build.sh attn-compile
if [ $# = 0 ]; then
  set -- --q=1x8x300x128xf16 --kv-heads=2 --causal --chip=sm_80 --verify
fi
say "attn-compile $*"
exec "$ATTN_BUILD/bin/attn-compile" "$@"
