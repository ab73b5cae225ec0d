//===- AssembledAttr.h - What ptxas said of plans, in the IR ----*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ASSEMBLEDATTR_H
#define ATTN_DIALECT_ATTN_IR_ASSEMBLEDATTR_H

#include "attn/Launch/LaunchRecord.h"
#include "mlir/IR/BuiltinAttributes.h"
#include <optional>

namespace mlir::attn {

/// A dictionary on a builtin module whose plans ptxas was asked about:
/// `{ptxas = "13.0", skipped = 1 : i64}`. Its entries are those of `assembled`
/// in a launch record.
inline constexpr llvm::StringLiteral kAssembledAttr = "attn.assembled";

DictionaryAttr getAssembledAttr(MLIRContext *context,
                                const AssembledPlan &assembled);

/// Reads it back; nothing if it is no such attribute.
std::optional<AssembledPlan> readAssembledAttr(Attribute attribute);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_ASSEMBLEDATTR_H
