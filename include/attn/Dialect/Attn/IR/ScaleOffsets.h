//===- ScaleOffsets.h - Where kernels store scales in tiles -----*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_SCALEOFFSETS_H
#define ATTN_DIALECT_ATTN_IR_SCALEOFFSETS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn {

/// Returns the row that a query's scales have in the matrix of all tokens, i64:
/// batches of `queries` queries are one behind the other. Without `query` that
/// of the first one.
Value emitScaleRow(ImplicitLocOpBuilder &b, Value batch, Value queries,
                   Value query);

/// Returns the column of that matrix for a group of a head's columns, i64:
/// heads are beside each other, with `groups` columns each.
Value emitScaleColumn(ImplicitLocOpBuilder &b, Value head, Value groups,
                      Value group);

/// Emits getScaleTileOffset of a row and a column, all i64.
Value emitScaleTileOffset(ImplicitLocOpBuilder &b, Value row, Value column,
                          Value padded);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_SCALEOFFSETS_H
