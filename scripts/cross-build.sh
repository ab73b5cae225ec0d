#!/usr/bin/env bash
# Compiles what a wheel for a machine with aarch64 is linked of, on one without.
# The archives of LLVM and of the C++ library are those of Debian's arm64
# packages, which are unpacked and not installed.
#
# usage: scripts/cross-build.sh FOLDER
#   FOLDER  gets the packages in `root`, and is a build folder otherwise
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

[ $# = 1 ] || die "expected a folder, got $# arguments"
mkdir -p "$1"
folder=$(cd "$1" && pwd)
root=$folder/root
LLVM_MAJOR=22
# What MLIR's CMake package wants to see is more than what is linked.
PACKAGES=(
  "libllvm$LLVM_MAJOR" "llvm-$LLVM_MAJOR" "llvm-$LLVM_MAJOR-dev" "llvm-$LLVM_MAJOR-tools"
  "llvm-$LLVM_MAJOR-linker-tools" "libmlir-$LLVM_MAJOR" "libmlir-$LLVM_MAJOR-dev"
  "mlir-$LLVM_MAJOR-tools"
  libc6 libc6-dev linux-libc-dev libcrypt1 libcrypt-dev libgcc-s1 libgcc-12-dev
  libstdc++6 libstdc++-12-dev zlib1g zlib1g-dev libzstd1 libzstd-dev libffi8 libedit2 libbsd0
  libmd0 libtinfo6 libxml2 libicu72 liblzma5
  # The interpreter that scripts/doors.py tries the wheel with.
  python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libexpat1 libssl3
)

fetch_packages() {
  # apt's own folders stay as they are: this machine has another architecture.
  local state=$folder/apt
  local apt=(
    apt-get -qq -o Acquire::Retries=3 -o APT::Architecture=arm64 -o APT::Architectures=arm64
    -o "Dir::State=$state" -o "Dir::State::status=$state/status" -o "Dir::Cache=$state/cache"
  )
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$folder/packages"
  touch "$state/status"
  "${apt[@]}" update
  (cd "$folder/packages" && "${apt[@]}" download "${PACKAGES[@]}")
}

if [ ! -f "$root/ready" ]; then
  say "fetching packages of arm64"
  fetch_packages
  for package in "$folder"/packages/*.deb; do
    dpkg-deb -x "$package" "$root"
  done
  # They run while the project is built.
  for tool in mlir-tblgen llvm-tblgen; do
    ln -sf "/usr/lib/llvm-$LLVM_MAJOR/bin/$tool" "$root/usr/lib/llvm-$LLVM_MAJOR/bin/$tool"
  done
  touch "$root/ready"
fi
if [ ! -f "$folder/build.ninja" ]; then
  cmake --preset release -B "$folder" -DATTN_INCLUDE_TESTS=OFF \
    -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/Aarch64.cmake" -DCMAKE_SYSROOT="$root" \
    -DMLIR_DIR="$root/usr/lib/llvm-$LLVM_MAJOR/lib/cmake/mlir" \
    -DLLVM_DIR="$root/usr/lib/llvm-$LLVM_MAJOR/lib/cmake/llvm"
fi
ninja -C "$folder" -j "$ATTN_JOBS" AttnWheelParts
