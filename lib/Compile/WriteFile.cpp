//===- WriteFile.cpp - Text into files ------------------------------------===//

#include "WriteFile.h"

using namespace mlir;

LogicalResult attn::writeFile(ModuleOp module, StringRef path, StringRef text) {
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  if (!code) {
    stream << text;
    stream.flush();
    code = stream.error();
    stream.clear_error();
  }
  if (!code)
    return success();
  return module.emitError("cannot write '") << path << "': " << code.message();
}
