//===- SplitKeys.h - Into how many runs keys are cut ------------*- C++ -*-===//
//
// Where few query rows see many keys, an attention has fewer tiles than a chip
// has room for. Cut into runs, the keys of a tile are read side by side, and
// attn.combine merges what comes out.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLANNER_CHOICE_SPLITKEYS_H
#define ATTN_PLANNER_CHOICE_SPLITKEYS_H

#include "attn/Planner/Choice/KeyRuns.h"

namespace mlir::attn {

/// What numbers of runs were compared.
struct SplitChoice {
  /// One run first, then more and more; those that are dealt at the end.
  llvm::SmallVector<SplitCandidate, 0> candidates;
  /// Index of what to take.
  size_t best = 0;
  /// The plans of that number of runs, the one that was picked first.
  PlanCandidates plans;

  const SplitCandidate &getBest() const { return candidates[best]; }
};

/// Returns the keys of the shortest run that is compared where a sequence has
/// so many queries: the partial results of many are more than what a short run
/// reads. Which runs are worth their merge estimates say.
int64_t getShortestRun(int64_t queries);

/// The numbers of runs that are worth comparing for an attention of `tiles`
/// tiles of `keys` keys each, whose sequences have `queries` queries, without
/// 1, in order.
llvm::SmallVector<int64_t> listSplits(int64_t tiles, int64_t keys,
                                      int64_t queries, const TargetRow &target);

/// Whether attn-plan may split the keys of `facts`: those of a server or of few
/// queries, whose results are not partial yet, and whose extents are known.
bool maySplitKeys(const ProblemFacts &facts);

/// Compares numbers of runs of an attention that may be split, and plans that
/// are as fast as each other where lengths are even. `whole` has its plans in
/// one run, the fastest first. `op` is as it was afterwards. Partial results
/// are taken for f32, whatever they will be: their type changes how results are
/// rounded, and not of how many runs they are the sum.
FailureOr<SplitChoice>
chooseSplits(AttentionOp op, const PlanCandidates &whole,
             const ProblemFacts &facts, const TargetRow &target,
             llvm::ArrayRef<const Schedule *> schedules,
             llvm::ArrayRef<PlanParameter> parameters = {});

/// The candidates as a table: a line of headings, then one for each.
std::string formatSplitTable(const SplitChoice &choice);

} // namespace mlir::attn

#endif // ATTN_PLANNER_CHOICE_SPLITKEYS_H
