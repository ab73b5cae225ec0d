//===- RangeModel.h - Keys that key_range leaves to a tile ------*- C++ -*-===//

#ifndef ATTN_LIB_PLANNER_FACTS_RANGEMODEL_H
#define ATTN_LIB_PLANNER_FACTS_RANGEMODEL_H

#include "attn/Dialect/Attn/IR/BlockBounds.h"
#include "attn/Planner/Facts/ProblemFacts.h"

namespace mlir::attn {

/// Evaluates a problem's key_range for estimates. What only the launch knows
/// has a value by convention: a captured integer is `kCapturedShare` of the
/// keys, and documents that are looked for have `kDocumentShare` of them each,
/// so that they seldom begin where tiles do.
class RangeModel {
public:
  static constexpr double kCapturedShare = 0.5, kDocumentShare = 2.0 / 15;

  RangeModel(const ProblemFacts &facts, int64_t queries, int64_t keys);

  /// Returns the blocks of the tile of `blockM` queries from `row` on.
  BlockBoundsOf<int64_t> findBlocks(int64_t row, int64_t blockM,
                                    int64_t blockN);

private:
  void compute(Operation *op);
  void compute(FindKeyOp find);
  int64_t get(Value value);
  void set(Value value, int64_t number);

  MaskAttr mask;
  int64_t queries, keys;
  /// The region's block; null without one.
  Block *block = nullptr;
  llvm::DenseMap<Value, int64_t> numbers;
};

} // namespace mlir::attn

#endif // ATTN_LIB_PLANNER_FACTS_RANGEMODEL_H
