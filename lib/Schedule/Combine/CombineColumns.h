//===- CombineColumns.h - Columns of a thread -------------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_COMBINE_COMBINECOLUMNS_H
#define ATTN_LIB_SCHEDULE_COMBINE_COMBINECOLUMNS_H

#include "attn/Planner/Facts/CombineFacts.h"

namespace mlir::attn {

/// Neighbouring columns that a thread owns, 1, 2 or 4: `most`, or as many as
/// both the rows of partial_o and the rows of o let one instruction move, all
/// with one scale.
int64_t getCombineColumns(const CombineFacts &facts, int64_t most);

/// Lanes of a warp.
inline constexpr int64_t kWarpLanes = 32;

/// Fails for groups of columns with a scale that no lanes of one warp own.
llvm::Error checkGroups(const CombineFacts &facts);

/// Neighbouring columns of a row, as many as the way says: their indices,
/// integers of one width, 32 or 64 bits each.
struct MergedColumns {
  Value batch, head, query, column;
  /// The first one of the partial results of a sequence in equal runs and their
  /// number, i32; null where the batch says which they are.
  Value firstPiece = {}, pieces = {};
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COMBINE_COMBINECOLUMNS_H
