//===- EmitBlockBounds.h - A kernel finds the keys of a tile ----*- C++ -*-===//

#ifndef ATTN_SCHEDULE_KERNEL_EMITBLOCKBOUNDS_H
#define ATTN_SCHEDULE_KERNEL_EMITBLOCKBOUNDS_H

#include "attn/Dialect/Attn/IR/BlockBounds.h"
#include "attn/Schedule/Core/KernelContext.h"
#include "attn/Schedule/Kernel/RowViews.h"

namespace mlir::attn {

/// The numbers that key_range yields, i32; null where it does not.
struct RangeValues {
  Value begin, end, fullBegin, fullEnd;
};

/// Blocks of keys that a list names, and those of them that no mask hides any
/// of, i32; null without a list.
struct ListedBlocks {
  Value all, full;
};

/// Bounds as i32 values; null where the mask has none.
struct BlockBounds : BlockBoundsOf<Value> {
  /// The keys that key_range leaves to the tile.
  RangeValues range;
};

/// Where the tiles are that a kernel finds bounds for.
struct BoundedTiles {
  /// The batch and the head, or the first of `members` heads whose rows are
  /// those of their query, `group` to each.
  const TileCoordinates &at;
  /// The lengths of the sequence, any of which may be 0.
  Value queries, keys;
  int64_t group = 1, members = 1;
  /// The keys that key_range leaves to the tile, where its place has them.
  RangeValues range = {};
  /// Where keys are those of blocks that a list names, these.
  ListedBlocks listed = {};
  /// Places from the first one on that no mask hides any of, where it may hide
  /// those behind and bounds do not say so, i32; else null.
  Value whole = {};
};

/// Emits the bounds of the tile of `blockM` rows from `row` on.
BlockBounds emitBlockBounds(KernelContext &context, const BoundedTiles &tiles,
                            Value row, int64_t blockM, int64_t blockN);

/// Narrows the bounds to share `index` of `count`: as many blocks as in any
/// other share, or one more.
void emitShare(KernelContext &context, BlockBounds &bounds, Value index,
               int64_t count);

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_KERNEL_EMITBLOCKBOUNDS_H
