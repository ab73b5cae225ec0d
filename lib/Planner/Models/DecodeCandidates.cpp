//===- DecodeCandidates.cpp - Plans of decode to compare ------------------===//

#include "../../Schedule/Core/CommonChecks.h"
#include "../../Schedule/Decode/Decode.h"
#include "CopiedCost.h"
#include "Models.h"
#include "attn/Planner/Facts/Factor.h"
#include "attn/Planner/Facts/RegisterLimit.h"

using namespace mlir;
using namespace mlir::attn;

/// The most columns of a row for which registers hold queries beside 8-bit
/// keys, and with scales of groups of columns.
static constexpr RegisterLimit kHeldColumns{"decode.held_columns"},
    kHeldScaledColumns{"decode.held_scaled_columns"};
/// The most columns that a warp has of a row, of 16 and of 8 bits.
static constexpr RegisterLimit kColumns{"decode.columns"},
    kNarrowColumns{"decode.narrow_columns"};

/// Returns true if plans for 8-bit keys keep queries in registers. Long rows
/// whose scales come in groups of columns leave no room for them.
static bool holdsQueries(const ProblemFacts &facts) {
  if (facts.kScales && facts.scaleGroup != facts.headDim)
    return facts.headDim <= kHeldScaledColumns;
  bool isInGroups =
      facts.headDim % kGroupColumns == 0 && facts.valueDim % kGroupColumns == 0;
  return facts.headDim <= kHeldColumns || !isInGroups;
}

/// Bytes of a row of keys and values that two heads in a CTA have to save,
/// for plans of several heads.
static constexpr Factor kFewestSavedBytes{"decode.fewest_saved_bytes"};

/// The most heads of one CTA that are worth a plan: a power of two that divides
/// those of tiles where a head has short pieces of pages and heads lie side by
/// side; else 1.
static int64_t countHeadsTogether(const ProblemFacts &facts) {
  int64_t group = getKnownGroup(facts);
  if (ShapedType::isDynamic(facts.heads) ||
      getBytesBeside(facts, /*heads=*/1) - getBytesBeside(facts, /*heads=*/2) <
          kFewestSavedBytes)
    return 1;
  int64_t heads = facts.heads / group;
  return heads & -heads;
}

/// Returns the rows of tiles that are worth comparing: the fewest that hold
/// all, and where several tiles do, those that registers may have.
static SmallVector<int64_t> listTileRows(const ProblemFacts &facts) {
  int64_t rows = facts.queries * getKnownGroup(facts);
  if (rows <= 16)
    return {16};
  // Widening takes the registers of a second fragment of rows.
  if (facts.hasNarrowKeys())
    return {32, 16};
  if (rows <= 32)
    return {32};
  return {32, 48, 64};
}

std::vector<PlanAttrInterface>
DecodeModel::getCandidates(const ProblemFacts &facts, const TargetRow &) const {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  int64_t group = getKnownGroup(facts);
  // Scales of groups want whole rows in a warp: of long ones a CTA has one.
  int64_t most = facts.hasNarrowKeys() ? kNarrowColumns : kColumns;
  bool isLong = std::max(facts.headDim, facts.valueDim) > most;
  int64_t mostHeads = countHeadsTogether(facts);
  SmallVector<std::pair<int64_t, bool>> shapes;
  for (int64_t blockM : listTileRows(facts))
    for (bool qInRegs : {true, false})
      shapes.push_back({blockM, qInRegs});
  std::vector<PlanAttrInterface> plans;
  for (int64_t warps : {4, 8, 2, 1}) {
    int64_t together = std::min(warps, mostHeads);
    for (int64_t blockN : {16, 32, 64})
      for (int64_t stages : {2, 3, 4})
        for (int64_t ctasPerSM : {1, 2, 3, 4})
          for (auto [blockM, qInRegs] : shapes) {
            DecodePlanAttr::Parameters plan;
            plan.blockM = blockM;
            plan.blockN = blockN;
            plan.warps = warps;
            plan.stages = stages;
            plan.ctasPerSm = ctasPerSM;
            plan.qInRegs = qInRegs;
            if (facts.hasNarrowKeys() && qInRegs != holdsQueries(facts))
              continue;
            plan.softmax = SoftmaxPolicy::Optimistic;
            plan.packHeads = group > 1;
            if (isLong)
              plan.warpsN = warps;
            plans.push_back(DecodePlanAttr::get(context, plan));
            // Several heads in a CTA are for short pieces of pages.
            plan.ctaHeads = together / plan.warpsN;
            if (plan.ctaHeads > 1)
              plans.push_back(DecodePlanAttr::get(context, plan));
          }
  }
  return plans;
}
