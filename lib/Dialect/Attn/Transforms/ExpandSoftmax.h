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
/// tiles. An error at the op if its policy is not `exact`.
LogicalResult expandOnlineSoftmax(OnlineSoftmaxOp op);

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_EXPANDSOFTMAX_H
