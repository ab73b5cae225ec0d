//===- MergedCombine.h - A combine that a kernel may do ---------*- C++ -*-===//

#ifndef ATTN_SCHEDULE_CORE_MERGEDCOMBINE_H
#define ATTN_SCHEDULE_CORE_MERGEDCOMBINE_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// Finds the combine whose work a kernel of `op` may do: the only one of its
/// partial results, which are in memory of memref.alloc, behind it in its
/// block, if the place of `op` lets it write the results. Null if there is
/// none.
CombineOp findMergedCombine(AttentionOp op);

/// Returns what merges the runs of a plan: a second kernel if it has no such
/// parameter.
CombineWay getCombineWay(PlanAttrInterface plan);

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_CORE_MERGEDCOMBINE_H
