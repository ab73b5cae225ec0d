//===- PlanCandidates.h - The legal plans of an attention -------*- C++ -*-===//

#ifndef ATTN_PLANNER_CHOICE_PLANCANDIDATES_H
#define ATTN_PLANNER_CHOICE_PLANCANDIDATES_H

#include "attn/Schedule/Core/Schedule.h"
#include <string>
#include <utility>

namespace mlir::attn {

/// A legal plan and what it is expected to take.
struct PlanCandidate {
  PlanAttrInterface plan;
  const Schedule *schedule = nullptr;
  PlanEstimate estimate;
  /// Whether ptxas is expected to spill registers.
  bool spills = false;

  /// One line: the plan, its time and its resources.
  std::string describe() const;
};

/// Why a schedule has no legal plan.
struct PlanReason {
  std::string text;
  /// The schedule takes the problem, but none of the plans that the parameters
  /// leave.
  bool isOfPlans = false;
  /// The schedule lacks an option of the problem, or the chip its instructions.
  bool lacksOption = false;
  /// The most columns that the schedule takes, where the problem has more.
  int64_t mostColumns = 0;
};

/// What schedules offer for an attention.
struct PlanCandidates {
  /// Legal plans, the one that is expected to be fastest first, where times
  /// count as often as their margins say. Spills cost
  /// more than any plan saves: such plans come last, the one with the fewest
  /// registers first. Equal estimates keep the order of the schedules' lists.
  llvm::SmallVector<PlanCandidate> plans;
  /// Why schedules have no legal plan, the target's default schedule first.
  llvm::SmallVector<PlanReason> reasons;
  /// Schedules of which the parameters make no plan, as they name another
  /// one's, each with its first plan.
  llvm::SmallVector<std::pair<const Schedule *, PlanAttrInterface>> unfit;
};

/// The schedule that a target's kernels are expected to have, whose reasons
/// matter most where they have another.
const Schedule &getDefaultSchedule(const TargetRow &target);

/// Why the first of `candidates`, which are not none, is no plan of `schedule`;
/// empty if it is one.
std::string explainOtherSchedule(const PlanCandidates &candidates,
                                 const Schedule &schedule);

/// Sorts reasons by how much they tell: what other parameters can mend before
/// what takes another problem, what takes other extents before what lacks an
/// option, and the widest limit of heads before a narrower one.
void sortReasons(PlanCandidates &candidates);

/// Names the schedules that take the problem on `target` where `refused` does
/// not, as the end of a sentence: "; 'mla' takes it". Empty where none does.
std::string nameOtherSchedules(const ProblemFacts &facts,
                               const TargetRow &target,
                               const Schedule &refused);

/// Collects the plans of `schedules` with `parameters` fixed in each.
PlanCandidates collectCandidates(const ProblemFacts &facts,
                                 const TargetRow &target,
                                 llvm::ArrayRef<const Schedule *> schedules,
                                 llvm::ArrayRef<PlanParameter> parameters = {});

/// Adds plans with `parameters` to `candidates`, which has none, of the
/// schedules that these do not fit. A plan is found where few other parameters
/// have to change for them. Returns the parameters of the first plan, changed
/// ones among them; `parameters` where there is none.
llvm::SmallVector<PlanParameter>
completeCandidates(const ProblemFacts &facts, const TargetRow &target,
                   llvm::ArrayRef<PlanParameter> parameters,
                   PlanCandidates &candidates);

/// The best `count` of `plans` as a table: a line of headings, then one for
/// each plan.
std::string formatPlanTable(llvm::ArrayRef<PlanCandidate> plans, size_t count);

/// Whether plans of `schedule` have a parameter called `name`.
bool hasParameter(const Schedule &schedule, MLIRContext *context,
                  llvm::StringRef name);

/// The parameters of a schedule's plans for people to read: each with what its
/// value has to be, its default, and what it decides. `schedule` is a name, or
/// empty for all schedules; an unknown one is an error.
llvm::Expected<std::string> listParameters(llvm::StringRef schedule,
                                           MLIRContext *context);

/// Estimates a legal plan.
PlanCandidate makeCandidate(const ProblemFacts &facts, const TargetRow &target,
                            const Schedule &schedule, PlanAttrInterface plan);

} // namespace mlir::attn

#endif // ATTN_PLANNER_CHOICE_PLANCANDIDATES_H
