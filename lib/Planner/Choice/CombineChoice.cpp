//===- CombineChoice.cpp - What merges runs of keys -----------------------===//

#include "attn/Planner/Choice/CombineChoice.h"
#include "SecondKernel.h"
#include "attn/Planner/Facts/Factor.h"
#include "attn/Schedule/Core/CombineSchedule.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

static constexpr llvm::StringLiteral kCombine = "combine";

static constexpr Factor kSecondKernel{"combine.second_kernel"};
static constexpr Factor kMergedRun{"combine.merged_run"};

static constexpr Factor kArrival{"combine.arrival"};
static constexpr Factor kTurn{"combine.turn"};
static constexpr Factor kRound{"combine.round"};
/// Microseconds for each wave of CTAs behind which there is another one,
/// whose start counting delays.
static constexpr Factor kWave{"combine.wave"};
/// Microseconds that one launch may take longer than two and still be taken,
/// because outside of graphs it costs the host less.
static constexpr Factor kOneLaunch{"combine.one_launch"};

double attn::estimateMerge(int64_t splits) {
  return splits <= 1 ? 0 : kSecondKernel + kMergedRun * splits;
}

double attn::estimateTileMerge(int64_t splits, double elements,
                               int64_t threads) {
  if (splits <= 1)
    return 0;
  // Runs that do not fill a group are merged one by one.
  double rounds =
      splits <= kUnrolledSplits
          ? 1
          : double(splits / kUnrolledSplits + splits % kUnrolledSplits);
  double turns = std::ceil(elements / (kMaxCombineColumns * double(threads)));
  return kArrival + turns * (kTurn + rounds * kRound);
}

/// Elements of the results of a tile.
static double countElements(const ProblemFacts &facts, int64_t splits,
                            const PlanEstimate &estimate) {
  double tiles = double(std::max<int64_t>(1, estimate.tiles)) /
                 double(std::max<int64_t>(1, splits));
  return double(facts.batch) * double(facts.heads) * double(facts.queries) *
         double(facts.valueDim) / tiles;
}

double attn::estimateMerge(const ProblemFacts &facts, int64_t splits,
                           const PlanCandidate &candidate) {
  PlanAttrInterface plan = candidate.plan;
  if (getCombineWay(plan) == CombineWay::Kernel)
    return estimateMerge(splits);
  const PlanEstimate &estimate = candidate.estimate;
  return kWave * std::max(0.0, estimate.waves - 1) +
         estimateTileMerge(splits, countElements(facts, splits, estimate),
                           plan.getThreads());
}

PlanCandidate attn::chooseCombine(const ProblemFacts &facts, int64_t splits,
                                  const TargetRow &target,
                                  const PlanCandidate &candidate,
                                  ArrayRef<PlanParameter> parameters) {
  bool isAsked = llvm::any_of(parameters, [](PlanParameter parameter) {
    return parameter.name == kCombine;
  });
  bool isKnown = llvm::none_of(
      ArrayRef({facts.batch, facts.heads, facts.queries, facts.valueDim}),
      ShapedType::isDynamic);
  PlanAttrInterface plan = candidate.plan;
  if (splits == 0 || isAsked || !isKnown ||
      !hasParameter(*candidate.schedule, plan.getContext(), kCombine))
    return candidate;
  PlanCandidate other = candidate;
  other.plan = plan.withParameters(
      [&] { return emitError(AttentionOp(facts.op).getLoc()); },
      PlanParameter{kCombine, stringifyCombineWay(CombineWay::Launch)});
  if (llvm::Error error =
          candidate.schedule->isLegal(facts, other.plan, target)) {
    llvm::consumeError(std::move(error));
    return candidate;
  }
  return estimateMerge(facts, splits, other) <
                 kOneLaunch + estimateMerge(facts, splits, candidate)
             ? other
             : candidate;
}

bool attn::areFasterMerged(const PlanCandidates &merged,
                           const PlanCandidates &whole) {
  if (merged.plans.empty() || whole.plans.empty())
    return !merged.plans.empty();
  const PlanCandidate &first = merged.plans.front(), &one = whole.plans.front();
  if (first.spills != one.spills)
    return one.spills;
  auto estimate = [](const PlanCandidate &each) {
    return each.estimate.margin * each.estimate.microseconds;
  };
  return estimate(first) + kSecondKernel + kMergedRun <
         kSplitWorthwhile * estimate(one);
}
