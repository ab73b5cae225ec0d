//===- UnevenTime.h - Plans of batches of mixed lengths ---------*- C++ -*-===//
//
// What a plan takes where the sequences of a batch have other lengths than its
// table holds: no tile ends before the longest sequence's, and what runs beside
// it shares DRAM.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLANNER_CHOICE_UNEVENTIME_H
#define ATTN_PLANNER_CHOICE_UNEVENTIME_H

#include "attn/Schedule/Core/Schedule.h"

namespace mlir::attn {

/// A batch whose lengths are not known. Where nobody has said what to expect,
/// the logarithms of its lengths are taken to be spread evenly from 16 keys to
/// those that the table holds.
struct UnevenBatch {
  /// None where all have as many keys.
  int64_t sequences = 1;
  /// Keys that the table holds, and those of them that a window shows.
  int64_t keys = 0, seen = 0;
  /// Keys that sequences are expected to have, in turns; empty if nobody knows.
  llvm::ArrayRef<int64_t> expected = {};
};

/// Runs that all sequences have together, dealt by their lengths
/// (attn.deal_run); none where each has as many.
struct DealtRuns {
  int64_t total = 0, most = 0;
};

/// Lengths of such a batch in an order that has long and short ones everywhere,
/// each as far as the window shows it.
llvm::SmallVector<int64_t> listUnevenLengths(const UnevenBatch &batch);

/// How many runs each of these lengths has.
llvm::SmallVector<int64_t> dealRuns(llvm::ArrayRef<int64_t> lengths,
                                    DealtRuns dealt);

/// Microseconds of a plan that cuts the keys of a tile into `splits` runs, or
/// those of a tile of average length where they are dealt; `whole` is one of
/// one run. Merging is not among them.
double estimateUneven(const PlanEstimate &whole, const PlanEstimate &plan,
                      int64_t splits, const UnevenBatch &batch,
                      const TargetRow &target, DealtRuns dealt = {});

/// Does so for a plan that cuts the keys of all sequences, end to end, into
/// equal runs (attn.plan_pieces).
double estimateEqualRuns(const PlanEstimate &whole, const PlanEstimate &plan,
                         const UnevenBatch &batch);

} // namespace mlir::attn

#endif // ATTN_PLANNER_CHOICE_UNEVENTIME_H
