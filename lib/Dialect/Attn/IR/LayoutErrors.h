//===- LayoutErrors.h - Errors of layout attributes -------------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_IR_LAYOUTERRORS_H
#define ATTN_LIB_DIALECT_ATTN_IR_LAYOUTERRORS_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

namespace mlir::attn {

/// An error with a message.
inline llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(message);
}

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_IR_LAYOUTERRORS_H
