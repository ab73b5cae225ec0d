//===- Rows.h - Which registers hold a row ----------------------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_ROWS_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_ROWS_H

#include "attn/Layout/TileLayout.h"
#include "mlir/IR/Operation.h"

namespace mlir::attn::lowering {

/// Returns the coordinate along `dim` of each register in lane 0 of warp 0.
SmallVector<int64_t> registerCoordinates(const TileLayout &layout,
                                         unsigned dim);

/// Finds for each register of `of` the register of `in` with the same row, or
/// with the column `dim` = 1 of `of` that is element of `in`.
FailureOr<SmallVector<unsigned>> matchRows(Operation *op, const TileLayout &of,
                                           const TileLayout &in,
                                           unsigned dim = 0);

} // namespace mlir::attn::lowering

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_ROWS_H
