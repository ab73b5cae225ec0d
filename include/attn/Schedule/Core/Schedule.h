//===- Schedule.h - How an attention is computed ----------------*- C++ -*-===//
//
// A schedule knows one way to compute an attention: which plans are legal, the
// shape of their kernels, and how to emit these in tile IR. A PlanModel
// compares its plans. All schedules are listed in one place, getSchedules(), to
// which programs that embed the compiler add their own; attn-plan chooses among
// them and attn-expand emits what was chosen.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_CORE_SCHEDULE_H
#define ATTN_SCHEDULE_CORE_SCHEDULE_H

#include "attn/Planner/Facts/PlanModel.h"
#include "attn/Schedule/Core/KernelContext.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

namespace mlir::attn {

/// One way to compute an attention.
class Schedule {
public:
  virtual ~Schedule() = default;

  /// The registered name, as `schedule=` and plans give it.
  virtual llvm::StringRef getName() const = 0;

  /// The plan that has the default of each parameter.
  virtual PlanAttrInterface getDefaultPlan(MLIRContext *context) const = 0;

  /// Success if the schedule can compute the problem at all, whatever the plan;
  /// else the reason, which starts with the schedule's name.
  virtual llvm::Error isApplicable(const ProblemFacts &facts,
                                   const TargetRow &target) const = 0;

  /// Success if `plan` computes the problem on `target`; else the reason: what
  /// isApplicable or checkPlan says.
  llvm::Error isLegal(const ProblemFacts &facts, PlanAttrInterface plan,
                      const TargetRow &target) const;

  /// Success if `plan` computes a problem that the schedule can compute; else
  /// the reason. A resource that does not fit is a reason that shows the sum.
  virtual llvm::Error checkPlan(const ProblemFacts &facts,
                                PlanAttrInterface plan,
                                const TargetRow &target) const = 0;

  /// `plan` with parameters replaced. Unknown names and values are diagnostics
  /// of `emitError` that list what there is. A schedule in which one choice
  /// rules out another may drop choices of `plan` that nobody named.
  virtual FailureOr<PlanAttrInterface>
  setParameters(llvm::function_ref<InFlightDiagnostic()> emitError,
                PlanAttrInterface plan,
                llvm::ArrayRef<PlanParameter> parameters) const;

  /// Groups of a row's columns that leave one after the other, so that partial
  /// results of f16 have units of their own in each.
  virtual int64_t countUnitGroups(const ProblemFacts &,
                                  PlanAttrInterface) const {
    return 1;
  }

  /// Says how `plan` adds up what a row is made of. Plans of whatever schedules
  /// of which the same is said give a row the same bits; of a plan of which
  /// nothing is said nobody knows others.
  virtual std::string describeSums(const ProblemFacts &,
                                   PlanAttrInterface) const {
    return "";
  }

  /// Grid, block and grid of warps of the kernel on `target`. A grid or threads
  /// that are not given are an error that names the schedule.
  virtual KernelShape getKernelShape(const ProblemFacts &facts,
                                     PlanAttrInterface plan,
                                     const TargetRow &target) const = 0;

  /// Returns the model that comes with the schedule; null for schedules of this
  /// project, whose models the planner knows.
  virtual const PlanModel *getOwnModel() const { return nullptr; }

  /// Emits the kernel's body in tile IR at the context's builder. Fails with a
  /// diagnostic; without one, whoever called names the schedule.
  virtual LogicalResult emit(KernelContext &context,
                             PlanAttrInterface plan) const = 0;
};

/// The base of schedules whose plans are attributes of the type `PlanAttr`, a
/// child of `Attn_Plan` (attn/Dialect/Attn/IR/PlanBase.td).
template <typename PlanAttr>
class ScheduleBase : public Schedule {
public:
  llvm::StringRef getName() const final {
    return PlanAttr::getSyntax().schedule;
  }
  PlanAttrInterface getDefaultPlan(MLIRContext *context) const final {
    return PlanAttr::get(context, {});
  }
};

/// A schedule of this project: the functions that its folder has for plans of
/// the type `PlanAttr`. Each does what Schedule says of the function of its
/// name.
template <typename PlanAttr>
class ProjectSchedule : public ScheduleBase<PlanAttr> {
public:
  struct Functions {
    llvm::Error (*isApplicable)(const ProblemFacts &, const TargetRow &);
    llvm::Error (*checkPlan)(const ProblemFacts &, PlanAttr, const TargetRow &);
    KernelShape (*getKernelShape)(const ProblemFacts &, PlanAttr,
                                  const TargetRow &);
    LogicalResult (*emit)(KernelContext &, PlanAttr);
    /// Adds parameters that drop choices which others rule out. May be null.
    llvm::SmallVector<PlanParameter> (*completeParameters)(
        llvm::ArrayRef<PlanParameter>) = nullptr;
    /// May be null.
    int64_t (*countUnitGroups)(const ProblemFacts &, PlanAttr) = nullptr;
    /// May be null.
    std::string (*describeSums)(const ProblemFacts &, PlanAttr) = nullptr;
  };

  explicit ProjectSchedule(const Functions &functions) : functions(functions) {}

  llvm::Error isApplicable(const ProblemFacts &facts,
                           const TargetRow &target) const final {
    return functions.isApplicable(facts, target);
  }
  llvm::Error checkPlan(const ProblemFacts &facts, PlanAttrInterface plan,
                        const TargetRow &target) const final {
    return functions.checkPlan(facts, cast<PlanAttr>(plan), target);
  }
  KernelShape getKernelShape(const ProblemFacts &facts, PlanAttrInterface plan,
                             const TargetRow &target) const final {
    return functions.getKernelShape(facts, cast<PlanAttr>(plan), target);
  }
  LogicalResult emit(KernelContext &context,
                     PlanAttrInterface plan) const final {
    return functions.emit(context, cast<PlanAttr>(plan));
  }
  FailureOr<PlanAttrInterface>
  setParameters(llvm::function_ref<InFlightDiagnostic()> emitError,
                PlanAttrInterface plan,
                llvm::ArrayRef<PlanParameter> parameters) const final {
    if (!functions.completeParameters)
      return Schedule::setParameters(emitError, plan, parameters);
    return Schedule::setParameters(emitError, plan,
                                   functions.completeParameters(parameters));
  }
  int64_t countUnitGroups(const ProblemFacts &facts,
                          PlanAttrInterface plan) const final {
    if (!functions.countUnitGroups)
      return Schedule::countUnitGroups(facts, plan);
    return functions.countUnitGroups(facts, cast<PlanAttr>(plan));
  }
  std::string describeSums(const ProblemFacts &facts,
                           PlanAttrInterface plan) const final {
    if (!functions.describeSums)
      return Schedule::describeSums(facts, plan);
    return functions.describeSums(facts, cast<PlanAttr>(plan));
  }

private:
  Functions functions;
};

/// The base of schedules from outside, which are their own models.
template <typename PlanAttr>
class ScheduleOf : public ScheduleBase<PlanAttr>, public PlanModel {
public:
  const PlanModel *getOwnModel() const final { return this; }
};

/// All schedules: those of this project, then registered ones in their order.
llvm::SmallVector<const Schedule *> getSchedules();

/// Adds a schedule, which lives as long as the process. From then on attn-plan
/// compares its plans with the others and `schedule=` selects it. An error if
/// the name is taken, or if the schedule brings no model. May be called from
/// any thread; a compilation that is running need not see it.
llvm::Error registerSchedule(const Schedule &schedule);

/// The schedule called `name`, or an error that lists the schedules there are.
llvm::Expected<const Schedule &> lookupSchedule(llvm::StringRef name);

/// The project's schedules, such as getSplitQSchedule(): Schedules.def.
#define ATTN_SCHEDULE(name) const Schedule &get##name##Schedule();
#include "attn/Schedule/Core/Schedules.def"
#undef ATTN_SCHEDULE

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_CORE_SCHEDULE_H
