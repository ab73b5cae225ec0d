//===- PartialResults.h - merging partial results ---------------*- C++ -*-===//

#ifndef ATTN_HARNESS_PARTIALRESULTS_H
#define ATTN_HARNESS_PARTIALRESULTS_H

#include "attn/Harness/Reference.h"

namespace mlir::attn::sim {

/// Merges partial results over runs of keys in float64: o of shape (run, batch,
/// head, query, dv) and lse of shape (run, batch, head, query), natural
/// logarithm. What has an lse of -inf counts for nothing, whatever its o.
/// Errors: shapes that do not fit each other.
llvm::Expected<AttentionResult> mergePartialResults(const TensorView &o,
                                                    const TensorView &lse);

/// `result` as float64 tensors: o, and lse. They refer to it.
TensorView viewOutput(const AttentionResult &result);
TensorView viewLSE(const AttentionResult &result);

} // namespace mlir::attn::sim

#endif // ATTN_HARNESS_PARTIALRESULTS_H
