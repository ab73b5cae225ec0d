//===- EqualRuns.cpp - Plans with equal runs of all sequences -------------===//

#include "EqualRuns.h"
#include "attn/Planner/Facts/Factor.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

static constexpr llvm::StringLiteral kPieceBlocks = "piece_blocks";

bool attn::dealsEqualRuns(const Schedule &schedule, MLIRContext *context) {
  return hasParameter(schedule, context, kPieceBlocks);
}

void attn::noteStandard(PlanCandidates &plans, ArrayRef<const Schedule *> able,
                        const TargetRow &target) {
  const Schedule &standard = getDefaultSchedule(target);
  if (llvm::is_contained(able, &standard))
    return;
  plans.reasons.insert(plans.reasons.begin(),
                       PlanReason{llvm::formatv("schedule '{0}' does not deal "
                                                "runs",
                                                standard.getName())});
}

/// Returns the numbers of equal runs that put a CTA on each SM, if there are
/// keys enough for them.
static SmallVector<int64_t> listEqualRuns(const ProblemFacts &facts,
                                          const TargetRow &target) {
  // Rows of a tile, as warpgroups have them.
  constexpr int64_t kTileRows = 64;
  int64_t rows = std::max<int64_t>(1, facts.heads * facts.queries);
  int64_t runs =
      int64_t(target.smCount) / int64_t(llvm::divideCeil(rows, kTileRows));
  double keys = double(facts.batch) * double(facts.keys);
  if (runs < 2 || keys < double(runs) * kShortestRun)
    return {};
  return {runs};
}

FailureOr<std::vector<EqualRunsPlans>>
attn::collectEqualRuns(AttentionOp op, const PlanEstimate &whole,
                       const UnevenBatch &batch, const TargetRow &target,
                       ArrayRef<const Schedule *> schedules,
                       ArrayRef<PlanParameter> parameters) {
  std::vector<EqualRunsPlans> found;
  SmallVector<const Schedule *> able;
  llvm::copy_if(schedules, std::back_inserter(able), [&](const Schedule *each) {
    return dealsEqualRuns(*each, op.getContext());
  });
  bool isAsked = llvm::any_of(parameters, [&](PlanParameter parameter) {
    return parameter.name == kDealtRuns;
  });
  FailureOr<ProblemFacts> facts = ProblemFacts::get(op);
  if (failed(facts))
    return failure();
  if (able.empty() || isAsked)
    return found;
  for (int64_t runs : listEqualRuns(*facts, target)) {
    SmallVector<PlanParameter> fixed(parameters);
    std::string total = std::to_string(runs);
    fixed.push_back({kDealtRuns, total});
    int64_t splits = llvm::divideCeil(
        PlanPiecesOp::countRecords(runs, batch.sequences), batch.sequences);
    CombineOp combine = splitKeys(op, splits);
    FailureOr<ProblemFacts> split = ProblemFacts::get(op);
    if (failed(split))
      return failure();
    PlanCandidates plans = collectCandidates(*split, target, able, fixed);
    joinKeys(op, combine);
    llvm::erase_if(plans.plans,
                   [](const PlanCandidate &each) { return each.spills; });
    if (plans.plans.empty())
      continue;
    noteStandard(plans, able, target);
    const PlanCandidate &first = plans.plans.front();
    // Nearly all sequences that are merged have two pieces.
    double merge = estimateMerge(2);
    found.push_back(
        {{splits, runs, first, merge, first.estimate.microseconds + merge,
          merge + estimateEqualRuns(whole, first.estimate, batch),
          /*areEqual=*/true},
         std::move(plans)});
  }
  return found;
}
