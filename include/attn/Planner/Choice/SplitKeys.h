//===- SplitKeys.h - Into how many runs keys are cut ------------*- C++ -*-===//
//
// Where few query rows see many keys, an attention has fewer tiles than a chip
// has room for. Cut into runs, the keys of a tile are read side by side, and
// attn.combine merges what comes out.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLANNER_CHOICE_SPLITKEYS_H
#define ATTN_PLANNER_CHOICE_SPLITKEYS_H

#include "attn/Planner/Choice/CombineChoice.h"

namespace mlir::attn {

/// Lets `op` write partial results of `splits` runs to buffers that are
/// allocated in front of it, and merges them behind it into what it wrote. A
/// plan may say that the kernel of `op` does both. Partial results of o have
/// the type `partials`, f32 if it is null, and those of f16 scales of rows.
CombineOp splitKeys(AttentionOp op, int64_t splits, Type partials = {});
/// Takes back what splitKeys did.
void joinKeys(AttentionOp op, CombineOp combine);
/// The type of partial results that is asked for, or best where that is `auto`;
/// null for f32.
Type choosePartials(const ProblemFacts &facts, llvm::StringRef asked);
/// Gives the partial results of o the type `partials`, and scales of rows to
/// those of f16, where they are memory of the launch that only `op` and what
/// merges them use.
void setPartials(AttentionOp op, Type partials);
/// Gives partial results of f16 a scale for each group of a row's columns that
/// the plan of `op` stores on its own, where scales are memory of the launch
/// that only `op` and what merges them use.
LogicalResult setUnitGroups(AttentionOp op);
/// Counts what partial results of the type that those of `op` have take of
/// shared memory and registers in each plan: the number of runs was chosen as
/// if they were f32. Fails where `op` or a plan is none.
LogicalResult countPartials(AttentionOp op, const TargetRow &target,
                            PlanCandidates &candidates);

/// What an attention is expected to take with its keys in `splits` runs.
struct SplitCandidate {
  int64_t splits = 1;
  /// The runs that all sequences have together where they are dealt, of which
  /// `splits` is the most of one; else 0.
  int64_t dealtRuns = 0;
  PlanCandidate candidate;
  /// Microseconds of merging what the plan writes.
  double mergeMicroseconds = 0;
  /// Microseconds, merging among them, where all sequences have the length that
  /// the table holds, and where their lengths differ.
  double evenMicroseconds = 0;
  double unevenMicroseconds = 0;
  /// The runs that are dealt are those of all sequences end to end
  /// (attn.plan_pieces); `splits` is the memory for their pieces then.
  bool areEqual = false;
};

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

/// The numbers of runs that are worth comparing for an attention of `tiles`
/// tiles of `keys` keys each, without 1, in order.
llvm::SmallVector<int64_t> listSplits(int64_t tiles, int64_t keys,
                                      const TargetRow &target);

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
