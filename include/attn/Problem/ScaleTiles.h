//===- ScaleTiles.h - Scales of results in tiles ----------------*- C++ -*-===//
//
// Scales of 8 bits may be a matrix of all tokens by all heads' groups of
// columns, in the tiles that block-scaled products read (128x4). Element (row,
// column) is in the tile that its row and column are in, of which those of a
// row are neighbours, and each row is followed by the one 32 rows below.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PROBLEM_SCALETILES_H
#define ATTN_PROBLEM_SCALETILES_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>

namespace mlir::attn {

/// Rows and columns of a tile, elements of one, and the rows of it whose
/// elements begin 16 bytes apart.
inline constexpr int64_t kScaleTileRows = 128, kScaleTileColumns = 4,
                         kScaleTileSize = kScaleTileRows * kScaleTileColumns,
                         kScaleTileLines = 32;

/// Returns true if scales of results with that shape are in tiles.
inline bool isInScaleTiles(llvm::ArrayRef<int64_t> shape) {
  return shape.size() == 2;
}

/// Returns the offset of an element of a matrix whose rows are padded to
/// `padded` columns.
inline int64_t getScaleTileOffset(int64_t row, int64_t column, int64_t padded) {
  return row / kScaleTileRows * kScaleTileRows * padded +
         column / kScaleTileColumns * kScaleTileSize +
         row % kScaleTileLines * (kScaleTileSize / kScaleTileLines) +
         row % kScaleTileRows / kScaleTileLines * kScaleTileColumns +
         column % kScaleTileColumns;
}

} // namespace mlir::attn

#endif // ATTN_PROBLEM_SCALETILES_H
