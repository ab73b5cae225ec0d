//===- PartialResults.h - merging partial results ---------------*- C++ -*-===//

#ifndef ATTN_HARNESS_PARTIALRESULTS_H
#define ATTN_HARNESS_PARTIALRESULTS_H

#include "attn/Harness/Reference.h"

namespace mlir::attn::sim {

/// Merges partial results over runs of keys in float64: o of shape (run, batch,
/// head, query, dv) and lse of shape (run, batch, head, query), natural
/// logarithm. What has an lse of -inf counts for nothing, whatever its o. Where
/// lse has one extent more, 2, rows are not divided and have a maximum and a
/// sum each, and so has the result.
/// Errors: shapes that do not fit each other.
llvm::Expected<AttentionResult> mergePartialResults(const TensorView &o,
                                                    const TensorView &lse);

/// `result`'s o as a float64 tensor, which refers to it.
TensorView viewOutput(const AttentionResult &result);
/// Returns what the rows of `result` have beside o: an LSE, or maximum and sum.
std::vector<double> listLogs(const AttentionResult &result);
/// These as a float64 tensor, which refers to `logs`.
TensorView viewLogs(const AttentionResult &result,
                    const std::vector<double> &logs);

} // namespace mlir::attn::sim

#endif // ATTN_HARNESS_PARTIALRESULTS_H
