//===- CompletePlans.cpp - Parameters that follow from others -------------===//

#include "CompletePlans.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace mlir::attn;

/// Most parameters that are changed beside those that were named.
static constexpr size_t kMostChanges = 3;
/// Most numbers on the way to a default that are tried.
static constexpr int64_t kMostNumbers = 8;

namespace {

/// A parameter and what may take the place of its value.
struct Change {
  StringRef name;
  SmallVector<std::string> values;
};

/// Searches the plans around one.
class Completer {
public:
  Completer(const ProblemFacts &facts, const TargetRow &target,
            const Schedule &schedule, ArrayRef<PlanParameter> parameters)
      : facts(facts), target(target), schedule(schedule),
        parameters(parameters) {}

  /// Adds the legal plans that differ from `base` in `count` parameters beside
  /// those that were named.
  void search(PlanAttrInterface base, size_t count);

  CompletedPlans plans;

private:
  SmallVector<Change> listChanges(PlanAttrInterface base) const;
  /// Goes on from the parameters that are `chosen` with `count` of `changes`.
  void choose(PlanAttrInterface base, ArrayRef<Change> changes, size_t count,
              SmallVector<PlanParameter> &chosen);

  const ProblemFacts &facts;
  const TargetRow &target;
  const Schedule &schedule;
  ArrayRef<PlanParameter> parameters;
};

} // namespace

/// Returns the values from `standard` up to `value`, without this one.
static SmallVector<std::string> listValues(StringRef value,
                                           StringRef standard) {
  int64_t from, to;
  bool areNumbers =
      !standard.getAsInteger(10, from) && !value.getAsInteger(10, to);
  if (!areNumbers || std::abs(to - from) > kMostNumbers)
    return {standard.str()};
  SmallVector<std::string> values;
  for (int64_t step = from < to ? 1 : -1; from != to; from += step)
    values.push_back(std::to_string(from));
  return values;
}

SmallVector<Change> Completer::listChanges(PlanAttrInterface base) const {
  auto standard = schedule.getDefaultPlan(base.getContext()).listParameters();
  SmallVector<Change> changes;
  for (auto [own, usual] : llvm::zip(base.listParameters(), standard)) {
    StringRef name = own.name;
    bool isNamed = llvm::any_of(
        parameters, [&](PlanParameter each) { return each.name == name; });
    if (isNamed || name == "kernel")
      continue;
    if (own.value != usual.value)
      changes.push_back({name, listValues(own.value, usual.value)});
    else if (own.value == "false")
      changes.push_back({name, {"true"}});
  }
  return changes;
}

void Completer::choose(PlanAttrInterface base, ArrayRef<Change> changes,
                       size_t count, SmallVector<PlanParameter> &chosen) {
  if (count == 0) {
    FailureOr<PlanAttrInterface> plan = schedule.setParameters(
        [&] { return AttentionOp(facts.op).emitOpError(); }, base, chosen);
    if (succeeded(plan) &&
        !llvm::errorToBool(schedule.isLegal(facts, *plan, target)))
      plans.insert({*plan, chosen});
    return;
  }
  for (size_t first = 0; first + count <= changes.size(); ++first)
    for (StringRef value : changes[first].values) {
      chosen.push_back({changes[first].name,
                        StringAttr::get(base.getContext(), value).getValue()});
      choose(base, changes.drop_front(first + 1), count - 1, chosen);
      chosen.pop_back();
    }
}

void Completer::search(PlanAttrInterface base, size_t count) {
  SmallVector<PlanParameter> chosen(parameters);
  choose(base, listChanges(base), count, chosen);
}

CompletedPlans attn::completePlans(const ProblemFacts &facts,
                                   const TargetRow &target,
                                   const Schedule &schedule,
                                   ArrayRef<PlanAttrInterface> base,
                                   ArrayRef<PlanParameter> parameters) {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  auto known = schedule.getDefaultPlan(context).listParameters();
  for (PlanParameter parameter : parameters)
    if (llvm::none_of(known, [&](const PlanParameterInfo &each) {
          return each.name == parameter.name;
        }))
      return {};
  ScopedDiagnosticHandler silence(context,
                                  [](Diagnostic &) { return success(); });
  Completer completer(facts, target, schedule, parameters);
  for (size_t count = 1; count <= kMostChanges && completer.plans.empty();
       ++count)
    for (PlanAttrInterface plan : base)
      completer.search(plan, count);
  return completer.plans;
}
