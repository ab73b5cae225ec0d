//===- Plan.cpp - The pass attn-plan --------------------------------------===//
//
// For each attention: take the plan of a table of measured plans if one has the
// problem; else the candidate of all schedules that the cost model expects to
// be fastest. Options fix parameters, and then no table is asked; a plan that
// is there is kept. Estimates also say into how many runs keys are cut.
//
//===----------------------------------------------------------------------===//

#include "PlanRemarks.h"
#include "attn/Dialect/Attn/IR/TextCheck.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Planner/Choice/CombineChoice.h"
#include "attn/Planner/Choice/PlanCandidates.h"
#include "attn/Planner/Choice/PlanTable.h"
#include "attn/Planner/Choice/SplitKeys.h"
#include "attn/Planner/Facts/Factor.h"
#include "attn/Schedule/Core/CombineSchedule.h"
#include "attn/Target/TargetTable.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNPLANPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {

struct AttnPlanPass : attn::impl::AttnPlanPassBase<AttnPlanPass> {
  using Base::Base;
  void runOnOperation() override;

private:
  LogicalResult planOne(AttentionOp op, const TargetRow &target);
  /// Chooses into how many runs the keys are cut, where attn-plan may, and puts
  /// the plans of that number, with parameters as `named`, in the place of
  /// `candidates`.
  LogicalResult planSplits(const ProblemFacts &facts, const TargetRow &target,
                           ArrayRef<const Schedule *> schedules,
                           ArrayRef<PlanParameter> named,
                           PlanCandidates &candidates);
  /// Puts the plans of partial results of one run in the place of `candidates`,
  /// for scales of the output that none of these computes itself, or not as
  /// fast. Returns true if it did.
  FailureOr<bool> planOneRun(AttentionOp op, const TargetRow &target,
                             ArrayRef<const Schedule *> schedules,
                             PlanCandidates &candidates);
  void reportSplits(AttentionOp op, const SplitChoice &choice,
                    const TargetRow &target);
  /// Partial results are merged in one way; what options say is for attentions.
  LogicalResult planCombine(CombineOp op);
  /// Checks a plan that is already there, with the options applied.
  LogicalResult checkPlan(const ProblemFacts &facts, const TargetRow &target);
  /// Takes the plan of a table if one has the problem; false if none has it.
  FailureOr<bool> takeFromTable(const ProblemFacts &facts,
                                const TargetRow &target);
  LogicalResult takeEntry(const ProblemFacts &facts, const TargetRow &target,
                          const PlanTable &table, const PlanTableEntry &entry);
  /// The start of an error about parameters of `schedule`, with notes on the
  /// schedules that know those that it does not.
  InFlightDiagnostic startParameterError(AttentionOp op,
                                         const Schedule &schedule);
  /// Says why the parameters make no plan.
  LogicalResult refuseParameters(AttentionOp op,
                                 const PlanCandidates &candidates);
  /// Refuses a plan that was asked for and has too few registers, or warns of
  /// it where spills are allowed: some plans are fast in spite of them.
  LogicalResult refuseSpills(AttentionOp op, const PlanCandidate &candidate,
                             const TargetRow &target);
  /// Gives the problem a plan, with the name that options give the kernel: that
  /// is no reason to take another plan.
  LogicalResult setPlan(AttentionOp op, PlanAttrInterface plan);
  /// Takes the option's parameters apart.
  LogicalResult readParameters();

  SmallVector<PlanParameter> parameters;
  bool allowsSpills = false;
  StringRef kernel;
  /// Of what partial results of the attention that is planned become; null
  /// leaves them f32.
  Type partialType;
  std::optional<PlanTable> table;
};

} // namespace

LogicalResult AttnPlanPass::setPlan(AttentionOp op, PlanAttrInterface plan) {
  if (!kernel.empty())
    plan = plan.withParameters([&] { return op.emitOpError(); },
                               PlanParameter{"kernel", kernel});
  if (!plan)
    return failure();
  op.setPlanAttr(plan);
  return success();
}

LogicalResult AttnPlanPass::refuseSpills(AttentionOp op,
                                         const PlanCandidate &candidate,
                                         const TargetRow &target) {
  // What the planner chooses by itself spills only where all plans do.
  if (!candidate.spills || parameters.empty())
    return success();
  auto explain = [&](InFlightDiagnostic diag) {
    diag << candidate.plan << ": expected to spill: registers "
         << candidate.estimate.registers.str();
    // A sum that says nothing: warps have unlike budgets, or a table knows
    // more.
    if (candidate.estimate.registers.getTotal() <= target.registersPerThread)
      diag << ", and ptxas was seen to spill such plans";
    diag << "; " << target.chip << " has " << target.registersPerThread
         << " a thread and " << target.registersPerSM << " for "
         << candidate.plan.getThreads() << " threads";
    return diag;
  };
  if (allowsSpills) {
    explain(op.emitWarning("plan "));
    return success();
  }
  return explain(op.emitOpError("cannot be computed by plan "))
         << "; the parameter 'spills=allow' has it computed all the same";
}

LogicalResult AttnPlanPass::checkPlan(const ProblemFacts &facts,
                                      const TargetRow &target) {
  AttentionOp op = facts.op;
  PlanAttrInterface plan = op.getPlanAttr();
  llvm::Expected<const Schedule &> found = lookupSchedule(plan.getSchedule());
  if (!found)
    return op.emitOpError() << llvm::toString(found.takeError());
  if (!schedule.empty() && schedule != plan.getSchedule())
    return op.emitOpError("has a plan of schedule '")
           << plan.getSchedule() << "', but the option says '" << schedule
           << "'";
  FailureOr<PlanAttrInterface> changed = found->setParameters(
      [&] { return startParameterError(op, *found); }, plan, parameters);
  if (failed(changed))
    return failure();
  if (llvm::Error error = found->isLegal(facts, *changed, target))
    return op.emitOpError("cannot be computed by plan ")
           << *changed << ": " << llvm::toString(std::move(error))
           << nameOtherSchedules(facts, target, *found);
  if (failed(setPlan(op, *changed)))
    return failure();
  PlanCandidate candidate =
      makeCandidate(facts, target, *found, op.getPlanAttr());
  report(op, candidate, "for " + target.chip);
  return refuseSpills(op, candidate, target);
}

LogicalResult AttnPlanPass::takeEntry(const ProblemFacts &facts,
                                      const TargetRow &target,
                                      const PlanTable &table,
                                      const PlanTableEntry &entry) {
  AttentionOp op = facts.op;
  auto fail = [&](const llvm::Twine &why) {
    return op.emitOpError()
           << "cannot be computed by plan " << entry.plan << " of plan table "
           << table.getName() << ": " << why;
  };
  if (std::optional<TextProblem> problem = findTextProblem(entry.plan))
    return fail("expected a plan as IR prints it: " + problem->message);
  PlanAttrInterface plan;
  std::string reason;
  {
    ScopedDiagnosticHandler listen(&getContext(), [&](Diagnostic &diagnostic) {
      if (reason.empty())
        reason = ": " + diagnostic.str();
      return success();
    });
    plan = dyn_cast_if_present<PlanAttrInterface>(
        parseAttribute(entry.plan, &getContext()));
  }
  if (!plan)
    return fail("expected a plan as IR prints it" + reason);
  llvm::Expected<const Schedule &> found = lookupSchedule(plan.getSchedule());
  if (!found)
    return fail(llvm::toString(found.takeError()));
  if (llvm::Error error = found->isLegal(facts, plan, target))
    return fail(llvm::toString(std::move(error)));
  if (failed(setPlan(op, plan)))
    return failure();
  PlanCandidate candidate =
      makeCandidate(facts, target, *found, op.getPlanAttr());
  std::string measured = llvm::formatv("; measured {0:f1} us on {1}",
                                       entry.microseconds, entry.board);
  std::string source =
      ("from table " + table.getName() + " for " + target.chip).str();
  if (print || printAll)
    op.emitRemark() << "plan " << source << ": " << candidate.describe()
                    << measured;
  report(op, candidate, source, measured);
  return success();
}

FailureOr<bool> AttnPlanPass::takeFromTable(const ProblemFacts &facts,
                                            const TargetRow &target) {
  // What options ask for comes before what was measured, and tables know whole
  // problems only.
  if (!schedule.empty() || !parameters.empty() || facts.kvSplits != 0)
    return false;
  SmallVector<const PlanTable *> tables;
  if (table)
    tables.push_back(&*table);
  if (shippedPlans)
    tables.push_back(&PlanTable::getShipped());
  for (const PlanTable *each : tables)
    if (const PlanTableEntry *entry = each->find(facts, target)) {
      if (failed(takeEntry(facts, target, *each, *entry)))
        return failure();
      return true;
    }
  return false;
}

InFlightDiagnostic AttnPlanPass::startParameterError(AttentionOp op,
                                                     const Schedule &schedule) {
  InFlightDiagnostic diag = op.emitOpError("has no such plan of schedule '")
                            << schedule.getName() << "': ";
  for (PlanParameter parameter : parameters)
    if (!hasParameter(schedule, &getContext(), parameter.name))
      for (const Schedule *other : getSchedules())
        if (hasParameter(*other, &getContext(), parameter.name))
          diag.attachNote()
              << "'" << parameter.name << "' is a parameter of schedule '"
              << other->getName() << "'";
  return diag;
}

LogicalResult AttnPlanPass::refuseParameters(AttentionOp op,
                                             const PlanCandidates &candidates) {
  // The schedule that was meant knows the names; its complaint is about values.
  const auto *unfit = llvm::find_if(candidates.unfit, [&](const auto &each) {
    return llvm::all_of(parameters, [&](PlanParameter parameter) {
      return hasParameter(*each.first, &getContext(), parameter.name);
    });
  });
  bool isAboutValues = unfit != candidates.unfit.end();
  if (!isAboutValues)
    unfit = candidates.unfit.begin();
  const Schedule &meant = *unfit->first;
  PlanAttrInterface plan = unfit->second;
  auto start = [&] {
    InFlightDiagnostic diag = startParameterError(op, meant);
    // Those beside them depend on the problem.
    if (isAboutValues)
      diag.attachNote() << "the parameters fit no plan of '" << meant.getName()
                        << "' for this problem, such as " << plan;
    return diag;
  };
  return meant.setParameters(start, plan, parameters);
}

void AttnPlanPass::reportSplits(AttentionOp op, const SplitChoice &choice,
                                const TargetRow &target) {
  if (print || printAll)
    op.emitRemark() << choice.candidates.size()
                    << " numbers of runs of keys for " << target.chip << ", "
                    << choice.getBest().splits << " taken:\n"
                    << formatSplitTable(choice);
  const SplitCandidate &whole = choice.candidates.front();
  const SplitCandidate &best = choice.getBest();
  std::string runs = "keys in one run";
  if (best.areEqual)
    runs = llvm::formatv("keys of all sequences, end to end, cut by their "
                         "lengths into {0} equal runs",
                         best.dealtRuns);
  else if (best.splits != 1)
    runs = llvm::formatv("keys cut into {0} runs", best.splits);
  std::string text = llvm::formatv(
      "{0} of {1} tiles on {2} SMs take {3:f1} us with even lengths and {4:f1} "
      "with others, {5:f1} of them merging; one run takes {6:f1} and {7:f1}",
      runs, whole.candidate.estimate.tiles, target.smCount,
      best.evenMicroseconds, best.unevenMicroseconds, best.mergeMicroseconds,
      whole.evenMicroseconds, whole.unevenMicroseconds);
  auto round = [](double value) {
    return llvm::formatv("{0:f1}", value).str();
  };
  remark::passed(op.getLoc(),
                 remark::RemarkOpts::name("split").category("attn.split"))
      << remark::add("{0}", text) << remark::metric("splits", best.splits)
      << remark::metric("tiles", whole.candidate.estimate.tiles)
      << remark::metric("even-microseconds", round(best.evenMicroseconds))
      << remark::metric("uneven-microseconds", round(best.unevenMicroseconds));
}

/// Tells if `op` as it stands can be computed by a plan.
static bool isLegalFor(AttentionOp op, PlanAttrInterface plan,
                       const TargetRow &target) {
  FailureOr<ProblemFacts> facts = ProblemFacts::get(op);
  llvm::Expected<const Schedule &> schedule =
      lookupSchedule(plan.getSchedule());
  if (!schedule) {
    llvm::consumeError(schedule.takeError());
    return false;
  }
  return succeeded(facts) &&
         !llvm::errorToBool(schedule->isLegal(*facts, plan, target));
}

LogicalResult AttnPlanPass::planSplits(const ProblemFacts &facts,
                                       const TargetRow &target,
                                       ArrayRef<const Schedule *> schedules,
                                       ArrayRef<PlanParameter> named,
                                       PlanCandidates &candidates) {
  if (!split || !maySplitKeys(facts) || candidates.plans.empty())
    return success();
  AttentionOp op = facts.op;
  FailureOr<SplitChoice> choice =
      chooseSplits(op, candidates, facts, target, schedules, named);
  if (failed(choice))
    return failure();
  if (choice->candidates.empty())
    return success();
  reportSplits(op, *choice, target);
  const SplitCandidate &best = choice->getBest();
  if (best.splits != 1) {
    CombineOp combine = splitKeys(op, best.splits, partialType);
    // Not every schedule writes what is best for others.
    if (partials == "auto" && partialType &&
        !isLegalFor(op, best.candidate.plan, target)) {
      joinKeys(op, combine);
      partialType = Type();
      combine = splitKeys(op, best.splits, partialType);
    }
    ++numSplit;
    if (failed(planCombine(combine)))
      return failure();
  }
  candidates = std::move(choice->plans);
  if (best.splits == 1 || !partialType)
    return success();
  return countPartials(op, target, candidates);
}

/// Plans that were chosen for one run alone also have to be those of all runs.
static void dropIllegal(const ProblemFacts &facts, const TargetRow &target,
                        PlanCandidates &candidates) {
  if (!facts.hasRuns())
    return;
  llvm::erase_if(candidates.plans, [&](const PlanCandidate &candidate) {
    llvm::Expected<const Schedule &> schedule =
        lookupSchedule(candidate.plan.getSchedule());
    llvm::Error error = schedule
                            ? schedule->isLegal(facts, candidate.plan, target)
                            : schedule.takeError();
    if (!error)
      return false;
    std::string reason = llvm::toString(std::move(error));
    if (llvm::none_of(candidates.reasons, [&](const PlanReason &known) {
          return known.text == reason;
        }))
      candidates.reasons.push_back({reason, /*isOfPlans=*/true});
    return true;
  });
}

/// Lets the faster way merge the runs of a plan. What merging takes depends on
/// the tiles of all runs, whatever `candidate` was estimated for; its results
/// do not.
static void setCombine(const ProblemFacts &facts, const TargetRow &target,
                       ArrayRef<PlanParameter> parameters,
                       PlanCandidate &candidate) {
  PlanCandidate whole =
      makeCandidate(facts, target, *candidate.schedule, candidate.plan);
  candidate.plan =
      chooseCombine(facts, facts.kvSplits, target, whole, parameters).plan;
}

FailureOr<bool> AttnPlanPass::planOneRun(AttentionOp op,
                                         const TargetRow &target,
                                         ArrayRef<const Schedule *> schedules,
                                         PlanCandidates &candidates) {
  CombineOp combine = splitKeys(op, /*splits=*/1, partialType);
  FailureOr<ProblemFacts> facts = ProblemFacts::get(op);
  bool isTaken = false;
  if (succeeded(facts)) {
    PlanCandidates merged =
        collectCandidates(*facts, target, schedules, parameters);
    isTaken = areFasterMerged(merged, candidates);
    if (isTaken)
      candidates = std::move(merged);
  }
  joinKeys(op, combine);
  if (failed(facts))
    return failure();
  return isTaken;
}

/// Puts in front of plans for one query the fastest one for all of them that
/// gives a row the bits of the first.
static void preferRows(const ProblemFacts &facts, const TargetRow &target,
                       ArrayRef<const Schedule *> schedules,
                       ArrayRef<PlanParameter> parameters,
                       PlanCandidates &candidates) {
  if (!facts.hasRuns() || facts.queries <= 1 || candidates.plans.empty())
    return;
  auto describe = [&](const PlanCandidate &each) {
    return each.schedule->describeSums(facts, each.plan);
  };
  std::string sums = describe(candidates.plans.front());
  if (sums.empty())
    return;
  for (const PlanCandidate &each :
       collectCandidates(facts, target, schedules, parameters).plans)
    if (!each.spills && describe(each) == sums) {
      candidates.plans.insert(candidates.plans.begin(), each);
      return;
    }
}

LogicalResult AttnPlanPass::planOne(AttentionOp op, const TargetRow &target) {
  FailureOr<ProblemFacts> facts = ProblemFacts::get(op);
  if (failed(facts))
    return failure();
  partialType = choosePartials(*facts, partials);
  if (partialType && !op.getPlanAttr()) {
    setPartials(op, partialType);
    facts = ProblemFacts::get(op);
    if (failed(facts))
      return failure();
  }
  if (op.getPlanAttr())
    return checkPlan(*facts, target);
  FailureOr<bool> isTaken = takeFromTable(*facts, target);
  if (failed(isTaken))
    return failure();
  if (*isTaken)
    return success();

  SmallVector<const Schedule *> schedules(getSchedules());
  if (!schedule.empty()) {
    llvm::Expected<const Schedule &> found = lookupSchedule(schedule);
    if (!found)
      return op.emitOpError() << llvm::toString(found.takeError());
    schedules = {&*found};
  }
  PlanCandidates candidates =
      collectCandidates(facts->getPlanned(), target, schedules, parameters);
  dropIllegal(*facts, target, candidates);
  preferRows(*facts, target, schedules, parameters, candidates);
  SmallVector<PlanParameter> named(parameters);
  if (candidates.plans.empty()) {
    named =
        completeCandidates(facts->getPlanned(), target, parameters, candidates);
    dropIllegal(*facts, target, candidates);
  }
  FailureOr<bool> isMerged = false;
  if ((candidates.plans.empty() || split) && facts->oScales &&
      !facts->hasPartialScales() && candidates.unfit.empty() &&
      mayMergeScales(*facts))
    isMerged = planOneRun(op, target, schedules, candidates);
  if (failed(isMerged))
    return failure();
  if (failed(planSplits(*facts, target, schedules, named, candidates)))
    return failure();
  if (*isMerged && !op.getKvSplits() &&
      failed(planCombine(splitKeys(op, /*splits=*/1, partialType))))
    return failure();
  // What problems say themselves about runs leaves who merges them.
  if (!candidates.plans.empty() && findMergedCombine(op))
    setCombine(*facts, target, parameters, candidates.plans.front());
  if (candidates.plans.empty() && !candidates.unfit.empty())
    return refuseParameters(op, candidates);
  if (candidates.plans.empty()) {
    sortReasons(candidates);
    InFlightDiagnostic diag = op.emitOpError("has no legal plan on ")
                              << target.chip << ": "
                              << candidates.reasons.front().text;
    if (schedules.size() == 1)
      diag << nameOtherSchedules(*facts, target, *schedules.front());
    for (const PlanReason &reason : llvm::drop_begin(candidates.reasons))
      diag.attachNote() << reason.text;
    return diag;
  }
  // Elements that move to their own place would lose their parts.
  if (size_t skipped = std::min<size_t>(skipPlans, candidates.plans.size() - 1))
    candidates.plans.erase(candidates.plans.begin(),
                           candidates.plans.begin() + skipped);
  constexpr size_t tableLength = 10;
  if (print)
    op.emitRemark() << candidates.plans.size() << " plans for " << target.chip
                    << ", the fastest "
                    << std::min(candidates.plans.size(), tableLength) << ":\n"
                    << formatPlanTable(candidates.plans, tableLength);
  if (printAll) {
    InFlightDiagnostic diag = op.emitRemark()
                              << candidates.plans.size() << " plans for "
                              << target.chip << ", fastest first";
    for (const PlanCandidate &candidate : candidates.plans)
      diag.attachNote() << candidate.describe();
  }
  if (failed(setPlan(op, candidates.plans.front().plan)) ||
      failed(setUnitGroups(op)))
    return failure();
  candidates.plans.front().plan = op.getPlanAttr();
  report(op, candidates.plans.front(), "for " + target.chip);
  reportWays(op, candidates.plans, "epilogue", "results leave");
  reportWays(op, candidates.plans, "softmax", "maxima are kept");
  if (failed(refuseSpills(op, candidates.plans.front(), target)))
    return failure();
  if (schedule.empty() && parameters.empty()) {
    reportOtherSchedule(op, candidates, target);
    reportSlowerSchedule(op, candidates, target);
  }
  return success();
}

LogicalResult AttnPlanPass::planCombine(CombineOp op) {
  FailureOr<CombineFacts> facts = CombineFacts::get(op);
  if (failed(facts))
    return failure();
  if (!op.getPlanAttr())
    op.setPlanAttr(getDefaultCombinePlan(&getContext()));
  if (llvm::Error error = checkCombinePlan(*facts, op.getPlanAttr()))
    return op.emitOpError("cannot be computed by plan ")
           << op.getPlanAttr() << ": " << llvm::toString(std::move(error));
  return success();
}

LogicalResult AttnPlanPass::readParameters() {
  parameters.clear();
  allowsSpills = false;
  kernel = {};
  for (const std::string &text : set) {
    auto [name, value] = StringRef(text).split('=');
    if (name.empty() || value.empty())
      return getOperation().emitError(
                 "expected parameters of the form name=value, got '")
             << text << "'";
    // About the plan, not a part of it.
    if (name == "spills") {
      if (value != "allow")
        return getOperation().emitError("expected spills=allow, got '")
               << text << "'";
      allowsSpills = true;
      continue;
    }
    for (auto [other, given] : parameters)
      if (other == name && given != value)
        return getOperation().emitError("expected one value of '")
               << name << "', got '" << given << "' and '" << value << "'";
    if (name == "kernel")
      kernel = value;
    else
      parameters.push_back({name, value});
  }
  return success();
}

void AttnPlanPass::runOnOperation() {
  ModuleOp module = getOperation();
  llvm::Expected<TargetRow> target = lookupTarget(chip, board);
  if (!target) {
    module.emitError() << llvm::toString(target.takeError());
    return signalPassFailure();
  }
  CalibrationScope calibration(*target);
  reportBoard(module, *target, board);
  table.reset();
  if (!planTable.empty()) {
    llvm::Expected<PlanTable> read = PlanTable::read(planTable);
    if (!read) {
      module.emitError() << llvm::toString(read.takeError());
      return signalPassFailure();
    }
    table = std::move(*read);
  }
  if (!llvm::is_contained({"auto", "f32", "f16", "bf16"}, partials)) {
    module.emitError("partials: expected auto, f32, f16 or bf16, got '")
        << partials << "'";
    return signalPassFailure();
  }
  if (failed(readParameters()))
    return signalPassFailure();
  // Splitting adds ops.
  SmallVector<Operation *> problems;
  module.walk([&](Operation *op) {
    if (isa<AttentionOp, CombineOp>(op))
      problems.push_back(op);
  });
  for (Operation *op : problems) {
    auto attention = dyn_cast<AttentionOp>(op);
    if (failed(attention ? planOne(attention, *target)
                         : planCombine(cast<CombineOp>(op))))
      return signalPassFailure();
  }
}
