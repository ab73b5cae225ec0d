//===- OutputScales.h - Outputs with scales of their columns ----*- C++ -*-===//

#ifndef ATTN_LIB_HARNESS_OUTPUTSCALES_H
#define ATTN_LIB_HARNESS_OUTPUTSCALES_H

#include "attn/Harness/HarnessReport.h"
#include "attn/Harness/Reference.h"

namespace mlir::attn::sim {

/// What an output stands for whose groups of columns have scales: its numbers
/// times these. Both have the extents of `reference`, `scales` as many columns
/// as groups, or are in tiles, of groups of `groupColumns` columns.
llvm::Expected<AttentionResult>
applyOutputScales(const TensorView &o, DType dtype, const TensorView &scales,
                  int64_t groupColumns, const AttentionResult &reference);

/// Limits `reference`, results of 4 bits, to what their largest number and
/// largest scale stand for.
void limitFloat4(AttentionResult &reference);

/// Compares numbers of 8 and 4 bits of a report one by one with `reference`,
/// and its largest result.
void compareNarrow(HarnessReport &report, const AttentionProblem *problem,
                   const AttentionResult &reference);

/// Returns what is wrong with the first scale that is further from the one of
/// the reference than `tolerance` of it and `rowTolerance` of its row's largest
/// one. A scale is the largest magnitude of the group by that of `dtype`, no
/// more than its own type has, and 1 where all are 0.
std::optional<std::string> findWrongScale(const TensorView &scales, DType dtype,
                                          int64_t groupColumns,
                                          const AttentionResult &reference,
                                          double tolerance,
                                          double rowTolerance);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_HARNESS_OUTPUTSCALES_H
