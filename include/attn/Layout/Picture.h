//===- Picture.h - Layouts as text grids and SVG ----------------*- C++ -*-===//
//
// Draws a layout element by element, as docs/Layouts.md explains.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAYOUT_PICTURE_H
#define ATTN_LAYOUT_PICTURE_H

#include "attn/Layout/SharedLayout.h"
#include "attn/Layout/TileLayout.h"

namespace mlir::attn {

enum class PictureFormat { Text, Svg };

/// Draws who holds each element: `T5:r3` is register 3 of thread 5 (thread =
/// 32 * warp + lane), followed by `*` when other threads hold copies. Rows are
/// the first dimension, columns the second; an error for a rank above two.
llvm::Error printPicture(const TileLayout &layout, PictureFormat format,
                         llvm::raw_ostream &os);
/// Draws where each element lives: `offset/bank`, in bytes.
llvm::Error printPicture(const SharedLayout &layout, PictureFormat format,
                         llvm::raw_ostream &os);

} // namespace mlir::attn

#endif // ATTN_LAYOUT_PICTURE_H
