//===- WarpSpecialize.cpp - Partitions of a CTA ---------------------------===//

#include "PartitionLowering.h"
#include "attn/Dialect/Attn/IR/KernelAttrs.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

int64_t lowering::getMostInstructionRegisters(gpu::GPUFuncOp kernel) {
  constexpr int64_t kMost = 128, kRegistersPerSM = 65536, kLeast = 154;
  std::optional<ArrayRef<int32_t>> block = kernel.getKnownBlockSize();
  bool isTight = block && kRegistersPerSM / countLaunched(*block) < kLeast;
  return isTight ? kMost / 2 : kMost;
}

/// CTAs of an SM, on all chips (CUDA programming guide, compute capabilities).
static constexpr int64_t kMostCTAsPerSM = 32;

/// The registers that each thread of a kernel has at its start, which ptxas
/// derives from the launch bounds (seen with ptxas 13.0): the file divided
/// among the threads of all CTAs that the kernel promises to fit on an SM,
/// rounded down to 8. Each quarter of an SM has a quarter of the file, so that
/// warps count as whole warpgroups. A kernel that states no bound gets that of
/// one CTA, because ptxas ignores setmaxnreg without any.
static FailureOr<int64_t> getLaunchRegisters(gpu::GPUFuncOp kernel,
                                             int64_t threads) {
  StringRef maxnreg = NVVM::NVVMDialect::getMaxnregAttrName();
  StringRef minctasm = NVVM::NVVMDialect::getMinctasmAttrName();
  if (auto bound = kernel->getAttrOfType<IntegerAttr>(maxnreg))
    return llvm::alignDown(bound.getInt(), 8);
  auto ctas = kernel->getAttrOfType<IntegerAttr>(minctasm);
  if (!ctas) {
    ctas = IntegerAttr::get(IntegerType::get(kernel.getContext(), 32), 1);
    kernel->setAttr(minctasm, ctas);
  }
  if (ctas.getInt() < 1 || ctas.getInt() > kMostCTAsPerSM)
    return kernel.emitOpError("expected '")
           << minctasm << "' from 1 to " << kMostCTAsPerSM << ", got "
           << ctas.getInt();
  int64_t warps = llvm::divideCeil(threads, 32) * ctas.getInt();
  return llvm::alignDown(
      kRegisterFile / (32 * llvm::alignTo(warps, kWarpgroupWarps)), 8);
}

namespace {

/// Warps of the CTA, one behind the other.
struct WarpRange {
  int64_t first, count;
};

/// Partitions that share a warpgroup, or one that has warpgroups of its own.
struct PartitionGroup {
  unsigned first, count;
};

} // namespace

static SmallVector<PartitionGroup> groupPartitions(WarpSpecializeOp op) {
  SmallVector<PartitionGroup> groups;
  for (unsigned index = 0; index < op.getPartitions().size(); ++index)
    if (op.getFirstWarp(index) % kWarpgroupWarps == 0)
      groups.push_back({index, 1});
    else
      ++groups.back().count;
  return groups;
}

/// Sends each warp that comes to the end of `from` to the block of its range,
/// in front of `behind`, to which all of them go then. The last range's takes
/// all other warps.
static SmallVector<Block *> dispatch(Location loc, Block *from, Block *behind,
                                     Value warp, ArrayRef<WarpRange> ranges) {
  OpBuilder b = OpBuilder::atBlockEnd(from);
  if (ranges.size() == 1) {
    cf::BranchOp::create(b, loc, behind);
    return {from};
  }
  SmallVector<Block *> blocks;
  for (size_t i = 0; i < ranges.size(); ++i) {
    blocks.push_back(b.createBlock(behind));
    cf::BranchOp::create(b, loc, behind);
  }
  b.setInsertionPointToEnd(from);
  if (ranges.size() == 2) {
    Value end = arith::ConstantIntOp::create(b, loc, ranges[1].first, 32);
    Value isFirst =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, warp, end);
    cf::CondBranchOp::create(b, loc, isFirst, blocks[0], blocks[1]);
    return blocks;
  }
  SmallVector<Block *> targets;
  SmallVector<int32_t> cases;
  for (auto [range, block] : llvm::zip(ranges.drop_back(), blocks))
    for (int64_t i = 0; i < range.count; ++i) {
      cases.push_back(range.first + i);
      targets.push_back(block);
    }
  cf::SwitchOp::create(b, loc, warp, blocks.back(), ValueRange(), cases,
                       targets, SmallVector<ValueRange>(targets.size()));
  return blocks;
}

/// Checks that the kernel has the threads of its partitions. A kernel that does
/// not state its threads gets these.
static LogicalResult checkThreads(WarpSpecializeOp op, gpu::GPUFuncOp kernel) {
  int32_t total = op.getTotalWarps() * 32;
  std::optional<ArrayRef<int32_t>> block = kernel.getKnownBlockSize();
  if (!block) {
    kernel.setKnownBlockSizeAttr(
        DenseI32ArrayAttr::get(kernel.getContext(), {total, 1, 1}));
    return success();
  }
  if (countLaunched(*block) == total)
    return success();
  return op.emitOpError("expected 'known_block_size' to be the ")
         << total << " threads of the partitions, got "
         << countLaunched(*block);
}

/// Checks that partitions share out no more registers than the CTA has at its
/// start, `launch` for each thread: setmaxnreg.inc would wait forever.
static LogicalResult checkPool(WarpSpecializeOp op, int64_t launch) {
  int64_t total = 0;
  for (auto [warps, registers] : llvm::zip(op.getWarps(), op.getRegisters()))
    total += warps * 32 * registers;
  int64_t pool = op.getTotalWarps() * 32 * launch;
  if (op.getPartitions().size() == 1 || total <= pool)
    return success();
  return op.emitOpError("expected at most ")
         << pool << " registers in all, " << launch
         << " for each thread that the launch starts, got " << total;
}

template <>
LogicalResult PartitionLowering::lower(WarpSpecializeOp op) {
  if (failed(checkThreads(op, kernel.func)))
    return failure();
  FailureOr<int64_t> launch =
      getLaunchRegisters(kernel.func, op.getTotalWarps() * 32);
  if (failed(launch) || failed(checkPool(op, *launch)))
    return failure();

  Location loc = op.getLoc();
  bool renews =
      op.getPartitions().size() > 1 && kernel.func->hasAttr(kRenewEntryAttr);
  Value own = kernel.uniformWarp();
  SmallVector<PartitionGroup> groups = groupPartitions(op);
  SmallVector<WarpRange> ranges;
  for (PartitionGroup group : groups) {
    int64_t first = op.getFirstWarp(group.first);
    ranges.push_back(
        {first, op.getFirstWarp(group.first + group.count) - first});
  }
  Block *start = op->getBlock();
  Block *behind = start->splitBlock(op->getIterator());
  SmallVector<Block *> blocks = dispatch(loc, start, behind, own, ranges);
  for (auto [group, block] : llvm::zip(groups, blocks)) {
    // Partitions that ask for the same keep what they start with.
    int64_t registers = op.getRegisters()[group.first];
    OpBuilder b(block->getTerminator());
    if (op.movesRegisters() && registers != *launch)
      NVVM::SetMaxRegisterOp::create(
          b, loc, registers,
          registers > *launch ? NVVM::SetMaxRegisterAction::increase
                              : NVVM::SetMaxRegisterAction::decrease);
    ranges.clear();
    for (unsigned index = group.first; index < group.first + group.count;
         ++index)
      ranges.push_back({op.getFirstWarp(index), op.getWarps()[index]});
    if (group.count > 1)
      block->getTerminator()->erase();
    SmallVector<Block *> bodies =
        group.count > 1 ? dispatch(loc, block, behind, own, ranges)
                        : SmallVector<Block *>{block};
    for (auto [offset, body] : llvm::enumerate(bodies)) {
      unsigned index = group.first + offset;
      PartitionLowering partition(kernel, op.getFirstWarp(index),
                                  op.getWarps()[index], /*isPartition=*/true,
                                  op.getTileGrid(index));
      ImplicitLocOpBuilder inner(loc, body->getTerminator());
      llvm::SaveAndRestore buffers(kernel.buffers);
      llvm::SaveAndRestore barriers(kernel.barriers);
      auto lower = [&] {
        return partition.lowerRegion(op.getPartitions()[index], inner);
      };
      if (failed(renews ? kernel.withPartitionEntry(inner, lower) : lower()))
        return failure();
    }
  }
  return success();
}

LogicalResult PartitionLowering::lowerRegion(Region &region,
                                             ImplicitLocOpBuilder &b) {
  Operation *yield = region.front().getTerminator();
  SmallVector<Operation *> ops;
  for (Operation &op : region.front().without_terminator())
    ops.push_back(&op);
  b.getInsertionBlock()->getOperations().splice(
      b.getInsertionPoint(), region.front().getOperations(),
      region.front().begin(), yield->getIterator());
  for (Operation *op : ops)
    if (failed(lowerOp(op)))
      return failure();
  return success();
}

/// True for a load that signals in other CTAs.
static bool crossesCTAs(Operation &op) {
  auto copy = cast<BulkCopyOpInterface>(op);
  auto fill = dyn_cast<ChannelUserOpInterface>(op);
  return copy.getMulticastCTAs() || (fill && fill.isFilledAtLeader());
}

/// True for a load of boxes, whose instruction can have a predicate.
static bool isLoad(Operation &op) {
  auto copy = dyn_cast<BulkCopyOpInterface>(op);
  return copy && copy.isBulkLoad();
}

/// True if one lane alone need not run more than instructions that can have a
/// predicate.
static bool waitsAndLoads(ElectOp op) {
  bool loads = false;
  for (Operation &nested : op.getBody().front().without_terminator()) {
    bool load = isLoad(nested);
    loads |= load;
    if (auto expect = dyn_cast<MBarrierExpectTxOp>(nested);
        expect && (expect.getCtas() || expect.getLeader()))
      return false;
    if (load
            ? crossesCTAs(nested)
            : !isa<MBarrierWaitOp, MBarrierExpectTxOp>(nested) &&
                  (nested.getNumRegions() != 0 || !isMemoryEffectFree(&nested)))
      return false;
  }
  return loads && !op.getEachWarpgroup();
}

LogicalResult PartitionLowering::lowerElectedLoads(ElectOp op,
                                                   ImplicitLocOpBuilder &b) {
  // Behind the first wait: ptxas knows the predicate of an elect next to it.
  Operation *first = nullptr;
  for (Operation &nested : op.getBody().front())
    if (!first && (isa<MBarrierExpectTxOp>(nested) || isLoad(nested)))
      first = &nested;
  OpBuilder before(first);
  llvm::SaveAndRestore<Value> restore(
      elected, NVVM::ElectSyncOp::create(before, op.getLoc(), b.getI1Type(),
                                         /*membermask=*/Value()));
  return lowerRegion(op.getBody(), b);
}

void PartitionLowering::emitElected(ImplicitLocOpBuilder &b, StringRef text,
                                    ValueRange operands) {
  SmallVector<Value> all = {elected};
  std::string constraints = "b";
  for (Value operand : operands) {
    // Tensor maps become generic pointers.
    constraints += isa<TensorMapType>(operand.getType()) ? ",l" : ",r";
    if (isa<LLVM::LLVMPointerType>(operand.getType()))
      operand = LLVM::PtrToIntOp::create(b, b.getI32Type(), operand);
    all.push_back(operand);
  }
  constraints += ",~{memory}";
  LLVM::InlineAsmOp::create(b, TypeRange(), all, ("@$0 " + text).str(),
                            constraints,
                            /*has_side_effects=*/true, /*is_align_stack=*/false,
                            LLVM::tailcallkind::TailCallKind::None,
                            LLVM::AsmDialectAttr(), ArrayAttr());
}

template <>
LogicalResult PartitionLowering::lower(ElectOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  Value own = kernel.uniformWarp();
  int64_t leader = firstWarp;
  if (op.getEachWarpgroup()) {
    if (firstWarp % kWarpgroupWarps != 0 || warps % kWarpgroupWarps != 0)
      return op.emitOpError("expected whole warpgroups beside "
                            "'each_warpgroup', got ")
             << warps << " warps from warp " << firstWarp << " on";
    own = arith::AndIOp::create(b, own, constant(3));
    leader = 0;
  }
  Value first =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, own, constant(leader));
  auto warpBranch = scf::IfOp::create(b, first, /*withElseRegion=*/false);
  b.setInsertionPointToStart(warpBranch.thenBlock());
  if (isPartition && grid && waitsAndLoads(op))
    return lowerElectedLoads(op, b);
  Value elected =
      kernel.someTargetLacks(Capability::Cluster)
          ? arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane(),
                                  constant(0))
                .getResult()
          : NVVM::ElectSyncOp::create(b, b.getI1Type(), /*membermask=*/Value())
                .getResult();
  auto branch = scf::IfOp::create(b, elected, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  llvm::SaveAndRestore<bool> restore(inElect, true);
  return lowerRegion(op.getBody(), b);
}

template <>
LogicalResult PartitionLowering::lower(ClusterLeaderOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  std::optional<ArrayRef<int32_t>> size = kernel.func.getKnownClusterSize();
  if (!size || countLaunched(*size) == 1)
    return lowerRegion(op.getBody(), b);
  auto branch = scf::IfOp::create(b, isClusterLeader(b, op.getRankBits()),
                                  /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  return lowerRegion(op.getBody(), b);
}

template <>
LogicalResult PartitionLowering::lower(WarpgroupIndexOp op) {
  op.getResult().replaceAllUsesWith(warpgroup());
  return success();
}

void lowering::addPartitionLowerings(LoweringTable &table) {
  table.addReplaced<WarpSpecializeOp, WarpgroupIndexOp, ElectOp,
                    ClusterLeaderOp>();
}
