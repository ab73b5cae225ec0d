//===- TileMerge.h - A tile's runs, merged by its last CTA ------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_COMBINE_TILEMERGE_H
#define ATTN_LIB_SCHEDULE_COMBINE_TILEMERGE_H

#include "attn/Schedule/Core/KernelContext.h"

namespace mlir::attn {

/// A tile whose runs of keys are CTAs of the launch.
struct MergedTile {
  /// Its number, i32, among `count` tiles.
  Value number;
  SizeExpr count;
  int64_t runs = 0;
  /// Those of them that were dealt to the tile, i32: the others have an LSE of
  /// -inf, and no CTA comes with them. Null for all.
  Value dealt;
  /// Its batch and head, the first one of `group` heads that are rows of their
  /// query.
  Value batch, head;
  int64_t group = 1;
  /// Its rows, i32, from `row` up to, but not including, `end`.
  Value row, end;
  /// Threads of a CTA.
  int64_t threads = 0;
};

/// Stands behind the stores of a CTA's partial results: counts it, and lets the
/// last one of the tile merge them.
void emitTileMerge(KernelContext &context, const MergedTile &tile);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COMBINE_TILEMERGE_H
