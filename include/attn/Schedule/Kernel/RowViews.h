//===- RowViews.h - Views of the rows of a head -----------------*- C++ -*-===//

#ifndef ATTN_SCHEDULE_KERNEL_ROWVIEWS_H
#define ATTN_SCHEDULE_KERNEL_ROWVIEWS_H

#include "attn/Schedule/Core/KernelContext.h"

namespace mlir::attn {

/// Where a tile of queries is.
struct TileCoordinates {
  /// With heads as rows of their query `head` is the first one of the group.
  Value tile, head, kvHead, batch;
  /// The run of keys, i32; null where keys are whole or there is one run.
  Value split;
  /// How many runs its sequence has, i32; null where the problem says it.
  Value runs;
  /// The number of keys that the batch is said to have, where the place has
  /// it; else null.
  Value keys;
  /// The number of a piece of the sequence, which is where its results are
  /// among partial ones, its first block of keys and how many it has, i32.
  /// Null where tiles are no pieces.
  Value piece, firstBlock, blocks;
  /// True of a piece, i1, that has the sequence's last block.
  Value isRest;
};

/// Rows of one head of a tensor.
struct HeadRows {
  Value head, batch;
  /// The first row in packed tensors, i64; null where the batch says it.
  Value start;
  /// The number of rows, i32.
  Value rows;
  /// Rows of a query, of which the first `members` are heads from `head` on.
  int64_t group = 1, members = 1;
  /// Tiles name no row from `rows` on.
  bool isInBounds = false;
  /// Dimensions in front of the batch, 0 or 1, and the index along it, i32;
  /// null for the first one.
  unsigned lead = 0;
  Value leadIndex = {};
  /// Columns of rank-4 tensors: `columns` from `firstColumn` on, all if 0.
  int64_t firstColumn = 0, columns = 0;
  /// Where the tensor's columns are in parts of `partColumns`: the one whose
  /// columns are meant, i32; null for the first one.
  Value part = {};
  int64_t partColumns = 0;
  /// Of a rank-4 tensor column `firstColumn` alone, as values of rows.
  bool isOneColumn = false;
  /// So many columns from `firstColumn` on are one integer of 32 bits, as
  /// values of rows; all distances are multiples of it.
  int64_t inWord = 0;
  /// The row of the batch that is the first one, i32; null for the first one of
  /// the batch.
  Value origin = {};
};

/// The key head of a query head: query heads of a key head stand next to each
/// other.
Value emitKVHead(KernelContext &context, Value head);

/// How many rows of a group exist, for attn.global_view; null if all do.
IntegerAttr getPresentRows(KernelContext &context, const HeadRows &rows);

/// A view of rows of a rank-4 tensor, or of lse.
Value emitHeadRows(KernelContext &context, StringRef name,
                   const HeadRows &rows);

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_KERNEL_ROWVIEWS_H
