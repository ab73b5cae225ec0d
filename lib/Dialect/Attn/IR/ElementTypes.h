//===- ElementTypes.h - Kinds of element types ------------------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_IR_ELEMENTTYPES_H
#define ATTN_LIB_DIALECT_ATTN_IR_ELEMENTTYPES_H

#include "mlir/IR/BuiltinTypes.h"

namespace mlir::attn {

/// True for the 8-bit floats of operands: f8E4M3FN and f8E5M2.
inline bool isFloat8(Type type) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(type);
}

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_IR_ELEMENTTYPES_H
