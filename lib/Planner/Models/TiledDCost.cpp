//===- TiledDCost.cpp - What a plan of tiled_d is expected to take --------===//
//
// Time of the problem = waves * (tileClocks + blocks * blockClocks) * CTAs of
// an SM. A block's clocks are those of its busiest resource, often shared
// memory, and what a CTA waits for: its barriers, and its exponentials, after
// which nothing else runs.
//
//===----------------------------------------------------------------------===//

#include "../../Schedule/Core/CommonChecks.h"
#include "CopiedCost.h"
#include "Models.h"
#include "attn/Planner/Facts/Factor.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

/// Clocks from a CTA's start to its first block, and from its last one to
/// its end: those of split_q, whose results leave in the same way.
static constexpr Factor kTileLatency{"tiled_d.tile_latency"};
/// Clocks of a slice that nothing of its CTA hides: its barrier and the
/// first fragments behind it.
static constexpr Factor kSliceLatency{"tiled_d.slice_latency"};
/// The same of a block: the exchange of the scores and the softmax's chain.
static constexpr Factor kBlockLatency{"tiled_d.block_latency"};
/// Clocks from the start of a slice's copies to their end, a guess.
static constexpr Factor kCopyLatency{"tiled_d.copy_latency"};
/// Microseconds of a copy that comes from DRAM.
static constexpr Factor kLoneCopyLatency{"copied.copy_latency"};

bool TiledDModel::isExpectedToSpill(const ProblemFacts &facts,
                                    PlanAttrInterface planAttr,
                                    const TargetRow &target) const {
  auto plan = cast<TiledDPlanAttr>(planAttr);
  CopiedPlan copied(plan);
  CopiedExtents extents(facts, copied);
  KnownSums known;
  known.gathers = copied.gathersProbabilities();
  return expectsSpills(
      {facts, plan, target, int64_t(plan.getBlockN()), &extents, known}, copied,
      /*ctasPerSM=*/1);
}

PlanEstimate TiledDModel::estimate(const ProblemFacts &facts,
                                   PlanAttrInterface planAttr,
                                   const TargetRow &target) const {
  auto plan = cast<TiledDPlanAttr>(planAttr);
  CopiedPlan copied(plan);
  CopiedExtents extents(facts, copied);
  PlanEstimate estimate;
  estimate.sharedBytes = extents.getSharedBytes(copied);
  estimate.registers = extents.getRegisters(copied);
  estimate.ctasPerSM =
      countCTAs(estimate, estimate.registers.getTotal(), copied, target);
  countCopiedTiles(estimate, facts, copied);
  setCopiedBlockClocks(estimate, facts, extents, copied, target);
  double ctas = estimate.ctasPerSM;
  // Q is loaded with each block where it is streamed.
  double blockBytes = extents.kBytes + extents.vBytes;
  if (plan.getQStreamed()) {
    blockBytes += extents.qBytes;
    estimate.sharedClocks +=
        double(extents.qBytes) / target.sharedBytesPerClock;
  }
  double l2Clocks = blockBytes / std::max(1u, target.l2BytesPerClock);
  double busiest =
      std::max({estimate.tensorClocks, estimate.expClocks, estimate.issueClocks,
                estimate.sharedClocks, l2Clocks});
  double slices =
      double(extents.keyColumns + extents.valueColumns) / plan.getSlice();
  // A slice's copies have the time of the slices before it.
  double lateness = std::max(0.0, kCopyLatency - (plan.getStages() - 1) *
                                                     busiest / slices * ctas);
  estimate.blockClocks = busiest + (slices * (kSliceLatency + lateness) +
                                    kBlockLatency + estimate.expClocks) /
                                       ctas;
  estimate.tileClocks =
      kTileLatency / ctas + double(extents.qBytes + extents.oBytes) /
                                std::max(1u, target.l2BytesPerClock);
  estimate.waves = estimate.tiles / (double(target.smCount) * ctas);
  // The last wave may be partly filled; long-first order hides most of that.
  double rounds = std::ceil(estimate.waves);
  if (plan.getOrder() == TileOrder::LongestFirst && estimate.waves > 1)
    rounds = (rounds + estimate.waves) / 2;
  estimate.microseconds =
      rounds * ctas *
      (estimate.tileClocks + estimate.blocks * estimate.blockClocks) /
      target.clockMHz;
  if (isBoundByKeys(facts) || plan.getPackHeads()) {
    addDramTime(estimate, facts, copied, target);
    // A CTA that is alone hides nothing: each slice takes at least its part of
    // the copies in flight.
    double lone = slices * std::max(busiest / slices + kSliceLatency,
                                    kLoneCopyLatency * target.clockMHz /
                                        std::max(1.0, plan.getStages() - 1.0)) +
                  kBlockLatency + estimate.expClocks;
    estimate.loneTileMicroseconds =
        std::max(estimate.loneTileMicroseconds,
                 estimate.blocks * lone / target.clockMHz);
  }
  return estimate;
}
