//===- Schedule.cpp - The registry of schedules ---------------------------===//

#include "attn/Schedule/Core/Schedule.h"
#include "attn/Support/Suggest.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <mutex>

using namespace mlir;
using namespace mlir::attn;

/// Returns an error if the CTAs of a plan's launch deal more tiles than they
/// can number.
static llvm::Error checkDealtTiles(const Schedule &schedule,
                                   const ProblemFacts &facts,
                                   PlanAttrInterface plan,
                                   const TargetRow &target) {
  std::optional<SizeExpr> tiles =
      schedule.getKernelShape(facts, plan, target).tiles;
  return tiles ? checkTiles(*tiles, {facts.q, facts.k, facts.cuSeqlensQ})
               : llvm::Error::success();
}

llvm::Error Schedule::isLegal(const ProblemFacts &facts, PlanAttrInterface plan,
                              const TargetRow &target) const {
  if (llvm::Error error = isApplicable(facts, target))
    return error;
  if (llvm::Error error = checkPlan(facts, plan, target))
    return error;
  if (llvm::Error error = checkDealtTiles(*this, facts, plan, target))
    return error;
  if (!facts.hasPartialScales() || facts.getUnitGroups() == 1)
    return llvm::Error::success();
  int64_t groups = countUnitGroups(facts, plan);
  if (facts.getUnitGroups() == groups)
    return llvm::Error::success();
  return llvm::createStringError(llvm::formatv(
      "expected partial results of f16 with {0} of columns in each row that "
      "{1} a scale, got {2} groups",
      groups == 1 ? "one group"
                  : llvm::formatv("1 or {0} groups", groups).str(),
      groups == 1 ? "has" : "have", facts.getUnitGroups()));
}

FailureOr<PlanAttrInterface>
Schedule::setParameters(llvm::function_ref<InFlightDiagnostic()> emitError,
                        PlanAttrInterface plan,
                        llvm::ArrayRef<PlanParameter> parameters) const {
  PlanAttrInterface changed = plan.withParameters(emitError, parameters);
  if (!changed)
    return failure();
  return changed;
}

namespace {

/// What registerSchedule changes.
struct Registry {
  std::mutex mutex;
  llvm::SmallVector<const Schedule *> schedules = {
#define ATTN_SCHEDULE(name) &get##name##Schedule(),
#include "attn/Schedule/Core/Schedules.def"
#undef ATTN_SCHEDULE
  };
};

} // namespace

static Registry &getRegistry() {
  static Registry registry;
  return registry;
}

llvm::SmallVector<const Schedule *> attn::getSchedules() {
  Registry &registry = getRegistry();
  std::lock_guard<std::mutex> lock(registry.mutex);
  return registry.schedules;
}

llvm::Error attn::registerSchedule(const Schedule &schedule) {
  Registry &registry = getRegistry();
  std::lock_guard<std::mutex> lock(registry.mutex);
  for (const Schedule *known : registry.schedules)
    if (known->getName() == schedule.getName())
      return llvm::createStringError(
          llvm::formatv("schedule '{0}' is registered already",
                        schedule.getName())
              .str());
  if (!schedule.getOwnModel())
    return llvm::createStringError(
        llvm::formatv("expected a model of the plans of schedule '{0}', got "
                      "none: derive it from ScheduleOf",
                      schedule.getName())
            .str());
  registry.schedules.push_back(&schedule);
  return llvm::Error::success();
}

llvm::Expected<const Schedule &> attn::lookupSchedule(llvm::StringRef name) {
  for (const Schedule *schedule : getSchedules())
    if (schedule->getName() == name)
      return *schedule;
  SmallVector<StringRef> known = llvm::map_to_vector(
      getSchedules(), [](const Schedule *s) { return s->getName(); });
  return llvm::createStringError(
      llvm::formatv("unknown schedule '{0}', expected one of {1}{2}", name,
                    llvm::join(known, ", "), suggest(name, known))
          .str());
}
