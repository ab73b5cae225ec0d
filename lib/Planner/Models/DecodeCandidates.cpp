//===- DecodeCandidates.cpp - Plans of decode to compare ------------------===//

#include "../../Schedule/Core/CommonChecks.h"
#include "../../Schedule/Core/NarrowKeys.h"
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

namespace {
/// A tile of rows, and where its queries are.
struct TileShape {
  int64_t rows;
  bool qInRegs;
};
} // namespace

/// Returns the tiles that are worth comparing: the smallest that holds all
/// rows, and where several tiles do, those that registers may have.
static SmallVector<TileShape> listTiles(const ProblemFacts &facts) {
  int64_t all = facts.queries * getKnownGroup(facts);
  SmallVector<int64_t, 3> sizes = {all <= 16 ? 16 : 32};
  bool hasSeveral = all > kDecodedRows;
  // Widening takes the registers of a second fragment of rows.
  if (facts.hasNarrowKeys() && all > 16)
    sizes.push_back(16);
  else if (hasSeveral)
    sizes.append({48, 64});
  // Registers of a thread's results, and of its queries, beside which a block
  // of 16 keys fits.
  constexpr int64_t kMostResults = 160, kMostQueries = 64;
  SmallVector<TileShape> tiles;
  for (int64_t rows : sizes)
    for (bool qInRegs : {true, false}) {
      if (rows > 32 && rows * facts.valueDim / 32 > kMostResults)
        continue;
      if (hasSeveral && qInRegs && !facts.hasNarrowKeys() &&
          rows * facts.headDim / 64 > kMostQueries)
        continue;
      if (facts.hasNarrowKeys() && qInRegs != holdsQueries(facts))
        continue;
      tiles.push_back({rows, qInRegs});
    }
  return tiles;
}

std::vector<PlanAttrInterface>
DecodeModel::getCandidates(const ProblemFacts &facts, const TargetRow &) const {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  int64_t group = getKnownGroup(facts);
  // Scales of groups want whole rows in a warp: of long ones a CTA has one.
  int64_t most = facts.hasNarrowKeys() ? kNarrowColumns : kColumns;
  bool isLong = std::max(facts.headDim, facts.valueDim) > most;
  // Warps that have parts of a run's keys would have other ones of other
  // queries; of heads side by side each warp has one.
  bool sharesColumns = isLong || facts.hasRuns();
  int64_t mostHeads = countHeadsTogether(facts);
  SmallVector<TileShape> tiles = listTiles(facts);
  // Several tiles have CTAs enough; widening has no registers for more warps.
  constexpr int64_t kFewWarps = 4;
  bool hasSeveral = facts.queries * group > kDecodedRows;
  int64_t fewest = hasSeveral && !facts.hasNarrowKeys() ? kFewWarps : 1;
  std::vector<PlanAttrInterface> plans;
  for (int64_t warps : {4, 8, 2, 1}) {
    if (warps < fewest)
      break;
    int64_t together = std::min(warps, mostHeads);
    for (int64_t blockN : {16, 32, 64})
      for (int64_t stages : {2, 3, 4})
        for (int64_t ctasPerSM : {1, 2, 3, 4})
          for (TileShape tile : tiles) {
            DecodePlanAttr::Parameters plan;
            plan.blockM = tile.rows;
            plan.blockN = blockN;
            plan.warps = warps;
            plan.stages = stages;
            plan.ctasPerSm = ctasPerSM;
            plan.qInRegs = tile.qInRegs;
            plan.softmax = getUsualPolicies(facts).front();
            plan.packHeads = group > 1;
            if (sharesColumns)
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
