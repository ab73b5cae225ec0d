//===- GatheredSoftmax.h - A softmax whose warps divide keys ----*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_COPIED_GATHEREDSOFTMAX_H
#define ATTN_LIB_SCHEDULE_COPIED_GATHEREDSOFTMAX_H

#include "../Core/AttentionEmitter.h"
#include "../Core/DividedRows.h"

namespace mlir::attn {

/// The online softmax of warps that share rows and have the scores of their own
/// keys. They exchange the largest scores of their rows, of which all make the
/// same maximum, and then probabilities, each of which was computed once.
class GatheredSoftmax {
public:
  /// With `whole` maxima are whole numbers.
  GatheredSoftmax(DividedRows tile, bool whole) : tile(tile), whole(whole) {}

  struct Step {
    /// Probabilities of the whole block, the new maxima, sums of a thread's own
    /// probabilities, the factors by which results are rescaled, and the
    /// largest exponents of rows, if they are asked for.
    Value p, m, l, factor, largest;
  };

  /// One step of the policy `exact` on the scores of a block, with the state's
  /// row values.
  Step emit(ImplicitLocOpBuilder &b, Value scores, const RunningState &state,
            Value scale, Type operandType) const;
  /// The sums in front of the first block.
  Value emitNoSums(ImplicitLocOpBuilder &b) const;

private:
  DividedRows tile;
  bool whole;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COPIED_GATHEREDSOFTMAX_H
