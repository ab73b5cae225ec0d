//===- FindKey.h - Keys are looked for by their numbers ---------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_FINDKEY_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_FINDKEY_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn::lowering {

/// Emits the key that the op gives, of pointers. Where `lane` is this thread's
/// number the threads of the warp, with the same operands, search together.
Value emitFoundKey(FindKeyOp op, Value lane = {});
/// Emits whether the numbers are in order.
Value emitOrder(InOrderOp op);

} // namespace mlir::attn::lowering

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_FINDKEY_H
