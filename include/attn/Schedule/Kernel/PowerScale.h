//===- PowerScale.h - Scales that are powers of two -------------*- C++ -*-===//

#ifndef ATTN_SCHEDULE_KERNEL_POWERSCALE_H
#define ATTN_SCHEDULE_KERNEL_POWERSCALE_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn {

/// A scale of f8E8M0FNU, or scales of rows.
struct PowerScale {
  /// The scale and one by it, f32.
  Value scale, inverse;
  /// The byte of the type, i32.
  Value code;
};

/// Returns the least powers of two from 2^-126 to 2^126 that are no less than
/// `scales`, f32 that are not below zero; 1 where `isSome`, i1, is false.
PowerScale emitPowerScale(ImplicitLocOpBuilder &b, Value scales, Value isSome);

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_KERNEL_POWERSCALE_H
