//===- WsWgmmaCost.cpp - What a plan of ws_wgmma is expected to take ------===//
//
// Time = (tiles * tileClocks + tiles * blocks * blockClocks) of the SM that has
// the most tiles: one persistent CTA for each SM.
//
//===----------------------------------------------------------------------===//

#include "../../Schedule/Core/AttentionEmitter.h"
#include "../../Schedule/Core/CommonChecks.h"
#include "../../Schedule/Wgmma/WgmmaFacts.h"
#include "../../Schedule/WsWgmma/FirstBlockKeys.h"
#include "../../Schedule/WsWgmma/WsWgmma.h"
#include "../Facts/BlockCount.h"
#include "../Facts/TileBalance.h"
#include "../Seen/PtxasData.h"
#include "CopiedCost.h"
#include "Models.h"
#include "WgmmaCost.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

/// Clocks of a tile that nothing hides: the first QK and softmax, the last PV,
/// the division and the stores.
static constexpr double kTileClocks = 2600;
/// Clocks of a block that do not depend on its size: barriers and waits.
static constexpr double kBlockClocks = 60;
/// Clocks of a tile for the way into the loop with PV behind and out of it.
static constexpr double kBehindClocks = 1400;
/// What the first block of a tile takes more than the others.
static constexpr double kFirstBlockShare = 0.5;
/// The part of what is not multiplied in a first block that is taken to save
/// time: a guess, since a tile ends with its slowest warpgroup.
static constexpr double kFirstBlockSaving = 0.5;
/// The part of the other resources' clocks that does not hide behind the
/// busiest one, with PV of a block running under the softmax of the next one
/// and without.
static constexpr double kUnhiddenAhead = 0.25;
static constexpr double kUnhiddenTurns = 0.2;
static constexpr double kUnhiddenBehind = 0.15;
static constexpr double kUnhiddenBehindTurns = 0.1;
static constexpr double kUnhiddenThree = 0.06;
static constexpr double kUnhiddenInOrder = 0.5;

/// What loads for a whole cluster save of a block at the board's power limit,
/// and what waiting for each other costs a tile. Seen on an H200 (f16, causal
/// or not) with clusters of 2 at head dimension 256: 2.5 and 3.8 % faster at
/// 4096 keys, 3.1 and 2.3 % at 16384; with 128: 2.0 and 0.2 %, 1.6 and 0.6 %.
/// The tile's price is such that both kinds cost the same at 256, causal,
/// between 2048 and 4096.
static constexpr double kClusterBlockShare = 0.967;
static constexpr double kClusterTileClocks = 900;

/// What blocks of fewer than 128 keys take more at head dimensions from 80 to
/// 128, where Q is read from shared memory once for each: on an H200 (f16, no
/// mask, 1k to 32k keys) 112 keys took 1.00 to 1.07 times as long.
static constexpr double kSmallBlockShare = 1.03;

/// What a block at an end of a window takes more: tests and selects, and the
/// phase's own way in and out. Fitted to seven plans measured on an H200 (bf16,
/// head dimension 64, windows of 128, where all blocks are such): within 14 %.
static constexpr double kWindowEndClocks = 250;
static constexpr double kWindowEndElementClocks = 0.05;

/// What a block under a threshold with growth 0 takes more where a warp meets a
/// new maximum in all of its blocks than where it does in kUsualRareShare of
/// them. Of 28 pairs of 8-bit kernels with the threshold and exact (H200, head
/// dimensions 64 to 256, 8k and 16k keys, normal inputs) 22 are ordered by it,
/// the others differ by 3 % or less.
static constexpr double kRareBlockShare = 0.13;
static constexpr double kUsualRareShare = 0.65;
/// What it takes more without masks and turns, keys in quads: exact took 0.914
/// of the time at 8k keys and 0.926 at 16k (H200, head dimension 64).
static constexpr double kQuadsThresholdShare = 1.08;

/// Where most rows of a tile are padding: what reads keys for few queries is
/// made by other schedules.
static constexpr double kPaddingMargin = 2;

/// The part of `blocks` blocks in which one of a warp's 16 rows is expected to
/// have a new maximum: block j of a row has it with probability 1 / j, if
/// scores are drawn from one distribution.
static double getRareShare(double blocks) {
  constexpr double rows = 16;
  return blocks <= rows ? 1 : (rows + rows * std::log(blocks / rows)) / blocks;
}

bool WsWgmmaModel::isExpectedToSpill(const ProblemFacts &facts,
                                     PlanAttrInterface planAttr,
                                     const TargetRow &target) const {
  auto plan = cast<WsWgmmaPlanAttr>(planAttr);
  // Scores, accumulator and the probabilities of a block: 64 rows of a
  // warpgroup are half a register a column and thread.
  int64_t beside = plan.getBlockN() / 2 + facts.valueDim / 2;
  int64_t probabilities = getProbabilityRegisters(facts, plan.getBlockN());
  KnownSums known;
  known.registers = beside + probabilities;
  known.registersAhead = beside + 2 * probabilities;
  int64_t held = plan.getPvBehind() ? known.registersAhead : known.registers;
  // Scores give their registers to the probabilities.
  if (widensInOrder(facts, plan))
    held -= probabilities;
  known.spare = getRegisterBudget(facts, plan).consumer - held;
  return PtxasData::getShipped()
      .findSpills(
          {facts, plan, target, int64_t(plan.getBlockN()), nullptr, known})
      .value_or(false);
}

PlanEstimate WsWgmmaModel::estimate(const ProblemFacts &facts,
                                    PlanAttrInterface planAttr,
                                    const TargetRow &target) const {
  auto plan = cast<WsWgmmaPlanAttr>(planAttr);
  PlanEstimate estimate;
  estimate.sharedBytes = getSharedBytes(facts, plan, target);
  estimate.registers.add("o", facts.valueDim / 2);
  estimate.registers.add("s", plan.getBlockN() / 2);
  estimate.registers.add("p", getProbabilityRegisters(facts, plan.getBlockN()),
                         plan.getPvBehind() ? 2 : 1);
  estimate.registers.add("other", 32);
  estimate.ctasPerSM = 1;

  double blockM = plan.getBlockM(), blockN = plan.getBlockN();
  double queries = getAssumedExtent(facts.queries, kAssumedLength);
  double keys = getTypicalKeys(facts);
  double groups = facts.batch * getAssumedExtent(facts.heads, kAssumedHeads);
  // The CTAs of a cluster have tiles side by side.
  int64_t cluster = plan.getCluster();
  double ctas = target.getClusteredSMs(cluster);
  estimate.tiles =
      int64_t(groups * cluster * std::ceil(queries / (blockM * cluster)));
  estimate.waves = estimate.tiles / ctas;
  estimate.blocks = countBlocks(facts, queries, keys, blockM, blockN);

  setResourceClocks(estimate, facts, target, blockM, blockN, plan.getSoftmax());
  double busiest = std::max({estimate.tensorClocks, estimate.expClocks,
                             estimate.issueClocks, estimate.sharedClocks});
  double others = estimate.tensorClocks + estimate.expClocks +
                  estimate.issueClocks - busiest;
  double unhidden = plan.getQkAhead() ? kUnhiddenAhead : kUnhiddenInOrder;
  if (plan.getQkAhead() && plan.getBlockM() == 192)
    unhidden = kUnhiddenThree;
  else if (plan.getTurns())
    unhidden = plan.getPvBehind() ? kUnhiddenBehindTurns : kUnhiddenTurns;
  else if (plan.getPvBehind())
    unhidden = kUnhiddenBehind;
  // With both, waits hide behind the other warpgroup too.
  double fixed = plan.getPvBehind() && plan.getTurns() ? 0 : kBlockClocks;
  // A single warpgroup has nobody's matrix instructions to hide behind.
  if (blockM == 64)
    unhidden *= 2;
  estimate.blockClocks = busiest + unhidden * std::max(0.0, others) + fixed;
  estimate.tileClocks = kTileClocks / (plan.getQStages() > 1 ? 1.3 : 1);
  // The first block of a tile keeps all masks and is never a bet.
  estimate.tileClocks += kFirstBlockShare * estimate.blockClocks;
  if (std::optional<FirstBlockSizes> sizes = findFirstBlock(facts, plan))
    estimate.tileClocks -=
        kFirstBlockSaving * sizes->savedOfFirst * estimate.blockClocks;
  if (plan.getPvBehind())
    estimate.tileClocks += kBehindClocks;
  if (!facts.isNarrow() && facts.valueDim > 64 && facts.valueDim <= 128 &&
      blockN < 128)
    estimate.blockClocks *= kSmallBlockShare;
  if (facts.isNarrow() && plan.getSoftmax() == SoftmaxPolicy::Threshold) {
    double rare = getRareShare(estimate.blocks);
    estimate.blockClocks *= 1 + kRareBlockShare * (rare - kUsualRareShare);
    if (plan.getKeyQuads() && !plan.getTurns() &&
        facts.mask.getKind() == MaskKind::None)
      estimate.blockClocks *= kQuadsThresholdShare;
  }
  estimate.tileClocks +=
      countWindowEnds(facts, queries, keys, blockM, blockN) *
      (kWindowEndClocks + kWindowEndElementClocks * blockM * blockN);
  if (cluster > 1) {
    estimate.blockClocks *= kClusterBlockShare;
    estimate.tileClocks += kClusterTileClocks;
  }
  double rounds = std::ceil(estimate.waves);
  // Unequal tiles even out over several rounds.
  bool evensOut =
      plan.getOrder() == TileOrder::LongestFirst || plan.getDynamic();
  if (evensOut && estimate.waves > 1)
    rounds = (rounds + estimate.waves) / 2;
  if (plan.getOrder() == TileOrder::LongestFirst && !plan.getDynamic())
    if (std::optional<double> imbalance =
            getImbalance(facts, plan.getBlockM() * cluster, plan.getBlockN(),
                         plan.getGroupHeads(), ctas / cluster))
      rounds = estimate.waves * *imbalance;
  estimate.microseconds =
      rounds * (estimate.tileClocks + estimate.blocks * estimate.blockClocks) /
      target.clockMHz;
  if (facts.isServed()) {
    double elementBytes = facts.keyType.getIntOrFloatBitWidth() / 8.0;
    bool widens = facts.hasNarrowKeys();
    double inFlight =
        elementBytes * blockN *
        ((widens ? kRawSlots : plan.getKStages()) * getKeyColumns(facts) +
         (widens ? kRawSlots : plan.getVStages()) * getValueColumns(facts));
    addDramTime(estimate, facts, plan.getBlockN(), inFlight, target);
    // Nobody timed tiles that are mostly padding.
    if (queries < kGroupRows)
      estimate.margin = kPaddingMargin;
  }
  return estimate;
}
