//===- CompletePlans.h - Parameters that follow from others -----*- C++ -*-===//

#ifndef ATTN_LIB_PLANNER_CHOICE_COMPLETEPLANS_H
#define ATTN_LIB_PLANNER_CHOICE_COMPLETEPLANS_H

#include "attn/Planner/Facts/ProblemFacts.h"
#include "attn/Schedule/Core/Schedule.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::attn {

/// Plans, each with the parameters that make it of one that was there.
using CompletedPlans =
    llvm::MapVector<PlanAttrInterface, llvm::SmallVector<PlanParameter>>;

/// Returns the legal plans of `schedule` with `parameters` that differ from one
/// of `base` in as few parameters beside these as possible: a choice goes back
/// to the schedule's default, or part of the way to it, or is taken that is not
/// there. None where no few changes make a plan, or where the schedule does not
/// know a parameter. The context owns the values of what is changed.
CompletedPlans completePlans(const ProblemFacts &facts, const TargetRow &target,
                             const Schedule &schedule,
                             llvm::ArrayRef<PlanAttrInterface> base,
                             llvm::ArrayRef<PlanParameter> parameters);

} // namespace mlir::attn

#endif // ATTN_LIB_PLANNER_CHOICE_COMPLETEPLANS_H
