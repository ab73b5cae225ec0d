//===- WgmmaOperands.h - What wgmma multiplies ------------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_WGMMA_WGMMAOPERANDS_H
#define ATTN_LIB_SCHEDULE_WGMMA_WGMMAOPERANDS_H

#include "attn/Schedule/Kernel/AttentionTile.h"

namespace mlir::attn {

/// Returns the probabilities `p` as operand of PV. With `keyQuads` the rows of
/// K were loaded in the order of quads (attn.apply_mask).
Value makeProbabilityOperand(const AttentionTile &tile, Value p, bool keyQuads);

/// Returns a slot of values as operand of PV: keys x columns.
Value makeValueOperand(const AttentionTile &tile, Value slot);

/// Makes probabilities large where they are 8-bit floats, whose smallest normal
/// number is 2^-6 (e4m3): the largest is 2^8, which no rounding touches. With
/// so few digits only the true maximum will do, so that `threshold` lets it
/// grow by nothing. `optimistic` knows nothing but sums, for which flat rows
/// need room (docs/Rationale/NarrowTypes.md).
void setNarrowRange(OnlineSoftmaxOp softmax);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WGMMA_WGMMAOPERANDS_H
