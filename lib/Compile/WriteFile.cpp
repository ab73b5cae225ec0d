//===- WriteFile.cpp - Text into files ------------------------------------===//

#include "WriteFile.h"
#include "attn/Target/ToolMain.h"

using namespace mlir;

LogicalResult attn::writeFile(ModuleOp module, StringRef path, StringRef text) {
  if (llvm::Error error = writeOutput(path, text))
    return module.emitError(llvm::toString(std::move(error)));
  return success();
}
