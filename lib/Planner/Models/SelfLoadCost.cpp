//===- SelfLoadCost.cpp - What a plan of self_load is expected to take ----===//
//
// Time of the problem = start + share * waves * (tileClocks + blocks *
// blockClocks) * CTAs of an SM. A CTA's products, softmax and waits follow each
// other, and hide behind those of the other CTAs of its SM.
//
//===----------------------------------------------------------------------===//

#include "../../Schedule/SelfLoad/SelfLoad.h"
#include "../../Schedule/Wgmma/WgmmaFacts.h"
#include "../Facts/BlockCount.h"
#include "../Facts/TileBalance.h"
#include "CopiedCost.h"
#include "Models.h"
#include "WgmmaCost.h"
#include "attn/Planner/Facts/Factor.h"
#include "attn/Planner/Facts/RegisterModel.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

/// Clocks of a tile that the CTA itself hides nothing of.
static constexpr Factor kTileClocks{"self_load.tile_clocks"};
/// Clocks of a launch beside its tiles, as in WsWgmmaCost.cpp.
static constexpr Factor kStartClocks{"self_load.start_clocks"};
/// Time of tiles and blocks, in times of what their resources say.
static constexpr Factor kResourceShare{"self_load.resource_share"};
/// Clocks of a block that do not depend on its size: barriers, waits and
/// the loads of the next one.
static constexpr Factor kBlockClocks{"self_load.block_clocks"};
/// The part of the other resources' clocks that does not hide behind the
/// busiest one, whichever CTA they are of.
static constexpr Factor kUnhiddenShare{"self_load.unhidden_share"};
/// Warp instructions for each 8-bit value that is transposed: for 128 x 128, 8
/// ldmatrix, 32 prmt and 8 stmatrix of each of four warps.
static constexpr double kTransposeInstructions = 4 * 48.0 / (128 * 128);

bool SelfLoadModel::isExpectedToSpill(const ProblemFacts &facts,
                                      PlanAttrInterface planAttr,
                                      const TargetRow &target) const {
  auto plan = cast<SelfLoadPlanAttr>(planAttr);
  int64_t registers = estimate(facts, plan, target).registers.getTotal();
  return registers > getThreadRegisters(plan);
}

PlanEstimate SelfLoadModel::estimate(const ProblemFacts &facts,
                                     PlanAttrInterface planAttr,
                                     const TargetRow &target) const {
  auto plan = cast<SelfLoadPlanAttr>(planAttr);
  PlanEstimate estimate;
  estimate.sharedBytes = getSharedBytes(facts, plan);
  RegisterFeatures features;
  features.o = facts.valueDim / 2;
  features.s = plan.getBlockN() / 2;
  features.p = getProbabilityRegisters(facts, plan.getBlockN());
  // An optimistic softmax narrows those of a block before its vote.
  bool isOptimistic = plan.getSoftmax() == SoftmaxPolicy::Optimistic;
  features.pBlocks = facts.isNarrow() && isOptimistic ? 2 : 1;
  features.isExact = plan.getSoftmax() == SoftmaxPolicy::Exact;
  estimate.registers = RegisterModel::getUsed().count("self_load", features);
  estimate.ctasPerSM = plan.getCtasPerSm();

  double blockM = kSelfLoadRows, blockN = plan.getBlockN();
  double ctas = estimate.ctasPerSM;
  auto [batch, heads, queries, keys] = getTypicalExtents(facts);
  double groups = batch * heads;
  estimate.tiles = int64_t(groups * std::ceil(queries / blockM));
  estimate.waves = estimate.tiles / (target.smCount * ctas);
  estimate.blocks = countBlocks(facts, queries, keys, blockM, blockN);
  setResourceClocks(estimate, facts, target, blockM, blockN, plan.getSoftmax());
  if (needsTransposer(facts))
    estimate.issueClocks += kTransposeInstructions * blockN *
                            getValueColumns(facts) / target.issuePerClock;

  double busiest = std::max({estimate.tensorClocks, estimate.expClocks,
                             estimate.issueClocks, estimate.sharedClocks});
  double others = estimate.tensorClocks + estimate.expClocks +
                  estimate.issueClocks - busiest;
  // QK ahead hides PV.
  double serial = estimate.tensorClocks / (plan.getQkAhead() ? 2 : 1) +
                  estimate.expClocks + estimate.issueClocks + kBlockClocks;
  estimate.blockClocks = busiest + std::max(0.0, serial - busiest) / ctas +
                         kUnhiddenShare * std::max(0.0, others);
  estimate.tileClocks = kTileClocks / ctas;
  double rounds = std::ceil(estimate.waves);
  if (plan.getOrder() == TileOrder::LongestFirst) {
    if (estimate.waves > 1)
      rounds = (rounds + estimate.waves) / 2;
    if (std::optional<double> imbalance =
            getImbalance(facts, kSelfLoadRows, plan.getBlockN(),
                         plan.getGroupHeads(), target.smCount * ctas))
      rounds = estimate.waves * *imbalance;
  }
  estimate.microseconds =
      kResourceShare * rounds * ctas *
      (estimate.tileClocks + estimate.blocks * estimate.blockClocks) /
      target.clockMHz;
  if (isBoundByKeys(facts)) {
    double inFlight = facts.elementType.getIntOrFloatBitWidth() / 8.0 * blockN *
                      double(plan.getKStages() * getKeyColumns(facts) +
                             plan.getVStages() * getValueColumns(facts));
    addDramTime(estimate, facts, plan.getBlockN(), inFlight, target);
  }
  estimate.microseconds += kStartClocks / target.clockMHz;
  return estimate;
}
