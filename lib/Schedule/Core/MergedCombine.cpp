//===- MergedCombine.cpp - A combine that a kernel may do -----------------===//

#include "attn/Schedule/Core/MergedCombine.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::attn;

/// The memory that a value is a view of.
static Value getBase(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  return value;
}

/// True if an op does no more than get memory, so that nothing that stands
/// behind it sees what stands in front of it.
static bool isPassive(Operation &op) {
  if (isMemoryEffectFree(&op))
    return true;
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects =
      getEffectsRecursively(&op);
  return effects && llvm::all_of(*effects, [](const auto &effect) {
           return isa<MemoryEffects::Allocate>(effect.getEffect());
         });
}

/// True if a kernel at the place of `op` may write what `combine`, behind it in
/// its block, writes: it is there already, no op between the two looks at
/// memory, and it is nothing that CTAs which still run may read.
static bool mayWriteEarly(AttentionOp op, CombineOp combine) {
  DominanceInfo dominance;
  llvm::SetVector<Value> used(combine->operand_begin(), combine->operand_end());
  for (Region &region : combine->getRegions())
    getUsedValuesDefinedAbove(region, used);
  if (!llvm::all_of(used, [&](Value value) {
        return dominance.properlyDominates(value, op);
      }))
    return false;
  for (Operation *each = op->getNextNode(); each != combine;
       each = each->getNextNode())
    if (!isPassive(*each))
      return false;
  llvm::SetVector<Value> read(op->operand_begin(), op->operand_end());
  for (Region &region : op->getRegions())
    getUsedValuesDefinedAbove(region, read);
  auto isRead = [&](Value written) {
    return llvm::any_of(
        read, [&](Value each) { return getBase(each) == getBase(written); });
  };
  return llvm::none_of(combine.getDpsInits(), isRead);
}

CombineOp attn::findMergedCombine(AttentionOp op) {
  SmallVector<CombineOp> found;
  for (Operation *user : op.getO().getUsers())
    if (auto combine = dyn_cast<CombineOp>(user))
      found.push_back(combine);
  if (found.size() != 1)
    return {};
  CombineOp combine = found.front();
  bool isWhole = op.getO().getDefiningOp<memref::AllocOp>() &&
                 op.getLse().getDefiningOp<memref::AllocOp>() &&
                 combine.getPartialO() == op.getO() &&
                 combine.getPartialLse() == op.getLse() &&
                 combine.getPartialScales() == op.getOScales();
  bool isBehind =
      combine->getBlock() == op->getBlock() && op->isBeforeInBlock(combine);
  return isWhole && isBehind && mayWriteEarly(op, combine) ? combine
                                                           : CombineOp();
}

CombineWay attn::getCombineWay(PlanAttrInterface plan) {
  for (const PlanParameterInfo &each : plan.listParameters())
    if (each.name == "combine")
      return symbolizeCombineWay(each.value).value_or(CombineWay::Kernel);
  return CombineWay::Kernel;
}
