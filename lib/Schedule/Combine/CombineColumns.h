//===- CombineColumns.h - Columns of a thread -------------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_COMBINE_COMBINECOLUMNS_H
#define ATTN_LIB_SCHEDULE_COMBINE_COMBINECOLUMNS_H

#include "attn/Schedule/Problem/CombineFacts.h"

namespace mlir::attn {

/// Neighbouring columns that a thread owns, 1, 2 or 4: `most`, or as many as
/// both the rows of partial_o and the rows of o let one instruction move.
int64_t getCombineColumns(const CombineFacts &facts, int64_t most);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COMBINE_COMBINECOLUMNS_H
