//===- ToolMain.cpp - Version and output of programs ----------------------===//

#include "attn/Target/ToolMain.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir::attn;

llvm::StringRef mlir::attn::getVersionText() {
  return ATTN_VERSION " (LLVM " LLVM_VERSION_STRING ")";
}

/// What went wrong on `stream`, which forgets it: it would end the process when
/// it is closed.
static llvm::Error takeError(llvm::raw_fd_ostream &stream, std::error_code code,
                             llvm::StringRef path) {
  if (!code) {
    stream.flush();
    code = stream.error();
  }
  if (!code)
    return llvm::Error::success();
  stream.clear_error();
  return llvm::createStringError(code, "cannot write '" + path +
                                           "': " + code.message());
}

llvm::Error mlir::attn::writeOutput(llvm::StringRef path,
                                    llvm::StringRef contents) {
  if (path == "-") {
    llvm::outs() << contents;
    return flushOutput();
  }
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  if (!code)
    stream << contents;
  return takeError(stream, code, path);
}

llvm::Error mlir::attn::flushOutput() {
  return takeError(llvm::outs(), std::error_code(), "standard output");
}
