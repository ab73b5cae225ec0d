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

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WGMMA_WGMMAOPERANDS_H
