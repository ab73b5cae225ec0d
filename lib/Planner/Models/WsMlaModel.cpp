//===- WsMlaModel.cpp - Plans of ws_mla: which, and their time ------------===//
//
// The slots of keys go through four roles, one after the other, and these work
// beside each other: a block takes what the busiest resource does, or the way
// of a slot divided by the slots. DRAM decides most problems (CopiedCost.h).
//
//===----------------------------------------------------------------------===//

#include "../../Schedule/WsMla/WsMla.h"
#include "../Facts/BlockCount.h"
#include "CopiedCost.h"
#include "Models.h"
#include "attn/Planner/Facts/Factor.h"
#include "attn/Planner/Facts/RegisterModel.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

static constexpr Factor kLoadLatency{"mla.load_latency"},
    kLoadBytes{"mla.load_bytes"}, kHandOverLatency{"mla.hand_over_latency"},
    kTileLatency{"mla.tile_latency"};

bool UnofferedWsMlaModel::isOffered(const ProblemFacts &,
                                    const TargetRow &) const {
  return false;
}

/// Returns the registers of a thread of the results, or of the softmax if it
/// has more.
static ResourceSum countRegisters(const ProblemFacts &facts,
                                  WsMlaPlanAttr plan) {
  int64_t rows = plan.getBlockM();
  int64_t softmaxRows = 16 * getSoftmaxGrid(plan)[0];
  RegisterFeatures features;
  features.o = rows * facts.valueDim / (32 * kRoleResultWarps);
  // f32 scores, and probabilities in pairs.
  int64_t scores = rows * plan.getBlockN() / (2 * softmaxRows);
  features.o = std::max(features.o, scores + scores / 2);
  return RegisterModel::getUsed().count("ws_mla", features);
}

bool WsMlaModel::isExpectedToSpill(const ProblemFacts &facts,
                                   PlanAttrInterface planAttr,
                                   const TargetRow &) const {
  auto plan = cast<WsMlaPlanAttr>(planAttr);
  return countRegisters(facts, plan).getTotal() > getRoleRegisters(plan);
}

std::vector<PlanAttrInterface>
WsMlaModel::getCandidates(const ProblemFacts &facts, const TargetRow &) const {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  std::vector<PlanAttrInterface> plans;
  SoftmaxPolicy softmax = facts.needsExactMaxima() ? SoftmaxPolicy::Exact
                                                   : SoftmaxPolicy::Threshold;
  for (int64_t blockM : {32, 64, 16})
    for (int64_t blockN : {64, 32, 16})
      for (int64_t stages : {4, 3, 2, 1})
        for (int64_t handed : {2, 1}) {
          if (blockM == 16 && blockN < 32)
            continue;
          WsMlaPlanAttr::Parameters plan;
          plan.blockM = blockM;
          plan.blockN = blockN;
          plan.stages = stages;
          plan.sStages = plan.pStages = handed;
          plan.softmax = softmax;
          plans.push_back(WsMlaPlanAttr::get(context, plan));
        }
  return plans;
}

/// Sets what a block takes on each resource, and the way of its slot.
static double setBlockClocks(PlanEstimate &estimate, const ProblemFacts &facts,
                             WsMlaPlanAttr plan, const TargetRow &target) {
  double rows = plan.getBlockM(), keys = plan.getBlockN();
  double keyColumns = getRoleKeyColumns(facts), valueColumns = facts.valueDim;
  double keyBytes = 2 * keys * keyColumns;
  auto [rowWarps, columnWarps] = getScoreGrid(plan);
  estimate.tensorClocks =
      2 * rows * keys * (keyColumns + valueColumns) / target.tensorFlopF16;
  estimate.expClocks = rows * keys / target.expPerClock;
  // Copies; queries and keys, which the warps of other rows or keys read too;
  // scores, written and read; probabilities, which each warp of the results
  // reads, and values.
  double scores = 2 * rows * keyColumns * double(columnWarps) +
                  keyBytes * double(rowWarps) + 2 * 4 * rows * keys;
  double results =
      2 * rows * keys * (1 + kRoleResultWarps) + 2 * keys * valueColumns;
  estimate.sharedClocks =
      (keyBytes + scores + results) / target.sharedBytesPerClock;
  return kLoadLatency + keyBytes / kLoadBytes + estimate.tensorClocks +
         estimate.expClocks + 4 * kHandOverLatency;
}

PlanEstimate WsMlaModel::estimate(const ProblemFacts &facts,
                                  PlanAttrInterface planAttr,
                                  const TargetRow &target) const {
  auto plan = cast<WsMlaPlanAttr>(planAttr);
  PlanEstimate estimate;
  estimate.sharedBytes = getRoleSharedBytes(facts, plan);
  estimate.registers = countRegisters(facts, plan);
  estimate.ctasPerSM = 1;

  double blockM = plan.getBlockM(), blockN = plan.getBlockN();
  double runs = double(std::max<int64_t>(1, facts.kvSplits));
  auto [batch, heads, queries, keys] = getTypicalExtents(facts);
  estimate.tiles = int64_t(batch * runs * std::ceil(queries * heads / blockM));
  estimate.waves = double(estimate.tiles) / target.smCount;
  estimate.blocks = countBlocks(facts, queries, keys / runs, blockM, blockN);
  double way = setBlockClocks(estimate, facts, plan, target);
  estimate.blockClocks =
      std::max({estimate.tensorClocks, estimate.expClocks,
                estimate.sharedClocks, way / double(plan.getStages())});
  estimate.tileClocks = kTileLatency / 2;
  estimate.microseconds = std::ceil(estimate.waves) *
                          (estimate.tileClocks +
                           std::ceil(estimate.blocks) * estimate.blockClocks) /
                          target.clockMHz;
  addDramTime(estimate, facts, plan.getBlockN(),
              2 * blockN * double(getRoleKeyColumns(facts)) *
                  double(plan.getStages()),
              target);
  return estimate;
}
