//===- CheckPitfalls.cpp - What is translated into something else ---------===//
//
// Each check stands for something that LLVM, MLIR's translation or ptxas accept
// without a word and turn into a kernel that is wrong or slow.
// docs/Rationale/Driver.md says what was seen in each case.
//
//===----------------------------------------------------------------------===//

#include "attn/Target/PTX/CheckForms.h"
#include "mlir/Dialect/LLVMIR/BasicPtxBuilderInterface.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::attn;

/// A predicate makes the operation inline assembly that loses modifiers
/// (cta_group::2 of a TMA load, for example).
static LogicalResult checkPredicate(NVVM::BasicPtxBuilderInterface op) {
  if (isa<NVVM::InlinePtxOp>(op) || !op.getPredicate().value_or(Value()))
    return success();
  return op->emitOpError("with a predicate loses modifiers in translation, "
                         "branch around it instead");
}

static LogicalResult checkInlinePTX(NVVM::InlinePtxOp op) {
  if (op.getReadWriteArgs().empty())
    return success();
  return op.emitOpError("loses the new values of 'rw' operands in translation, "
                        "use 'llvm.inline_asm' with tied constraints");
}

static LogicalResult checkAtomic(LLVM::AtomicRMWOp op) {
  if (op.getOrdering() == LLVM::AtomicOrdering::monotonic)
    return success();
  return op.emitOpError("is translated without its ordering '")
         << LLVM::stringifyAtomicOrdering(op.getOrdering())
         << "', use 'monotonic' and 'llvm.fence'";
}

/// The backend turns a large load whose value is only stored into a loop over
/// bytes in the place of the store, whatever barriers stand between the two.
static LogicalResult checkLargeCopy(LLVM::LoadOp op) {
  constexpr unsigned limit = 128;
  if (!op->hasOneUse() ||
      DataLayout::closest(op).getTypeSize(op.getType()) < limit)
    return success();
  auto store = dyn_cast<LLVM::StoreOp>(*op->user_begin());
  if (!store || store.getValue() != op.getResult())
    return success();
  InFlightDiagnostic diag = op.emitOpError("of ")
                            << limit
                            << " bytes or more that is only stored would move "
                               "to the store, across barriers; split it";
  diag.attachNote(store.getLoc()) << "stored here";
  return diag;
}

/// LLVM deletes stores to shared memory of internal linkage when only a matrix
/// descriptor or a bulk copy reads it.
static LogicalResult checkGlobal(LLVM::GlobalOp op) {
  bool isLocal = op.getLinkage() == LLVM::Linkage::Internal ||
                 op.getLinkage() == LLVM::Linkage::Private;
  if (op.getAddrSpace() != 3 || !isLocal)
    return success();
  return op.emitOpError("in shared memory expected external linkage, got ")
         << LLVM::linkage::stringifyLinkage(op.getLinkage())
         << ": stores to it that only descriptors read would be deleted";
}

static LogicalResult checkCommit(NVVM::Tcgen05CommitOp op) {
  auto pointer = cast<LLVM::LLVMPointerType>(op.getAddr().getType());
  if (pointer.getAddressSpace() != 7)
    return success();
  return op.emitOpError("has no form for a barrier in shared::cluster, use the "
                        "local address and a multicast mask");
}

/// What one kernel or function holds, as far as checks across operations need
/// it.
struct FunctionFacts {
  NVVM::SetMaxRegisterOp setMaxRegister;
  /// Plain waits, and what leaves registers in flight.
  SmallVector<Operation *> wgmmaWaits, tmemLoadWaits;
  Operation *wgmma = nullptr, *tmemLoad = nullptr;
  /// First operation with each CTA group.
  Operation *groups[2] = {nullptr, nullptr};
};

static void noteGroup(FunctionFacts &facts, Operation *op,
                      NVVM::CTAGroupKind group) {
  Operation *&slot = facts.groups[group == NVVM::CTAGroupKind::CTA_2];
  if (!slot)
    slot = op;
}

static void collect(FunctionFacts &facts, Operation *op) {
  TypeSwitch<Operation *>(op)
      .Case([&](NVVM::SetMaxRegisterOp op) { facts.setMaxRegister = op; })
      .Case([&](NVVM::WgmmaWaitGroupSyncOp op) {
        facts.wgmmaWaits.push_back(op);
      })
      .Case([&](NVVM::WgmmaMmaAsyncOp op) { facts.wgmma = op; })
      .Case([&](NVVM::Tcgen05WaitOp op) {
        if (op.getKind() == NVVM::Tcgen05WaitKind::LOAD)
          facts.tmemLoadWaits.push_back(op);
      })
      .Case([&](NVVM::Tcgen05LdOp op) { facts.tmemLoad = op; })
      .Case<NVVM::Tcgen05AllocOp, NVVM::Tcgen05DeallocOp, NVVM::Tcgen05CommitOp,
            NVVM::Tcgen05CpOp, NVVM::Tcgen05ShiftOp,
            NVVM::Tcgen05RelinquishAllocPermitOp>(
          [&](auto op) { noteGroup(facts, op, op.getGroup()); })
      .Case<NVVM::Tcgen05MMAOp, NVVM::Tcgen05MMABlockScaleOp>(
          [&](auto op) { noteGroup(facts, op, op.getCtaGroup()); })
      .Case([&](LLVM::InlineAsmOp op) {
        // Only statements with results leave registers in flight.
        if (op->getNumResults() == 0)
          return;
        StringRef text = op.getAsmString();
        if (text.contains("wgmma.mma_async"))
          facts.wgmma = op;
        if (text.contains("tcgen05.ld"))
          facts.tmemLoad = op;
      });
}

/// A wait without operands does not hold back the arithmetic on the registers
/// that it waits for.
static LogicalResult checkWaits(ArrayRef<Operation *> waits,
                                Operation *producer) {
  if (!producer)
    return success();
  for (Operation *wait : waits) {
    InFlightDiagnostic diag = wait->emitOpError(
        "does not name the registers it waits for, so their uses may move "
        "above it; use 'llvm.inline_asm' with tied registers");
    diag.attachNote(producer->getLoc()) << "registers in flight from here";
  }
  return success(waits.empty());
}

static LogicalResult checkParameters(LLVM::LLVMFuncOp func) {
  bool ok = true;
  for (unsigned i = 0, e = func.getNumArguments(); i != e; ++i) {
    auto has = [&](StringRef name) {
      return static_cast<bool>(func.getArgAttr(i, name));
    };
    if (has(LLVM::LLVMDialect::getByValAttrName()) &&
        !has(NVVM::NVVMDialect::getGridConstantAttrName())) {
      mlir::emitError(func.getLoc(), "parameter ")
          << i << " is passed by value without '"
          << NVVM::NVVMDialect::getGridConstantAttrName()
          << "', so it would be copied to local memory";
      ok = false;
    }
    if (has(LLVM::LLVMDialect::getNoAliasAttrName()) &&
        !has(LLVM::LLVMDialect::getReadonlyAttrName()) &&
        !has(LLVM::LLVMDialect::getWriteOnlyAttrName())) {
      mlir::emitError(func.getLoc(), "parameter ")
          << i << " is '" << LLVM::LLVMDialect::getNoAliasAttrName()
          << "', so it must be '" << LLVM::LLVMDialect::getReadonlyAttrName()
          << "' or '" << LLVM::LLVMDialect::getWriteOnlyAttrName()
          << "': LLVM reuses its loads across barriers and fences";
      ok = false;
    }
  }
  return success(ok);
}

static LogicalResult checkFunction(LLVM::LLVMFuncOp func) {
  FunctionFacts facts;
  func.walk([&](Operation *op) { collect(facts, op); });
  bool isKernel = func->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName());
  bool ok = !isKernel || succeeded(checkParameters(func));
  if (isKernel && facts.setMaxRegister) {
    auto has = [&](StringRef name) { return func->hasAttr(name); };
    bool hasThreads = has(NVVM::NVVMDialect::getReqntidAttrName()) ||
                      has(NVVM::NVVMDialect::getMaxntidAttrName());
    bool hasBound = has(NVVM::NVVMDialect::getMinctasmAttrName()) ||
                    has(NVVM::NVVMDialect::getMaxnregAttrName());
    if (!hasThreads || !hasBound) {
      facts.setMaxRegister.emitOpError("is ignored by ptxas unless the kernel "
                                       "states its block size and '")
          << NVVM::NVVMDialect::getMinctasmAttrName() << "' or '"
          << NVVM::NVVMDialect::getMaxnregAttrName() << "'";
      ok = false;
    }
  }
  if (facts.groups[0] && facts.groups[1]) {
    InFlightDiagnostic diag = facts.groups[1]->emitOpError(
        "has CTA group 2, expected 1 as in the rest of the function");
    diag.attachNote(facts.groups[0]->getLoc()) << "CTA group 1 here";
    ok = false;
  }
  if (failed(checkWaits(facts.wgmmaWaits, facts.wgmma)) ||
      failed(checkWaits(facts.tmemLoadWaits, facts.tmemLoad)))
    ok = false;
  return success(ok);
}

LogicalResult mlir::attn::checkPitfalls(gpu::GPUModuleOp module) {
  bool ok = true;
  module.walk([&](Operation *op) {
    LogicalResult result =
        TypeSwitch<Operation *, LogicalResult>(op)
            .Case([](LLVM::LLVMFuncOp op) { return checkFunction(op); })
            .Case([](LLVM::GlobalOp op) { return checkGlobal(op); })
            .Case([](LLVM::LoadOp op) { return checkLargeCopy(op); })
            .Case([](LLVM::AtomicRMWOp op) { return checkAtomic(op); })
            .Case([](NVVM::InlinePtxOp op) { return checkInlinePTX(op); })
            .Case([](NVVM::Tcgen05CommitOp op) { return checkCommit(op); })
            .Default(success());
    if (auto builder = dyn_cast<NVVM::BasicPtxBuilderInterface>(op))
      if (failed(checkPredicate(builder)))
        ok = false;
    if (failed(result))
      ok = false;
  });
  return success(ok);
}
