//===- TargetAttr.cpp - #attn.target as a target of the gpu dialect -------===//

#include "attn/Target/Assembler.h"
#include "attn/Target/PTX/Driver.h"
#include "attn/Target/PTX/Passes.h"
#include "mlir/Dialect/GPU/IR/CompilationInterfaces.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

class TargetModel
    : public gpu::TargetAttrInterface::FallbackModel<TargetModel> {
public:
  std::optional<SmallVector<char, 0>>
  serializeToObject(Attribute attribute, Operation *op,
                    const gpu::TargetOptions &options) const {
    auto module = cast<gpu::GPUModuleOp>(op);
    auto target = cast<TargetAttr>(attribute);
    PTXOptions ptxOptions;
    ptxOptions.chip = target.getChip().str();
    ptxOptions.ptx = target.getPTXVersion();
    FailureOr<std::string> ptx = translateToPTX(module, ptxOptions);
    if (failed(ptx))
      return std::nullopt;
    if (options.getCompilationTarget() == gpu::CompilationTarget::Assembly)
      return SmallVector<char, 0>(ptx->begin(), ptx->end());
    AssemblerOptions assemblerOptions;
    assemblerOptions.chip = ptxOptions.chip;
    llvm::Expected<AssemblerResult> result =
        assemblePTX(*ptx, assemblerOptions);
    if (!result) {
      mlir::emitError(module.getLoc(), llvm::toString(result.takeError()));
      return std::nullopt;
    }
    for (const AssemblerMessage &message : result->log.messages) {
      bool isError = message.severity == AssemblerMessage::Severity::Error;
      (isError ? mlir::emitError(module.getLoc())
               : mlir::emitWarning(module.getLoc()))
          << "ptxas: " << message.text;
    }
    if (result->log.hasErrors())
      return std::nullopt;
    return SmallVector<char, 0>(result->cubin.begin(), result->cubin.end());
  }

  Attribute createObject(Attribute attribute, Operation *op,
                         const SmallVector<char, 0> &object,
                         const gpu::TargetOptions &options) const {
    Builder builder(attribute.getContext());
    return builder.getAttr<gpu::ObjectAttr>(
        attribute, options.getCompilationTarget(),
        builder.getStringAttr(StringRef(object.data(), object.size())),
        DictionaryAttr(), gpu::KernelTableAttr());
  }
};

} // namespace

void mlir::attn::registerTargetInterfaces(DialectRegistry &registry) {
  registerPTXTranslations(registry);
  registry.addExtension(+[](MLIRContext *context, AttnDialect *) {
    TargetAttr::attachInterface<TargetModel>(*context);
  });
}
