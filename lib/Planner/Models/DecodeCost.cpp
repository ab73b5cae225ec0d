//===- DecodeCost.cpp - What a plan of decode is expected to take ---------===//
//
// DRAM decides most problems (CopiedCost.h). Beside it stand the clocks of an
// SM's busiest resource for all blocks of its teams, and what a tile takes
// before its first and behind its last block.
//
//===----------------------------------------------------------------------===//

#include "../../Schedule/Decode/Decode.h"
#include "CopiedCost.h"
#include "Models.h"
#include "attn/Planner/Facts/Factor.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

/// Clocks from a CTA's start to its first block, and from its last one to
/// its end: those of split_q, whose results leave in the same way.
static constexpr Factor kTileLatency{"decode.tile_latency"};
/// Clocks in which two halves of a CTA's states become one.
static constexpr Factor kMergeLatency{"decode.merge_latency"};
/// Clocks of a block in which its warp waits for what its own instructions
/// give: the products, the softmax and the copies' addresses follow each
/// other.
static constexpr Factor kBlockLatency{"decode.block_latency"};

/// CTAs of several heads are slow with blocks of more keys, or with fewer bytes
/// of a row of keys in all warps of an SM.
static constexpr Factor kLongestTogether{"decode.longest_together"},
    kFewestBytesTogether{"decode.fewest_bytes_together"};
static constexpr Factor kSlowTogether{"decode.slow_together"};
static constexpr Factor kStartBeside{"decode.start_beside"},
    kWarpsBeside{"decode.warps_beside"};

bool DecodeModel::isExpectedToSpill(const ProblemFacts &facts,
                                    PlanAttrInterface planAttr,
                                    const TargetRow &target) const {
  auto plan = cast<DecodePlanAttr>(planAttr);
  CopiedExtents extents(facts, plan);
  return expectsSpills(
      {facts, plan, target, int64_t(plan.getBlockN()), &extents, {}}, plan,
      plan.getCtasPerSm());
}

PlanEstimate DecodeModel::estimate(const ProblemFacts &facts,
                                   PlanAttrInterface planAttr,
                                   const TargetRow &target) const {
  auto plan = cast<DecodePlanAttr>(planAttr);
  CopiedPlan copied(plan);
  CopiedExtents extents(facts, copied);
  PlanEstimate estimate =
      estimateResources(facts, extents, copied, plan.getCtasPerSm(), target);
  double busiest = std::max({estimate.tensorClocks, estimate.expClocks,
                             estimate.issueClocks, estimate.sharedClocks});
  double ctas = plan.getCtasPerSm(), teams = double(copied.getTeams());
  // All teams of an SM share its resources; each waits for itself.
  estimate.blockClocks =
      std::max(busiest, (busiest + kBlockLatency) / (teams * ctas));
  // Widening by integers is so long that a warp's own rate of one instruction a
  // clock decides where few warps share an SM.
  if (facts.hasNarrowKeys() && !target.has(Capability::Fp8)) {
    double own = estimate.issueClocks * target.issuePerClock;
    estimate.blockClocks =
        std::max(estimate.blockClocks, (own + kBlockLatency) / (teams * ctas));
  }
  estimate.tileClocks =
      (kTileLatency +
       kMergeLatency * llvm::Log2_64_Ceil(copied.getKeyTeams())) /
      ctas;
  estimate.waves = double(estimate.tiles) / double(estimate.ctaTiles) /
                   (double(target.smCount) * ctas);
  // The team with the most blocks decides.
  double blocks =
      teams * std::ceil(estimate.blocks / double(copied.getKeyTeams()));
  double clocks = std::ceil(estimate.waves) * ctas *
                  (estimate.tileClocks + blocks * estimate.blockClocks);
  estimate.microseconds = clocks / target.clockMHz;
  addDramTime(estimate, facts, copied, target);
  if (estimate.ctaTiles > 1) {
    int64_t rowBytes =
        facts.headDim * facts.keyType.getIntOrFloatBitWidth() / 8;
    if (double(plan.getBlockN()) > kLongestTogether ||
        teams * ctas * double(rowBytes) < kFewestBytesTogether)
      estimate.microseconds *= kSlowTogether;
    else if (ctas == 2 && teams * ctas == kWarpsBeside &&
             copied.getKeyTeams() == 1)
      estimate.microseconds = std::max(estimate.dramRoofMicroseconds,
                                       estimate.microseconds - kStartBeside);
  }
  return estimate;
}
