//===- AttnTargetAttr.cpp - The target of a kernel ------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Target/TargetTable.h"

using namespace mlir;
using namespace mlir::attn;

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef chip, unsigned ptx) {
  llvm::Expected<const TargetRow &> row = lookupTarget(chip);
  if (!row)
    return emitError() << llvm::toString(row.takeError());
  if (ptx == 0)
    return success();
  if (llvm::Error error = checkPTXVersion(*row, ptx))
    return emitError() << llvm::toString(std::move(error));
  return success();
}

const TargetRow &TargetAttr::getRow() const {
  return llvm::cantFail(lookupTarget(getChip()));
}

unsigned TargetAttr::getPTXVersion() const {
  return getPtx() ? getPtx() : getRow().defaultPTX;
}
