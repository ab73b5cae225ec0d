//===- LowerTiles.cpp - The pass attn-lower-tiles -------------------------===//
//
// What becomes of one op: what the table of lowerings says, or, for ops on
// tiles that are not in it, the op on each element.
//
//===----------------------------------------------------------------------===//

#include "PartitionLowering.h"
#include "attn/Dialect/Attn/IR/KernelAttrs.h"
#include "attn/Dialect/Attn/IR/Rung.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNLOWERTILESPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

LogicalResult PartitionLowering::lowerBlock(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block))
    if (failed(lowerOp(&op)))
      return failure();
  return success();
}

/// Refuses buffers and views of which the lowering knows nothing.
static LogicalResult checkMemory(const KernelLowering &kernel, Operation *op) {
  for (Value operand : op->getOperands()) {
    Type type = operand.getType();
    if ((isa<BufferType>(type) && !kernel.buffers.contains(operand)) ||
        (isa<GlobalType>(type) && !kernel.views.contains(operand)) ||
        (isa<MBarriersType>(type) && !kernel.barriers.contains(operand)))
      return op->emitOpError("expected buffers and views made in the kernel, "
                             "got one from elsewhere of type ")
             << type;
  }
  return success();
}

LogicalResult PartitionLowering::lowerOp(Operation *op) {
  if (failed(checkMemory(kernel, op)))
    return failure();
  bool onTiles = llvm::any_of(op->getResultTypes(), isRegisters);
  const LoweringTable::Entry *entry = kernel.table.find(op);
  if (entry && (onTiles || !entry->onTilesOnly)) {
    LogicalResult result = entry->lower(*this, op);
    // Behind the ops of its regions.
    if (entry->isReplaced)
      kernel.dead.push_back(op);
    return result;
  }
  if (entry)
    return success();
  if (onTiles) {
    if (isElementwiseOnTiles(op) && op->getNumResults() == 1) {
      kernel.dead.push_back(op);
      return lowerElementwise(op);
    }
    return op->emitOpError("cannot be lowered from tiles to scalars");
  }
  if (auto store = dyn_cast<LLVM::StoreOp>(op);
      store && store->hasAttr(kKeptAttr)) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    storeKept(b, store.getValue(), store.getAddr());
    kernel.dead.push_back(op);
    return success();
  }
  // A scalar exp2 (log2, tanh) is the same instruction as a tile's.
  if (op->getNumOperands() == 1 && op->getNumResults() == 1) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    if (Value value = lowerApproximate(b, op, op->getOperand(0))) {
      op->getResult(0).replaceAllUsesWith(value);
      kernel.dead.push_back(op);
      return success();
    }
  }
  if (isa<AttnDialect>(op->getDialect()))
    return op->emitOpError("expected an earlier pass to have replaced this op");
  if (llvm::any_of(op->getOperandTypes(), isRegisters))
    return op->emitOpError("cannot take a tile as operand");
  return success();
}

namespace {
struct AttnLowerTilesPass
    : attn::impl::AttnLowerTilesPassBase<AttnLowerTilesPass> {
  using Base::Base;
  void runOnOperation() override {
    for (gpu::GPUFuncOp kernel : getOperation().getOps<gpu::GPUFuncOp>()) {
      if (!isTileKernel(kernel))
        continue;
      if (failed(KernelLowering(kernel, clusterScope).run()))
        return signalPassFailure();
    }
    advanceRung(getOperation(), Rung::Thread);
  }
};
} // namespace
