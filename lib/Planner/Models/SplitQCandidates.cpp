//===- SplitQCandidates.cpp - Plans of split_q to compare -----------------===//

#include "../../Schedule/Copied/GridTiles.h"
#include "../../Schedule/Core/CommonChecks.h"
#include "../../Schedule/Core/NarrowKeys.h"
#include "CopiedCost.h"
#include "Models.h"
#include "attn/Planner/Facts/RegisterLimit.h"

using namespace mlir;
using namespace mlir::attn;

/// The most columns of queries beside 8-bit keys with scales of groups of
/// columns for which plans keep them in registers.
static constexpr RegisterLimit kMostHeldColumns{"split_q.held_scaled_columns"};

/// Rows of the smallest tile of several warps.
static constexpr int64_t kUsualRows = 64;

/// Returns true if plans that pack the heads of a group are worth comparing. A
/// batch that is served has few queries, and keys are most of its traffic.
static bool isWorthPacking(const ProblemFacts &facts) {
  int64_t group = facts.getGroup();
  if (ShapedType::isDynamic(group) || group == 1 || group > kPackedHeadsLimit)
    return false;
  return facts.isServed() || savesTiles(facts, kUsualRows, group);
}

/// Returns the slots that are worth comparing. Where rows are few, DRAM
/// decides, and more blocks on the way are worth their memory.
static ArrayRef<int64_t> listStages(const ProblemFacts &facts, int64_t rows) {
  static constexpr int64_t usual[] = {2, 1}, few[] = {2, 3, 4};
  constexpr int64_t kFewRows = 256;
  bool isBoundByKeys = facts.isServed() || areResultsPartial(facts);
  return isBoundByKeys && rows > kDecodedRows && rows <= kFewRows
             ? ArrayRef(few)
             : ArrayRef(usual);
}

std::vector<PlanAttrInterface>
SplitQModel::getCandidates(const ProblemFacts &facts,
                           const TargetRow &target) const {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  // Tiles get unequal work under a mask: the longest ones go first.
  TileOrder order = facts.mask.getKind() == MaskKind::None
                        ? TileOrder::RowMajor
                        : TileOrder::LongestFirst;
  std::vector<PlanAttrInterface> plans;
  int64_t queries = getAssumedExtent(facts.queries, kAssumedLength);
  bool packs = isWorthPacking(facts);
  if (packs)
    queries *= facts.getGroup();
  int64_t groupHeads = order == TileOrder::LongestFirst && !packs
                           ? chooseHeadsInL2(facts, target)
                           : 0;
  // Parts of one k-step, whose fragments of V have none to wait for: wide odd
  // values leave no registers for a second one.
  int64_t leastPart =
      facts.valueDim % 16 != 0 && facts.valueDim > 192 ? 16 : 32;
  // What is widened needs fragments of f16 beside.
  bool holdsQueries =
      !hasGroupScales(facts) || facts.headDim <= kMostHeldColumns;
  for (int64_t warps : {1, 2, 4, 8})
    for (int64_t warpRows : {16, 32})
      for (int64_t blockN : {32, 64, 128})
        for (int64_t parts : {1, 2, 4})
          for (int64_t stages : listStages(facts, queries))
            for (bool qInRegs : {true, false}) {
              // Few warps are for few rows only.
              int64_t blockM = warps * warpRows;
              if (warps < 4 && (warpRows != 16 || queries > blockM))
                continue;
              if (parts > 1 && blockN / parts < leastPart)
                continue;
              if (facts.hasNarrowKeys() &&
                  (qInRegs != holdsQueries || (facts.kScales && parts > 1)))
                continue;
              SplitQPlanAttr::Parameters plan;
              plan.blockM = blockM;
              plan.blockN = blockN;
              plan.warps = warps;
              plan.stages = stages;
              plan.qInRegs = qInRegs;
              plan.parts = parts;
              plan.softmax = getUsualPolicies(facts).front();
              plan.order = order;
              plan.groupHeads = groupHeads;
              plan.packHeads = packs;
              plans.push_back(SplitQPlanAttr::get(context, plan));
            }
  return plans;
}
