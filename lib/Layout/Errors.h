//===- Errors.h - Errors of the layout library ------------------*- C++ -*-===//

#ifndef ATTN_LIB_LAYOUT_ERRORS_H
#define ATTN_LIB_LAYOUT_ERRORS_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::attn {

/// An error with a formatv message.
template <typename... Args>
llvm::Error makeError(const char *format, Args &&...args) {
  return llvm::createStringError(
      llvm::inconvertibleErrorCode(),
      llvm::formatv(format, std::forward<Args>(args)...).str());
}

} // namespace mlir::attn

#endif // ATTN_LIB_LAYOUT_ERRORS_H
