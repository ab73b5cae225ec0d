//===- AtomicOps.h - One atomic operation -----------------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_INSTRUCTIONS_ATOMICOPS_H
#define ATTN_LIB_SIMULATOR_INSTRUCTIONS_ATOMICOPS_H

#include "../PTX/Types.h"

namespace mlir::attn::sim {

enum class AtomicOp : uint8_t {
  Add,
  Min,
  Max,
  And,
  Or,
  Xor,
  Exch,
  Cas,
  Inc,
  Dec
};

/// One atomic operation on a value of the given type.
uint64_t applyAtomic(AtomicOp op, Type type, uint64_t old, uint64_t value);
/// The same on `bytes` bytes of memory. Those whose result follows from a
/// defined value alone become valid, whatever was there before; `valid` may be
/// null.
void applyAtomic(AtomicOp op, Type type, uint64_t value, bool isDefined,
                 unsigned bytes, uint8_t *data, uint8_t *valid);
bool parseAtomicOp(llvm::StringRef name, AtomicOp &op);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_INSTRUCTIONS_ATOMICOPS_H
