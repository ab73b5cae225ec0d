//===- ElementTypes.h - Kinds of element types ------------------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_IR_ELEMENTTYPES_H
#define ATTN_LIB_DIALECT_ATTN_IR_ELEMENTTYPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::attn {

/// That of a shaped value, or its type.
inline Type elementTypeOf(Value value) {
  return getElementTypeOrSelf(value.getType());
}

/// True for the 8-bit floats of operands: f8E4M3FN and f8E5M2.
inline bool isFloat8(Type type) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(type);
}

/// True for bytes that have two results of f4E2M1FN each.
inline bool isPairOfFloat4(Type type) { return type.isInteger(8); }
/// Columns of results that share a scale where these are of f4E2M1FN.
inline constexpr int64_t kFloat4Group = 16;

/// True for the other types of results.
inline bool isOutputType(Type type) {
  return type.isF16() || type.isBF16() || type.isF32();
}

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_IR_ELEMENTTYPES_H
