//===- ProofAttr.h - The verdict of the check in the IR ---------*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_PROOFATTR_H
#define ATTN_DIALECT_ATTN_IR_PROOFATTR_H

#include "attn/Launch/SyncVerdict.h"
#include "mlir/IR/BuiltinAttributes.h"
#include <optional>

namespace mlir::attn {

/// A dictionary on a kernel with what the check of barriers said of it:
/// `{verdict = "proved", profile = "isa", assumptions = ["A4"]}`. Its entries
/// are those of `proof` in a launch record.
inline constexpr llvm::StringLiteral kProofAttr = "attn.proof";

DictionaryAttr getProofAttr(MLIRContext *context, const SyncVerdict &verdict);

/// Reads it back; nothing if it is no such attribute.
std::optional<SyncVerdict> readProofAttr(Attribute attribute);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_PROOFATTR_H
