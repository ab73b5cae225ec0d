#!/usr/bin/env bash
# Installs the built project into an empty folder, and builds and runs
# test/install and examples/embed against it, as users of the CMake package
# would. Optimizing the users would show nothing more.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "$0")/common.sh"

prefix=$ATTN_BUILD/install
rm -rf "$prefix" "$ATTN_BUILD"/install-test-*
cmake --install "$ATTN_BUILD" --prefix "$prefix" >/dev/null

# The package must not lead back to the source or build folder.
if grep -rlF -e "$ATTN_ROOT/include" -e "$ATTN_ROOT/lib" "$prefix" --include='*.cmake'; then
  die "the installed CMake files above name the source folder"
fi
for project in test/install examples/embed; do
  consumer=$ATTN_BUILD/install-test-${project##*/}
  cmake -G Ninja -S "$project" -B "$consumer" \
    -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 \
    -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG" \
    -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld \
    -DCMAKE_PREFIX_PATH="$prefix"
  ninja -C "$consumer" -j "$ATTN_JOBS"
  ctest --test-dir "$consumer" --output-on-failure --no-tests=error
done
for tool in attn-opt attn-compile; do
  "$prefix/bin/$tool" --version >/dev/null
done
