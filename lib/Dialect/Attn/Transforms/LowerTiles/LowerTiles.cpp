//===- LowerTiles.cpp - The pass attn-lower-tiles -------------------------===//
//
// Walks a kernel once, in order, and puts the instructions of one thread beside
// each op on tiles. Structured control flow gets one carried value for each
// register. Everything replaced is erased at the end, users before definitions.
//
//===----------------------------------------------------------------------===//

#include "TileLowering.h"
#include "attn/Dialect/Attn/IR/Rung.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNLOWERTILESPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

LogicalResult TileLowering::lowerBlock(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block))
    if (failed(lowerOp(&op)))
      return failure();
  return success();
}

LogicalResult TileLowering::lowerOp(Operation *op) {
  for (Value operand : op->getOperands())
    if ((isa<BufferType>(operand.getType()) && !buffers.contains(operand)) ||
        (isa<GlobalType>(operand.getType()) && !views.contains(operand)) ||
        (isa<MBarriersType>(operand.getType()) && !barriers.contains(operand)))
      return op->emitOpError("expected buffers and views made in the kernel, "
                             "got one from elsewhere of type ")
             << operand.getType();
  // Ops that stay, with their regions or operands rewritten.
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return lowerIf(branch);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return lowerFor(loop);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return lowerWhile(loop);
  if (auto rare = dyn_cast<RareOp>(op))
    return lowerRare(rare);
  if (auto yield = dyn_cast<scf::YieldOp>(op))
    return lowerYield(yield);

  bool onTiles = llvm::any_of(op->getResultTypes(), isRegisters);
  // The threads of other partitions have no place in the kernel's grid of
  // warps.
  if (partition != 0 &&
      (onTiles || llvm::any_of(op->getOperandTypes(), isRegisters) ||
       isa<CpAsyncOp, CopyOutOp, WgmmaOp, TurnStartOp, TurnTakeOp, TurnPassOp>(
           op)))
    return op->emitOpError("expected to stand in the first partition, whose "
                           "warps hold the register tiles");
  auto lower = [&](LogicalResult result) {
    dead.push_back(op);
    return result;
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](AllocOp o) { return lower(lowerAlloc(o)); })
      .Case([&](SlotOp o) { return lower(lowerSlot(o)); })
      .Case([&](TransposeOp o) {
        return lower(lowerView(o, o.getSource(), o.getType()));
      })
      .Case([&](ReinterpretOp o) {
        return lower(lowerView(o, o.getSource(), o.getType()));
      })
      .Case([&](LocalLoadOp o) { return lower(lowerLocalLoad(o)); })
      .Case([&](LocalStoreOp o) { return lower(lowerLocalStore(o)); })
      .Case([&](ScalarLoadOp o) { return lower(lowerScalarLoad(o)); })
      .Case([&](ScalarStoreOp o) { return lower(lowerScalarStore(o)); })
      .Case([&](ScalarSendOp o) { return lower(lowerScalarSend(o)); })
      .Case([&](GlobalViewOp o) { return lower(lowerGlobalView(o)); })
      .Case([&](GlobalLoadOp o) { return lower(lowerGlobalLoad(o)); })
      .Case([&](GlobalStoreOp o) { return lower(lowerGlobalStore(o)); })
      .Case([&](CpAsyncOp o) { return lower(lowerCpAsync(o)); })
      .Case([&](CpAsyncCommitOp o) {
        OpBuilder b(o);
        NVVM::CpAsyncCommitGroupOp::create(b, o.getLoc());
        return lower(success());
      })
      .Case([&](CpAsyncWaitOp o) {
        OpBuilder b(o);
        NVVM::CpAsyncWaitGroupOp::create(b, o.getLoc(), o.getPending());
        return lower(success());
      })
      .Case([&](CopyOutOp o) { return lower(lowerCopyOut(o)); })
      .Case([&](MmaOp o) { return lower(lowerMma(o)); })
      .Case([&](WgmmaOp o) { return lower(lowerWgmma(o)); })
      .Case([&](WgmmaWaitOp o) { return lower(lowerWgmmaWait(o)); })
      .Case([&](WgmmaResumeOp o) { return lower(lowerWgmmaResume(o)); })
      .Case([&](ExtendColumnsOp o) { return lower(lowerExtendColumns(o)); })
      .Case([&](WarpgroupIndexOp o) {
        o.getResult().replaceAllUsesWith(warpgroup());
        return lower(success());
      })
      .Case([&](NarrowOperandOp o) { return lower(lowerNarrowOperand(o)); })
      .Case([&](LocalTransposeOp o) { return lower(lowerLocalTranspose(o)); })
      .Case([&](TmaPrefetchOp o) { return lower(lowerTmaPrefetch(o)); })
      .Case([&](TmaLoadOp o) { return lower(lowerTmaLoad(o)); })
      .Case([&](TmaStoreOp o) { return lower(lowerTmaStore(o)); })
      .Case([&](TmaCommitOp o) { return lower(lowerTmaCommit(o)); })
      .Case([&](TmaWaitOp o) { return lower(lowerTmaWait(o)); })
      .Case([&](MBarrierAllocOp o) { return lower(lowerBarriersAlloc(o)); })
      .Case([&](MBarrierInitOp o) { return lower(lowerBarriersInit(o)); })
      .Case([&](MBarrierFenceInitOp o) { return lower(lowerFenceInit(o)); })
      .Case([&](MBarrierExpectTxOp o) { return lower(lowerExpectTx(o)); })
      .Case([&](MBarrierArriveOp o) { return lower(lowerArrive(o)); })
      .Case([&](MBarrierWaitOp o) { return lower(lowerWait(o)); })
      .Case([&](ClusterBarrierOp o) { return lower(lowerClusterBarrier(o)); })
      .Case([&](FenceProxyOp o) { return lower(lowerFenceProxy(o)); })
      .Case([&](NamedBarrierOp o) { return lower(lowerNamedBarrier(o)); })
      .Case<TurnStartOp, TurnTakeOp, TurnPassOp>(
          [&](auto o) { return lower(lowerTurn(o, o.getId())); })
      .Case([&](WarpSpecializeOp o) { return lower(lowerWarpSpecialize(o)); })
      .Case([&](ElectOp o) { return lower(lowerElect(o)); })
      .Case([&](ClusterLeaderOp o) { return lower(lowerClusterLeader(o)); })
      .Case([&](ReduceOp o) { return lower(lowerReduce(o)); })
      .Case([&](BroadcastOp o) { return lower(lowerBroadcast(o)); })
      .Case([&](ConvertLayoutOp o) { return lower(lowerConvert(o)); })
      .Case([&](ApplyMaskOp o) { return lower(lowerMask(o)); })
      .Case([&](MapElementsOp o) { return lower(lowerMap(o)); })
      .Case([&](arith::ConstantOp o) {
        return onTiles ? lower(lowerConstant(o)) : success();
      })
      .Case([&](tensor::SplatOp o) { return lower(lowerSplat(o)); })
      .Case([&](arith::TruncFOp o) {
        return onTiles ? lower(lowerTrunc(o)) : success();
      })
      .Case([&](arith::ExtFOp o) {
        return onTiles ? lower(lowerExt(o)) : success();
      })
      .Default([&](Operation *other) -> LogicalResult {
        if (onTiles) {
          bool elementwise = OpTrait::hasElementwiseMappableTraits(other) ||
                             isa<Exp2Op>(other);
          if (elementwise && other->getNumResults() == 1)
            return lower(lowerElementwise(other));
          return other->emitOpError("cannot be lowered from tiles to scalars");
        }
        // A scalar exp2 (log2, tanh) is the same instruction as a tile's.
        if (other->getNumOperands() == 1 && other->getNumResults() == 1) {
          ImplicitLocOpBuilder b(other->getLoc(), other);
          if (Value value = lowerApproximate(b, other, other->getOperand(0))) {
            other->getResult(0).replaceAllUsesWith(value);
            dead.push_back(other);
            return success();
          }
        }
        if (isa<AttnDialect>(other->getDialect()))
          return other->emitOpError(
              "expected an earlier pass to have replaced this op");
        for (Value operand : other->getOperands())
          if (isRegisters(operand.getType()))
            return other->emitOpError("cannot take a tile as operand");
        return success();
      });
}

LogicalResult TileLowering::run() {
  FailureOr<int64_t> count = getNumThreads(kernel);
  if (failed(count))
    return failure();
  threads = *count;
  partitionWarps = threads / 32;
  Block &entry = kernel.getBody().front();
  // A marker that keeps the entry's computations in front of everything else.
  OpBuilder b = OpBuilder::atBlockBegin(&entry);
  auto marker = arith::ConstantIntOp::create(b, kernel.getLoc(), 0, 1);
  entryEnd = marker;
  SmallVector<Block *> blocks;
  for (Block &block : kernel.getBody())
    blocks.push_back(&block);
  for (Block *block : blocks)
    for (Operation &op : llvm::make_early_inc_range(*block)) {
      if (&op == entryEnd)
        continue;
      if (failed(lowerOp(&op)))
        return failure();
    }
  // An old loop's arguments may be used by ops that moved out of it.
  for (Operation *op : dead)
    op->dropAllReferences();
  for (Operation *op : dead)
    op->erase();
  marker.erase();
  lowerTensorMaps();
  return success();
}

namespace {
struct AttnLowerTilesPass
    : attn::impl::AttnLowerTilesPassBase<AttnLowerTilesPass> {
  using Base::Base;
  void runOnOperation() override {
    for (gpu::GPUFuncOp kernel : getOperation().getOps<gpu::GPUFuncOp>()) {
      if (!kernel->hasAttr(AttnDialect::kWarpsAttr))
        continue;
      if (failed(TileLowering(kernel, clusterScope).run()))
        return signalPassFailure();
    }
    advanceRung(getOperation(), Rung::Thread);
  }
};
} // namespace
