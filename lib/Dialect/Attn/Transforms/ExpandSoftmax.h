//===- ExpandSoftmax.h - The online softmax as arithmetic -------*- C++ -*-===//
//
// Private to the passes that expand attn.online_softmax.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_EXPANDSOFTMAX_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_EXPANDSOFTMAX_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// Replaces `op` by reductions, broadcasts, exponentials and arithmetic on the
/// tiles, under its policy. An error at the op if the policy is `lagged`.
LogicalResult expandOnlineSoftmax(OnlineSoftmaxOp op);

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_EXPANDSOFTMAX_H
