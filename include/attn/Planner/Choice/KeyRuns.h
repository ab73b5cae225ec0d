//===- KeyRuns.h - Keys in runs, and their partial results ------*- C++ -*-===//
//
// An attention whose keys are cut into runs writes a partial result for each,
// which attn.combine merges.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLANNER_CHOICE_KEYRUNS_H
#define ATTN_PLANNER_CHOICE_KEYRUNS_H

#include "attn/Planner/Choice/CombineChoice.h"

namespace mlir::attn {

/// Lets `op` write partial results of `splits` runs to buffers that are
/// allocated before it, and merges them after it into what it wrote. A
/// plan may say that the kernel of `op` does both. Partial results of o have
/// the type `partials`, f32 if it is null, and those of f16 scales of rows.
CombineOp splitKeys(AttentionOp op, int64_t splits, Type partials = {});
/// Takes back what splitKeys did.
void joinKeys(AttentionOp op, CombineOp combine);
/// Returns the type of partial results that is asked for, or best where that is
/// `auto`; null for f32.
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

/// The time that an attention is expected to take with its keys in `splits`
/// runs.
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

} // namespace mlir::attn

#endif // ATTN_PLANNER_CHOICE_KEYRUNS_H
