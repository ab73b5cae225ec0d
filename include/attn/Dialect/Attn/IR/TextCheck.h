//===- TextCheck.h - Text that MLIR's parser survives -----------*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_TEXTCHECK_H
#define ATTN_DIALECT_ATTN_IR_TEXTCHECK_H

#include "mlir/Support/LLVM.h"
#include <optional>
#include <string>

namespace mlir::attn {

/// A place in a text and what is wrong there, as diagnostics have it.
struct TextProblem {
  unsigned line, column;
  std::string message;
};

/// Finds what ends a process that parses `text` as MLIR, for a caller that has
/// to refuse it: brackets or negations nested deeply enough to use up the
/// stack, and numbers of values beyond 32 bits. Bytecode is not looked at.
std::optional<TextProblem> findTextProblem(StringRef text);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_TEXTCHECK_H
