//===- WsColumnsModel.cpp - Plans of ws_columns: which, and their time ----===//

#include "../../Schedule/Copied/GridTiles.h"
#include "../../Schedule/Core/CommonChecks.h"
#include "../../Schedule/Wgmma/WgmmaFacts.h"
#include "../../Schedule/WsColumns/WsColumns.h"
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
/// scores and softmax, the last product, the division and the stores.
static constexpr Factor kTileClocks{"ws_columns.tile_clocks"};
static constexpr Factor kTileKeyClocks{"ws_columns.tile_key_clocks"};
static constexpr Factor kTileKeys{"ws_columns.tile_keys"};
static constexpr Factor kBlockGapClocks{"ws_columns.block_gap_clocks"};
/// Clocks of a block of the warpgroup of the softmax for waits and hand-
/// overs: in all, and for each slice that it multiplies.
static constexpr Factor kBlockClocks{"ws_columns.block_clocks"};
static constexpr Factor kSliceClocks{"ws_columns.slice_clocks"};
/// Clocks from a slot's release to its next contents, of a CTA alone and in
/// a cluster, whose CTAs wait for each other.
static constexpr Factor kReloadClocks{"ws_columns.reload_clocks"},
    kSharedReloadClocks{"ws_columns.shared_reload_clocks"};
static constexpr Factor kL2Bytes{"ws_columns.l2_bytes"},
    kMaskedL2Bytes{"ws_columns.masked_l2_bytes"};
static constexpr Factor kUnhiddenShare{"ws_columns.unhidden_share"};
/// Clocks of a slice that the warpgroup of the softmax multiplies.
static constexpr Factor kDividedSliceClocks{"ws_columns.divided_slice_clocks"};
/// Clocks from the release of a slot of K and of V to its next contents;
/// those of V come under the exchange.
static constexpr Factor kDividedReloadClocks{
    "ws_columns.divided_reload_clocks"},
    kDividedValueReloadClocks{"ws_columns.divided_value_reload_clocks"};
/// The parts of the time that the other warpgroup waits for slots, and that
/// it multiplies more slices than the first one, which do not hide.
static constexpr Factor kOtherReloadShare{"ws_columns.other_reload_share"},
    kOtherSliceShare{"ws_columns.other_slice_share"};
/// Bytes a clock at which scores are exchanged.
static constexpr Factor kExchangeBytes{"ws_columns.exchange_bytes"};
/// Clocks that the tiles of a cluster wait for each other, as in ws_wgmma.
static constexpr Factor kClusterTileClocks{"ws_columns.cluster_tile_clocks"};

/// Returns the registers of a thread of the warpgroup that has most: its
/// accumulator, scores, in whose place probabilities come, and what else ptxas
/// needs.
static ResourceSum countRegisters(const ProblemFacts &facts,
                                  WsColumnsPlanAttr plan) {
  RegisterFeatures features;
  features.o = plan.getSoftmaxColumns() / 2;
  features.s = plan.getBlockN() / 2;
  features.score = getScoreCost(facts).registers;
  return RegisterModel::getUsed().count("ws_columns", features);
}

bool WsColumnsModel::isExpectedToSpill(const ProblemFacts &facts,
                                       PlanAttrInterface planAttr,
                                       const TargetRow &) const {
  auto plan = cast<WsColumnsPlanAttr>(planAttr);
  return countRegisters(facts, plan).getTotal() > getColumnsRegisters(plan);
}

//===----------------------------------------------------------------------===//
// Candidates and cost
//===----------------------------------------------------------------------===//

/// Rows of the tiles that a cluster has at a time.
static int64_t getTogetherRows(int64_t cluster, int64_t depthCtas) {
  return kColumnsRows * cluster / depthCtas;
}

/// Returns the columns of the softmax's warpgroup that are worth comparing:
/// half of them, and fewer, which leave its registers to more keys. The other
/// one may have four times as many.
static SmallVector<int64_t> getColumnSplits(int64_t all) {
  SmallVector<int64_t> splits;
  for (int64_t columns : {256, 192, 128, 64})
    if (columns <= int64_t(llvm::alignTo(all / 2, 64)) && columns < all &&
        all - columns <= std::min<int64_t>(kMostOtherColumns, 4 * columns))
      splits.push_back(columns);
  return splits;
}

/// Returns the slots of the rings of V that are worth comparing; the first one
/// of equals is taken. Where the softmax's warpgroup has one slice of its own,
/// two hold those of two blocks, and leave memory to more slots of K.
static SmallVector<int64_t>
getValueStages(int64_t columns, const WsColumnsPlanAttr::Parameters &p) {
  if (p.depthCtas == 1)
    return {3, 2};
  return columns > kColumnsSlice ? SmallVector<int64_t>{2, 3}
                                 : SmallVector<int64_t>{2};
}

std::vector<PlanAttrInterface>
WsColumnsModel::getCandidates(const ProblemFacts &facts,
                              const TargetRow &target) const {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  bool masked = facts.mask.getKind() != MaskKind::None;
  std::vector<PlanAttrInterface> plans;
  WsColumnsPlanAttr::Parameters p;
  p.packHeads = savesTiles(facts, kColumnsRows, countQueryRows(facts, true));
  bool inOrder = p.packHeads || areResultsPartial(facts);
  p.order = masked && !inOrder ? TileOrder::LongestFirst : TileOrder::RowMajor;
  // Wider rows than registers and shared memory of one CTA hold.
  bool isDivided = std::max(facts.headDim, facts.valueDim) > kMostSharedColumns;
  p.depthCtas = isDivided ? 2 : 1;
  auto fits = [&] {
    return getColumnsSharedBytes(facts, WsColumnsPlanAttr::get(context, p))
               .getTotal() <= target.sharedBytesPerCTA;
  };
  SmallVector<int64_t> blocks = {isDivided ? 80 : 128, 96};
  for (int64_t cluster : {1, 2})
    for (int64_t blockN : blocks) {
      if (target.getClusteredSMs(cluster) == 0 || cluster < p.depthCtas)
        continue;
      if ((!mayShareLoads(facts) || inOrder) && cluster > p.depthCtas)
        continue;
      p.cluster = cluster;
      p.blockN = blockN;
      if (p.order == TileOrder::LongestFirst)
        p.groupHeads = chooseGroupHeads(
            facts, target, getTogetherRows(cluster, p.depthCtas), blockN,
            target.getClusteredSMs(cluster) / cluster);
      for (int64_t columns : getColumnSplits(facts.valueDim / p.depthCtas))
        for (int64_t stages : getValueStages(columns, p))
          for (SoftmaxPolicy softmax :
               {SoftmaxPolicy::Threshold, SoftmaxPolicy::Exact}) {
            p.softmaxColumns = columns;
            p.vStages = p.wStages = stages;
            p.softmax = softmax;
            // Loads run as far ahead as shared memory lets them.
            for (p.kStages = 8; p.kStages > 2 && !fits();)
              --p.kStages;
            if (fits())
              plans.push_back(WsColumnsPlanAttr::get(context, p));
          }
    }
  return plans;
}

/// Clocks that a product of `slices` slices, each of `clocks`, waits for those
/// that its ring has no slot for, each of which is there `reload` clocks after
/// one is free.
static double getReloadClocks(int64_t slices, int64_t slots, double clocks,
                              double reload) {
  int64_t rounds =
      llvm::divideCeil(std::max<int64_t>(slices - slots, 0), slots);
  return rounds * std::max(0.0, clocks + reload - slots * clocks);
}

/// Clocks of a block of the warpgroup of the softmax but for the softmax, where
/// two CTAs divide the depth.
static double getDividedClocks(const ProblemFacts &facts,
                               WsColumnsPlanAttr plan, double slice) {
  int64_t keySlices = countKeySlices(facts, plan);
  int64_t ownSlices = plan.getSoftmaxColumns() / kColumnsSlice;
  int64_t otherSlices = llvm::divideCeil(
      getOwnColumns(facts, plan) - plan.getSoftmaxColumns(), kColumnsSlice);
  double exchange = 4.0 * kColumnsRows * plan.getBlockN() / kExchangeBytes;
  return (slice + kDividedSliceClocks) * (keySlices + ownSlices) + exchange +
         getReloadClocks(keySlices, plan.getKStages(), slice,
                         kDividedReloadClocks) +
         getReloadClocks(ownSlices, plan.getVStages(), slice,
                         kDividedValueReloadClocks) +
         kOtherReloadShare * getReloadClocks(otherSlices, plan.getWStages(),
                                             slice, kDividedReloadClocks) +
         kOtherSliceShare * slice *
             std::max<int64_t>(0, otherSlices - ownSlices);
}

/// Clocks of a block of the warpgroup of the softmax, which does one thing
/// after the other.
static double getSerialClocks(const ProblemFacts &facts, WsColumnsPlanAttr plan,
                              const TargetRow &target,
                              const PlanEstimate &estimate) {
  double slice = 2.0 * kColumnsRows * plan.getBlockN() * kColumnsSlice /
                 target.tensorFlopF16;
  double softmax = estimate.expClocks + estimate.issueClocks;
  if (plan.getDepthCtas() > 1)
    return softmax + getDividedClocks(facts, plan, slice);
  double reload = plan.getCluster() > 1 ? kSharedReloadClocks : kReloadClocks;
  int64_t keySlices = countKeySlices(facts, plan);
  int64_t ownSlices = plan.getSoftmaxColumns() / kColumnsSlice;
  return (slice + kSliceClocks) * (keySlices + ownSlices) + kBlockClocks +
         softmax +
         getReloadClocks(keySlices, plan.getKStages(), slice, reload) +
         getReloadClocks(ownSlices, plan.getVStages(), slice, reload);
}

PlanEstimate WsColumnsModel::estimate(const ProblemFacts &facts,
                                      PlanAttrInterface planAttr,
                                      const TargetRow &target) const {
  auto plan = cast<WsColumnsPlanAttr>(planAttr);
  PlanEstimate estimate;
  estimate.sharedBytes = getColumnsSharedBytes(facts, plan);
  estimate.registers = countRegisters(facts, plan);
  estimate.ctasPerSM = 1;

  double blockM = kColumnsRows, blockN = plan.getBlockN();
  auto [batch, heads, queries, keys] = getTypicalExtents(facts);
  double queryRows = double(countQueryRows(facts, plan.getPackHeads()));
  double runs = double(countRuns(facts));
  double groups =
      batch * heads / (plan.getPackHeads() ? double(facts.getGroup()) : 1);
  int64_t cluster = plan.getCluster(), divided = plan.getDepthCtas();
  int64_t together = cluster / divided;
  double clusters = double(target.getClusteredSMs(cluster)) / cluster;
  estimate.tiles =
      int64_t(groups * together * runs *
              std::ceil(queries * queryRows / (blockM * together)));
  estimate.waves = estimate.tiles / (clusters * together);
  estimate.blocks = countRunBlocks(
      countBlocks(facts, queries, keys, std::ceil(blockM / queryRows), blockN),
      runs);
  setResourceClocks(estimate, facts, target, blockM, blockN, plan.getSoftmax());
  estimate.tensorClocks /= divided;
  estimate.sharedClocks /= divided;
  // Probabilities are written and read once more, and so are scores that are
  // exchanged.
  estimate.sharedClocks +=
      (divided > 1 ? 12 : 4) * blockM * blockN / target.sharedBytesPerClock;

  bool masked = facts.mask.getKind() != MaskKind::None;
  double loaded = 2 * blockN * (facts.headDim + facts.valueDim) / cluster;
  double bound = std::max({estimate.tensorClocks, estimate.sharedClocks,
                           loaded / (masked ? kMaskedL2Bytes : kL2Bytes)});
  double serial = getSerialClocks(facts, plan, target, estimate);
  estimate.blockClocks =
      std::max(bound, serial) + kUnhiddenShare * std::min(bound, serial);
  estimate.tileClocks = kTileClocks + (cluster > 1 ? kClusterTileClocks : 0);
  if (!masked && divided == 1) {
    estimate.tileClocks += kTileKeyClocks * (blockN - kTileKeys);
    estimate.blockClocks += kBlockGapClocks;
  }
  double rounds = countRounds(facts, plan.getOrder(), estimate.waves,
                              getTogetherRows(cluster, divided),
                              plan.getBlockN(), plan.getGroupHeads(), clusters);
  estimate.microseconds =
      rounds * (estimate.tileClocks + estimate.blocks * estimate.blockClocks) /
      target.clockMHz;
  if (isBoundByKeys(facts) || plan.getPackHeads()) {
    double elementBytes = facts.elementType.getIntOrFloatBitWidth() / 8.0;
    double inFlight =
        elementBytes * blockN * kColumnsSlice *
        double(plan.getKStages() + plan.getVStages() + plan.getWStages());
    addDramTime(estimate, facts, plan.getBlockN(), inFlight, target);
  }
  return estimate;
}
