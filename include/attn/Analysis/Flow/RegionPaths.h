//===- RegionPaths.h - How control passes through regions -------*- C++ -*-===//
//
// Analyses follow values and states through the regions of ops, and ask the ops
// how control flows there (RegionBranchOpInterface, LoopLikeOpInterface). Here
// is what they have in common.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_FLOW_REGIONPATHS_H
#define ATTN_ANALYSIS_FLOW_REGIONPATHS_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// True for ops whose region is run by some of the threads or CTAs that come to
/// them, while the others go on.
bool runsInSomeThreads(Operation *op);

/// True for ops that run one of their regions once, or none, and go on behind
/// it. Regions have one block.
bool isBranch(Operation *op);

/// True if a branch may run none of its regions. Ops for which
/// `runsInSomeThreads` holds do not count: some thread runs theirs.
bool maySkipRegions(Operation *branch);

/// True for loops that run one iteration after the other, with regions of one
/// block.
bool isSequentialLoop(Operation *op);

/// Calls `visit` for each operand through which `op` passes a value on, with
/// the block arguments and results that may receive it: first operands of `op`,
/// then those of its regions' terminators.
void forEachPassedOn(
    RegionBranchOpInterface op,
    llvm::function_ref<void(OpOperand &from, ArrayRef<Value> to)> visit);

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_FLOW_REGIONPATHS_H
