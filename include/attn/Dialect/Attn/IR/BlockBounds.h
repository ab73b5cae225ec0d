//===- BlockBounds.h - Which keys a tile of queries needs -------*- C++ -*-===//
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
// Another mask may say in addition which keys it leaves to the rows of the
// tile, and between which keys it leaves all.
//
// Lengths are below 2^29 and bounds are clamped to 2^30, so nothing overflows
// in 32 bits. Kernels and estimates find the bounds by the same steps: they are
// written once, for numbers and for what computes them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_BLOCKBOUNDS_H
#define ATTN_DIALECT_ATTN_IR_BLOCKBOUNDS_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// The blocks of keys that a tile of queries walks, and the mask's bounds.
template <typename Number>
struct BlockBoundsOf {
  /// As the operands of attn.kv_loop.
  Number begin{}, fullBegin{}, fullEnd{}, end{};
  /// As the operands of attn.apply_mask; only where the mask has them.
  Number lower{}, upper{};
  /// The first key that some row may keep by the mask's left bound alone, and
  /// one past the last key that some row keeps.
  Number firstKey{}, lastKey{};
};

/// The bounds of the tile of `blockM` queries from `row` on, in steps of
/// `math`, which has a type Number and the functions constant, add,
/// addConstant, sub, min, max, multiply and divide, the last one for numbers
/// that are not negative. With `group` above 1 rows are those of groups of
/// heads: row r is query r / group. `range` is that of attn.key_blocks.
template <typename Math>
BlockBoundsOf<typename Math::Number>
findBlockBounds(Math math, MaskAttr mask, typename Math::Number row,
                typename Math::Number queries, typename Math::Number keys,
                int64_t blockM, int64_t blockN, int64_t group = 1,
                ArrayRef<typename Math::Number> range = {}) {
  using Number = typename Math::Number;
  // Bounds of a mask beyond this keep every pair.
  constexpr int64_t kBoundLimit = int64_t(1) << 30;
  auto clampBound = [&](int64_t bound) {
    return std::clamp(bound, -kBoundLimit, kBoundLimit);
  };
  bool hasUpper = mask.hasRight(), hasLower = mask.hasLeft();
  Number zero = math.constant(0), block = math.constant(blockN);
  auto ceilBlocks = [&](Number x) {
    return math.divide(math.addConstant(x, blockN - 1), block);
  };

  BlockBoundsOf<Number> bounds;
  Number offset = zero;
  if (mask.getAlign() == MaskAlign::BottomRight && (hasLower || hasUpper))
    offset = math.sub(keys, queries);
  if (hasUpper)
    bounds.upper = math.addConstant(offset, clampBound(mask.rightBound()));
  if (hasLower)
    bounds.lower = math.addConstant(offset, clampBound(mask.leftBound()));

  Number last{};
  if ((hasUpper || hasLower) && group == 1) {
    last =
        math.addConstant(math.min(math.addConstant(row, blockM), queries), -1);
  } else if (hasUpper || hasLower) {
    Number members = math.constant(group);
    Number rows = math.multiply(queries, members);
    last = math.divide(
        math.addConstant(math.min(math.addConstant(row, blockM), rows), -1),
        members);
    row = math.divide(row, members);
  }

  // One past the last key up to which all rows keep.
  Number allKeys = keys;
  bounds.lastKey = keys;
  if (hasUpper) {
    auto endOfRow = [&](Number of) {
      return math.max(
          math.min(keys, math.addConstant(math.add(of, bounds.upper), 1)),
          zero);
    };
    bounds.lastKey = endOfRow(last);
    allKeys = endOfRow(row);
  }
  bounds.end = ceilBlocks(bounds.lastKey);
  bounds.begin = zero;
  bounds.fullBegin = zero;
  bounds.firstKey = zero;
  bounds.fullEnd = math.divide(allKeys, block);
  if (hasLower) {
    bounds.firstKey = math.max(math.add(row, bounds.lower), zero);
    bounds.begin = math.min(math.divide(bounds.firstKey, block), bounds.end);
    Number lastRowKey = math.max(math.add(last, bounds.lower), zero);
    bounds.fullEnd = math.max(bounds.fullEnd, bounds.begin);
    bounds.fullBegin = math.max(
        math.min(ceilBlocks(lastRowKey), bounds.fullEnd), bounds.begin);
  }
  if (range.empty())
    return bounds;

  auto clampKey = [&](Number key) {
    return math.max(math.min(key, keys), zero);
  };
  Number first = clampKey(range[0]), end = clampKey(range[1]);
  bounds.firstKey = math.max(bounds.firstKey, first);
  bounds.lastKey = math.min(bounds.lastKey, end);
  bounds.end = math.min(bounds.end, ceilBlocks(end));
  bounds.begin =
      math.min(math.max(bounds.begin, math.divide(first, block)), bounds.end);
  if (range.size() == 4) {
    bounds.fullEnd =
        math.min(bounds.fullEnd, math.divide(clampKey(range[3]), block));
    bounds.fullBegin =
        math.max(bounds.fullBegin, ceilBlocks(clampKey(range[2])));
  }
  bounds.fullEnd = math.max(math.min(bounds.fullEnd, bounds.end), bounds.begin);
  bounds.fullBegin =
      math.max(math.min(bounds.fullBegin, bounds.fullEnd), bounds.begin);
  return bounds;
}

/// The bounds of a tile whose place and lengths are known. Lengths may be 0.
BlockBoundsOf<int64_t> computeBlockBounds(MaskAttr mask, int64_t row,
                                          int64_t queries, int64_t keys,
                                          int64_t blockM, int64_t blockN,
                                          int64_t group = 1,
                                          ArrayRef<int64_t> range = {});

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_BLOCKBOUNDS_H
