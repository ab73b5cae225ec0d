//===- WarpMax.h - The largest number of a warp in memory -------*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_WARPMAX_H
#define ATTN_DIALECT_ATTN_IR_WARPMAX_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn {

/// Lets the largest of a warp's `number`, f32 that are not below zero, join the
/// f32 at `address` in global memory. All lanes come to it, `lane` is their
/// number in the warp; one of them changes memory. NaN is larger than all
/// others.
void emitWarpMax(ImplicitLocOpBuilder &b, Value number, Value lane,
                 Value address);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_WARPMAX_H
