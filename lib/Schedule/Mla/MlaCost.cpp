//===- MlaCost.cpp - What a plan of mla is expected to take ---------------===//
//
// DRAM decides most problems (CopiedCost.h). The warps of a CTA compute a block
// together: its products, the exchange and the softmax follow each other, and
// only another CTA of the SM fills what they leave.
//
//===----------------------------------------------------------------------===//

#include "../Copied/CopiedCost.h"
#include "Mla.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

/// Clocks from a CTA's start to its first block, and from its last one to its
/// end: those of split_q, whose results leave in the same way.
static constexpr double kTileLatency = 6400;
/// Clocks of a block in which all warps wait: for the copies' barrier, the
/// first fragments, the exchange.
static constexpr double kBlockLatency = 500;
/// Clocks from one mma.sync to the next one that adds to its result.
static constexpr double kProductLatency = 33;

/// Registers that a thread may have where an SM holds a plan's CTAs.
static int64_t getRegisterLimit(MlaPlanAttr plan, const TargetRow &target) {
  int64_t threads = plan.getThreads() * plan.getCtasPerSm();
  return std::min<int64_t>(target.registersPerThread,
                           llvm::alignDown(target.registersPerSM / threads,
                                           target.registerAllocationUnit));
}

bool MlaSchedule::isExpectedToSpill(const ProblemFacts &facts,
                                    PlanAttrInterface planAttr,
                                    const TargetRow &target) const {
  auto plan = cast<MlaPlanAttr>(planAttr);
  return CopiedExtents(facts, plan).getRegisters(plan).getTotal() >
         getRegisterLimit(plan, target);
}

PlanEstimate MlaSchedule::estimate(const ProblemFacts &facts,
                                   PlanAttrInterface planAttr,
                                   const TargetRow &target) const {
  auto plan = cast<MlaPlanAttr>(planAttr);
  CopiedPlan copied(plan);
  CopiedExtents extents(facts, copied);
  PlanEstimate estimate;
  estimate.sharedBytes = extents.getSharedBytes(copied);
  estimate.registers = extents.getRegisters(copied);
  estimate.ctasPerSM = plan.getCtasPerSm();

  countCopiedTiles(estimate, facts, copied);
  setCopiedBlockClocks(estimate, facts, extents, copied, target);
  double busiest = std::max({estimate.tensorClocks, estimate.expClocks,
                             estimate.issueClocks, estimate.sharedClocks});
  // The k-steps of a product add to one accumulator after the other.
  double chain = kProductLatency * extents.keyColumns / 16.0;
  double scores =
      std::max(chain, estimate.tensorClocks * extents.keyColumns /
                          (extents.keyColumns + extents.valueColumns));
  double serial =
      scores + estimate.tensorClocks / 2 + estimate.expClocks + kBlockLatency;
  double ctas = plan.getCtasPerSm();
  estimate.blockClocks = std::max(busiest, serial / ctas);
  estimate.tileClocks = kTileLatency / ctas;
  estimate.waves = estimate.tiles / (double(target.smCount) * ctas);
  double clocks =
      std::ceil(estimate.waves) * ctas *
      (estimate.tileClocks + std::ceil(estimate.blocks) * estimate.blockClocks);
  estimate.microseconds = clocks / target.clockMHz;
  addDramTime(estimate, facts, copied, target);
  return estimate;
}
