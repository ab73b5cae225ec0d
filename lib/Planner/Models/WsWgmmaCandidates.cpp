//===- WsWgmmaCandidates.cpp - Plans of ws_wgmma to compare ---------------===//

#include "../../Schedule/Copied/GridTiles.h"
#include "../../Schedule/Core/CommonChecks.h"
#include "../../Schedule/Core/NarrowKeys.h"
#include "../../Schedule/Wgmma/WgmmaFacts.h"
#include "../../Schedule/WsWgmma/FirstBlockKeys.h"
#include "../../Schedule/WsWgmma/WsWgmma.h"
#include "../Facts/TileBalance.h"
#include "CopiedCost.h"
#include "Models.h"
#include "attn/Planner/Facts/Factor.h"
#include "attn/Planner/Facts/RegisterLimit.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

namespace {
/// Says which operations overlap.
struct Overlap {
  bool qkAhead = true, pvBehind = false, turns = false;
};
} // namespace

/// Returns the ways to overlap that are worth comparing: how warpgroups are
/// kept from computing their softmax at the same time, and where PV runs
/// (docs/Rationale/NarrowTypes.md). With PV behind the rare path takes a vote
/// of the warpgroup, which wide rows and 8-bit operands do not pay for.
static SmallVector<Overlap> getOverlaps(const ProblemFacts &facts,
                                        SoftmaxPolicy softmax) {
  const Overlap none, turns{true, false, true}, behind{true, true, false},
      inOrder{false, false, false};
  if (facts.isNarrow()) {
    static constexpr Factor kTurnColumns{"ws_wgmma.turn_columns"};
    if (needsTransposer(facts) || double(facts.valueDim) > kTurnColumns)
      return {none, turns};
    return {none};
  }
  if (isWide(facts) && facts.mask.getKind() == MaskKind::None)
    return {none, turns, inOrder};
  if (isWide(facts))
    return {none, turns};
  if (facts.hasNarrowKeys() && facts.valueDim > kMostWidenedAhead)
    return {inOrder, none};
  if (facts.valueDim > 128)
    return {none};
  if (softmax == SoftmaxPolicy::Optimistic && facts.valueDim <= 64 &&
      !facts.kScales)
    return {none, turns, behind};
  return {none, turns};
}

/// Returns true where a first block of its own sizes is to be a plan's default:
/// of 16-bit operands and two warpgroups, if it saves enough.
static bool savesFirstBlock(const ProblemFacts &facts, WsWgmmaPlanAttr plan) {
  static constexpr Factor kLeastSaving{"ws_wgmma.least_saving"};
  if (facts.isNarrow() || plan.getBlockM() != 128)
    return false;
  std::optional<FirstBlockSizes> sizes = findFirstBlock(facts, plan);
  return sizes && sizes->saved >= kLeastSaving;
}

/// Returns true for windows that neighbouring tiles of a head share most of.
/// Tiles go in the order of their rows then, and without turns, which a walk of
/// two blocks is too short for.
static bool isNarrowWindow(const ProblemFacts &facts) {
  static constexpr Factor kNarrow{"ws_wgmma.narrow_window_keys"};
  MaskAttr mask = facts.mask;
  return mask.hasLeft() && mask.hasRight() &&
         double(mask.rightBound() - mask.leftBound()) < kNarrow;
}

/// Returns how results leave the kernel. Registers store whole runs of 16 bytes
/// of rows of whole 64 bytes; longer rows of other sizes go by TMA. By TMA a
/// short tile also ends earlier where rows of results lie apart, as in (batch,
/// sequence, head, dim).
static EpilogueKind chooseEpilogue(const ProblemFacts &facts) {
  static constexpr Factor kMostKeys{"ws_wgmma.bulk_store_keys"};
  // Beside scales of rows only staged results leave registers to wide rows.
  static constexpr RegisterLimit kScaledColumns{"ws_wgmma.scaled_columns"};
  if (facts.kScales && facts.valueDim > kScaledColumns)
    return EpilogueKind::Staged;
  if (!canStoreByTma(facts) || isWide(facts))
    return EpilogueKind::Auto;
  int64_t bytes = facts.valueDim * facts.outType.getIntOrFloatBitWidth() / 8;
  if (bytes > 64 && bytes % 64 != 0)
    return EpilogueKind::Tma;
  bool isShort = facts.mask.getKind() == MaskKind::None &&
                 !ShapedType::isDynamic(facts.keys) &&
                 double(facts.keys) <= kMostKeys && facts.valueDim < 128;
  bool isApart = facts.o.strides.size() == 4 &&
                 !ShapedType::isDynamic(facts.o.strides[2]) &&
                 facts.o.strides[2] > facts.valueDim;
  return isShort && isApart && !facts.isNarrow() ? EpilogueKind::Tma
                                                 : EpilogueKind::Auto;
}

/// Keys of a copy in plans for pages that have as many.
static constexpr Factor kBoxRows{"ws_wgmma.box_rows"};
static int64_t getFewestBoxRows() { return std::llround(double(kBoxRows)); }

static ArrayRef<int64_t> getBlockSizes(const ProblemFacts &facts) {
  static constexpr int64_t wide[] = {128, 112, 96, 80, 64};
  static constexpr int64_t narrow[] = {128, 96, 64};
  // Without a mask blocks wait for the transposer, so that fewer of them are
  // faster; beside an accumulator of few columns registers hold their scores.
  static constexpr int64_t transposed[] = {192, 128, 96, 64};
  // Two slots of K and of V beside Q, and scores beside an accumulator.
  static constexpr int64_t wideHeads[] = {64, 48, 32, 16};
  static constexpr int64_t widened[] = {128, 96, 64, 32};
  if (facts.hasNarrowKeys())
    return widened;
  if (isWide(facts))
    return wideHeads;
  if (facts.isNarrow() && needsTransposer(facts) && facts.valueDim <= 128 &&
      facts.mask.getKind() == MaskKind::None)
    return transposed;
  return facts.isNarrow() ? ArrayRef(narrow) : ArrayRef(wide);
}

/// Returns the keys of a block beside 192 rows. Of large pages a block of 96
/// takes several copies, one of 128 fewer.
static int64_t getTallBlock(const ProblemFacts &facts) {
  static constexpr Factor kLargePage{"ws_wgmma.large_page_keys"};
  int64_t keys = std::llround(double(kLargePage));
  bool hasLargePages = facts.isPaged() && getBoxRows(facts, keys) == keys;
  return hasLargePages ? 128 : 96;
}

/// One warp starts the copies of large boxes in time; for pages of 16 keys it
/// takes longer to than a block takes to multiply.
static int64_t chooseLoaders(const ProblemFacts &facts, int64_t blockN) {
  return facts.isPaged() && !needsTransposer(facts) &&
                 getBoxRows(facts, blockN) < getFewestBoxRows()
             ? 2
             : 1;
}

/// Returns the CTAs of clusters that are worth comparing: for wide rows in a
/// static order. The tiles of a cluster walk the union of their windows.
static SmallVector<int64_t> getClusters(const ProblemFacts &facts,
                                        const TargetRow &target, bool dealt) {
  SmallVector<int64_t> clusters = {1};
  if (facts.valueDim > 128 && !isWide(facts) && !facts.isNarrow() &&
      !facts.hasNarrowKeys() && !dealt && !facts.mask.hasLeft() &&
      !facts.isServed() && !areResultsPartial(facts) &&
      target.getClusteredSMs(2) != 0)
    clusters.push_back(2);
  return clusters;
}

/// Returns true if plans of three warpgroups are worth comparing. Short
/// sequences lose more to the rows that 192 does not divide.
static bool isForThree(const ProblemFacts &facts, bool masked) {
  static constexpr Factor kKeys{"ws_wgmma.three_keys"},
      kWholeKeys{"ws_wgmma.three_whole_keys"};
  bool isWhole = !masked && llvm::alignTo(facts.queries, 192) <=
                                llvm::alignTo(facts.queries, 128);
  double fewest = isWhole ? kWholeKeys : kKeys;
  return facts.headDim <= 64 && facts.valueDim <= 64 && !facts.isNarrow() &&
         double(std::min(facts.queries, facts.keys)) >= fewest;
}

/// Returns how many heads' tiles go together in the order `longest_first`,
/// where tiles are cut as documents are or not.
static int64_t chooseHeads(const ProblemFacts &facts, const TargetRow &target,
                           int64_t blockM, int64_t blockN, int64_t cluster,
                           bool dealt, bool cuts) {
  if (cuts)
    return chooseListedHeads(facts, target);
  return chooseGroupHeads(facts, target, blockM * cluster, blockN,
                          target.getClusteredSMs(cluster) / cluster, dealt);
}

/// Returns true if no CTA or cluster can have a second tile, whatever lengths
/// the launch has: a counter then deals nothing.
static bool hasOneTileEach(const ProblemFacts &facts, const TargetRow &target,
                           int64_t blockM, int64_t cluster) {
  if (llvm::any_of(ArrayRef({facts.batch, facts.heads, facts.queries}),
                   ShapedType::isDynamic))
    return false;
  double tiles = double(llvm::divideCeil(facts.queries, blockM * cluster)) *
                 double(facts.heads) * double(facts.batch) *
                 double(countRuns(facts));
  return tiles <= double(target.getClusteredSMs(cluster)) / double(cluster);
}

/// Adds the plans that are worth comparing, of tiles that begin where documents
/// do if `cuts`, of rows of several heads if `packs`.
static void addCandidates(const ProblemFacts &facts, const TargetRow &target,
                          bool packs, bool cuts,
                          std::vector<PlanAttrInterface> &plans) {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  bool masked = facts.mask.getKind() != MaskKind::None;
  bool isNarrow = isNarrowWindow(facts);
  // Runs of keys, and rows of several heads, come in order of rows.
  bool inOrder = (isNarrow && !cuts) || packs || areResultsPartial(facts);
  bool isUneven = masked || looksForKeys(facts);
  TileOrder order =
      isUneven && !inOrder ? TileOrder::LongestFirst : TileOrder::RowMajor;
  EpilogueKind epilogue = chooseEpilogue(facts);
  // How long packed sequences are, and those of a cache, only the launch knows:
  // a counter deals them.
  bool hasSeveral = ShapedType::isDynamic(facts.batch) || facts.batch > 1;
  bool dealt = facts.varlen || facts.hasKeyRange() || facts.hasBlockLists() ||
               (facts.isServed() && hasSeveral);
  SmallVector<int64_t> clusters = getClusters(facts, target, dealt);
  bool three = !packs && isForThree(facts, masked);
  for (int64_t blockM : {192, 128, 64})
    for (int64_t blockN : getBlockSizes(facts))
      for (int64_t cluster : clusters) {
        if (packs && cluster != 1)
          continue;
        if (blockM == 192 && (!three || blockN != getTallBlock(facts)))
          continue;
        // Blocks of many copies keep the loading thread busy.
        if (facts.isPaged() &&
            getBoxRows(facts, blockN) < getBoxRows(facts, getFewestBoxRows()))
          continue;
        int64_t groupHeads = order == TileOrder::LongestFirst
                                 ? chooseHeads(facts, target, blockM, blockN,
                                               cluster, dealt, cuts)
                                 : 0;
        for (SoftmaxPolicy softmax : getUsualPolicies(facts))
          for (Overlap overlap : getOverlaps(facts, softmax)) {
            // Addresses of packed rows leave no registers for PV behind.
            if ((isNarrow && overlap.turns && blockM != 192) ||
                (packs && overlap.pvBehind))
              continue;
            for (int64_t qStages : {2, 1})
              // Loads run as far ahead as shared memory lets them.
              for (int64_t stages : {4, 3, 2}) {
                // PV behind keeps one slot longer, for which two are too few.
                if ((overlap.pvBehind && stages == 2) ||
                    (blockM == 192 && !overlap.turns))
                  break;
                WsWgmmaPlanAttr::Parameters p;
                p.blockM = blockM;
                p.blockN = blockN;
                p.qStages = qStages;
                p.vStages = stages;
                p.qkAhead = overlap.qkAhead;
                p.pvBehind = overlap.pvBehind;
                p.turns = overlap.turns && blockM > 64;
                p.cluster = cluster;
                p.keyQuads = !findNoQuads(facts);
                p.dynamic = dealt && (cuts || !hasOneTileEach(facts, target,
                                                              blockM, cluster));
                p.softmax = softmax;
                p.order = order;
                p.groupHeads = groupHeads;
                p.epilogue = epilogue;
                p.loaders = chooseLoaders(facts, blockN);
                p.packHeads = packs;
                p.cutDocuments = cuts;
                auto make = [&](FirstBlock firstBlock, int64_t kStages) {
                  p.kStages = kStages;
                  p.firstBlock = firstBlock;
                  return WsWgmmaPlanAttr::get(context, p);
                };
                auto fitting = [&](WsWgmmaPlanAttr plan) {
                  return getSharedBytes(facts, plan, target).getTotal() <=
                         target.sharedBytesPerCTA;
                };
                FirstBlock firstBlock = FirstBlock::Whole;
                if (overlap.qkAhead &&
                    savesFirstBlock(facts, make(FirstBlock::Auto, stages)))
                  firstBlock = FirstBlock::Auto;
                WsWgmmaPlanAttr plan = make(firstBlock, stages);
                bool fits = fitting(plan);
                // Keys that may be multiplied once more are released late.
                WsWgmmaPlanAttr more = make(firstBlock, stages + 1);
                if (rescores(facts, plan) && stages < 4 && fitting(more))
                  plan = more;
                // In order QK is long over when the next keys are widened.
                WsWgmmaPlanAttr fewer = make(firstBlock, 1);
                if (!fits && widensInOrder(facts, plan) && fitting(fewer))
                  plan = fewer;
                if (fits || stages == 2)
                  plans.push_back(plan);
                if (fits)
                  break;
              }
          }
      }
}

std::vector<PlanAttrInterface>
WsWgmmaModel::getCandidates(const ProblemFacts &facts,
                            const TargetRow &target) const {
  std::vector<PlanAttrInterface> plans;
  bool packs = savesTiles(facts, kGroupRows, countQueryRows(facts, true));
  addCandidates(facts, target, packs, /*cuts=*/false, plans);
  if (!packs && !findUncut(facts))
    addCandidates(facts, target, packs, /*cuts=*/true, plans);
  return plans;
}
