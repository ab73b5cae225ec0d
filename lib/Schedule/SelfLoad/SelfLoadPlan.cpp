//===- SelfLoadPlan.cpp - Plans of self_load: legality and parameters -----===//

#include "../../Planner/Facts/TileBalance.h"
#include "../Core/CommonChecks.h"
#include "../Tma/TileWalk.h"
#include "../Wgmma/WgmmaFacts.h"
#include "SelfLoad.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

static StringRef getName() { return SelfLoadPlanAttr::getSyntax().schedule; }

int64_t attn::getThreadRegisters(SelfLoadPlanAttr plan) {
  int64_t threads = plan.getThreads() * plan.getCtasPerSm();
  return std::min<int64_t>(256, llvm::alignDown(kRegisterFile / threads, 8));
}

bool attn::storesByTma(const ProblemFacts &facts, SelfLoadPlanAttr plan) {
  return plan.getEpilogue() == EpilogueKind::Tma && canStoreByTma(facts);
}

bool attn::hasResultMemory(const ProblemFacts &facts, SelfLoadPlanAttr plan) {
  return plan.getEpilogue() == EpilogueKind::Staged || storesByTma(facts, plan);
}

int64_t attn::getValuesAhead(const ProblemFacts &facts, SelfLoadPlanAttr plan) {
  bool isTransposedBefore = needsTransposer(facts) && !plan.getQkAhead();
  return plan.getVStages() - (isTransposedBefore ? 0 : 1);
}

ResourceSum attn::getSharedBytes(const ProblemFacts &facts,
                                 SelfLoadPlanAttr plan) {
  int64_t bytes = facts.elementType.getIntOrFloatBitWidth() / 8;
  ResourceSum sum;
  sum.add("q", kSelfLoadRows * getKeyColumns(facts) * bytes);
  sum.add("k", plan.getBlockN() * getKeyColumns(facts) * bytes,
          plan.getKStages());
  sum.add("v", plan.getBlockN() * getValueColumns(facts) * bytes,
          plan.getVStages());
  if (needsTransposer(facts))
    sum.add("vt", plan.getBlockN() * getValueColumns(facts) * bytes);
  // Two mbarriers of 8 bytes for each slot.
  sum.add("barriers", 16, 1 + plan.getKStages() + plan.getVStages());
  if (hasResultMemory(facts, plan))
    sum.add("o", getResultBytes(facts, kSelfLoadRows, facts.valueDim));
  return sum;
}

bool attn::fitsShared(const ProblemFacts &facts, SelfLoadPlanAttr plan,
                      const TargetRow &target) {
  int64_t bytes = getSharedBytes(facts, plan).getTotal();
  return bytes <= int64_t(target.sharedBytesPerCTA) &&
         plan.getCtasPerSm() * (bytes + int64_t(target.sharedBytesReserved)) <=
             int64_t(target.sharedBytesPerSM);
}

static llvm::Error isApplicable(const ProblemFacts &facts,
                                const TargetRow &target) {
  return checkWgmma(getName(), facts, target, kUsualColumns);
}

static llvm::Error checkPlan(const ProblemFacts &facts, SelfLoadPlanAttr plan,
                             const TargetRow &target) {
  if (llvm::Error error = checkPolicy(getName(), plan.getSoftmax()))
    return error;
  if (llvm::Error error = checkExactMaxima(facts, plan.getSoftmax()))
    return error;
  if (llvm::Error error =
          checkQKAhead(plan.getQkAhead(), plan.getKStages(), plan.getVStages()))
    return error;
  if (llvm::Error error =
          checkNarrow(facts, plan.getBlockN(), plan.getKeyQuads()))
    return error;
  if (!fitsShared(facts, plan, target))
    return llvm::createStringError(llvm::formatv(
        "does not fit: shared memory {0} and {1} more for each of {2} CTAs "
        "exceeds {3} of an SM or {4} of a CTA on {5}",
        getSharedBytes(facts, plan).str(), target.sharedBytesReserved,
        plan.getCtasPerSm(), target.sharedBytesPerSM, target.sharedBytesPerCTA,
        target.chip));
  return llvm::Error::success();
}

static KernelShape getKernelShape(const ProblemFacts &facts,
                                  SelfLoadPlanAttr plan,
                                  const TargetRow &target) {
  KernelShape shape;
  // As many CTAs as the target's board holds. They walk all tiles, so any
  // number is right.
  shape.grid = {target.smCount * plan.getCtasPerSm(), 1, 1};
  shape.tiles = countDealtTiles(facts, getTilePlan(plan));
  shape.threads = plan.getThreads();
  shape.ctasPerSM = plan.getCtasPerSm();
  return shape;
}

const Schedule &attn::getSelfLoadSchedule() {
  static const ProjectSchedule<SelfLoadPlanAttr> schedule(
      {isApplicable, checkPlan, getKernelShape, emitSelfLoad});
  return schedule;
}
