//===- WsColumnsModel.cpp - Plans of ws_columns: which, and their time ----===//

#include "../../Schedule/Core/AttentionEmitter.h"
#include "../../Schedule/Core/CommonChecks.h"
#include "../../Schedule/Wgmma/WgmmaFacts.h"
#include "../../Schedule/WsColumns/WsColumns.h"
#include "../Facts/BlockCount.h"
#include "../Facts/TileBalance.h"
#include "Models.h"
#include "WgmmaCost.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

/// Clocks of a tile that nothing hides: the loads of its queries, the first
/// scores and softmax, the last product, the division and the stores.
static constexpr double kTileClocks = 5000;
/// What each key of a block adds to them beyond kTileKeys where no mask gives
/// tiles other lengths: on an H100 a tile of D 512 took 7.7 us beside its
/// blocks of 128 keys, 5.9 beside those of 96.
static constexpr double kTileKeyClocks = 95;
static constexpr int64_t kTileKeys = 112;
/// Clocks between blocks that neither limit hides, without a mask: what makes
/// long blocks faster again from 8192 keys on.
static constexpr double kBlockGapClocks = 100;
// Fitted to eight plans in clusters of 2 and one without on an H200 at 1.7 GHz
// (f16, D 512, 32 heads, 8192 keys, no mask): times are within 13 % but for one
// plan with two slots of K, which took 30 % longer.
/// Clocks of a block of the warpgroup of the softmax for waits and hand-overs:
/// in all, and for each slice that it multiplies.
static constexpr double kBlockClocks = 330;
static constexpr double kSliceClocks = 133;
/// Clocks from a slot's release to its next contents, of a CTA alone and in a
/// cluster, whose CTAs wait for each other.
static constexpr double kReloadClocks = 1000, kSharedReloadClocks = 1500;
/// Bytes a clock that an SM gets from L2 where all walk the same keys, and
/// where tiles of different lengths do not.
static constexpr double kL2Bytes = 39.5, kMaskedL2Bytes = 37;
/// The part of the shorter of both that does not hide, a guess: it orders plans
/// that L2 bounds alike.
static constexpr double kUnhiddenShare = 0.02;
// The same with the depth divided, fitted to 57 times of 22 plans on an H200
// (f16, D 640, 768 and 1024, 1024 to 16384 keys, no mask): all are within 11 %,
// 5 % in the mean.
/// Clocks of a slice that the warpgroup of the softmax multiplies.
static constexpr double kDividedSliceClocks = 65;
/// Clocks from the release of a slot of K and of V to its next contents; those
/// of V come under the exchange.
static constexpr double kDividedReloadClocks = 800,
                        kDividedValueReloadClocks = 400;
/// The parts of the time that the other warpgroup waits for slots, and that it
/// multiplies more slices than the first one, which do not hide.
static constexpr double kOtherReloadShare = 0.2, kOtherSliceShare = 0.3;
/// Bytes a clock at which scores are exchanged.
static constexpr double kExchangeBytes = 10;
/// What waiting for each other costs the tiles of a cluster: as in ws_wgmma.
static constexpr double kClusterTileClocks = 900;
/// Where ws_wgmma has plans: on the same board, those of this schedule
/// took 1.22 and under a causal mask 1.11 times as long at D 320, 1.06 and 0.98
/// times at 384.
static constexpr double kMargin = 4;
/// Where ws_pair has plans for heads that both are for: it was 1.02 to 1.13
/// times as fast at D 400, 448 and 480, where costs are not fitted.
static constexpr double kPairMargin = 1.15;

/// Registers of a thread of the warpgroup that has most: its accumulator,
/// scores, in whose place probabilities come, and what else ptxas 13.0 was seen
/// to need: of o + s it kept 184 (112 keys and 256 columns) but not 192.
static ResourceSum countRegisters(const ProblemFacts &facts,
                                  WsColumnsPlanAttr plan) {
  ResourceSum sum;
  sum.add("o", plan.getSoftmaxColumns() / 2);
  sum.add("s", plan.getBlockN() / 2);
  sum.add("other", 44 + getScoreCost(facts).registers);
  return sum;
}

bool WsColumnsModel::isExpectedToSpill(const ProblemFacts &facts,
                                       PlanAttrInterface planAttr,
                                       const TargetRow &) const {
  auto plan = cast<WsColumnsPlanAttr>(planAttr);
  return countRegisters(facts, plan).getTotal() > kColumnsRegisters;
}

/// True if ws_pair takes what one CTA has here.
static bool mayBePaired(const ProblemFacts &facts, const TargetRow &target) {
  if (std::min(facts.headDim, facts.valueDim) <= kMostWholeColumns)
    return false;
  llvm::Error error = getWsPairSchedule().isApplicable(facts, target);
  bool applies = !error;
  llvm::consumeError(std::move(error));
  return applies;
}

//===----------------------------------------------------------------------===//
// Candidates and cost
//===----------------------------------------------------------------------===//

/// Rows of the tiles that a cluster has at a time.
static int64_t getTogetherRows(int64_t cluster, int64_t depthCtas) {
  return kColumnsRows * cluster / depthCtas;
}

/// The columns of the softmax's warpgroup that are worth comparing: half of
/// them, and fewer, which leave its registers to more keys. With five times as
/// many the other one is slower: 371 beside 377 TFLOP/s at D 768.
static SmallVector<int64_t> getColumnSplits(int64_t all) {
  SmallVector<int64_t> splits;
  for (int64_t columns : {256, 192, 128, 64})
    if (columns <= int64_t(llvm::alignTo(all / 2, 64)) && columns < all &&
        all - columns <= std::min(kMostOtherColumns, 4 * columns))
      splits.push_back(columns);
  return splits;
}

/// Slots of the rings of V that are worth comparing; the first one of equals is
/// taken. Where the softmax's warpgroup has one slice of its own, two hold
/// those of two blocks, and more slots of K were 5 and 7 % faster than a third
/// one (D 640).
static SmallVector<int64_t>
getValueStages(int64_t columns, const WsColumnsPlanAttr::Parameters &p) {
  if (p.depthCtas == 1)
    return {3, 2};
  return columns > int64_t(p.slice) ? SmallVector<int64_t>{2, 3}
                                    : SmallVector<int64_t>{2};
}

std::vector<PlanAttrInterface>
WsColumnsModel::getCandidates(const ProblemFacts &facts,
                              const TargetRow &target) const {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  bool masked = facts.mask.getKind() != MaskKind::None;
  std::vector<PlanAttrInterface> plans;
  WsColumnsPlanAttr::Parameters p;
  p.order = masked ? TileOrder::LongestFirst : TileOrder::RowMajor;
  // Wider rows than registers and shared memory of one CTA hold.
  bool isDivided = std::max(facts.headDim, facts.valueDim) > kMostSharedColumns;
  p.depthCtas = isDivided ? 2 : 1;
  auto fits = [&] {
    return getColumnsSharedBytes(facts, WsColumnsPlanAttr::get(context, p))
               .getTotal() <= target.sharedBytesPerCTA;
  };
  // Blocks of 64 and 80 keys, in slices of 64 or 128 columns, were up to 9 %
  // slower than the best of these; with the depth divided, those of 64, 112 and
  // 128 keys were up to 8 % slower.
  SmallVector<int64_t> blocks = {isDivided ? 80 : 128, 96};
  for (int64_t cluster : {1, 2})
    for (int64_t blockN : blocks) {
      if (target.getClusteredSMs(cluster) == 0 || cluster < p.depthCtas)
        continue;
      if (!mayShareLoads(facts) && cluster > p.depthCtas)
        continue;
      p.cluster = cluster;
      p.blockN = blockN;
      if (masked)
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
  int64_t ownSlices = plan.getSoftmaxColumns() / plan.getSlice();
  int64_t otherSlices = llvm::divideCeil(
      getOwnColumns(facts, plan) - plan.getSoftmaxColumns(), plan.getSlice());
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
  double slice = 2.0 * kColumnsRows * plan.getBlockN() * plan.getSlice() /
                 target.tensorFlopF16;
  double softmax = estimate.expClocks + estimate.issueClocks;
  if (plan.getDepthCtas() > 1)
    return softmax + getDividedClocks(facts, plan, slice);
  double reload = plan.getCluster() > 1 ? kSharedReloadClocks : kReloadClocks;
  int64_t keySlices = countKeySlices(facts, plan);
  int64_t ownSlices = plan.getSoftmaxColumns() / plan.getSlice();
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
  double queries = getAssumedExtent(facts.queries, kAssumedLength);
  double keys = getAssumedExtent(facts.keys, kAssumedLength);
  double groups = facts.batch * getAssumedExtent(facts.heads, kAssumedHeads);
  int64_t cluster = plan.getCluster(), divided = plan.getDepthCtas();
  int64_t together = cluster / divided;
  double clusters = double(target.getClusteredSMs(cluster)) / cluster;
  estimate.tiles =
      int64_t(groups * together * std::ceil(queries / (blockM * together)));
  estimate.waves = estimate.tiles / (clusters * together);
  estimate.blocks = countBlocks(facts, queries, keys, blockM, blockN);
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
  if (std::max(facts.headDim, facts.valueDim) <= kMostWholeColumns)
    estimate.margin = kMargin;
  else if (divided == 1 && mayBePaired(facts, target))
    estimate.margin = kPairMargin;
  estimate.microseconds =
      rounds * (estimate.tileClocks + estimate.blocks * estimate.blockClocks) /
      target.clockMHz;
  return estimate;
}
