//===- RegionPaths.cpp - How control passes through regions ---------------===//

#include "attn/Analysis/Flow/RegionPaths.h"

using namespace mlir;
using namespace mlir::attn;

bool attn::runsInSomeThreads(Operation *op) {
  return isa<ElectOp, ClusterLeaderOp>(op);
}

static bool hasRegionsOfOneBlock(Operation *op) {
  return llvm::all_of(op->getRegions(), [](Region &region) {
    return region.empty() || region.hasOneBlock();
  });
}

bool attn::isBranch(Operation *op) {
  auto branch = dyn_cast<RegionBranchOpInterface>(op);
  // The partitions of a kernel all run.
  if (!branch || isa<WarpSpecializeOp>(op) || branch.hasLoop() ||
      !hasRegionsOfOneBlock(op))
    return false;
  return llvm::all_of(op->getRegions(), [&](Region &region) {
    SmallVector<RegionSuccessor> successors;
    if (!region.empty())
      branch.getSuccessorRegions(region, successors);
    return llvm::all_of(successors, [](const RegionSuccessor &successor) {
      return successor.isParent();
    });
  });
}

bool attn::maySkipRegions(Operation *branch) {
  if (runsInSomeThreads(branch))
    return false;
  SmallVector<RegionSuccessor> successors;
  cast<RegionBranchOpInterface>(branch).getSuccessorRegions(
      RegionBranchPoint::parent(), successors);
  return llvm::any_of(successors, [](const RegionSuccessor &successor) {
    return successor.isParent();
  });
}

bool attn::isSequentialLoop(Operation *op) {
  return isa<LoopLikeOpInterface>(op) && isa<RegionBranchOpInterface>(op) &&
         !op->hasTrait<OpTrait::HasParallelRegion>() &&
         hasRegionsOfOneBlock(op);
}

void attn::forEachPassedOn(
    RegionBranchOpInterface op,
    llvm::function_ref<void(OpOperand &from, ArrayRef<Value> to)> visit) {
  RegionBranchSuccessorMapping mapping;
  op.getSuccessorOperandInputMapping(mapping);
  auto visitOperands = [&](Operation *from) {
    for (OpOperand &operand : from->getOpOperands())
      if (auto found = mapping.find(&operand); found != mapping.end())
        visit(operand, found->second);
  };
  visitOperands(op);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      if (!block.empty())
        visitOperands(&block.back());
}
