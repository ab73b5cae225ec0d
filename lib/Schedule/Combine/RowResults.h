//===- RowResults.h - What becomes of merged results ------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_COMBINE_ROWRESULTS_H
#define ATTN_LIB_SCHEDULE_COMBINE_ROWRESULTS_H

#include "CombineColumns.h"
#include "attn/Schedule/Core/KernelFrame.h"

namespace mlir::attn {

/// Changes f32 results of the columns from `place` on as out_mod says, and
/// multiplies them by the factor of results.
void changeResults(KernelFrame &frame, const CombineFacts &facts,
                   const MergedColumns &place,
                   llvm::MutableArrayRef<Value> values);

/// Rounds f32 results to 8 bits. Returns pairs of them, i16.
SmallVector<Value> narrowResults(KernelFrame &frame, const CombineFacts &facts,
                                 ArrayRef<Value> values);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COMBINE_ROWRESULTS_H
