//===- WsColumnsPlan.cpp - Plans of ws_columns: legality and cost ---------===//

#include "../../Planner/Facts/BlockCount.h"
#include "../../Planner/Facts/TileBalance.h"
#include "../Core/CommonChecks.h"
#include "../Tma/TileWalk.h"
#include "../Wgmma/WgmmaFacts.h"
#include "WsColumns.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

static StringRef getName() { return WsColumnsPlanAttr::getSyntax().schedule; }

//===----------------------------------------------------------------------===//
// Resources
//===----------------------------------------------------------------------===//

ResourceSum attn::getColumnsSharedBytes(const ProblemFacts &facts,
                                        WsColumnsPlanAttr plan) {
  int64_t bytes = facts.elementType.getIntOrFloatBitWidth() / 8;
  int64_t slot = plan.getBlockN() * kColumnsSlice * bytes;
  int64_t rows = kColumnsRows * int64_t(sizeof(float));
  ResourceSum sum;
  sum.add("q", kColumnsRows * kColumnsSlice * bytes,
          countKeySlices(facts, plan));
  sum.add("k", slot, plan.getKStages());
  sum.add("v", slot, plan.getVStages());
  sum.add("w", slot, plan.getWStages());
  sum.add("p", kColumnsRows * plan.getBlockN() * bytes);
  sum.add("factor", rows);
  sum.add("scale", rows);
  bool isDivided = plan.getDepthCtas() > 1;
  if (isDivided)
    sum.add("s", kColumnsRows * plan.getBlockN() * int64_t(sizeof(float)));
  // Two mbarriers of 8 bytes for each slot, and for q, p, scale and s.
  sum.add("barriers", 16,
          plan.getKStages() + plan.getVStages() + plan.getWStages() +
              (isDivided ? 4 : 3));
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
  // Slices leave one by one, before the largest number of a row is known.
  if (facts.hasPartialScales())
    return makeUnsupported(getName(), "partial results of f16, expected f32");
  return checkWgmma(getName(), facts, target, kMostPairedColumns,
                    /*serves=*/false, /*splits=*/true);
}

static llvm::Error checkPlan(const ProblemFacts &facts, WsColumnsPlanAttr plan,
                             const TargetRow &target) {
  if (llvm::Error error = checkPolicy(getName(), plan.getSoftmax()))
    return error;
  if (llvm::Error error = checkExactMaxima(facts, plan.getSoftmax()))
    return error;
  if (llvm::Error error = checkThreadStores(getName(), plan.getEpilogue()))
    return error;
  if (llvm::Error error = checkTileRuns(
          facts, plan.getPackHeads(), plan.getOrder(), plan.getGroupHeads(),
          plan.getCluster() / plan.getDepthCtas(), plan.getBlockN()))
    return error;
  int64_t columns = getOwnColumns(facts, plan);
  if (facts.valueDim % (8 * plan.getDepthCtas()) != 0)
    return llvm::createStringError(llvm::formatv(
        "depth_ctas = {0} needs columns of values that are a multiple of {1}, "
        "got {2}",
        plan.getDepthCtas(), 8 * plan.getDepthCtas(), facts.valueDim));
  int64_t others = columns - plan.getSoftmaxColumns();
  if (others < 1 || others > int64_t(kMostOtherColumns))
    return llvm::createStringError(llvm::formatv(
        "softmax_columns = {0} leaves {1} of {2} columns to the other "
        "warpgroup, expected 1 to {3}",
        plan.getSoftmaxColumns(), others, columns, int64_t(kMostOtherColumns)));
  // A swizzle starts anew every 8 rows.
  int64_t part = 8 * plan.getCluster();
  if (plan.getBlockN() % part != 0)
    return llvm::createStringError(llvm::formatv(
        "cluster = {0} needs block_n to be a multiple of {1}, got {2}",
        plan.getCluster(), part, plan.getBlockN()));
  return checkSharedBytes(getColumnsSharedBytes(facts, plan), target);
}

static KernelShape getKernelShape(const ProblemFacts &facts,
                                  WsColumnsPlanAttr plan,
                                  const TargetRow &target) {
  return getPersistentShape(facts, getTilePlan(facts, plan), plan.getThreads(),
                            target);
}

const Schedule &attn::getWsColumnsSchedule() {
  static const ProjectSchedule<WsColumnsPlanAttr> schedule(
      {isApplicable, checkPlan, getKernelShape, emitWsColumns});
  return schedule;
}
