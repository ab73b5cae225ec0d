//===- WarpMax.h - The largest number of a warp in memory -------*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_WARPMAX_H
#define ATTN_DIALECT_ATTN_IR_WARPMAX_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn {

/// Calls `join` with the bits, i32, of the largest of a warp's `number`, f32
/// that are not below zero, for one of its lanes, which lets them join what is
/// in memory: as integers that are not below zero they are ordered as numbers
/// are, and NaN is larger than all others. All lanes come to it; `lane` is
/// their number in the warp.
void emitWarpMax(ImplicitLocOpBuilder &b, Value number, Value lane,
                 function_ref<void(Value)> join);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_WARPMAX_H
