#!/usr/bin/env bash
# Installs everything that building and testing attn needs on Debian 12.
# Needs root or sudo only when something is missing; otherwise returns at once.
#
# usage: scripts/install-deps.sh [--check] [--with-python] [--with-nvdisasm]
#                                [--with-fa4] [--with-chromium] [--with-wheel]
#                                [--with-doors]
#   --check        install nothing; list what is missing and exit with status 1
#   --with-python  also fill .venv with the pinned Python packages that
#                  benchmarks/ use
#   --with-nvdisasm
#                  also fill .venv-sass with the pinned nvdisasm, which reads
#                  machine code; the tests find it there
#   --with-fa4     also fill .venv-fa4 with the pinned FlashAttention-4 (6 GB),
#                  whose compile time a benchmark compares with ours
#   --with-chromium
#                  also install the browser that scripts/check-pages.py opens
#                  pages and plots in
#   --with-wheel   also what scripts/build-wheel.py needs: static libraries, and
#                  .venv-wheel with pinned tools (400 MB)
#   --with-doors   also fill .venv-doors with the pinned torch and transformers
#                  (5 GB), which tests of these need
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

LLVM_MAJOR=22
PACKAGES=(
  "libmlir-$LLVM_MAJOR-dev" "mlir-$LLVM_MAJOR-tools"
  "llvm-$LLVM_MAJOR-dev" "llvm-$LLVM_MAJOR-tools"
  "clang-$LLVM_MAJOR" "clang-format-$LLVM_MAJOR" "clang-tidy-$LLVM_MAJOR"
  "lld-$LLVM_MAJOR" "libclang-rt-$LLVM_MAJOR-dev"
  cmake ninja-build ccache git
  libgtest-dev libgmock-dev zlib1g-dev
  python3 python3-numpy python3-pytest shellcheck
)
VENV_PACKAGES=(python3-venv)

check=0
with_python=0
with_nvdisasm=0
with_fa4=0
with_wheel=0
with_doors=0
for arg in "$@"; do
  case $arg in
    --check) check=1 ;;
    --with-python) with_python=1 ;;
    --with-nvdisasm) with_nvdisasm=1 ;;
    --with-fa4) with_fa4=1 ;;
    --with-chromium) PACKAGES+=(chromium) ;;
    --with-wheel) with_wheel=1 ;;
    --with-doors) with_doors=1 ;;
    -h | --help)
      sed -n '2,23s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *) die "unknown argument '$arg' (see --help)" ;;
  esac
done
if [ $with_python = 1 ] || [ $with_nvdisasm = 1 ] || [ $with_fa4 = 1 ] || [ $with_wheel = 1 ] ||
  [ $with_doors = 1 ]; then
  PACKAGES+=("${VENV_PACKAGES[@]}")
fi
if [ $with_wheel = 1 ]; then
  PACKAGES+=(libzstd-dev libstdc++-12-dev)
fi

# Prints those of its arguments that dpkg does not list as installed.
missing_packages() {
  local installed
  installed=$(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' "$@" 2>/dev/null |
    sed -n 's/^ii *//p' || true)
  comm -23 <(printf '%s\n' "$@" | sort -u) <(sort -u <<<"$installed")
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "'$*' needs root, and sudo is not installed"
  fi
}

update_lists() {
  local try
  for try in 1 2 3 4; do
    if as_root apt-get -qq -o Acquire::Retries=3 update; then
      return 0
    fi
    say "apt-get update failed (try $try of 4), waiting"
    sleep $((try * 5))
  done
  die "apt-get update failed four times; check the network and apt's sources"
}

command -v dpkg-query >/dev/null ||
  die "this script knows Debian 12 only; install LLVM/MLIR $LLVM_MAJOR, cmake 3.25, ninja, ccache, googletest and python3 by other means"

mapfile -t missing < <(missing_packages "${PACKAGES[@]}")
if [ ${#missing[@]} -gt 0 ]; then
  if [ $check = 1 ]; then
    printf 'missing: %s\n' "${missing[@]}"
    exit 1
  fi
  say "installing ${missing[*]}"
  update_lists
  if ! apt-cache show "libmlir-$LLVM_MAJOR-dev" >/dev/null 2>&1; then
    die "apt's sources have no libmlir-$LLVM_MAJOR-dev: on Debian 12 it comes with the bookworm-security suite; enable that suite (or one that carries LLVM $LLVM_MAJOR) and run this script again"
  fi
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -y -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 \
    install --no-install-recommends "${missing[@]}" >/dev/null ||
    die "apt-get could not install: ${missing[*]}"
fi

# Fills the virtual environment $1 with the packages that the file $2 pins.
fill_venv() {
  local stamp=$1/requirements.txt
  if cmp -s "$2" "$stamp"; then
    return 0
  fi
  [ $check = 0 ] || die "missing: $1 with $2"
  say "filling $1"
  python3 -m venv "$1"
  "$1/bin/pip" -q --disable-pip-version-check install --requirement "$2"
  cp "$2" "$stamp"
}

if [ $with_python = 1 ]; then
  fill_venv .venv benchmarks/requirements.txt
fi
if [ $with_nvdisasm = 1 ]; then
  fill_venv .venv-sass scripts/requirements-sass.txt
fi
if [ $with_fa4 = 1 ]; then
  fill_venv .venv-fa4 benchmarks/requirements-fa4.txt
fi
if [ $with_wheel = 1 ]; then
  fill_venv .venv-wheel packaging/requirements.txt
fi
if [ $with_doors = 1 ]; then
  fill_venv .venv-doors packaging/requirements-doors.txt
fi
