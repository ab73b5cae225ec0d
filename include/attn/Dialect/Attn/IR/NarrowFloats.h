//===- NarrowFloats.h - f32 become 8-bit floats -----------------*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_NARROWFLOATS_H
#define ATTN_DIALECT_ATTN_IR_NARROWFLOATS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn {

/// Rounds two f32 to the nearest numbers of `type`, f8E4M3FN or f8E5M2; an i16
/// with that of `first` in its lower byte. What is beyond the largest number
/// becomes that one. `byIntegers` is for chips that have no instruction for it.
Value narrowPair(ImplicitLocOpBuilder &b, Value first, Value second, Type type,
                 bool byIntegers);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_NARROWFLOATS_H
