//===- RowNumbers.h - Buffers with numbers of rows --------------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_IR_ROWNUMBERS_H
#define ATTN_LIB_DIALECT_ATTN_IR_ROWNUMBERS_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// Checks that a buffer can hold numbers of rows: i32, one beside the other in
/// shared memory.
inline LogicalResult verifyRowNumbers(Operation *op, BufferType type) {
  bool isPlain = isa<AutoLayoutAttr, RowLayoutAttr>(type.getLayout());
  if (type.getRank() == 1 && type.getElementType().isInteger(32) && isPlain &&
      type.getSpace() == MemorySpace::Shared)
    return success();
  return op->emitOpError("expected a buffer of rank 1 with rows of i32 in "
                         "shared memory as numbers of rows, got ")
         << type;
}

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_IR_ROWNUMBERS_H
