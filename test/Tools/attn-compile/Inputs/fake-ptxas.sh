#!/bin/sh
# A ptxas of version $FAKE_VERSION that says that the first $FAKE_SPILLS kernels
# spill, counted in the file $FAKE_COUNT, and makes no code.
if [ "$1" = --version ]; then
  echo "ptxas: a fake"
  echo "Build cuda_$FAKE_VERSION.r$FAKE_VERSION/compiler.1_0"
  exit 0
fi
while [ $# != 0 ]; do
  [ "$1" != -o ] || echo none >"$2"
  shift
done
echo >>"$FAKE_COUNT"
bytes=0
[ "$(wc -l <"$FAKE_COUNT")" -gt "$FAKE_SPILLS" ] || bytes=16
echo "ptxas info    : Function properties for attn_fwd"
echo "    $bytes bytes stack frame, $bytes bytes spill stores, $bytes bytes spill loads"
echo "ptxas info    : Used 255 registers"
