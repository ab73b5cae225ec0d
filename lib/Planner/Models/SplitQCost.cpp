//===- SplitQCost.cpp - What a plan of split_q is expected to take --------===//
//
// Time of the problem = waves * (tileClocks + blocks * blockClocks) * CTAs of
// an SM. A block's clocks are those of its busiest resource plus what the warps
// of a scheduler cannot hide behind each other: with one warp, its matrix
// instructions, the softmax and the waits follow each other. Rates come
// from the target table; the instruction counts below are those of this
// schedule's SASS.
//
//===----------------------------------------------------------------------===//

#include "CopiedCost.h"
#include "Models.h"
#include "attn/Planner/Facts/Factor.h"
#include "attn/Planner/Facts/RegisterLimit.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

/// Clocks from a CTA's start to its first matrix instruction and from its
/// last one to its end: latencies of Q, the first K and V, and the stores.
static constexpr Factor kTileLatency{"split_q.tile_latency"};
/// Clocks of one block that nothing overlaps within a warp: the barrier and
/// the first fragments.
static constexpr Factor kBlockLatency{"split_q.block_latency"};
/// The same for a block whose copies do not run a block ahead.
static constexpr Factor kOneStageLatency{"split_q.one_stage_latency"};
/// The share of the other resources' clocks that never hides behind the
/// busiest one.
static constexpr Factor kUnhiddenShare{"split_q.unhidden_share"};

bool SplitQModel::isExpectedToSpill(const ProblemFacts &facts,
                                    PlanAttrInterface planAttr,
                                    const TargetRow &target) const {
  auto plan = cast<SplitQPlanAttr>(planAttr);
  CopiedExtents extents(facts, plan);
  return expectsSpills(
      {facts, plan, target, int64_t(plan.getBlockN()), &extents, {}}, plan,
      /*ctasPerSM=*/1);
}

PlanEstimate SplitQModel::estimate(const ProblemFacts &facts,
                                   PlanAttrInterface planAttr,
                                   const TargetRow &target) const {
  auto plan = cast<SplitQPlanAttr>(planAttr);
  CopiedExtents extents(facts, plan);
  PlanEstimate estimate;
  estimate.sharedBytes = extents.getSharedBytes(plan);
  estimate.registers = extents.getRegisters(plan);

  double blockM = plan.getBlockM();
  double warps = plan.getWarps();

  // ptxas takes some more where it has them to spare. These hold what rows of K
  // and V do not share.
  static constexpr RegisterLimit kSpare{"copied.spare_registers"};
  int64_t registers = estimate.registers.getTotal() -
                      extents.getOwnRowRegisters(plan) + kSpare +
                      getConvertedRegisters(facts, target);
  estimate.ctasPerSM = countCTAs(estimate, registers, plan, target);
  countCopiedTiles(estimate, facts, plan);

  double columns = extents.keyColumns + extents.valueColumns;
  double softmax =
      setCopiedBlockClocks(estimate, facts, extents, plan, target) * warps;
  double ctas = estimate.ctasPerSM;
  double busiest = std::max({estimate.tensorClocks, estimate.expClocks,
                             estimate.issueClocks, estimate.sharedClocks});
  // A CTA of fewer than four warps leaves schedulers idle.
  double serial = (estimate.tensorClocks + estimate.expClocks +
                   softmax / target.issuePerClock) *
                      std::max(1.0, 4 / warps) +
                  kBlockLatency;
  double others = estimate.tensorClocks + estimate.issueClocks +
                  estimate.sharedClocks - busiest;
  // CTAs take turns on a scheduler freely; warps of one CTA meet at the
  // barrier of each block, so that a second one hides less than another CTA.
  double turns = ctas * std::sqrt(std::max(1.0, warps / 4));
  auto getBlockClocks = [&](double turns, double ctas) {
    return busiest + std::max(0.0, serial - busiest) / turns +
           kUnhiddenShare * std::max(0.0, others) +
           (plan.getStages() == 1 ? kOneStageLatency / ctas : 0);
  };
  estimate.blockClocks = getBlockClocks(turns, ctas);
  estimate.tileClocks =
      kTileLatency / ctas +
      (blockM * columns * 4) / std::max(1u, target.l2BytesPerClock);

  double slots = double(target.smCount) * ctas;
  estimate.waves = estimate.tiles / slots;
  // The last wave may be partly filled; long-first order hides most of that.
  double rounds = std::ceil(estimate.waves);
  if (plan.getOrder() == TileOrder::LongestFirst && estimate.waves > 1)
    rounds = (rounds + estimate.waves) / 2;
  double clocks =
      rounds * ctas *
      (estimate.tileClocks + estimate.blocks * estimate.blockClocks);
  estimate.microseconds = clocks / target.clockMHz;
  if (isBoundByKeys(facts) || plan.getPackHeads()) {
    addDramTime(estimate, facts, plan, target);
    // A CTA that is alone hides less.
    estimate.loneTileMicroseconds = std::max(
        estimate.loneTileMicroseconds,
        estimate.blocks * getBlockClocks(turns / ctas, 1) / target.clockMHz);
  }
  return estimate;
}
