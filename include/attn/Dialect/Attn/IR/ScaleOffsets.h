//===- ScaleOffsets.h - Where kernels store scales in tiles -----*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_SCALEOFFSETS_H
#define ATTN_DIALECT_ATTN_IR_SCALEOFFSETS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn {

/// Emits getScaleTileOffset of a row and a column, all i64.
Value emitScaleTileOffset(ImplicitLocOpBuilder &b, Value row, Value column,
                          Value padded);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_SCALEOFFSETS_H
