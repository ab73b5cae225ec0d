//===- ClusterUniformity.cpp - What all CTAs of a cluster share -----------===//
//
// Forward from the values that may differ, along uses, until nothing is added.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/Flow/ClusterUniformity.h"
#include "attn/Analysis/Flow/RegionPaths.h"
#include "mlir/IR/Matchers.h"

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
  if (isa<ArithmeticOpInterface, FindKeyOp, InOrderOp>(op))
    return op->getNumOperands() != 0;
  if (isa<gpu::GridDimOp, gpu::BlockDimOp, gpu::ClusterDimOp, gpu::ClusterIdOp>(
          op))
    return true;
  return isa<arith::ArithDialect, math::MathDialect, LLVM::LLVMDialect>(
             op->getDialect()) &&
         op->getNumRegions() == 0 && op->getNumOperands() != 0 &&
         isMemoryEffectFree(op);
}

/// True for the number of the cluster in the grid: that of the CTA along x,
/// along which clusters lie, divided by what is a number of whole clusters.
static bool isClusterNumber(Operation *op, gpu::GPUFuncOp kernel) {
  std::optional<ArrayRef<int32_t>> size = kernel.getKnownClusterSize();
  auto divide = dyn_cast<arith::DivUIOp>(op);
  APInt by;
  if (!divide || !size || (*size)[1] != 1 || (*size)[2] != 1 ||
      !matchPattern(divide.getRhs(), m_ConstantInt(&by)) ||
      !by.isStrictlyPositive() || by.getSExtValue() % size->front() != 0)
    return false;
  Value number = divide.getLhs();
  while (Operation *cast = number.getDefiningOp()) {
    if (!isa<arith::IndexCastOp, arith::IndexCastUIOp>(cast))
      break;
    number = cast->getOperand(0);
  }
  auto block = number.getDefiningOp<gpu::BlockIdOp>();
  return block && block.getDimension() == gpu::Dimension::x;
}

/// The operands that decide how often the regions of `op` run in all; nothing
/// if that is not known. Another operand that is not passed on only says which
/// block needs which mask, or how the CTAs of a cluster learn of their tiles,
/// which are the same.
static std::optional<SmallVector<Value>> getControls(Operation *op) {
  auto branch = dyn_cast<RegionBranchOpInterface>(op);
  // One CTA runs what is the leader's.
  if (!branch || isa<ClusterLeaderOp>(op))
    return std::nullopt;
  SmallVector<Value> controls;
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op)) {
    for (auto bounds : {loop.getLoopLowerBounds(), loop.getLoopUpperBounds(),
                        loop.getLoopSteps()}) {
      if (!bounds)
        return std::nullopt;
      for (OpFoldResult bound : *bounds)
        if (auto value = dyn_cast<Value>(bound))
          controls.push_back(value);
    }
    return controls;
  }
  RegionBranchSuccessorMapping mapping;
  branch.getSuccessorOperandInputMapping(mapping, RegionBranchPoint::parent());
  for (OpOperand &operand : op->getOpOperands())
    if (!mapping.contains(&operand))
      controls.push_back(operand.get());
  return controls;
}

ClusterUniformity::ClusterUniformity(gpu::GPUFuncOp kernel) : kernel(kernel) {
  kernel.getBody().walk([&](RegionBranchOpInterface op) {
    forEachPassedOn(op, [&](OpOperand &from, ArrayRef<Value> to) {
      flow[&from].assign(to.begin(), to.end());
    });
  });
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
  if (isClusterNumber(op, kernel))
    return;
  if (auto targets = flow.find(&use); targets != flow.end()) {
    for (Value target : targets->second)
      add(target, source);
    return;
  }
  if (op->getNumRegions() != 0) {
    if (auto controls = getControls(op);
        controls && !llvm::is_contained(*controls, use.get()))
      return;
    for (Region &region : op->getRegions())
      for (Value argument : region.getArguments())
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
