//===- EmitPTX.cpp - The passes attn-emit-ptx and attn-check-forms --------===//

#include "attn/Target/Assembler.h"
#include "attn/Target/PTX/CheckForms.h"
#include "attn/Target/PTX/Driver.h"
#include "attn/Target/PTX/Passes.h"
#include "attn/Target/ToolMain.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNCHECKFORMSPASS
#define GEN_PASS_DEF_ATTNEMITPTXPASS
#include "attn/Target/PTX/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

FailureOr<TargetAttr> mlir::attn::getTarget(gpu::GPUModuleOp module) {
  TargetAttr result;
  unsigned count = 0;
  if (ArrayAttr targets = module.getTargetsAttr())
    for (Attribute target : targets)
      if (auto attnTarget = dyn_cast<TargetAttr>(target)) {
        result = attnTarget;
        ++count;
      }
  if (count == 1)
    return result;
  return mlir::emitError(module.getLoc(), "expected one '#attn.target', got ")
         << count;
}

namespace {

class EmitPTXPass final : public attn::impl::AttnEmitPTXPassBase<EmitPTXPass> {
public:
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    registerPTXTranslations(registry);
  }

  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    FailureOr<TargetAttr> target = getTarget(module);
    if (failed(target))
      return signalPassFailure();
    PTXOptions options;
    options.chip = target->getChip().str();
    options.ptx = target->getPTXVersion();
    if (!pipeline.empty())
      options.pipeline = pipeline;
    options.codegenLevel = codegenLevel;
    options.debugLines = debugLines;
    options.check = check;
    FailureOr<std::string> ptx = translateToPTX(module, options);
    if (failed(ptx) || failed(write(output, *ptx)))
      return signalPassFailure();
    module->setAttr("attn.ptx", StringAttr::get(&getContext(), *ptx));
    if (assemble && failed(runAssembler(*ptx, *target)))
      return signalPassFailure();
  }

private:
  LogicalResult write(StringRef path, StringRef contents) {
    if (path.empty())
      return success();
    if (llvm::Error error = writeOutput(path, contents))
      return mlir::emitError(getOperation().getLoc(),
                             llvm::toString(std::move(error)));
    return success();
  }

  LogicalResult runAssembler(StringRef ptx, TargetAttr target) {
    gpu::GPUModuleOp module = getOperation();
    AssemblerOptions options;
    options.chip =
        assembleFor.empty() ? target.getChip().str() : assembleFor.getValue();
    llvm::Expected<AssemblerResult> result = assemblePTX(ptx, options);
    if (!result)
      return mlir::emitError(module.getLoc(),
                             llvm::toString(result.takeError()));
    for (const AssemblerMessage &message : result->log.messages)
      report(message);
    if (result->log.hasErrors())
      return failure();
    for (const FunctionResources &resources : result->log.functions)
      annotate(resources);
    return write(cubin, result->cubin);
  }

  /// The kernel that ptxas calls `name`, or else the module.
  Operation *findFunction(StringRef name) {
    if (!name.empty())
      if (Operation *function =
              SymbolTable::lookupSymbolIn(getOperation(), name))
        return function;
    return getOperation();
  }

  void report(const AssemblerMessage &message) {
    Operation *op = findFunction(message.function);
    InFlightDiagnostic diag =
        message.severity == AssemblerMessage::Severity::Error
            ? mlir::emitError(op->getLoc())
        : message.severity == AssemblerMessage::Severity::Info
            ? mlir::emitRemark(op->getLoc())
            : mlir::emitWarning(op->getLoc());
    diag << "ptxas: ";
    if (message.line)
      diag << "line " << message.line << ": ";
    if (!message.code.empty())
      diag << message.code << ": ";
    diag << message.text;
  }

  void annotate(const FunctionResources &resources) {
    Operation *op = findFunction(resources.name);
    if (op == getOperation())
      return;
    Builder builder(&getContext());
    auto number = [&](StringRef name, unsigned value) {
      return builder.getNamedAttr(name, builder.getI32IntegerAttr(value));
    };
    op->setAttr("attn.ptxas",
                builder.getDictionaryAttr(
                    {number("barriers", resources.barriers),
                     number("registers", resources.registers),
                     number("shared_bytes", resources.sharedBytes),
                     number("spill_load_bytes", resources.spillLoadBytes),
                     number("spill_store_bytes", resources.spillStoreBytes),
                     number("stack_bytes", resources.stackBytes)}));
  }
};

class CheckFormsPass final
    : public attn::impl::AttnCheckFormsPassBase<CheckFormsPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    FailureOr<TargetAttr> target = getTarget(getOperation());
    if (failed(target))
      return signalPassFailure();
    LogicalResult forms =
        checkForms(getOperation(), target->getRow(), target->getPTXVersion());
    if (failed(checkPitfalls(getOperation())) || failed(forms))
      signalPassFailure();
  }
};

} // namespace
