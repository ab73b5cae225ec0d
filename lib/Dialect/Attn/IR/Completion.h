//===- Completion.h - What a transfer is complete by ------------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_IR_COMPLETION_H
#define ATTN_LIB_DIALECT_ATTN_IR_COMPLETION_H

#include "mlir/IR/Operation.h"

namespace mlir::attn {

/// Checks what an asynchronous write to shared memory counts its bytes by: a
/// token, or one of several barriers, `which` by its index.
inline LogicalResult verifyCompletion(Operation *op, Value token,
                                      Value barriers, Value which) {
  if (static_cast<bool>(token) == static_cast<bool>(barriers))
    return op->emitOpError("expected either a token or a barrier to complete");
  if (static_cast<bool>(barriers) != static_cast<bool>(which))
    return op->emitOpError("expected the index of one of the barriers, got ")
           << (which ? "no barriers" : "none");
  return success();
}

/// Checks at how many CTAs of a cluster something happens, where the op says
/// so.
inline LogicalResult verifyClusterCTAs(Operation *op,
                                       std::optional<int64_t> ctas) {
  if (ctas && (*ctas < 2 || *ctas > 16))
    return op->emitOpError("expected a cluster of 2 to 16 CTAs, got ") << *ctas;
  return success();
}

/// Checks how many of its youngest groups of transfers a wait leaves
/// incomplete.
inline LogicalResult verifyPendingGroups(Operation *op, int64_t pending) {
  if (pending < 0)
    return op->emitOpError("expected a number of pending groups of at least 0, "
                           "got ")
           << pending;
  return success();
}

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_IR_COMPLETION_H
