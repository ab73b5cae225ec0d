//===- Plan.cpp - The pass attn-plan --------------------------------------===//
//
// For each attention: collect the candidates of all schedules, drop those that
// are not legal or expected to spill, and take the one that the cost model
// expects to be fastest. Options fix parameters; a plan that is already there
// is checked and kept.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Schedule/Schedule.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/ScopedPrinter.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNPLANPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {

/// A legal plan and what it is expected to take.
struct Candidate {
  PlanAttrInterface plan;
  const Schedule *schedule;
  PlanEstimate estimate;
  bool spills;
  /// Position in the schedule's list.
  size_t rank;
};

struct AttnPlanPass : attn::impl::AttnPlanPassBase<AttnPlanPass> {
  using Base::Base;
  void runOnOperation() override;

private:
  LogicalResult planOne(AttentionOp op, const TargetRow &target);
  /// Checks a plan that is already there, with the options applied.
  LogicalResult checkPlan(const ProblemFacts &facts, const TargetRow &target);
  /// Adds all legal plans of one schedule that agree with the options, or the
  /// reason why there is none. A schedule of which the options make no plan,
  /// as they name another one's parameters, joins `unfit`.
  void collect(const ProblemFacts &facts, const TargetRow &target,
               const Schedule &schedule, SmallVectorImpl<Candidate> &candidates,
               SmallVectorImpl<std::string> &reasons);
  void report(AttentionOp op, const TargetRow &target,
              const Candidate &candidate);

  SmallVector<PlanParameter> parameters;
  SmallVector<std::pair<const Schedule *, PlanAttrInterface>> unfit;
};

} // namespace

/// One line on a candidate: what it is expected to take.
static std::string describe(const Candidate &candidate) {
  const PlanEstimate &e = candidate.estimate;
  return llvm::formatv(
      "{0}: {1:f1} us ({2:f2} waves of {3} CTAs an SM; {4:f1} blocks a tile "
      "at {5:f0} clocks, tile {6:f0}; limit {7}), shared memory {8}, "
      "registers {9}{10}",
      llvm::to_string(candidate.plan), e.microseconds, e.waves, e.ctasPerSM,
      e.blocks, e.blockClocks, e.tileClocks, e.getLimiter(),
      e.sharedBytes.str(), e.registers.str(),
      candidate.spills ? ", expected to spill" : "");
}

void AttnPlanPass::report(AttentionOp op, const TargetRow &target,
                          const Candidate &candidate) {
  const PlanEstimate &e = candidate.estimate;
  remark::passed(op.getLoc(),
                 remark::RemarkOpts::name("plan").category("attn.plan"))
      << remark::add("plan for {0}: {1}", target.chip, describe(candidate))
      << remark::metric("microseconds",
                        llvm::formatv("{0:f1}", e.microseconds).str())
      << remark::metric("shared-bytes", e.sharedBytes.getTotal())
      << remark::metric("registers", e.registers.getTotal())
      << remark::metric("ctas-per-sm", e.ctasPerSM)
      << remark::metric("tensor-clocks",
                        llvm::formatv("{0:f0}", e.tensorClocks).str())
      << remark::metric("exp-clocks",
                        llvm::formatv("{0:f0}", e.expClocks).str())
      << remark::metric("issue-clocks",
                        llvm::formatv("{0:f0}", e.issueClocks).str())
      << remark::metric("shared-clocks",
                        llvm::formatv("{0:f0}", e.sharedClocks).str());
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
      [&] { return op.emitOpError(); }, &getContext(), plan, parameters);
  if (failed(changed))
    return failure();
  if (llvm::Error error = found->isLegal(facts, *changed, target))
    return op.emitOpError("cannot be computed by plan ")
           << *changed << ": " << llvm::toString(std::move(error));
  op.setPlanAttr(*changed);
  report(op, target,
         {*changed, &*found, found->estimate(facts, *changed, target),
          found->isExpectedToSpill(facts, *changed, target), 0});
  return success();
}

void AttnPlanPass::collect(const ProblemFacts &facts, const TargetRow &target,
                           const Schedule &schedule,
                           SmallVectorImpl<Candidate> &candidates,
                           SmallVectorImpl<std::string> &reasons) {
  AttentionOp op = facts.op;
  if (llvm::Error error = schedule.isApplicable(facts, target)) {
    reasons.push_back(llvm::toString(std::move(error)));
    return;
  }
  // Parameters are fixed in each candidate; those that make no plan are silent
  // as long as another one does.
  llvm::SmallSetVector<PlanAttrInterface, 32> plans;
  std::vector<PlanAttrInterface> base = schedule.getCandidates(facts, target);
  {
    ScopedDiagnosticHandler silence(&getContext(),
                                    [](Diagnostic &) { return success(); });
    for (PlanAttrInterface plan : base) {
      FailureOr<PlanAttrInterface> changed = schedule.setParameters(
          [&] { return op.emitOpError(); }, &getContext(), plan, parameters);
      if (succeeded(changed))
        plans.insert(*changed);
    }
  }
  if (plans.empty()) {
    unfit.emplace_back(&schedule, base.front());
    return;
  }
  std::string firstReason;
  size_t before = candidates.size();
  for (PlanAttrInterface plan : plans) {
    if (llvm::Error error = schedule.isLegal(facts, plan, target)) {
      std::string reason = llvm::toString(std::move(error));
      if (firstReason.empty())
        firstReason = llvm::to_string(plan) + ": " + reason;
      continue;
    }
    candidates.push_back(
        {plan, &schedule, schedule.estimate(facts, plan, target),
         schedule.isExpectedToSpill(facts, plan, target), candidates.size()});
  }
  if (candidates.size() == before)
    reasons.push_back(firstReason);
}

LogicalResult AttnPlanPass::planOne(AttentionOp op, const TargetRow &target) {
  FailureOr<ProblemFacts> facts = ProblemFacts::get(op);
  if (failed(facts))
    return failure();
  if (op.getPlanAttr())
    return checkPlan(*facts, target);

  SmallVector<const Schedule *> schedules(getSchedules());
  if (!schedule.empty()) {
    llvm::Expected<const Schedule &> found = lookupSchedule(schedule);
    if (!found)
      return op.emitOpError() << llvm::toString(found.takeError());
    schedules = {&*found};
  }
  SmallVector<Candidate> candidates;
  SmallVector<std::string> reasons;
  unfit.clear();
  for (const Schedule *each : schedules)
    collect(*facts, target, *each, candidates, reasons);
  if (candidates.empty() && !unfit.empty()) {
    auto [first, plan] = unfit.front();
    return first->setParameters([&] { return op.emitOpError(); }, &getContext(),
                                plan, parameters);
  }
  if (candidates.empty()) {
    InFlightDiagnostic diag = op.emitOpError("has no legal plan on ")
                              << target.chip << ": " << reasons.front();
    for (const std::string &reason : llvm::drop_begin(reasons))
      diag.attachNote() << reason;
    return diag;
  }
  // Spills cost more than any plan saves: such plans come last, the one with
  // the fewest registers first. Equal estimates keep the order of the
  // schedule's list.
  auto key = [](const Candidate &candidate) {
    int64_t registers =
        candidate.spills ? candidate.estimate.registers.getTotal() : 0;
    return std::tuple(registers, candidate.estimate.microseconds,
                      candidate.rank);
  };
  std::sort(
      candidates.begin(), candidates.end(),
      [&](const Candidate &a, const Candidate &b) { return key(a) < key(b); });
  if (print) {
    InFlightDiagnostic diag = op.emitRemark()
                              << candidates.size() << " plans for "
                              << target.chip << ", fastest first";
    for (const Candidate &candidate : candidates)
      diag.attachNote() << describe(candidate);
  }
  op.setPlanAttr(candidates.front().plan);
  report(op, target, candidates.front());
  return success();
}

void AttnPlanPass::runOnOperation() {
  ModuleOp module = getOperation();
  llvm::Expected<const TargetRow &> target = lookupTarget(chip);
  if (!target) {
    module.emitError() << llvm::toString(target.takeError());
    return signalPassFailure();
  }
  parameters.clear();
  for (const std::string &text : set) {
    auto [name, value] = StringRef(text).split('=');
    if (name.empty() || value.empty()) {
      module.emitError("expected parameters of the form name=value, got '")
          << text << "'";
      return signalPassFailure();
    }
    parameters.push_back({name, value});
  }
  WalkResult result = module.walk([&](AttentionOp op) {
    return failed(planOne(op, *target)) ? WalkResult::interrupt()
                                        : WalkResult::advance();
  });
  if (result.wasInterrupted())
    signalPassFailure();
}
