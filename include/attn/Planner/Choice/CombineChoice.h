//===- CombineChoice.h - What merges runs of keys ---------------*- C++ -*-===//
//
// Partial results of runs of keys are merged by a second kernel, or by the CTA
// that finishes the last run of a tile (`combine` of the plans that can).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLANNER_CHOICE_COMBINECHOICE_H
#define ATTN_PLANNER_CHOICE_COMBINECHOICE_H

#include "attn/Planner/Choice/PlanCandidates.h"
#include "attn/Schedule/Core/MergedCombine.h"

namespace mlir::attn {

/// Microseconds from the end of a kernel of `splits` runs to the end of the one
/// that merges them. Its bytes are counted in the estimate of the first kernel.
double estimateMerge(int64_t splits);

/// The same from the end of a CTA's last run of a tile, of whose results it
/// merges `elements`, to its end.
double estimateTileMerge(int64_t splits, double elements, int64_t threads);

/// The same for a plan, by what merges its runs; 0 where keys are in one run.
double estimateMerge(const ProblemFacts &facts, int64_t splits,
                     const PlanCandidate &candidate);

/// The candidate, a plan of an attention whose keys are in `splits` runs (0:
/// whole), with what is expected to merge them faster, if `parameters` do not
/// say it and the plan has both ways.
PlanCandidate chooseCombine(const ProblemFacts &facts, int64_t splits,
                            const TargetRow &target,
                            const PlanCandidate &candidate,
                            llvm::ArrayRef<PlanParameter> parameters);

/// Returns true if the first plan of `merged`, an attention with partial
/// results of one run, and a kernel that makes the results of them take less
/// than the first one of `whole`, which makes them itself. One that spills
/// takes longer than one that does not.
bool areFasterMerged(const PlanCandidates &merged, const PlanCandidates &whole);

} // namespace mlir::attn

#endif // ATTN_PLANNER_CHOICE_COMBINECHOICE_H
