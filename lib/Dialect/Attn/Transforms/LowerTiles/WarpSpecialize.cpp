//===- WarpSpecialize.cpp - Partitions of a CTA ---------------------------===//

#include "TileLowering.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

/// CTAs of an SM, on all chips (CUDA programming guide, compute capabilities).
static constexpr int64_t kMostCTAsPerSM = 32;

/// The registers that each thread of a kernel has at its start, which ptxas
/// derives from the launch bounds (seen with ptxas 13.0): the file divided
/// among the threads of all CTAs that the kernel promises to fit on an SM,
/// rounded down to 8. An error if the kernel states no bound, because ptxas
/// ignores setmaxnreg then.
static FailureOr<int64_t> getLaunchRegisters(gpu::GPUFuncOp kernel,
                                             int64_t threads) {
  StringRef maxnreg = NVVM::NVVMDialect::getMaxnregAttrName();
  StringRef minctasm = NVVM::NVVMDialect::getMinctasmAttrName();
  if (auto bound = kernel->getAttrOfType<IntegerAttr>(maxnreg))
    return llvm::alignDown(bound.getInt(), 8);
  auto ctas = kernel->getAttrOfType<IntegerAttr>(minctasm);
  if (!ctas)
    return kernel.emitOpError("expected '")
           << minctasm << "' or '" << maxnreg
           << "' on a kernel whose partitions set their registers, got neither";
  if (ctas.getInt() < 1 || ctas.getInt() > kMostCTAsPerSM)
    return kernel.emitOpError("expected '")
           << minctasm << "' from 1 to " << kMostCTAsPerSM << ", got "
           << ctas.getInt();
  return llvm::alignDown(kRegisterFile / (threads * ctas.getInt()), 8);
}

LogicalResult TileLowering::lowerWarpSpecialize(WarpSpecializeOp op) {
  int64_t total = op.getTotalWarps() * 32;
  std::optional<ArrayRef<int32_t>> block = kernel.getKnownBlockSize();
  if (!block || llvm::product_of(*block) != total) {
    InFlightDiagnostic diag =
        op.emitOpError("expected 'known_block_size' to be the ")
        << total << " threads of the partitions, got ";
    if (block)
      diag << llvm::product_of(*block);
    else
      diag << "none";
    return diag;
  }
  if (op.getWarps().front() * 32 != threads)
    return op.emitOpError("expected the kernel's grid of warps to be the ")
           << op.getWarps().front() << " warps of the first partition, got "
           << threads / 32;
  FailureOr<int64_t> launch = getLaunchRegisters(kernel, total);
  if (failed(launch))
    return failure();

  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value own = uniformWarp();
  llvm::SaveAndRestore<bool> restore(inPartitions, true);
  for (auto [index, region] : llvm::enumerate(op.getPartitions())) {
    bool last = index + 1 == op.getPartitions().size();
    Block *body = nullptr;
    if (last) {
      body = b.getInsertionBlock();
    } else {
      Value end =
          arith::ConstantIntOp::create(b, op.getFirstWarp(index + 1), 32);
      Value mine =
          arith::CmpIOp::create(b, arith::CmpIPredicate::ult, own, end);
      auto branch = scf::IfOp::create(b, mine, /*withElseRegion=*/true);
      body = branch.thenBlock();
      b.setInsertionPointToStart(body);
    }
    // A partition that is the whole CTA keeps what it starts with.
    int64_t registers = op.getRegisters()[index];
    if (op.getPartitions().size() > 1 && registers != *launch)
      NVVM::SetMaxRegisterOp::create(
          b, registers,
          registers > *launch ? NVVM::SetMaxRegisterAction::increase
                              : NVVM::SetMaxRegisterAction::decrease);
    partition = index;
    firstWarp = op.getFirstWarp(index);
    partitionWarps = op.getWarps()[index];
    if (failed(lowerRegion(region, b)))
      return failure();
    if (!last)
      b.setInsertionPointToStart(
          cast<scf::IfOp>(body->getParentOp()).elseBlock());
  }
  partition = 0;
  firstWarp = 0;
  partitionWarps = threads / 32;
  return success();
}

LogicalResult TileLowering::lowerRegion(Region &region,
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

/// True if one lane alone need not run more than instructions that can have a
/// predicate.
static bool waitsAndLoads(ElectOp op) {
  bool loads = false;
  for (Operation &nested : op.getBody().front().without_terminator()) {
    auto load = dyn_cast<TmaLoadOp>(nested);
    loads |= static_cast<bool>(load);
    if (auto expect = dyn_cast<MBarrierExpectTxOp>(nested);
        expect && expect.getCtas())
      return false;
    if (load
            ? load.getMulticast().has_value()
            : !isa<MBarrierWaitOp, MBarrierExpectTxOp>(nested) &&
                  (nested.getNumRegions() != 0 || !isMemoryEffectFree(&nested)))
      return false;
  }
  return loads && !op.getEachWarpgroup();
}

LogicalResult TileLowering::lowerElectedLoads(ElectOp op,
                                              ImplicitLocOpBuilder &b) {
  // Behind the first wait: ptxas knows the predicate of an elect next to it.
  Operation *first = nullptr;
  for (Operation &nested : op.getBody().front())
    if (!first && isa<MBarrierExpectTxOp, TmaLoadOp>(nested))
      first = &nested;
  OpBuilder before(first);
  llvm::SaveAndRestore<Value> restore(
      elected, NVVM::ElectSyncOp::create(before, op.getLoc(), b.getI1Type(),
                                         /*membermask=*/Value()));
  return lowerRegion(op.getBody(), b);
}

void TileLowering::emitElected(ImplicitLocOpBuilder &b, StringRef text,
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

LogicalResult TileLowering::lowerElect(ElectOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  Value own = uniformWarp();
  int64_t leader = firstWarp;
  if (op.getEachWarpgroup()) {
    // Partitions are whole warpgroups.
    own = arith::AndIOp::create(b, own, constant(3));
    leader = 0;
  }
  Value first =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, own, constant(leader));
  auto warpBranch = scf::IfOp::create(b, first, /*withElseRegion=*/false);
  b.setInsertionPointToStart(warpBranch.thenBlock());
  if (inPartitions && partition == 0 && waitsAndLoads(op))
    return lowerElectedLoads(op, b);
  Value elected =
      NVVM::ElectSyncOp::create(b, b.getI1Type(), /*membermask=*/Value());
  auto branch = scf::IfOp::create(b, elected, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  llvm::SaveAndRestore<bool> restore(inElect, true);
  return lowerRegion(op.getBody(), b);
}

LogicalResult TileLowering::lowerClusterLeader(ClusterLeaderOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  std::optional<ArrayRef<int32_t>> size = kernel.getKnownClusterSize();
  if (!size || llvm::product_of(*size) == 1)
    return lowerRegion(op.getBody(), b);
  Value rank = NVVM::ClusterId::create(b, b.getI32Type());
  Value isLeader =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rank,
                            arith::ConstantIntOp::create(b, 0, 32));
  auto branch = scf::IfOp::create(b, isLeader, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  return lowerRegion(op.getBody(), b);
}
