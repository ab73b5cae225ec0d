//===- RowMerge.h - Partial results of a row --------------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_COMBINE_ROWMERGE_H
#define ATTN_LIB_SCHEDULE_COMBINE_ROWMERGE_H

#include "CombineColumns.h"
#include "attn/Schedule/Core/KernelFrame.h"

namespace mlir::attn {

/// How threads walk partial results.
struct RowMergeWay {
  /// Neighbouring columns of a thread, as getCombineColumns says.
  int64_t columns;
  /// Partial results that a thread asks for together.
  int64_t together;
};

/// The way of the kernel of attn.combine.
RowMergeWay getRowMergeWay(const CombineFacts &facts);

/// Merges the partial results of these columns, in the order of the runs, and
/// stores them; whoever has the first column stores LSE. Returns the largest
/// size of the results, f32, if it is wanted, else null. One thread's code, at
/// the frame's builder: sums are the same in every kernel that merges and in
/// every way, so that results do not depend on which one does. Neighbouring
/// threads have neighbouring columns, and warps whose columns are of one row
/// are there with all lanes.
Value emitRowMerge(KernelFrame &frame, const CombineFacts &facts,
                   RowMergeWay way, const MergedColumns &place);

/// Lets what threads have found, numbers as emitRowMerge returns, join that of
/// amax. All threads of a CTA come to it.
void emitMergedAmax(KernelFrame &frame, Value largest);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COMBINE_ROWMERGE_H
