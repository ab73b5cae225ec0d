//===- EqualRuns.h - Plans with equal runs of all sequences -----*- C++ -*-===//

#ifndef ATTN_LIB_PLANNER_CHOICE_EQUALRUNS_H
#define ATTN_LIB_PLANNER_CHOICE_EQUALRUNS_H

#include "attn/Planner/Choice/KeyRuns.h"
#include "attn/Planner/Choice/UnevenTime.h"
#include "attn/Planner/Facts/Factor.h"

namespace mlir::attn {

/// The parameter of plans that says how many runs are dealt.
inline constexpr llvm::StringLiteral kDealtRuns = "dealt_runs";

/// Keys of the shortest run that is worth a CTA where queries are many, half of
/// the fewest keys that are cut.
inline constexpr Factor kShortestRun{"splits.shortest_run"};

/// True if `dealt_runs` of a schedule's plans are runs of all sequences end to
/// end (attn.plan_pieces), false if each sequence has runs of its own.
bool dealsEqualRuns(const Schedule &schedule, MLIRContext *context);

/// Adds to the reasons of `plans`, those of `able`, that the chip's default
/// schedule deals no runs, if it is none of them.
void noteStandard(PlanCandidates &plans, llvm::ArrayRef<const Schedule *> able,
                  const TargetRow &target);

/// The plans of a number of equal runs, and what to expect of the first one.
struct EqualRunsPlans {
  SplitCandidate picked;
  PlanCandidates plans;
};

/// Returns the plans with equal runs of an attention that may be split, for
/// each number of runs that fills the chip; `whole` is the estimate of the
/// fastest one with one run. `op` is as it was afterwards.
FailureOr<std::vector<EqualRunsPlans>>
collectEqualRuns(AttentionOp op, const PlanEstimate &whole,
                 const UnevenBatch &batch, const TargetRow &target,
                 llvm::ArrayRef<const Schedule *> schedules,
                 llvm::ArrayRef<PlanParameter> parameters);

} // namespace mlir::attn

#endif // ATTN_LIB_PLANNER_CHOICE_EQUALRUNS_H
