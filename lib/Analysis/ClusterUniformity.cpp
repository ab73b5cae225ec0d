//===- ClusterUniformity.cpp - What all CTAs of a cluster share -----------===//
//
// Forward from the values that may differ, along uses, until nothing is added.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/ClusterUniformity.h"

using namespace mlir;
using namespace mlir::attn;

/// True if the results of `op` are the same wherever its operands are.
static bool isFunctionOfOperands(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>())
    return true;
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    return !load.getVolatile_() &&
           load.getOrdering() == LLVM::AtomicOrdering::not_atomic &&
           load.getAddr().getType().getAddressSpace() ==
               unsigned(NVVM::NVVMMemorySpace::Global);
  if (isa<gpu::GridDimOp, gpu::BlockDimOp, gpu::ClusterDimOp, gpu::ClusterIdOp>(
          op))
    return true;
  return isa<arith::ArithDialect, math::MathDialect, LLVM::LLVMDialect>(
             op->getDialect()) &&
         op->getNumRegions() == 0 && op->getNumOperands() != 0 &&
         isMemoryEffectFree(op);
}

/// The operands that decide how often the regions of `op` run in all; nothing
/// if that is not known.
static std::optional<SmallVector<Value>> getControls(Operation *op) {
  if (isa<WarpSpecializeOp, ElectOp>(op))
    return SmallVector<Value>();
  if (auto loop = dyn_cast<TileLoopOp>(op))
    return SmallVector<Value>{loop.getCount()};
  // The other bounds only say which of the blocks need which mask.
  if (auto loop = dyn_cast<KVLoopOp>(op))
    return SmallVector<Value>{loop.getBegin(), loop.getEnd()};
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return SmallVector<Value>{loop.getLowerBound(), loop.getUpperBound(),
                              loop.getStep()};
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return SmallVector<Value>{branch.getCondition()};
  return std::nullopt;
}

ClusterUniformity::ClusterUniformity(gpu::GPUFuncOp kernel) : kernel(kernel) {
  kernel.getBody().walk([&](Operation *op) {
    if (op->getNumRegions() != 0 && getControls(op))
      return;
    if (op->getNumRegions() == 0 && isFunctionOfOperands(op))
      return;
    for (Value result : op->getResults())
      add(result, op);
    for (Region &region : op->getRegions())
      for (Value argument : region.getArguments())
        add(argument, op);
  });
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Operation *source = sources.lookup(value);
    for (OpOperand &use : value.getUses())
      propagate(use, source);
  }
}

void ClusterUniformity::add(Value value, Operation *source) {
  if (sources.try_emplace(value, source).second)
    worklist.push_back(value);
}

void ClusterUniformity::propagate(OpOperand &use, Operation *source) {
  Operation *op = use.getOwner();
  // What a loop carries by its position, from before it and from its end.
  auto addCarried = [&](Operation *loop, unsigned position) {
    add(loop->getResult(position), source);
    Block &body = loop->getRegion(0).front();
    unsigned first = body.getNumArguments() - loop->getNumResults();
    add(body.getArgument(first + position), source);
  };
  if (op->hasTrait<OpTrait::IsTerminator>()) {
    Operation *parent = op->getParentOp();
    if (isa<TileLoopOp, KVLoopOp, scf::ForOp>(parent))
      addCarried(parent, use.getOperandNumber());
    else if (parent->getNumResults() > use.getOperandNumber())
      add(parent->getResult(use.getOperandNumber()), source);
    return;
  }
  if (isa<TileLoopOp, KVLoopOp, scf::ForOp>(op)) {
    unsigned controls = op->getNumOperands() - op->getNumResults();
    if (use.getOperandNumber() >= controls)
      return addCarried(op, use.getOperandNumber() - controls);
    // A cluster's tiles are dealt to all of its CTAs, whatever hands them over.
    if (auto loop = dyn_cast<TileLoopOp>(op);
        loop && use.get() != loop.getCount())
      return;
    for (Value argument : op->getRegion(0).getArguments())
      add(argument, source);
  }
  for (Value result : op->getResults())
    add(result, source);
}

Operation *ClusterUniformity::getControlSource(Operation *op) const {
  for (Operation *parent = op->getParentOp(); parent && parent != kernel;
       parent = parent->getParentOp()) {
    std::optional<SmallVector<Value>> controls = getControls(parent);
    if (!controls)
      return parent;
    for (Value control : *controls)
      if (Operation *source = getSource(control))
        return source;
  }
  return nullptr;
}
