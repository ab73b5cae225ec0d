//===- Captures.h - What regions read from outside --------------*- C++ -*-===//

#ifndef ATTN_PLANNER_FACTS_CAPTURES_H
#define ATTN_PLANNER_FACTS_CAPTURES_H

#include "attn/Planner/Facts/TensorFacts.h"

namespace mlir::attn {

/// Adds what the regions of `op` use from outside and is not there yet: memrefs
/// as `captureN`, N counting `tensors`, and scalars that are not constants.
/// Errors are diagnostics at the op.
LogicalResult collectCaptures(Operation *op,
                              SmallVectorImpl<TensorFacts> &tensors,
                              SmallVectorImpl<Value> &scalars);

} // namespace mlir::attn

#endif // ATTN_PLANNER_FACTS_CAPTURES_H
