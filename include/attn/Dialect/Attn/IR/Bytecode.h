//===- Bytecode.h - Versions of the dialect in bytecode ---------*- C++ -*-===//
//
// Bytecode says which version of the dialect it was written by. What a later
// version reads of an earlier one: docs/Rationale/Interfaces.md.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_BYTECODE_H
#define ATTN_DIALECT_ATTN_IR_BYTECODE_H

#include "mlir/Bytecode/BytecodeImplementation.h"
#include <cstdint>

namespace mlir::attn {

/// The version that is written: it grows when the form of an op, type or
/// attribute changes. Bytecode of version 0 does not say its version.
constexpr uint64_t kBytecodeVersion = 11;

/// The dialect's version of a piece of bytecode.
struct AttnBytecodeVersion : DialectVersion {
  explicit AttnBytecodeVersion(uint64_t number) : number(number) {}

  /// From 1 on.
  uint64_t number;
};

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_BYTECODE_H
