//===- CombineChoice.cpp - What merges runs of keys -----------------------===//

#include "attn/Schedule/Core/CombineChoice.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

static constexpr llvm::StringLiteral kCombine = "combine";

/// Microseconds of a second kernel behind a first one in a CUDA graph, and more
/// for each run that its threads walk: 2.5 to 4.8 were seen on an H200 for 4 to
/// 132 runs.
static constexpr double kSecondKernel = 2.2;
static constexpr double kMergedRun = 0.02;

/// Microseconds of counting a CTA, and of each time that its threads wait for
/// the partial results that they have asked for together.
static constexpr double kArrival = 1.0;
static constexpr double kRound = 0.7;
/// Partial results that a thread asks for together, four columns of each.
static constexpr int64_t kRoundSplits = 16;
static constexpr double kThreadColumns = 4;

CombineWay attn::getCombineWay(PlanAttrInterface plan) {
  for (const PlanParameterInfo &each : plan.listParameters())
    if (each.name == kCombine)
      return symbolizeCombineWay(each.value).value_or(CombineWay::Kernel);
  return CombineWay::Kernel;
}

double attn::estimateMerge(int64_t splits) {
  return splits <= 1 ? 0 : kSecondKernel + kMergedRun * splits;
}

double attn::estimateTileMerge(int64_t splits, double elements,
                               int64_t threads) {
  if (splits <= 1)
    return 0;
  // LSEs first, of which the second time finds them near.
  double rounds = 1 + llvm::divideCeil(splits, kRoundSplits);
  double turns = std::ceil(elements / (kThreadColumns * double(threads)));
  return kArrival + turns * rounds * kRound;
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
  return estimateTileMerge(splits,
                           countElements(facts, splits, candidate.estimate),
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
                 estimateMerge(facts, splits, candidate)
             ? other
             : candidate;
}
