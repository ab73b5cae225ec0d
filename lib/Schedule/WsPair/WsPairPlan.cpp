//===- WsPairPlan.cpp - Plans of ws_pair: legality and cost ---------------===//

#include "../../Planner/Facts/BlockCount.h"
#include "../../Planner/Facts/TileBalance.h"
#include "../Core/CommonChecks.h"
#include "../Tma/TileWalk.h"
#include "../Wgmma/WgmmaFacts.h"
#include "WsPair.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

static StringRef getName() { return WsPairPlanAttr::getSyntax().schedule; }

//===----------------------------------------------------------------------===//
// Resources
//===----------------------------------------------------------------------===//

ResourceSum attn::getPairSharedBytes(const ProblemFacts &facts,
                                     WsPairPlanAttr plan) {
  int64_t bytes = facts.elementType.getIntOrFloatBitWidth() / 8;
  int64_t word = sizeof(float), own = getOwnKeys(plan);
  ResourceSum sum;
  sum.add("q", kPairRows * plan.getSlice() * bytes,
          countKeySlices(facts, plan));
  sum.add("kv", own * plan.getSlice() * bytes, plan.getStages());
  sum.add("p", kPairRows * own * bytes);
  sum.add("m", kPairRows * word);
  sum.add("l", kPairRows * 4 * word);
  // Two mbarriers of 8 bytes for each slot, for q, and for p and l of each
  // warpgroup.
  sum.add("barriers", 16, plan.getStages() + 1 + 2 * kPairWarpgroups);
  return sum;
}

//===----------------------------------------------------------------------===//
// Legality
//===----------------------------------------------------------------------===//

static llvm::Error isApplicable(const ProblemFacts &facts,
                                const TargetRow &target) {
  if (facts.isNarrow())
    return makeLacking(getName(), "8-bit operands, expected f16 or bf16");
  if (facts.hasTransposedValues())
    return makeUnsupported(getName(), "values whose keys are contiguous");
  if (llvm::Error error =
          checkWgmma(getName(), facts, target, kMostSharedColumns))
    return error;
  if (facts.valueDim % (8 * kPairCTAs) != 0)
    return makeUnsupported(
        getName(), llvm::formatv("{0} columns of values, expected a multiple "
                                 "of {1}, half of them for each CTA",
                                 facts.valueDim, 8 * kPairCTAs));
  return llvm::Error::success();
}

static llvm::Error checkPlan(const ProblemFacts &facts, WsPairPlanAttr plan,
                             const TargetRow &target) {
  if (llvm::Error error = checkPolicy(getName(), plan.getSoftmax()))
    return error;
  if (llvm::Error error = checkExactMaxima(facts, plan.getSoftmax()))
    return error;
  if (llvm::Error error = checkThreadStores(getName(), plan.getEpilogue()))
    return error;
  return checkSharedBytes(getPairSharedBytes(facts, plan), target);
}

static KernelShape getKernelShape(const ProblemFacts &facts,
                                  WsPairPlanAttr plan,
                                  const TargetRow &target) {
  return getPersistentShape(facts, getTilePlan(plan), plan.getThreads(),
                            target);
}

const Schedule &attn::getWsPairSchedule() {
  static const ProjectSchedule<WsPairPlanAttr> schedule(
      {isApplicable, checkPlan, getKernelShape, emitWsPair});
  return schedule;
}
