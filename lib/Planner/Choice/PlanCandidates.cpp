//===- PlanCandidates.cpp - The legal plans of an attention ---------------===//

#include "attn/Planner/Choice/PlanCandidates.h"
#include "../../Schedule/Core/OptionError.h"
#include "../../Schedule/Core/WidthError.h"
#include "CompletePlans.h"
#include "Margins.h"
#include "attn/Planner/Facts/Factor.h"
#include "attn/Planner/Models/PlanModels.h"
#include "attn/Problem/Limits.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/ScopedPrinter.h"

using namespace mlir;
using namespace mlir::attn;

/// "; DRAM 1074.0 MB in 356.1 us", or nothing.
static std::string describeDram(const PlanEstimate &e) {
  if (e.dramBytes == 0)
    return "";
  return llvm::formatv("; DRAM {0:f1} MB in {1:f1} us", e.dramBytes / 1e6,
                       e.dramMicroseconds);
}

/// "; others come first up to 2.0 times its time", or nothing.
static std::string describeMargin(const PlanEstimate &e) {
  if (e.margin == 1)
    return "";
  return llvm::formatv("; others come first up to {0:f1} times its time",
                       e.margin);
}

/// "; errors up to 9 times those of f32 sums", or nothing.
static std::string describeError(const PlanEstimate &e) {
  if (e.errorFactor == 1)
    return "";
  return llvm::formatv("; errors up to {0:f0} times those of f32 sums",
                       e.errorFactor);
}

std::string PlanCandidate::describe() const {
  const PlanEstimate &e = estimate;
  return llvm::formatv(
      "{0}: {1:f1} us ({2:f2} waves of {3} CTAs an SM; {4:f1} blocks a tile "
      "at {5:f0} clocks, tile {6:f0}; limit {7}{8}), shared memory {9}, "
      "registers {10}{11}{12}{13}",
      llvm::to_string(plan), e.microseconds, e.waves, e.ctasPerSM, e.blocks,
      e.blockClocks, e.tileClocks, e.getLimiter(), describeDram(e),
      e.sharedBytes.str(), e.registers.str(), describeMargin(e),
      describeError(e), spills ? ", expected to spill" : "");
}

PlanCandidate attn::makeCandidate(const ProblemFacts &facts,
                                  const TargetRow &target,
                                  const Schedule &schedule,
                                  PlanAttrInterface plan) {
  const PlanModel &model = getPlanModel(schedule);
  PlanEstimate estimate = model.estimate(facts, plan, target);
  estimate.microseconds *=
      Calibration::getUsed().getScale(facts, schedule.getName());
  estimate.margin = Margins::getShipped().find(facts, plan, target, estimate);
  return {plan, &schedule, std::move(estimate),
          model.isExpectedToSpill(facts, plan, target)};
}

std::string attn::formatPlanTable(llvm::ArrayRef<PlanCandidate> plans,
                                  size_t count) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "        us   waves  CTAs/SM  clocks/block   limit   shared  registers "
        " "
        "plan";
  for (const PlanCandidate &each : plans.take_front(count)) {
    const PlanEstimate &e = each.estimate;
    os << llvm::formatv(
        "\n{0,10:f1}{1,8:f2}{2,9}{3,14:f0}{4,8}{5,9}{6,11}  {7}{8}{9}{10}",
        e.microseconds, e.waves, e.ctasPerSM, e.blockClocks, e.getLimiter(),
        e.sharedBytes.getTotal(), e.registers.getTotal(),
        llvm::to_string(each.plan), describeMargin(e), describeError(e),
        each.spills ? ", expected to spill" : "");
  }
  if (const PlanEstimate &e = plans.front().estimate; e.dramBytes != 0)
    os << llvm::formatv("\nDRAM: {0:f1} MB take {1:f1} us at its rate, {2:f1} "
                        "us with what the first plan keeps in flight",
                        e.dramBytes / 1e6, e.dramRoofMicroseconds,
                        e.dramMicroseconds);
  return text;
}

bool attn::hasParameter(const Schedule &schedule, MLIRContext *context,
                        llvm::StringRef name) {
  return llvm::any_of(
      schedule.getDefaultPlan(context).listParameters(),
      [&](const PlanParameterInfo &info) { return info.name == name; });
}

/// Prints `text` in lines of up to 80 columns, each behind `indent` blanks.
static void printWrapped(llvm::raw_ostream &os, llvm::StringRef text,
                         size_t indent) {
  constexpr size_t kColumns = 80;
  size_t column = kColumns;
  while (!text.empty()) {
    auto [word, rest] = text.split(' ');
    if (column + 1 + word.size() > kColumns) {
      os << '\n';
      os.indent(indent);
      column = indent;
    } else {
      os << ' ';
      ++column;
    }
    os << word;
    column += word.size();
    text = rest;
  }
}

llvm::Expected<std::string> attn::listParameters(llvm::StringRef name,
                                                 MLIRContext *context) {
  llvm::SmallVector<const Schedule *> schedules = getSchedules();
  if (!name.empty()) {
    llvm::Expected<const Schedule &> found = lookupSchedule(name);
    if (!found)
      return found.takeError();
    schedules = {&*found};
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const Schedule *schedule : schedules) {
    os << (schedule == schedules.front() ? "" : "\n") << schedule->getName()
       << ":\n";
    PlanAttrInterface plan = schedule->getDefaultPlan(context);
    for (const PlanParameterInfo &info : plan.listParameters()) {
      os << "  " << info.name << " = " << info.value << " (" << info.values
         << ")";
      printWrapped(os, info.doc, /*indent=*/6);
      os << '\n';
    }
  }
  return text;
}

const Schedule &attn::getDefaultSchedule(const TargetRow &target) {
  if (target.has(Capability::Tcgen05))
    return getWsTmemSchedule();
  return target.has(Capability::Wgmma) ? getWsWgmmaSchedule()
                                       : getSplitQSchedule();
}

std::string attn::explainOtherSchedule(const PlanCandidates &candidates,
                                       const Schedule &schedule) {
  if (candidates.plans.front().schedule == &schedule)
    return "";
  const auto *own =
      llvm::find_if(candidates.plans, [&](const PlanCandidate &candidate) {
        return candidate.schedule == &schedule;
      });
  if (own == candidates.plans.end())
    return candidates.reasons.front().text;
  return "its best one is " + own->describe();
}

void attn::sortReasons(PlanCandidates &candidates) {
  auto key = [](const PlanReason &each) {
    return std::tuple(each.isOfPlans, !each.lacksOption, each.mostColumns);
  };
  llvm::stable_sort(candidates.reasons,
                    [&](const PlanReason &a, const PlanReason &b) {
                      return key(a) > key(b);
                    });
}

std::string attn::nameOtherSchedules(const ProblemFacts &facts,
                                     const TargetRow &target,
                                     const Schedule &refused) {
  auto takes = [&](const Schedule &schedule) {
    return !llvm::errorToBool(schedule.isApplicable(facts, target));
  };
  llvm::SmallVector<std::string> names;
  for (const Schedule *schedule : getSchedules())
    if (takes(*schedule))
      names.push_back(("'" + schedule->getName() + "'").str());
  if (names.empty() || takes(refused))
    return {};
  std::string last = names.pop_back_val();
  std::string text =
      names.empty() ? last : llvm::join(names, ", ") + " and " + last;
  return "; " + text + (names.empty() ? " takes it" : " take it");
}

/// Adds what stands in for the last plan, which is expected to spill: the first
/// one with fewer registers that is not, and has what `parameters` fix.
static void addLighter(const ProblemFacts &facts, const TargetRow &target,
                       const Schedule &schedule,
                       llvm::ArrayRef<PlanParameter> parameters,
                       PlanCandidates &result) {
  AttentionOp op = facts.op;
  PlanAttrInterface plan = result.plans.back().plan;
  ScopedDiagnosticHandler silence(op.getContext(),
                                  [](Diagnostic &) { return success(); });
  while ((plan = getPlanModel(schedule).lighten(plan))) {
    FailureOr<PlanAttrInterface> fixed = schedule.setParameters(
        [&] { return op.emitOpError(); }, plan, parameters);
    if (failed(fixed) || *fixed != plan ||
        llvm::errorToBool(schedule.isLegal(facts, plan, target)))
      return;
    PlanCandidate candidate = makeCandidate(facts, target, schedule, plan);
    if (candidate.spills)
      continue;
    result.plans.push_back(std::move(candidate));
    return;
  }
}

/// Adds all legal plans of one schedule, or the reason why there is none.
static void collect(const ProblemFacts &facts, const TargetRow &target,
                    const Schedule &schedule,
                    llvm::ArrayRef<PlanParameter> parameters,
                    PlanCandidates &result) {
  AttentionOp op = facts.op;
  auto addReason = [&](std::string reason, bool isOfPlans = false,
                       bool lacksOption = false, int64_t mostColumns = 0) {
    bool isDefault = &schedule == &getDefaultSchedule(target);
    result.reasons.insert(
        isDefault ? result.reasons.begin() : result.reasons.end(),
        PlanReason{std::move(reason), isOfPlans, lacksOption, mostColumns});
  };
  if (llvm::Error error = schedule.isApplicable(facts, target)) {
    int64_t mostColumns = 0;
    bool lacksOption = error.isA<OptionError>();
    if (error.isA<WidthError>())
      error = llvm::handleErrors(
          std::move(error),
          [&](std::unique_ptr<WidthError> width) -> llvm::Error {
            mostColumns = width->getMostColumns();
            return llvm::Error(std::move(width));
          });
    addReason(llvm::toString(std::move(error)), /*isOfPlans=*/false,
              lacksOption, mostColumns);
    return;
  }
  // Parameters are fixed in each candidate; those that make no plan are silent
  // as long as another one does.
  llvm::SmallSetVector<PlanAttrInterface, 32> plans;
  std::vector<PlanAttrInterface> base =
      getPlanModel(schedule).getCandidates(facts, target);
  if (base.empty()) {
    addReason(
        llvm::formatv("schedule '{0}' offers no plan", schedule.getName()));
    return;
  }
  {
    ScopedDiagnosticHandler silence(op.getContext(),
                                    [](Diagnostic &) { return success(); });
    for (PlanAttrInterface plan : base) {
      FailureOr<PlanAttrInterface> changed = schedule.setParameters(
          [&] { return op.emitOpError(); }, plan, parameters);
      if (succeeded(changed))
        plans.insert(*changed);
    }
  }
  if (plans.empty()) {
    result.unfit.emplace_back(&schedule, base.front());
    return;
  }
  std::string firstReason;
  size_t before = result.plans.size();
  for (PlanAttrInterface plan : plans) {
    if (llvm::Error error = schedule.isLegal(facts, plan, target)) {
      std::string reason = llvm::toString(std::move(error));
      if (firstReason.empty())
        firstReason = llvm::to_string(plan) + ": " + reason;
      continue;
    }
    result.plans.push_back(makeCandidate(facts, target, schedule, plan));
    if (result.plans.back().spills)
      addLighter(facts, target, schedule, parameters, result);
  }
  if (result.plans.size() == before)
    addReason(firstReason, /*isOfPlans=*/true);
}

/// What no schedule takes and padding mends; empty if there is nothing.
static std::string explainDimensions(const ProblemFacts &facts) {
  int64_t columns[] = {facts.headDim, facts.valueDim};
  if (facts.isLatent() ||
      llvm::all_of(columns, [](int64_t each) { return each % kDimStep == 0; }))
    return "";
  bool isSame = columns[0] == columns[1];
  auto describe = [&](llvm::StringRef dimension, llvm::StringRef tensors,
                      int64_t dim) {
    return llvm::formatv("expected a {0} that is a multiple of {1}, got {2}: "
                         "pad {3} with zeros to {4} columns",
                         dimension, kDimStep, dim, tensors,
                         llvm::alignTo(dim, kDimStep))
        .str();
  };
  std::string text;
  if (columns[0] % kDimStep != 0)
    text = describe("head dimension", isSame ? "q, k and v" : "q and k",
                    columns[0]) +
           " and keep the scale";
  if (columns[1] % kDimStep != 0 && !isSame)
    text += (text.empty() ? "" : "; ") +
            describe("value dimension", "v", columns[1]);
  return text;
}

/// Puts the plan that is expected to be fastest first.
static void sortPlans(PlanCandidates &result) {
  auto key = [](const PlanCandidate &candidate) {
    int64_t registers =
        candidate.spills ? candidate.estimate.registers.getTotal() : 0;
    const PlanEstimate &e = candidate.estimate;
    return std::tuple(registers, e.margin * e.microseconds);
  };
  llvm::stable_sort(result.plans,
                    [&](const PlanCandidate &a, const PlanCandidate &b) {
                      return key(a) < key(b);
                    });
}

PlanCandidates
attn::collectCandidates(const ProblemFacts &facts, const TargetRow &target,
                        llvm::ArrayRef<const Schedule *> schedules,
                        llvm::ArrayRef<PlanParameter> parameters) {
  PlanCandidates result;
  for (const Schedule *schedule : schedules)
    if (schedules.size() == 1 ||
        getPlanModel(*schedule).isOffered(facts, target))
      collect(facts, target, *schedule, parameters, result);
    else if (schedule == &getDefaultSchedule(target))
      result.reasons.insert(
          result.reasons.begin(),
          PlanReason{
              llvm::formatv("schedule '{0}' takes such problems by name only",
                            schedule->getName())});
  std::string dimensions = explainDimensions(facts);
  if (!dimensions.empty() && result.plans.empty() && result.unfit.empty() &&
      llvm::none_of(result.reasons,
                    [](const PlanReason &each) { return each.isOfPlans; }))
    result.reasons = {PlanReason{dimensions}};
  sortPlans(result);
  return result;
}

SmallVector<PlanParameter>
attn::completeCandidates(const ProblemFacts &facts, const TargetRow &target,
                         llvm::ArrayRef<PlanParameter> parameters,
                         PlanCandidates &candidates) {
  CompletedPlans completed;
  for (const Schedule *schedule : llvm::make_first_range(candidates.unfit))
    for (auto &[plan, changed] :
         completePlans(facts, target, *schedule,
                       getPlanModel(*schedule).getCandidates(facts, target),
                       parameters)) {
      candidates.plans.push_back(makeCandidate(facts, target, *schedule, plan));
      completed.insert({plan, changed});
    }
  sortPlans(candidates);
  if (candidates.plans.empty())
    return llvm::to_vector(parameters);
  return completed.lookup(candidates.plans.front().plan);
}
