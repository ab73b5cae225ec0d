//===- ExpandSoftmax.h - The online softmax as arithmetic -------*- C++ -*-===//
//
// Private to the passes that expand attn.online_softmax.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_EXPANDSOFTMAX_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_EXPANDSOFTMAX_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// Replaces `op` by reductions, broadcasts, exponentials and arithmetic on the
/// tiles, under its policy. With `inFlight` the accumulator is what a product's
/// wait of its own returns and the policy is `optimistic`: only the rare path
/// waits, and the new accumulator is in flight. With `product`, whose operands
/// are readable up to behind `op`, and whose result are the scores of a policy
/// `optimistic`, scores need not outlive the probabilities (`rescore` of
/// attn.kv_loop).
LogicalResult expandOnlineSoftmax(OnlineSoftmaxOp op, bool inFlight = false,
                                  ProductOpInterface product = {});

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_EXPANDSOFTMAX_H
