//===- BlockBounds.cpp - Which keys a tile of queries needs
//----------------===//
//
// With `first` and `last` the tile's rows that exist, the key j is kept for row
// i if i + lower <= j <= i + upper and j < keys. A block [j, j + N)
//
//   - is needed if some pair in it is kept: j <= last + upper, j < keys and
//     j + N > first + lower;
//   - needs no test on the right if all pairs pass it: j + N - 1 <= first +
//     upper and j + N <= keys;
//   - needs no test on the left if j >= last + lower.
//
// Lengths are below 2^29 and bounds are clamped to 2^30, so nothing overflows.
//
//===----------------------------------------------------------------------===//

#include "BlockBounds.h"

using namespace mlir;
using namespace mlir::attn;

/// Bounds of a mask beyond this keep every pair.
static constexpr int64_t kBoundLimit = int64_t(1) << 30;

BlockBounds attn::emitBlockBounds(KernelContext &context, Value row,
                                  Value queries, Value keys, int64_t blockM,
                                  int64_t blockN) {
  ImplicitLocOpBuilder &b = context.b;
  MaskAttr mask = context.facts.mask;
  Value zero = context.i32(0), block = context.i32(blockN);
  auto add = [&](Value x, Value y) -> Value {
    return b.createOrFold<arith::AddIOp>(x, y);
  };
  auto addConstant = [&](Value x, int64_t c) -> Value {
    return c == 0 ? x : add(x, context.i32(c));
  };
  auto min = [&](Value x, Value y) -> Value {
    return arith::MinSIOp::create(b, x, y);
  };
  auto max = [&](Value x, Value y) -> Value {
    return b.createOrFold<arith::MaxSIOp>(x, y);
  };
  // Of numbers that are not negative.
  auto floorBlocks = [&](Value x) -> Value {
    return arith::DivUIOp::create(b, x, block);
  };
  auto ceilBlocks = [&](Value x) {
    return floorBlocks(addConstant(x, blockN - 1));
  };

  BlockBounds bounds;
  Value offset = zero;
  bool hasOffset = mask.getAlign() == MaskAlign::BottomRight &&
                   (mask.hasLeft() || mask.hasRight());
  if (hasOffset)
    offset = arith::SubIOp::create(b, keys, queries);
  auto clampBound = [](int64_t bound) {
    return std::clamp(bound, -kBoundLimit, kBoundLimit);
  };
  if (mask.hasRight())
    bounds.upper = addConstant(offset, clampBound(mask.rightBound()));
  if (mask.hasLeft())
    bounds.lower = addConstant(offset, clampBound(mask.leftBound()));

  Value last;
  if (bounds.upper || bounds.lower)
    last = addConstant(min(addConstant(row, blockM), queries), -1);

  // One past the last key that some row keeps, and one past the last key up to
  // which all rows keep.
  Value someKeys = keys, allKeys = keys;
  if (bounds.upper) {
    someKeys = max(min(keys, addConstant(add(last, bounds.upper), 1)), zero);
    allKeys = max(min(keys, addConstant(add(row, bounds.upper), 1)), zero);
  }
  bounds.end = ceilBlocks(someKeys);
  bounds.begin = zero;
  bounds.fullBegin = zero;
  bounds.fullEnd = floorBlocks(allKeys);
  if (bounds.lower) {
    Value firstKey = max(add(row, bounds.lower), zero);
    bounds.begin = min(floorBlocks(firstKey), bounds.end);
    Value lastRowKey = max(add(last, bounds.lower), zero);
    bounds.fullEnd = max(bounds.fullEnd, bounds.begin);
    bounds.fullBegin =
        max(min(ceilBlocks(lastRowKey), bounds.fullEnd), bounds.begin);
  }
  return bounds;
}
