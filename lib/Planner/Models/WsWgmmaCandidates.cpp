//===- WsWgmmaCandidates.cpp - Plans of ws_wgmma to compare ---------------===//

#include "../../Schedule/Copied/GridTiles.h"
#include "../../Schedule/Core/CommonChecks.h"
#include "../../Schedule/Wgmma/WgmmaFacts.h"
#include "../../Schedule/WsWgmma/FirstBlockKeys.h"
#include "../../Schedule/WsWgmma/WsWgmma.h"
#include "../Facts/TileBalance.h"
#include "CopiedCost.h"
#include "Models.h"
#include "attn/Planner/Facts/Factor.h"

using namespace mlir;
using namespace mlir::attn;

namespace {
/// Says which operations overlap.
struct Overlap {
  bool qkAhead = true, pvBehind = false, turns = false;
};
} // namespace

/// How warpgroups are kept from computing their softmax at the same time, PV
/// behind and turns: what was seen to be fastest (docs/Speed.md,
/// docs/Rationale/NarrowTypes.md). Since the rare path takes a vote of the
/// warpgroup where PV is behind, PV in place is faster from head dimension 128
/// on and with 8-bit operands. On an H200 (f16, 4096 keys) turns took 0.97 of
/// the time at 320 under a causal mask, and at 384, whose accumulator leaves
/// scores of 16 keys beside those of the next block, products in order 0.80 of
/// it without a mask and 1.21 under a causal one.
static SmallVector<Overlap> getOverlaps(const ProblemFacts &facts,
                                        SoftmaxPolicy softmax) {
  const Overlap none, turns{true, false, true}, behind{true, true, false},
      inOrder{false, false, false};
  if (facts.isNarrow()) {
    // At head dimension 64 without a transposer turns cost 13 %.
    if (needsTransposer(facts) || facts.valueDim > 64)
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

/// True where a first block of its own sizes is to be a plan's default: from
/// 0.3 % of all products on, it was as fast or up to 3 % faster in what was
/// measured, which is 16-bit operands and two warpgroups (docs/Speed.md).
static bool savesFirstBlock(const ProblemFacts &facts, WsWgmmaPlanAttr plan) {
  static constexpr Factor kLeastSaving{"ws_wgmma.least_saving"};
  if (facts.isNarrow() || plan.getBlockM() != 128)
    return false;
  std::optional<FirstBlockSizes> sizes = findFirstBlock(facts, plan);
  return sizes && sizes->saved >= kLeastSaving;
}

/// True for windows that neighbouring tiles of a head share most of. On an H200
/// (bf16, head dimension 64, windows of 128, 64 heads on 8) tiles in the order
/// of their rows took 0.96 of the time of those that go through heads first,
/// and 0.97 without turns, which a walk of two blocks is too short for.
static bool isNarrowWindow(const ProblemFacts &facts) {
  constexpr int64_t kNarrow = 256;
  MaskAttr mask = facts.mask;
  return mask.hasLeft() && mask.hasRight() &&
         mask.rightBound() - mask.leftBound() < kNarrow;
}

/// How results leave the kernel. Registers store whole runs of 16 bytes of rows
/// of whole 64 bytes; longer rows of other sizes were up to 6 % faster by TMA,
/// those of 32 bytes up to 2 % slower (docs/Speed.md). By TMA a short
/// tile also ends earlier where rows of results lie apart, as in (batch,
/// sequence, head, dim): on an H200 1.01 to 1.18 times as fast at head
/// dimensions 64 and 80 for 257 to 1024 keys without mask, but 0.97 to 1.00
/// times at 4096, 0.99 under a causal mask, and 0.97 at head dimension 128.
static EpilogueKind chooseEpilogue(const ProblemFacts &facts) {
  constexpr int64_t kMostKeys = 1024;
  if (facts.kScales && facts.valueDim > kMostBesideRowScales)
    return EpilogueKind::Staged;
  if (!canStoreByTma(facts) || isWide(facts))
    return EpilogueKind::Auto;
  int64_t bytes = facts.valueDim * facts.outType.getIntOrFloatBitWidth() / 8;
  if (bytes > 64 && bytes % 64 != 0)
    return EpilogueKind::Tma;
  bool isShort = facts.mask.getKind() == MaskKind::None &&
                 !ShapedType::isDynamic(facts.keys) &&
                 facts.keys <= kMostKeys && facts.valueDim < 128;
  bool isApart = facts.o.strides.size() == 4 &&
                 !ShapedType::isDynamic(facts.o.strides[2]) &&
                 facts.o.strides[2] > facts.valueDim;
  return isShort && isApart && !facts.isNarrow() ? EpilogueKind::Tma
                                                 : EpilogueKind::Auto;
}

/// Keys of a copy in plans for pages that have as many.
static constexpr int64_t kFewestBoxRows = 32;

static ArrayRef<int64_t> getBlockSizes(const ProblemFacts &facts) {
  static constexpr int64_t wide[] = {128, 112, 96, 80, 64};
  static constexpr int64_t narrow[] = {128, 96, 64};
  // Two slots of K and of V beside Q, and scores beside an accumulator.
  static constexpr int64_t wideHeads[] = {64, 48, 32, 16};
  static constexpr int64_t widened[] = {128, 96, 64, 32};
  if (facts.hasNarrowKeys())
    return widened;
  if (isWide(facts))
    return wideHeads;
  return facts.isNarrow() ? ArrayRef(narrow) : ArrayRef(wide);
}

/// Keys of a block beside 192 rows. Of pages of 64 keys and more a block of 96
/// takes three copies: 0.959 of the dense kernel's speed, a block of 128 0.999
/// (4 sequences of 2048 queries and 16384 keys, D 64, H100).
static int64_t getTallBlock(const ProblemFacts &facts) {
  constexpr int64_t kLargePage = 64;
  bool hasLargePages =
      facts.isPaged() && getBoxRows(facts, kLargePage) == kLargePage;
  return hasLargePages ? 128 : 96;
}

/// One warp starts the copies of large boxes in time; for pages of 16 keys it
/// takes longer to than a block takes to multiply.
static int64_t chooseLoaders(const ProblemFacts &facts, int64_t blockN) {
  return facts.isPaged() && !needsTransposer(facts) &&
                 getBoxRows(facts, blockN) < kFewestBoxRows
             ? 2
             : 1;
}

/// CTAs of a cluster. What was measured, which is without a counter: see
/// WsWgmmaCost.cpp. Windows of 1024 keys took 1.04 times as long with clusters,
/// whose tiles walk the union.
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

/// True where three warpgroups are worth comparing: the one shape that was
/// measured to be the fastest and spills nothing. Short sequences lose more to
/// the rows that 192 does not divide: 1024 took 1.05 times as long as with 128,
/// 1.12 under a causal mask; 1500, of which both make 1536, 0.91 times as long
/// without a mask.
static bool fitsThree(const ProblemFacts &facts) {
  bool masked = facts.mask.getKind() != MaskKind::None;
  int64_t fewest = !masked && llvm::alignTo(facts.queries, 192) <=
                                  llvm::alignTo(facts.queries, 128)
                       ? 1024
                       : 2048;
  return facts.headDim <= 64 && facts.valueDim <= 64 &&
         facts.queries >= fewest && facts.keys >= fewest && !facts.isNarrow();
}

std::vector<PlanAttrInterface>
WsWgmmaModel::getCandidates(const ProblemFacts &facts,
                            const TargetRow &target) const {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  bool masked = facts.mask.getKind() != MaskKind::None;
  bool isNarrow = isNarrowWindow(facts);
  // Runs of keys, and rows of several heads, come in order of rows.
  bool packs = savesTiles(facts, kGroupRows, countQueryRows(facts, true));
  bool inOrder = isNarrow || packs || areResultsPartial(facts);
  TileOrder order =
      masked && !inOrder ? TileOrder::LongestFirst : TileOrder::RowMajor;
  EpilogueKind epilogue = chooseEpilogue(facts);
  // How long packed sequences are, and those of a cache, only the launch knows:
  // a counter deals them.
  bool hasSeveral = ShapedType::isDynamic(facts.batch) || facts.batch > 1;
  bool dealt = facts.varlen || (facts.isServed() && hasSeveral);
  SmallVector<int64_t> clusters = getClusters(facts, target, dealt);
  bool three = !packs && fitsThree(facts);
  std::vector<PlanAttrInterface> plans;
  for (int64_t blockM : {192, 128, 64})
    for (int64_t blockN : getBlockSizes(facts))
      for (int64_t cluster : clusters) {
        if (packs && cluster != 1)
          continue;
        if (blockM == 192 && (!three || blockN != getTallBlock(facts)))
          continue;
        // Blocks of many copies keep the loading thread busy.
        if (facts.isPaged() &&
            getBoxRows(facts, blockN) < getBoxRows(facts, kFewestBoxRows))
          continue;
        int64_t groupHeads =
            order == TileOrder::LongestFirst
                ? chooseGroupHeads(facts, target, blockM * cluster, blockN,
                                   target.getClusteredSMs(cluster) / cluster,
                                   dealt)
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
                p.dynamic = dealt;
                p.softmax = softmax;
                p.order = order;
                p.groupHeads = groupHeads;
                p.epilogue = epilogue;
                p.loaders = chooseLoaders(facts, blockN);
                p.packHeads = packs;
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
  return plans;
}
