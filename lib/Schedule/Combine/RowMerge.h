//===- RowMerge.h - Partial results of a row --------------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_COMBINE_ROWMERGE_H
#define ATTN_LIB_SCHEDULE_COMBINE_ROWMERGE_H

#include "CombineColumns.h"
#include "attn/Schedule/Core/KernelFrame.h"

namespace mlir::attn {

/// Neighbouring columns of a row, as many as getCombineColumns says: their
/// indices, integers of one width, 32 or 64 bits each.
struct MergedColumns {
  Value batch, head, query, column;
};

/// Merges the partial results of these columns, in the order of the runs, and
/// stores them; whoever has the first column stores LSE. One thread's code, at
/// the frame's builder: the same for every kernel that merges, so that results
/// do not depend on which one does.
void emitRowMerge(KernelFrame &frame, const CombineFacts &facts,
                  const MergedColumns &place);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COMBINE_ROWMERGE_H
