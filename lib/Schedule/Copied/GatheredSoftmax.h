//===- GatheredSoftmax.h - A softmax whose warps divide keys ----*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_COPIED_GATHEREDSOFTMAX_H
#define ATTN_LIB_SCHEDULE_COPIED_GATHEREDSOFTMAX_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn {

/// The online softmax of warps that share rows and have the scores of their own
/// keys. They exchange the largest scores of their rows, of which all make the
/// same maximum, and then probabilities, each of which was computed once.
class GatheredSoftmax {
public:
  /// Tiles of `rows` rows, whose accumulators have the layout `divided` where
  /// warps divide columns and `shared` where those of a row hold the same.
  GatheredSoftmax(int64_t rows, MmaLayoutAttr divided, MmaLayoutAttr shared)
      : rows(rows), divided(divided), shared(shared) {}

  struct Step {
    /// Probabilities of the whole block, the new maxima, sums of a thread's own
    /// probabilities, and the factors by which results are rescaled.
    Value p, m, l, factor;
  };

  /// One step of the policy `exact` on the scores of a block.
  Step emit(ImplicitLocOpBuilder &b, Value scores, Value m, Value l,
            Value scale, Type operandType) const;
  /// The sums in front of the first block.
  Value emitNoSums(ImplicitLocOpBuilder &b) const;
  /// The parts of a row's sums that its warps have, in all of them.
  Value gatherSums(ImplicitLocOpBuilder &b, Value l) const;

private:
  RankedTensorType getPartialType() const;
  RankedTensorType getSharedType(int64_t columns, Type element) const {
    return RankedTensorType::get({rows, columns}, element, shared);
  }

  int64_t rows;
  MmaLayoutAttr divided, shared;
};

/// Row values where an accumulator in `layout` has its rows.
Value emitRowsOf(ImplicitLocOpBuilder &b, Value rows, MmaLayoutAttr layout);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COPIED_GATHEREDSOFTMAX_H
