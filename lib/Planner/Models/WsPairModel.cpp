//===- WsPairModel.cpp - Plans of ws_pair: which, and their time ----------===//

#include "../../Schedule/Core/CommonChecks.h"
#include "../../Schedule/Wgmma/WgmmaFacts.h"
#include "../../Schedule/WsPair/WsPair.h"
#include "../Facts/BlockCount.h"
#include "../Facts/TileBalance.h"
#include "CopiedCost.h"
#include "Models.h"
#include "WgmmaCost.h"
#include "attn/Planner/Facts/Factor.h"
#include "attn/Planner/Facts/RegisterModel.h"
#include "attn/Schedule/Kernel/Scores.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

/// Clocks of a tile that nothing hides: the loads of its queries, the first
/// scores and softmax, the last product, the exchange of sums and the
/// stores.
static constexpr Factor kTileClocks{"ws_pair.tile_clocks"};
/// Clocks of a block for what a warpgroup sends and waits for, in all and
/// for each slot, of which the other warpgroup's products hide a part.
static constexpr Factor kBlockClocks{"ws_pair.block_clocks"},
    kSlotClocks{"ws_pair.slot_clocks"};
static constexpr Factor kUnhiddenShare{"ws_pair.unhidden_share"};
/// Scales the clocks of a block, since at its power limit the chip is slower
/// than its nominal rate.
static constexpr Factor kPowerFactor{"ws_pair.power_factor"};
static constexpr Factor kL2Bytes{"ws_pair.l2_bytes"};

/// Returns the registers of a thread with rows: its accumulator, scores,
/// probabilities of its own and of the other CTA, and what else ptxas needs.
static ResourceSum countRegisters(const ProblemFacts &facts,
                                  WsPairPlanAttr plan) {
  int64_t own = getOwnKeys(plan);
  RegisterFeatures features;
  features.o = int64_t(llvm::alignTo(getOwnColumns(facts), 8)) / 2;
  features.s = own / 2;
  features.p = getProbabilityRegisters(facts, own);
  features.score = getScoreCost(facts).registers;
  return RegisterModel::getUsed().count("ws_pair", features);
}

bool WsPairModel::isExpectedToSpill(const ProblemFacts &facts,
                                    PlanAttrInterface planAttr,
                                    const TargetRow &) const {
  auto plan = cast<WsPairPlanAttr>(planAttr);
  return countRegisters(facts, plan).getTotal() > getPairRegisters(plan);
}

//===----------------------------------------------------------------------===//
// Candidates and cost
//===----------------------------------------------------------------------===//

std::vector<PlanAttrInterface>
WsPairModel::getCandidates(const ProblemFacts &facts,
                           const TargetRow &target) const {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  std::vector<PlanAttrInterface> plans;
  if (target.getClusteredSMs(kPairCTAs) == 0)
    return plans;
  bool masked = facts.mask.getKind() != MaskKind::None;
  WsPairPlanAttr::Parameters p;
  p.order = masked ? TileOrder::LongestFirst : TileOrder::RowMajor;
  auto fits = [&] {
    return getPairSharedBytes(facts, WsPairPlanAttr::get(context, p))
               .getTotal() <= target.sharedBytesPerCTA;
  };
  p.blockN = 128;
  if (masked)
    p.groupHeads =
        chooseGroupHeads(facts, target, kPairRows, p.blockN,
                         target.getClusteredSMs(kPairCTAs) / kPairCTAs);
  for (int64_t slice : {128, 64})
    for (SoftmaxPolicy softmax :
         {SoftmaxPolicy::Threshold, SoftmaxPolicy::Exact}) {
      p.slice = slice;
      p.softmax = softmax;
      // Loads run as far ahead as shared memory lets them.
      for (p.stages = 16; p.stages > 2 && !fits();)
        --p.stages;
      if (fits())
        plans.push_back(WsPairPlanAttr::get(context, p));
    }
  return plans;
}

PlanEstimate WsPairModel::estimate(const ProblemFacts &facts,
                                   PlanAttrInterface planAttr,
                                   const TargetRow &target) const {
  auto plan = cast<WsPairPlanAttr>(planAttr);
  PlanEstimate estimate;
  estimate.sharedBytes = getPairSharedBytes(facts, plan);
  estimate.registers = countRegisters(facts, plan);
  estimate.ctasPerSM = 1;

  double blockN = plan.getBlockN();
  auto [batch, heads, queries, keys] = getTypicalExtents(facts);
  double groups = batch * heads;
  double clusters = double(target.getClusteredSMs(kPairCTAs)) / kPairCTAs;
  estimate.tiles = int64_t(groups * std::ceil(queries / kPairRows));
  estimate.waves = estimate.tiles / clusters;
  estimate.blocks = countBlocks(facts, queries, keys, kPairRows, blockN);
  // Both products of half a block of keys, or of half of the columns.
  setResourceClocks(estimate, facts, target, kPairRows, blockN / kPairCTAs,
                    plan.getSoftmax());
  double rows = kPairRows, own = getOwnKeys(plan);
  // Probabilities come from the other CTA, and are read once more.
  estimate.sharedClocks += 4 * rows * own / target.sharedBytesPerClock;
  double loaded = 2 * (own * facts.headDim + blockN * getOwnColumns(facts)) +
                  2 * rows * own;
  double bound = std::max(
      {estimate.tensorClocks, estimate.sharedClocks, loaded / kL2Bytes});
  int64_t slots =
      countKeySlices(facts, plan) + kPairCTAs * countValueSlices(facts, plan);
  double serial = estimate.expClocks + estimate.issueClocks + kBlockClocks +
                  kSlotClocks * slots;
  estimate.blockClocks = kPowerFactor * (bound + kUnhiddenShare * serial);
  estimate.tileClocks = kTileClocks;
  double rounds = countRounds(facts, plan.getOrder(), estimate.waves, kPairRows,
                              plan.getBlockN(), plan.getGroupHeads(), clusters);
  estimate.microseconds =
      rounds * (estimate.tileClocks + estimate.blocks * estimate.blockClocks) /
      target.clockMHz;
  if (isBoundByKeys(facts))
    addDramTime(estimate, facts, plan.getBlockN(),
                2 * blockN * plan.getStages() * plan.getSlice(), target);
  return estimate;
}
