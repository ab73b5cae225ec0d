//===- CheckForms.cpp - What a target cannot do is an error ---------------===//
//
// Spells every operation the way the form table does, and asks it. The
// spelling of an operation is its name, once alone and once with each of the
// qualifiers that change what it needs: "nvvm.redux.sync" and
// "nvvm.redux.sync/f32". Requirements of all spellings add up.
//
//===----------------------------------------------------------------------===//

#include "attn/Target/PTX/CheckForms.h"
#include "attn/Target/FormTable.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::attn;

/// "ptr" or "ptr<3>" for a pointer type.
static std::string spellPointer(Type type) {
  auto pointer = dyn_cast<LLVM::LLVMPointerType>(type);
  if (!pointer)
    return "?";
  unsigned space = pointer.getAddressSpace();
  return space == 0 ? "ptr" : "ptr<" + std::to_string(space) + ">";
}

/// "f32" for f32 and for vectors of it.
static std::string spellElement(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << getElementTypeOrSelf(type);
  return text;
}

static bool isInAddressSpace(Value value, unsigned space) {
  auto pointer = dyn_cast<LLVM::LLVMPointerType>(value.getType());
  return pointer && pointer.getAddressSpace() == space;
}

/// The qualifiers of mbarrier operations: where the barrier is, the scope, the
/// relaxed semantics, an explicit count.
template <typename Op>
static SmallVector<std::string, 2> spellBarrier(Op op) {
  SmallVector<std::string, 2> result;
  if (isInAddressSpace(op.getAddr(), 7) ||
      op.getScope() == NVVM::MemScopeKind::CLUSTER)
    result.push_back("cluster");
  if (op.getRelaxed())
    result.push_back("relaxed");
  return result;
}

/// The multiplicand type of an mma.sync, which the operation leaves out where
/// the operand types determine it.
static std::string spellMultiplicand(NVVM::MmaOp op) {
  if (std::optional<NVVM::MMATypes> type = op.getMultiplicandAPtxType())
    return NVVM::stringifyMMATypes(*type).str();
  return spellElement(op.getOperandA().front().getType());
}

using Qualifiers = SmallVector<std::string, 2>;

/// Of intrinsics on floats: the element type, and whether approximation is
/// allowed.
static Qualifiers spellIntrinsic(Operation *op) {
  if (!op->getName().getStringRef().starts_with("llvm.intr.") ||
      op->getNumResults() != 1)
    return {};
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  if (!isa<FloatType>(element))
    return {};
  std::string text = spellElement(element);
  auto math = dyn_cast<LLVM::FastmathFlagsInterface>(op);
  if (math && LLVM::bitEnumContainsAll(math.getFastmathAttr().getValue(),
                                       LLVM::FastmathFlags::afn))
    text += "/afn";
  return {std::move(text)};
}

/// Of bulk copies.
static Qualifiers spellCopy(Operation *op) {
  using Result = Qualifiers;
  return TypeSwitch<Operation *, Result>(op)
      .Case([](NVVM::CpAsyncBulkGlobalToSharedClusterOp op) {
        return isInAddressSpace(op.getDstMem(), 3) ? Result{"ptr<3>"}
                                                   : Result();
      })
      .Case([](NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp op) {
        Result result;
        if (op.getIsCTAOnly())
          result.push_back("cta");
        NVVM::TMALoadMode mode = op.getMode();
        if (op.getGroup() || (mode != NVVM::TMALoadMode::TILE &&
                              mode != NVVM::TMALoadMode::IM2COL))
          result.push_back("pair");
        return result;
      })
      .Case([](NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp op) {
        return op.getMode() == NVVM::TMAStoreMode::TILE_SCATTER4
                   ? Result{"pair"}
                   : Result();
      })
      .Case([](NVVM::CpAsyncBulkTensorPrefetchOp op) {
        NVVM::TMALoadMode mode = op.getMode();
        return mode != NVVM::TMALoadMode::TILE &&
                       mode != NVVM::TMALoadMode::IM2COL
                   ? Result{"pair"}
                   : Result();
      });
}

/// Qualifiers of `op` that the form table knows, each in addition to the plain
/// name.
static Qualifiers getQualifiers(Operation *op) {
  using Result = Qualifiers;
  return TypeSwitch<Operation *, Result>(op)
      .Case<LLVM::LoadOp, LLVM::StoreOp>(
          [](auto op) { return Result{spellPointer(op.getAddr().getType())}; })
      .Case<LLVM::AtomicRMWOp, LLVM::AtomicCmpXchgOp>(
          [](auto op) { return Result{spellPointer(op.getPtr().getType())}; })
      .Case([](LLVM::FenceOp op) {
        return Result{op.getSyncscope().value_or("system").str()};
      })
      .Case([](NVVM::MmaOp op) { return Result{spellMultiplicand(op)}; })
      .Case([](NVVM::LdMatrixOp op) {
        return Result{NVVM::stringifyLdStMatrixEltType(op.getEltType()).str()};
      })
      .Case([](NVVM::StMatrixOp op) {
        return Result{NVVM::stringifyLdStMatrixEltType(op.getEltType()).str()};
      })
      .Case([](NVVM::ReduxOp op) {
        return Result{spellElement(op.getVal().getType())};
      })
      .Case([](NVVM::ConvertF32x2ToF8x2Op op) {
        return Result{spellElement(op.getDstTy())};
      })
      .Case([](NVVM::ConvertFloatToTF32Op op) {
        return Result{NVVM::stringifyFPRoundingMode(op.getRnd()).str()};
      })
      .Case([](NVVM::FenceProxyOp op) {
        return Result{NVVM::stringifyProxyKind(op.getKind()).str()};
      })
      .Case([](NVVM::MembarOp op) {
        return op.getScope() == NVVM::MemScopeKind::CLUSTER ? Result{"cluster"}
                                                            : Result();
      })
      .Case([](NVVM::PrefetchOp op) {
        return op.getTensormap() ? Result{"tensormap"} : Result();
      })
      .Case([](NVVM::MBarrierArriveOp op) {
        Result result = spellBarrier(op);
        if (op.getCount())
          result.push_back("count");
        return result;
      })
      .Case<NVVM::MBarrierArriveDropOp, NVVM::MBarrierArriveExpectTxOp,
            NVVM::MBarrierArriveDropExpectTxOp>(
          [](auto op) { return spellBarrier(op); })
      .Case<NVVM::MBarrierTestWaitOp, NVVM::MBarrierTryWaitOp>([](auto op) {
        Result result = spellBarrier(op);
        if (op.getStateOrPhase().getType().isInteger(32))
          result.push_back("parity");
        return result;
      })
      .Case<NVVM::CpAsyncBulkGlobalToSharedClusterOp,
            NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp,
            NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp,
            NVVM::CpAsyncBulkTensorPrefetchOp>(
          [](auto op) { return spellCopy(op); })
      .Case([](NVVM::ClusterLaunchControlTryCancelOp op) {
        return op.getMulticast() ? Result{"multicast"} : Result();
      })
      .Case<NVVM::Tcgen05MMAOp, NVVM::Tcgen05MMAWsOp>([](auto op) {
        return Result{NVVM::stringifyTcgen05MMAKind(op.getKind()).str()};
      })
      .Default(spellIntrinsic);
}

namespace {

class FormChecker {
public:
  FormChecker(const TargetRow &target, unsigned ptx)
      : target(target), ptx(ptx) {}

  LogicalResult check(Operation *op) {
    if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
      return checkIntrinsic(call);
    if (auto assembly = dyn_cast<LLVM::InlineAsmOp>(op))
      return checkAsm(op, assembly.getAsmString());
    if (auto assembly = dyn_cast<NVVM::InlinePtxOp>(op))
      return checkAsm(op, assembly.getPtxCode());
    StringRef name = op->getName().getStringRef();
    if (!isa_and_nonnull<LLVM::LLVMDialect, NVVM::NVVMDialect>(
            op->getDialect())) {
      if (op->getName().getStringRef() == "gpu.module_end")
        return success();
      return op->emitOpError("is neither of the llvm nor of the nvvm dialect, "
                             "as translation to PTX expects");
    }
    std::string key = name.str();
    SmallVector<std::string, 2> qualifiers = getQualifiers(op);
    for (const std::string &qualifier : qualifiers)
      key += "/" + qualifier;
    auto [it, inserted] = verdicts.try_emplace(key);
    if (inserted) {
      SmallVector<const Form *, 2> matches =
          lookupForms(FormSpelling::Operation, name);
      for (const std::string &qualifier : qualifiers)
        llvm::append_range(matches,
                           lookupForms(FormSpelling::Operation,
                                       (name + "/" + qualifier).str()));
      it->second = explainForms(matches, target, ptx);
    }
    if (!it->second)
      return success();
    InFlightDiagnostic diag = op->emitOpError(*it->second);
    if (!qualifiers.empty())
      diag << " (" << llvm::join(qualifiers, ", ") << ")";
    return diag;
  }

private:
  LogicalResult checkIntrinsic(LLVM::CallIntrinsicOp call) {
    StringRef name = call.getIntrin();
    // All others are LLVM's own, which the verifier of LLVM IR knows.
    if (!name.consume_front("llvm.nvvm."))
      return success();
    std::optional<std::string> problem =
        explainForms(lookupForms(FormSpelling::Intrinsic, name), target, ptx);
    if (problem)
      return call.emitError("intrinsic '")
             << call.getIntrin() << "' " << *problem;
    return success();
  }

  LogicalResult checkAsm(Operation *op, StringRef text) {
    auto [it, inserted] = asmVerdicts.try_emplace(text);
    if (inserted) {
      for (const std::string &mnemonic : getAsmMnemonics(text)) {
        std::optional<std::string> problem = explainForms(
            lookupForms(FormSpelling::Mnemonic, mnemonic), target, ptx);
        if (problem)
          it->second.push_back("'" + mnemonic + "' " + *problem);
      }
    }
    for (const std::string &problem : it->second)
      op->emitError("instruction ") << problem;
    return success(it->second.empty());
  }

  const TargetRow &target;
  unsigned ptx;
  /// What is wrong with an operation, by its full spelling.
  llvm::StringMap<std::optional<std::string>> verdicts;
  /// What is wrong with the instructions of an assembly text.
  llvm::StringMap<SmallVector<std::string, 0>> asmVerdicts;
};

} // namespace

LogicalResult mlir::attn::checkForms(gpu::GPUModuleOp module,
                                     const TargetRow &target, unsigned ptx) {
  FormChecker checker(target, ptx);
  bool ok = true;
  module.walk([&](Operation *op) {
    if (op != module.getOperation() && failed(checker.check(op)))
      ok = false;
  });
  return success(ok);
}
