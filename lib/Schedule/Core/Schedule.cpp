//===- Schedule.cpp - The registry of schedules, and sums -----------------===//

#include "attn/Schedule/Core/Schedule.h"
#include "attn/Support/Suggest.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <mutex>

using namespace mlir;
using namespace mlir::attn;

void ResourceSum::add(llvm::StringRef name, int64_t size, int64_t count) {
  if (size == 0 || count == 0)
    return;
  parts.push_back({name.str(), size, count});
  total += size * count;
}

std::string ResourceSum::str() const {
  std::string text = std::to_string(total) + " (";
  llvm::raw_string_ostream os(text);
  llvm::interleave(
      parts, os,
      [&](const Part &part) {
        os << part.name << ' ';
        if (part.count != 1)
          os << part.count << " x ";
        os << part.size;
      },
      " + ");
  os << ")";
  return text;
}

llvm::StringRef PlanEstimate::getLimiter() const {
  if (isBoundByDram())
    return "dram";
  double limit = std::max({tensorClocks, expClocks, issueClocks, sharedClocks});
  if (limit == tensorClocks)
    return "tensor";
  if (limit == expClocks)
    return "exp";
  return limit == issueClocks ? "issue" : "shared";
}

llvm::Error Schedule::isLegal(const ProblemFacts &facts, PlanAttrInterface plan,
                              const TargetRow &target) const {
  if (llvm::Error error = isApplicable(facts, target))
    return error;
  if (llvm::Error error = checkPlan(facts, plan, target))
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
