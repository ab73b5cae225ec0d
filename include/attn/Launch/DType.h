//===- DType.h - element types of tensors -----------------------*- C++ -*-===//
//
// The element types that launch records, .npy files and the reference know, and
// the conversion of single elements from and to double.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LAUNCH_DTYPE_H
#define ATTN_LAUNCH_DTYPE_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace mlir::attn {

/// Element type of a tensor or type of a scalar parameter.
enum class DType {
  F16,
  BF16,
  F32,
  F64,
  F8E4M3FN,
  F8E5M2,
  F8E8M0FNU,
  I8,
  I16,
  I32,
  I64,
  U8,
  U16,
  U32,
  U64
};

/// The name of `dtype` in a launch record: f16, bf16, f32, f64, f8E4M3FN,
/// f8E5M2, f8E8M0FNU, i8 to i64, u8 to u64.
llvm::StringRef stringifyDType(DType dtype);
/// The inverse of stringifyDType; nothing for another name.
std::optional<DType> symbolizeDType(llvm::StringRef name);
/// Bytes of one element.
unsigned getByteWidth(DType dtype);
/// True for the floating-point types.
bool isFloat(DType dtype);
/// True for the integer types without a sign.
bool isUnsignedInteger(DType dtype);

/// The element at `bytes` (little-endian, any alignment) as a double. Exact for
/// every type but i64 and u64, which round.
double decodeElement(DType dtype, const uint8_t *bytes);
/// Writes `value` to `bytes`, rounded to nearest even. Values that a type
/// cannot hold become infinity (NaN for f8E4M3FN), or the nearest integer for
/// the integer types; NaN becomes integer 0.
void encodeElement(DType dtype, double value, uint8_t *bytes);

} // namespace mlir::attn

#endif // ATTN_LAUNCH_DTYPE_H
