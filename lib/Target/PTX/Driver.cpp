//===- Driver.cpp - From a gpu.module to PTX ------------------------------===//
//
// The steps: check, clone, lower the nvvm operations that exist only as inline
// assembly, set the data layout (alignments are computed at translation), add
// debug scopes, translate to LLVM IR, mark inline assembly convergent, run a
// short list of LLVM passes, take from the code generator what it is slow with,
// select instructions.
//
//===----------------------------------------------------------------------===//

#include "attn/Target/PTX/Driver.h"
#include "DebugLines.h"
#include "attn/Target/FormTable.h"
#include "attn/Target/PTX/CheckForms.h"
#include "attn/Target/PTX/FatalErrors.h"
#include "attn/Target/TargetTable.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/LLVMIR/BasicPtxBuilderInterface.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Target/LLVM/ModuleToObject.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>

using namespace mlir;
using namespace mlir::attn;

StringRef mlir::attn::getDefaultLLVMPipeline() {
  // LLVM's textual form would make an error of a second iteration that finds
  // something; its own pipelines do not either.
  return "function(early-cse,instcombine<no-verify-fixpoint>,sink)";
}

/// Registers the NVPTX backend and switches it to 32-bit pointers for all but
/// global memory. That option exists only as a command line flag of the
/// backend, so it holds for the whole process.
static void initializeBackend() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    llvm::cl::Option *option =
        llvm::cl::getRegisteredOptions().lookup("nvptx-short-ptr");
    assert(option && "the option comes with the backend");
    static_cast<llvm::cl::opt<bool> *>(option)->setValue(true);
  });
}

namespace {
/// Leaves out a pass of the backend that looks for additions to be made of
/// earlier ones: in unrolled code it takes a third of LLVM's time to find none
/// (docs/Rationale/Driver.md).
class SkippedPasses : public llvm::OptPassGate {
public:
  bool shouldRunPass(StringRef name, StringRef) const override {
    return name != "slsr";
  }
  bool isEnabled() const override { return true; }
};
} // namespace

/// Moves the elements of aggregates to the block that makes the aggregate. In
/// any other block instruction selection copies all elements for each one that
/// is extracted: 64 results of a wgmma are 4096 copies.
static void extractWhereDefined(llvm::Module &llvmModule) {
  for (llvm::Function &function : llvmModule)
    for (llvm::BasicBlock &block : function)
      for (llvm::Instruction &inst : llvm::make_early_inc_range(block)) {
        auto *extract = dyn_cast<llvm::ExtractValueInst>(&inst);
        if (!extract)
          continue;
        auto *aggregate =
            dyn_cast<llvm::Instruction>(extract->getAggregateOperand());
        if (!aggregate || aggregate->getParent() == &block)
          continue;
        auto place = aggregate->getInsertionPointAfterDef();
        if (!place)
          continue;
        // In the order of elements, that of the registers of the aggregate.
        while (auto *other = dyn_cast<llvm::ExtractValueInst>(&**place)) {
          if (other->getIndices() > extract->getIndices())
            break;
          ++*place;
        }
        extract->moveBefore(*aggregate->getParent(), *place);
      }
}

/// The pointers to global memory that `loop` moves from iteration to iteration.
static SmallVector<llvm::Instruction *>
findMovingPointers(const llvm::Loop &loop) {
  SmallVector<llvm::Instruction *> moving;
  for (llvm::BasicBlock *block : loop.blocks())
    for (llvm::Instruction &inst : *block)
      if (auto *address = dyn_cast<llvm::GetElementPtrInst>(&inst);
          address &&
          address->getAddressSpace() ==
              unsigned(NVVM::NVVMMemorySpace::Global) &&
          loop.isLoopInvariant(address->getPointerOperand()) &&
          !loop.hasLoopInvariantOperands(address))
        moving.push_back(address);
  return moving;
}

/// Where a loop moves many pointers, hides from loop strength reduction how
/// they move. It compares each use of each of them with all others: with the
/// slices of wide heads, whose copies have a pointer each, that was half of the
/// time of code generation, and the machine code came out the same.
static void freezeMovingPointers(llvm::Function &function) {
  constexpr size_t mostCompared = 4;
  llvm::DominatorTree dominators(function);
  llvm::LoopInfo loops(dominators);
  for (llvm::Loop *loop : loops.getLoopsInPreorder()) {
    SmallVector<llvm::Instruction *> moving = findMovingPointers(*loop);
    if (!loop->isInnermost() || moving.size() <= mostCompared)
      continue;
    for (llvm::Instruction *pointer : moving) {
      auto *frozen =
          new llvm::FreezeInst(pointer, "", std::next(pointer->getIterator()));
      pointer->replaceUsesWithIf(
          frozen, [&](llvm::Use &use) { return use.getUser() != frozen; });
    }
  }
}

/// The chip for which LLVM makes code: the one whose instructions kernels for
/// `chip` use.
static StringRef getCodeChip(StringRef chip) {
  const TargetRow &target = llvm::cantFail(lookupTarget(chip));
  if (target.instructionCapability == target.computeCapability)
    return target.chip;
  return llvm::find_if(getTargets(),
                       [&](const TargetRow &row) {
                         return row.computeCapability ==
                                target.instructionCapability;
                       })
      ->chip;
}

namespace {

class PTXSerializer : public LLVM::ModuleToObject {
public:
  PTXSerializer(Operation &module, const PTXOptions &options,
                StringRef features)
      : ModuleToObject(module, getTriple(), getCodeChip(options.chip), features,
                       options.codegenLevel),
        options(options) {}

protected:
  void handleModulePreLink(llvm::Module &llvmModule) override {
    // Without a handler LLVM prints an error and ends the process.
    llvmModule.getContext().setDiagnosticHandlerCallBack(
        [](const llvm::DiagnosticInfo *info, void *self) {
          static_cast<PTXSerializer *>(self)->report(*info);
        },
        this);
    // Otherwise loop passes may copy a statement that all threads of a warp
    // have to execute together, and tail merging may join two.
    for (llvm::Function &function : llvmModule)
      for (llvm::Instruction &inst : llvm::instructions(function))
        if (auto *call = dyn_cast<llvm::CallBase>(&inst);
            call && call->isInlineAsm())
          call->setConvergent();
  }

  LogicalResult optimizeModule(llvm::Module &llvmModule, int) override {
    FailureOr<llvm::TargetMachine *> machine = getOrCreateTargetMachine();
    if (failed(machine))
      return failure();
    (*machine)->setOptLevel(
        static_cast<llvm::CodeGenOptLevel>(options.codegenLevel));
    assert((*machine)->createDataLayout().getStringRepresentation() ==
               getDataLayout() &&
           "the table holds the backend's data layout");
    if (options.check && failed(checkIntrinsics(llvmModule)))
      return failure();
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager components;
    llvm::ModuleAnalysisManager modules;
    llvm::PassBuilder builder(*machine);
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
    llvm::ModulePassManager passes;
    if (!options.pipeline.empty())
      if (llvm::Error error =
              builder.parsePassPipeline(passes, options.pipeline))
        return mlir::emitError(getOperation().getLoc(),
                               "invalid LLVM pipeline '")
               << options.pipeline << "': " << llvm::toString(std::move(error));
    passes.run(llvmModule, modules);
    extractWhereDefined(llvmModule);
    for (llvm::Function &function : llvmModule)
      if (!function.isDeclaration())
        freezeMovingPointers(function);
    if (options.llvmText)
      llvm::raw_string_ostream(*options.llvmText) << llvmModule;
    return success(!sawError);
  }

  FailureOr<SmallVector<char, 0>>
  moduleToObject(llvm::Module &llvmModule) override {
    FailureOr<llvm::TargetMachine *> machine = getOrCreateTargetMachine();
    if (failed(machine))
      return failure();
    static SkippedPasses gate;
    llvmModule.getContext().setOptPassGate(gate);
    FailureOr<SmallString<0>> ptx =
        translateModuleToISA(llvmModule, **machine, [&] {
          return mlir::emitError(getOperation().getLoc());
        });
    if (failed(ptx) || sawError)
      return failure();
    // The code is that of one chip, for another one.
    StringRef text = *ptx, directive = ".target ",
              code = getCodeChip(options.chip);
    if (code == options.chip)
      return SmallVector<char, 0>(text.begin(), text.end());
    auto [before, after] = text.split((directive + code).str());
    std::string changed = (before + directive + options.chip + after).str();
    return SmallVector<char, 0>(changed.begin(), changed.end());
  }

private:
  /// Looks up the intrinsics that are left, whatever they came from: a call to
  /// a function with an intrinsic's name, for example.
  LogicalResult checkIntrinsics(llvm::Module &llvmModule) {
    const TargetRow &target = llvm::cantFail(lookupTarget(options.chip));
    bool ok = true;
    for (llvm::Function &function : llvmModule) {
      StringRef name = function.getName();
      if (function.use_empty() || !name.consume_front("llvm.nvvm."))
        continue;
      std::optional<std::string> problem = explainForms(
          lookupForms(FormSpelling::Intrinsic, name), target, options.ptx);
      if (!problem)
        continue;
      ok = false;
      mlir::emitError(getOperation().getLoc(),
                      "the translation to LLVM IR uses '")
          << function.getName() << "', which " << *problem;
    }
    return success(ok);
  }

  /// Hands a diagnostic of LLVM to the operation's context.
  void report(const llvm::DiagnosticInfo &info) {
    if (info.getSeverity() != llvm::DS_Error &&
        info.getSeverity() != llvm::DS_Warning)
      return;
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    if (info.getSeverity() == llvm::DS_Warning) {
      mlir::emitWarning(getOperation().getLoc(), "LLVM: ") << text;
      return;
    }
    sawError = true;
    mlir::emitError(getOperation().getLoc(), "LLVM: ") << text;
  }

  const PTXOptions &options;
  bool sawError = false;
};

} // namespace

/// Lowers the nvvm operations that are defined as inline assembly; all others
/// translate directly.
static LogicalResult lowerAsmOperations(gpu::GPUModuleOp module) {
  bool found = module
                   .walk([](NVVM::BasicPtxBuilderInterface op) {
                     return op.hasIntrinsic() ? WalkResult::advance()
                                              : WalkResult::interrupt();
                   })
                   .wasInterrupted();
  if (!found)
    return success();
  MLIRContext *context = module.getContext();
  ConversionTarget target(*context);
  target.addLegalDialect<LLVM::LLVMDialect>();
  RewritePatternSet patterns(context);
  populateNVVMToLLVMConversionPatterns(patterns);
  return applyPartialConversion(module, target, std::move(patterns));
}

FailureOr<std::string> mlir::attn::translateToPTX(gpu::GPUModuleOp module,
                                                  const PTXOptions &requested) {
  PTXOptions options = requested;
  llvm::Expected<const TargetRow &> target = lookupTarget(options.chip);
  if (!target) {
    mlir::emitError(module.getLoc(), llvm::toString(target.takeError()));
    return failure();
  }
  if (options.ptx == 0)
    options.ptx = target->defaultPTX;
  if (llvm::Error error = checkPTXVersion(*target, options.ptx)) {
    mlir::emitError(module.getLoc(), llvm::toString(std::move(error)));
    return failure();
  }
  if (options.codegenLevel > 3) {
    mlir::emitError(module.getLoc(),
                    "expected a code generation level from 0 to 3, got ")
        << options.codegenLevel;
    return failure();
  }
  if (options.check) {
    // Both run, so that one compilation shows all errors.
    LogicalResult forms = checkForms(module, *target, options.ptx);
    if (failed(checkPitfalls(module)) || failed(forms))
      return failure();
  }
  initializeBackend();
  OwningOpRef<gpu::GPUModuleOp> clone(module.clone());
  if (failed(lowerAsmOperations(*clone)))
    return failure();
  (*clone)->setAttr(LLVM::LLVMDialect::getDataLayoutAttrName(),
                    StringAttr::get(module.getContext(), getDataLayout()));
  if (options.debugLines)
    addDebugScopes(*clone);

  std::string features = TargetRow::getFeatures(options.ptx);
  std::optional<SmallVector<char, 0>> ptx;
  std::optional<std::string> crash = runGuarded([&] {
    PTXSerializer serializer(**clone, options, features);
    ptx = serializer.run();
  });
  if (crash) {
    mlir::emitError(module.getLoc(), "LLVM cannot translate this module for ")
        << options.chip << " and PTX " << formatPTXVersion(options.ptx) << ": "
        << *crash;
    return failure();
  }
  if (!ptx)
    return failure();
  return std::string(ptx->begin(), ptx->end());
}

void mlir::attn::registerPTXTranslations(DialectRegistry &registry) {
  registry.insert<DLTIDialect, LLVM::LLVMDialect, NVVM::NVVMDialect,
                  gpu::GPUDialect>();
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}
