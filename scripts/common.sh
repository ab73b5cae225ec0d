# shellcheck shell=bash
# Settings that the shell scripts share. Source it; it changes to the
# repository's root.

ATTN_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
ATTN_BUILD=${ATTN_BUILD:-$ATTN_ROOT/build}
ATTN_JOBS=${ATTN_JOBS:-$(nproc)}
LLVM_BIN=${LLVM_BIN:-/usr/lib/llvm-22/bin}
# The Debian interpreter: apt's Python packages belong to it, whatever comes
# first on PATH.
PYTHON=${PYTHON:-/usr/bin/python3}
cd "$ATTN_ROOT" || exit 1

# Precompiled headers and ccache go together only with these. Two checkouts
# share few results all the same: a precompiled header holds absolute paths.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
export CCACHE_BASEDIR=$ATTN_ROOT

# shellcheck disable=SC2034  # for those that source this
# What builds in this build folder took so far, in seconds of processor time.
ATTN_BUILD_SECONDS=$ATTN_BUILD/build-seconds

# read_cpu FILE: sets `cpu` to the seconds of processor time of what this shell
# has started and waited for. FILE is for passing, as a subshell has none of it.
read_cpu() {
  local fields field seconds
  times >"$1"
  { read -r _ && read -r -a fields; } <"$1"
  cpu=0
  for field in "${fields[@]}"; do
    seconds=${field#*m}
    cpu=$((cpu + 60 * ${field%m*} + ${seconds%%[.,]*}))
  done
}

say() { printf '== %s\n' "$*"; }

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}
