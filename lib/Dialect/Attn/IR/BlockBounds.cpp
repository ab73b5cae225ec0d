//===- BlockBounds.cpp - Which keys a tile of queries needs ---------------===//

#include "attn/Dialect/Attn/IR/BlockBounds.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// Bounds as numbers.
struct ConstantMath {
  using Number = int64_t;
  int64_t constant(int64_t value) const { return value; }
  int64_t add(int64_t x, int64_t y) const { return x + y; }
  int64_t addConstant(int64_t x, int64_t c) const { return x + c; }
  int64_t sub(int64_t x, int64_t y) const { return x - y; }
  int64_t min(int64_t x, int64_t y) const { return std::min(x, y); }
  int64_t max(int64_t x, int64_t y) const { return std::max(x, y); }
  int64_t multiply(int64_t x, int64_t y) const { return x * y; }
  int64_t divide(int64_t x, int64_t y) const { return x / y; }
};

} // namespace

BlockBoundsOf<int64_t> attn::computeBlockBounds(MaskAttr mask, int64_t row,
                                                int64_t queries, int64_t keys,
                                                int64_t blockM, int64_t blockN,
                                                int64_t group,
                                                ArrayRef<int64_t> range) {
  return findBlockBounds(ConstantMath(), mask, row, queries, keys, blockM,
                         blockN, group, range);
}
