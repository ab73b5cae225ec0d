//===- NarrowFloats.h - f32 become floats of 8 and 4 bits -------*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_NARROWFLOATS_H
#define ATTN_DIALECT_ATTN_IR_NARROWFLOATS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn {

/// Returns the largest finite number of a type of floats.
double getLargestNumber(Type type);

/// Rounds two f32 to the nearest numbers of `type`, f8E4M3FN or f8E5M2; an i16
/// with that of `first` in its lower byte. What is beyond the largest number
/// becomes that one. `byIntegers` is for chips that have no instruction for it.
Value narrowPair(ImplicitLocOpBuilder &b, Value first, Value second, Type type,
                 bool byIntegers);

/// Rounds an f32 that is not below zero to the nearest number of f8E4M3FN, an
/// i8; `byIntegers` as above.
Value narrowToByte(ImplicitLocOpBuilder &b, Value value, bool byIntegers);

/// Returns the f32 of an i8 that an f8E4M3FN is; `byIntegers` as above.
Value widenByte(ImplicitLocOpBuilder &b, Value byte, bool byIntegers);

/// Rounds two f32 to the nearest numbers of f4E2M1FN; an i8 with that of
/// `first` in its lower half. What is beyond the largest number, NaN too,
/// becomes that one. `byIntegers` as above.
Value narrowToPair4(ImplicitLocOpBuilder &b, Value first, Value second,
                    bool byIntegers);

/// Rounds at most eight f32 as narrowToPair4 does by integers; an i32 with that
/// of the first one in its lowest four bits.
Value narrowToWord4(ImplicitLocOpBuilder &b, llvm::ArrayRef<Value> values);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_NARROWFLOATS_H
