//===- RowWeights.h - What a run of keys weighs in a row --------*- C++ -*-===//
//
// exp(inf - inf) is 1 here (docs/spec.md, "Infinite and NaN logits"), which
// maxima that are no larger than finite numbers make it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_COMBINE_ROWWEIGHTS_H
#define ATTN_LIB_SCHEDULE_COMBINE_ROWWEIGHTS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn {

/// Returns what is subtracted from the LSEs, or maxima, of a row whose largest
/// one is `most`.
Value makeShift(ImplicitLocOpBuilder &b, Value most);
/// Returns the weight of a run of that LSE, or maximum.
Value makeWeight(ImplicitLocOpBuilder &b, Value lse, Value shift);
/// Returns i1 whether there is a partial result: its LSE is not -inf.
Value hasRun(ImplicitLocOpBuilder &b, Value lse);
/// Returns the logarithm to the base 2, -inf of 0.
Value makeLog2(ImplicitLocOpBuilder &b, Value value);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COMBINE_ROWWEIGHTS_H
