//===- RowResults.h - What becomes of merged results ------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_COMBINE_ROWRESULTS_H
#define ATTN_LIB_SCHEDULE_COMBINE_ROWRESULTS_H

#include "CombineColumns.h"
#include "attn/Schedule/Core/KernelFrame.h"

namespace mlir::attn {

/// Changes f32 results of the columns from `place` on as out_mod says, and then
/// multiplies them by the factor of results, if it was left out before and is
/// not left for the scales of groups. Returns their largest size in front of
/// that factor, f32, if it is wanted, else null.
Value changeResults(KernelFrame &frame, const CombineFacts &facts,
                    const MergedColumns &place,
                    llvm::MutableArrayRef<Value> values);

/// Rounds f32 results to 8 bits, or to f4E2M1FN, and stores them at `address`,
/// one after the other.
void storeNarrow(KernelFrame &frame, const CombineFacts &facts,
                 ArrayRef<Value> values, Value address);

/// The scale of a group of columns: as it is stored, and what the columns are
/// multiplied by for it, f32.
struct GroupScale {
  Value stored, inverse;
};

/// Returns the scale of columns whose largest number in size is `most`, before
/// the factor that is left for scales of groups.
GroupScale makeGroupScale(KernelFrame &frame, const CombineFacts &facts,
                          Value most);

/// Returns the offset of the scale of the columns at `place` in tiles 128x4,
/// i64.
Value getTiledOffset(KernelFrame &frame, const CombineFacts &facts,
                     const MergedColumns &place);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COMBINE_ROWRESULTS_H
