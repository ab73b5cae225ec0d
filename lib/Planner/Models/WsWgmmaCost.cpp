//===- WsWgmmaCost.cpp - What a plan of ws_wgmma is expected to take ------===//
//
// Time = (tiles * tileClocks + tiles * blocks * blockClocks) of the SM that has
// the most tiles: one persistent CTA for each SM.
//
//===----------------------------------------------------------------------===//

#include "../../Schedule/Copied/GridTiles.h"
#include "../../Schedule/Core/CommonChecks.h"
#include "../../Schedule/Wgmma/WgmmaFacts.h"
#include "../../Schedule/WsWgmma/FirstBlockKeys.h"
#include "../../Schedule/WsWgmma/WsWgmma.h"
#include "../Facts/BlockCount.h"
#include "../Facts/Documents.h"
#include "../Facts/TileBalance.h"
#include "../Seen/PtxasData.h"
#include "CopiedCost.h"
#include "Models.h"
#include "WgmmaCost.h"
#include "attn/Planner/Facts/Factor.h"
#include "attn/Planner/Facts/RegisterModel.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

/// Clocks of a launch beside its tiles: nothing is multiplied before the first
/// loads have come, and while the last results leave.
static constexpr Factor kStartClocks{"ws_wgmma.start_clocks"};
/// Clocks of a tile that nothing hides: the first QK and softmax, the last
/// PV, the division and the stores.
static constexpr Factor kTileClocks{"ws_wgmma.tile_clocks"};
/// Clocks of a block that do not depend on its size: barriers and waits.
static constexpr Factor kBlockClocks{"ws_wgmma.block_clocks"};
/// Clocks of a tile for the way into the loop with PV behind and out of it.
static constexpr Factor kBehindClocks{"ws_wgmma.behind_clocks"};
/// Share of a block's time that the first block of a tile takes in addition.
static constexpr Factor kFirstBlockShare{"ws_wgmma.first_block_share"};
/// The part of what is not multiplied in a first block that is taken to
/// save time: a guess, since a tile ends with its slowest warpgroup.
static constexpr Factor kFirstBlockSaving{"ws_wgmma.first_block_saving"};
/// The part of the other resources' clocks that does not hide behind the
/// busiest one, with PV of a block running under the softmax of the next
/// one and without.
static constexpr Factor kUnhiddenAhead{"ws_wgmma.unhidden_ahead"};
static constexpr Factor kUnhiddenTurns{"ws_wgmma.unhidden_turns"};
static constexpr Factor kUnhiddenBehind{"ws_wgmma.unhidden_behind"};
static constexpr Factor kUnhiddenBehindTurns{"ws_wgmma.unhidden_behind_turns"};
static constexpr Factor kUnhiddenThree{"ws_wgmma.unhidden_three"};
static constexpr Factor kUnhiddenInOrder{"ws_wgmma.unhidden_in_order"};

static constexpr Factor kClusterBlockShare{"ws_wgmma.cluster_block_share"};
static constexpr Factor kClusterTileClocks{"ws_wgmma.cluster_tile_clocks"};

static constexpr Factor kSmallBlockShare{"ws_wgmma.small_block_share"};

/// Clocks that a block at an end of a window takes in addition: tests and
/// selects, and the start and end of its phase.
static constexpr Factor kWindowEndClocks{"ws_wgmma.window_end_clocks"};
static constexpr Factor kWindowEndElementClocks{
    "ws_wgmma.window_end_element_clocks"};

static constexpr Factor kRareBlockShare{"ws_wgmma.rare_block_share"};
static constexpr Factor kUsualRareShare{"ws_wgmma.usual_rare_share"};
static constexpr Factor kQuadsThresholdShare{"ws_wgmma.quads_threshold_share"};
/// Scales a block that has more keys than kUsualKeys and follows its maxima by
/// a threshold: more rows of it have a new one.
static constexpr Factor kLongThresholdShare{"ws_wgmma.long_threshold_share"};
static constexpr int64_t kUsualKeys = 128;
/// Clocks that each block without a mask waits for the transposer.
static constexpr Factor kTransposedClocks{"ws_wgmma.transposed_block_clocks"};

/// The part of `blocks` blocks in which one of a warp's 16 rows is expected to
/// have a new maximum: block j of a row has it with probability 1 / j, if
/// scores are drawn from one distribution.
static double getRareShare(double blocks) {
  constexpr double rows = 16;
  return blocks <= rows ? 1 : (rows + rows * std::log(blocks / rows)) / blocks;
}

/// Returns the share of the other resources' clocks that does not hide behind
/// the busiest one.
static double getUnhiddenShare(WsWgmmaPlanAttr plan) {
  double unhidden = plan.getQkAhead() ? kUnhiddenAhead : kUnhiddenInOrder;
  if (plan.getQkAhead() && plan.getBlockM() == 192)
    unhidden = kUnhiddenThree;
  else if (plan.getTurns())
    unhidden = plan.getPvBehind() ? kUnhiddenBehindTurns : kUnhiddenTurns;
  else if (plan.getPvBehind())
    unhidden = kUnhiddenBehind;
  // A single warpgroup has nobody's matrix instructions to hide behind.
  return plan.getBlockM() == 64 ? 2 * unhidden : unhidden;
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

/// Returns `microseconds`, of tiles as estimates think of them, for a problem
/// that may be one of documents: with those of the kernel in front that lists
/// tiles, one CTA that reads all numbers at its SM's share of what DRAM gives,
/// or for tiles that documents share.
static double withDocuments(double microseconds, const ProblemFacts &facts,
                            WsWgmmaPlanAttr plan, const TargetRow &target) {
  static constexpr Factor kSecondKernel{"combine.second_kernel"};
  static constexpr Factor kSharedTiles{"ws_wgmma.shared_tiles"};
  std::optional<Documents> documents = findDocuments(facts);
  if (!documents)
    return microseconds;
  if (!plan.getCutDocuments())
    return kSharedTiles * microseconds;
  double rows = documents->hasBatches ? double(facts.batch) : 1;
  double bytes = rows * double(facts.queries) *
                 documents->numbers.elementType.getIntOrFloatBitWidth() / 8;
  double share = target.dramGBPerSecond * 1000.0 / target.smCount;
  return microseconds + kSecondKernel + bytes / share;
}

PlanEstimate WsWgmmaModel::estimate(const ProblemFacts &problem,
                                    PlanAttrInterface planAttr,
                                    const TargetRow &target) const {
  auto plan = cast<WsWgmmaPlanAttr>(planAttr);
  const ProblemFacts facts =
      plan.getCutDocuments() ? getTypicalDocuments(problem) : problem;
  PlanEstimate estimate;
  estimate.sharedBytes = getSharedBytes(facts, plan, target);
  RegisterFeatures features;
  features.o = facts.valueDim / 2;
  features.s = plan.getBlockN() / 2;
  features.p = getProbabilityRegisters(facts, plan.getBlockN());
  features.pBlocks = plan.getPvBehind() ? 2 : 1;
  estimate.registers = RegisterModel::getUsed().count("ws_wgmma", features);
  estimate.ctasPerSM = 1;
  double blockM = plan.getBlockM(), blockN = plan.getBlockN();
  auto [batch, heads, queries, keys] = getTypicalExtents(facts);
  double queryRows = double(countQueryRows(facts, plan.getPackHeads()));
  double runs = double(countRuns(facts));
  double groups =
      batch * heads / (plan.getPackHeads() ? double(facts.getGroup()) : 1);
  // The CTAs of a cluster have tiles side by side.
  int64_t cluster = plan.getCluster();
  double ctas = target.getClusteredSMs(cluster);
  double tiles = queries * queryRows / (blockM * cluster);
  // Half of the last tile of a document is empty, as a rule.
  estimate.tiles = int64_t(groups * cluster * runs *
                           (facts.isDocument ? tiles + 0.5 : std::ceil(tiles)));
  estimate.waves = estimate.tiles / ctas;
  estimate.blocks = countRunBlocks(
      countBlocks(facts, queries, keys, std::ceil(blockM / queryRows), blockN),
      runs);

  setResourceClocks(estimate, facts, target, blockM, blockN, plan.getSoftmax());
  double busiest = std::max({estimate.tensorClocks, estimate.expClocks,
                             estimate.issueClocks, estimate.sharedClocks});
  double others = estimate.tensorClocks + estimate.expClocks +
                  estimate.issueClocks - busiest;
  double unhidden = getUnhiddenShare(plan);
  // With both, waits hide behind the other warpgroup too.
  double fixed = plan.getPvBehind() && plan.getTurns() ? 0 : kBlockClocks;
  if (facts.isNarrow() && needsTransposer(facts) &&
      facts.mask.getKind() == MaskKind::None)
    fixed += kTransposedClocks;
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
    if (plan.getBlockN() > kUsualKeys)
      estimate.blockClocks *= kLongThresholdShare;
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
  double clocks =
      rounds * (estimate.tileClocks + estimate.blocks * estimate.blockClocks);
  estimate.microseconds =
      withDocuments(clocks / target.clockMHz, problem, plan, target);
  if (isBoundByKeys(facts) || plan.getPackHeads()) {
    double elementBytes = facts.keyType.getIntOrFloatBitWidth() / 8.0;
    bool widens = facts.hasNarrowKeys();
    double inFlight =
        elementBytes * blockN *
        ((widens ? kRawSlots : plan.getKStages()) * getKeyColumns(facts) +
         (widens ? kRawSlots : plan.getVStages()) * getValueColumns(facts));
    addDramTime(estimate, facts, plan.getBlockN(), inFlight, target);
  }
  estimate.microseconds += kStartClocks / target.clockMHz;
  return estimate;
}
