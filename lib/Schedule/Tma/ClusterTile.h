//===- ClusterTile.h - Tiles of the CTAs of a cluster -----------*- C++ -*-===//
//
// The CTAs of a cluster take neighbouring tiles of one head and walk the same
// blocks of keys, those that some of them needs, so that they can load each
// block together. Each computes with those that it needs itself.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_TMA_CLUSTERTILE_H
#define ATTN_LIB_SCHEDULE_TMA_CLUSTERTILE_H

#include "attn/Schedule/Kernel/EmitBlockBounds.h"

namespace mlir::attn {

/// This CTA's part of the tiles that its cluster has at a time.
struct ClusterTile {
  /// First row of the CTA's tile, i32.
  Value row;
  /// First row of the first CTA's tile.
  Value firstRow;
  /// The blocks of keys that the cluster walks, i32, as for attn.kv_loop.
  Value begin, end;
  /// The CTA's own blocks: a part of the others, empty if the tile is beyond
  /// the last query.
  BlockBounds bounds;
  /// Blocks behind and in front of the CTA's own ones that it skips, i32; null
  /// where there cannot be any.
  Value skippedBehind, skippedInFront;
};

/// Emits tile `place` (0 to `ctas` - 1) of the `ctas` tiles from row `firstRow`
/// on; `place` is null if a cluster is one CTA. The other operands are those of
/// emitBlockBounds.
ClusterTile emitClusterTile(KernelContext &context, const BoundedTiles &tiles,
                            Value firstRow, Value place, int64_t ctas,
                            int64_t blockM, int64_t blockN);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_TMA_CLUSTERTILE_H
