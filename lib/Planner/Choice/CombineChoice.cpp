//===- CombineChoice.cpp - What merges runs of keys -----------------------===//

#include "attn/Planner/Choice/CombineChoice.h"
#include "attn/Schedule/Core/CombineSchedule.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

static constexpr llvm::StringLiteral kCombine = "combine";

/// Microseconds of a second kernel behind a first one in a CUDA graph, and more
/// for each run that its threads walk: 2.5 to 4.8 were seen on an H200 for 4 to
/// 132 runs.
static constexpr double kSecondKernel = 2.2;
static constexpr double kMergedRun = 0.02;

/// Microseconds from the last store of the last CTA of a tile: of counting it,
/// of each turn that its threads take, and of each time in a turn that they
/// wait for what they have asked for together. 12 pairs of kernels of `decode`
/// for one sequence on an H200, of 4 to 66 runs and 1 to 8 turns, took within
/// 2 us of that, `mla` with 32 turns of 2 to 8 runs 7 to 15 us less.
static constexpr double kArrival = 1.6;
static constexpr double kTurn = 0.28;
static constexpr double kRound = 0.46;
/// Microseconds for each wave of CTAs behind which there is another one, whose
/// start counting delays.
static constexpr double kWave = 0.25;
/// What one launch may take more than two: outside of graphs it takes less of
/// the host.
static constexpr double kOneLaunch = 0.2;

double attn::estimateMerge(int64_t splits) {
  return splits <= 1 ? 0 : kSecondKernel + kMergedRun * splits;
}

double attn::estimateTileMerge(int64_t splits, double elements,
                               int64_t threads) {
  if (splits <= 1)
    return 0;
  // What is left of whole groups of runs comes one by one.
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
