//===- WorkSource.h - Which work a CTA does ---------------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_CORE_WORKSOURCE_H
#define ATTN_LIB_SCHEDULE_CORE_WORKSOURCE_H

#include "RowViews.h"

namespace mlir::attn {

/// Deals the tiles of a kernel to its CTAs. Whoever emits a tile gets its place
/// and does not know in which order tiles are dealt.
class WorkSource {
public:
  virtual ~WorkSource() = default;
  /// Emits where the tile of this CTA is.
  virtual TileCoordinates emitTile() = 0;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_CORE_WORKSOURCE_H
