//===- WsWgmmaPlan.cpp - Plans of ws_wgmma: legality and parameters -------===//

#include "../Core/CommonChecks.h"
#include "../Core/NarrowKeys.h"
#include "../Problem/TileBalance.h"
#include "../Wgmma/WgmmaFacts.h"
#include "FirstBlockKeys.h"
#include "WsWgmma.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

const Schedule &attn::getWsWgmmaSchedule() {
  static const WsWgmmaSchedule schedule;
  return schedule;
}

/// Threads of a warpgroup.
static constexpr int64_t kWarpgroup = 128;

bool attn::producerReadsTiles(const ProblemFacts &facts, WsWgmmaPlanAttr plan) {
  return needsTransposer(facts) || plan.getCluster() > 1;
}

int64_t attn::countThreads(const ProblemFacts &facts, WsWgmmaPlanAttr plan) {
  return plan.getThreads() + (facts.hasNarrowKeys() ? kWarpgroup : 0);
}

static ResourceSum getRingBytes(const ProblemFacts &facts,
                                WsWgmmaPlanAttr plan) {
  int64_t bytes = facts.elementType.getIntOrFloatBitWidth() / 8;
  ResourceSum sum;
  sum.add("q", plan.getBlockM() * getKeyColumns(facts) * bytes,
          plan.getQStages());
  int64_t slots = plan.getQStages();
  // A ring, and that which it is made of if it is not loaded as it is.
  auto addRing = [&](llvm::StringRef loaded, llvm::StringRef made,
                     int64_t columns, int64_t stages) {
    int64_t elements = plan.getBlockN() * columns;
    slots += stages;
    if (!made.empty()) {
      sum.add(loaded, elements * facts.keyType.getIntOrFloatBitWidth() / 8,
              kRawSlots);
      slots += kRawSlots;
    }
    sum.add(made.empty() ? loaded : made, elements * bytes, stages);
  };
  bool widens = facts.hasNarrowKeys();
  addRing("k", widens ? "kw" : "", getKeyColumns(facts), plan.getKStages());
  addRing("v",
          needsTransposer(facts) ? "vt"
          : widens               ? "vw"
                                 : "",
          getValueColumns(facts), plan.getVStages());
  if (facts.kScales)
    sum.add("k_scales", plan.getBlockN() * 4, plan.getKStages());
  if (plan.getPShared())
    sum.add("p", plan.getBlockM() * plan.getBlockN() * bytes);
  // Two mbarriers of 8 bytes for each slot.
  sum.add("barriers", 16, slots);
  if (plan.getDynamic())
    sum.add(
        "tile",
        getTileSlotBytes(
            (producerReadsTiles(facts, plan) || plan.getLoaders() > 1 ? 3 : 2) +
            (widens ? 1 : 0)),
        kTileStages);
  return sum;
}

ResultBuffer attn::getResultBuffer(const ProblemFacts &facts,
                                   WsWgmmaPlanAttr plan,
                                   const TargetRow &target) {
  // Rows that no swizzle divides are one box, whose extents have a limit.
  bool isOneBox =
      SharedLayout::chooseSpan(facts.valueDim,
                               facts.outType.getIntOrFloatBitWidth()) == 0;
  if (plan.getEpilogue() != EpilogueKind::Tma || !canStoreByTma(facts) ||
      (isOneBox && facts.valueDim > 256))
    return ResultBuffer::None;
  int64_t bytes = getResultBytes(facts, plan.getBlockM());
  if (getRingBytes(facts, plan).getTotal() + bytes <= target.sharedBytesPerCTA)
    return ResultBuffer::Own;
  return fitQuerySlot(facts, plan.getBlockM()) ? ResultBuffer::Queries
                                               : ResultBuffer::Own;
}

ResourceSum attn::getSharedBytes(const ProblemFacts &facts,
                                 WsWgmmaPlanAttr plan,
                                 const TargetRow &target) {
  ResourceSum sum = getRingBytes(facts, plan);
  // Staged results have memory of their own as well: no ring is ever dead.
  if (getResultBuffer(facts, plan, target) == ResultBuffer::Own ||
      plan.getEpilogue() == EpilogueKind::Staged)
    sum.add("o", getResultBytes(facts, plan.getBlockM()));
  return sum;
}

/// True for more columns than an instruction of wgmma has.
static bool isWide(const ProblemFacts &facts) {
  return std::max(facts.headDim, facts.valueDim) > kUsualColumns;
}

/// True if a block of keys or values is loaded in so many copies that
/// ptxas 13.0 spilled up to 36 bytes of the producer's 24 registers: 15 at 240
/// columns, whose rows are an odd number of the smallest spans, and under a
/// window 11 at 352.
static bool isLoadedInManyBoxes(const ProblemFacts &facts) {
  int64_t manyBoxes = isWide(facts) ? 9 : 15;
  int64_t bits = facts.elementType.getIntOrFloatBitWidth();
  return llvm::any_of(
      ArrayRef{facts.headDim, facts.valueDim}, [&](int64_t columns) {
        if (isWide(facts))
          columns = getSlotColumns(facts, columns);
        int64_t span = SharedLayout::chooseSpan(columns, bits);
        return span != 0 && columns * bits / 8 / span >= manyBoxes;
      });
}

/// The same of pages, each of which takes copies of its own: 12 to 56 bytes at
/// 160 and 256 columns.
static bool isLoadedInManyPages(const ProblemFacts &facts) {
  return facts.isPaged() && std::max(facts.headDim, facts.valueDim) > 128;
}

/// True if consumers beside who widens keys leave registers to the loading
/// thread, which spilled 8 bytes of 24 registers at 96 columns under a window.
static bool leavesRegisters(const ProblemFacts &facts) {
  constexpr int64_t kFewColumns = 96;
  return facts.hasNarrowKeys() &&
         std::max(facts.headDim, facts.valueDim) <= kFewColumns;
}

bool attn::widensInOrder(const ProblemFacts &facts, WsWgmmaPlanAttr plan) {
  return facts.hasNarrowKeys() && facts.valueDim > kMostWidenedAhead &&
         !plan.getQkAhead();
}

RegisterBudget attn::getRegisterBudget(const ProblemFacts &facts,
                                       WsWgmmaPlanAttr plan) {
  // A kernel starts with as many registers for each thread as the file has for
  // all of them; what partitions ask for comes out of these.
  int64_t threads = countThreads(facts, plan);
  int64_t start = llvm::alignDown(kRegisterFile / threads, 8);
  int64_t total = start * threads / kWarpgroup;
  int64_t consumers = plan.getBlockM() / 64;
  RegisterBudget budget;
  budget.producer = kLeastProducerRegisters;
  if (facts.hasNarrowKeys())
    budget.widener = kWidenerRegisters;
  if (needsTransposer(facts))
    budget.producer = kTransposerRegisters;
  else if (widensInOrder(facts, plan))
    budget.producer = kLeastProducerRegisters;
  else if (isLoadedInManyBoxes(facts) || isLoadedInManyPages(facts) ||
           leavesRegisters(facts))
    budget.producer = kBoxesProducerRegisters;
  budget.consumer = std::min<int64_t>(
      kMostConsumerRegisters,
      llvm::alignDown((total - budget.producer - budget.widener) / consumers,
                      8));
  // One warpgroup cannot have all that is left; loads of pages can use it: 24
  // registers spilled up to 36 bytes of them, 56 beside a transposer up to 72.
  if (facts.isPaged() && consumers == 1)
    budget.producer = std::min<int64_t>(
        kMostConsumerRegisters,
        llvm::alignDown(total - budget.consumer - budget.widener, 8));
  return budget;
}

bool attn::rescores(const ProblemFacts &facts, WsWgmmaPlanAttr plan) {
  return plan.getQkAhead() && !plan.getPvBehind() && !facts.isNarrow() &&
         !facts.kScales &&
         facts.valueDim <= (plan.getBlockM() > 128 ? 64 : 128) &&
         plan.getSoftmax() == SoftmaxPolicy::Optimistic;
}

namespace {
/// What runs under what.
struct Overlap {
  bool qkAhead = true, pvBehind = false, turns = false;
};
} // namespace

/// How warpgroups are kept from computing their softmax at the same time, PV
/// behind and turns: what was seen to be fastest (docs/SpeedHopper.md,
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
/// measured, which is 16-bit operands and two warpgroups (docs/SpeedHopper.md).
static bool savesFirstBlock(const ProblemFacts &facts, WsWgmmaPlanAttr plan) {
  constexpr double kLeastSaving = 0.003;
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
/// those of 32 bytes up to 2 % slower (docs/SpeedHopper.md). By TMA a short
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
      !facts.isServed() && target.getClusteredSMs(2) != 0)
    clusters.push_back(2);
  return clusters;
}

std::vector<PlanAttrInterface>
WsWgmmaSchedule::getCandidates(const ProblemFacts &facts,
                               const TargetRow &target) const {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  bool masked = facts.mask.getKind() != MaskKind::None;
  bool isNarrow = isNarrowWindow(facts);
  TileOrder order =
      masked && !isNarrow ? TileOrder::LongestFirst : TileOrder::RowMajor;
  EpilogueKind epilogue = chooseEpilogue(facts);
  // How long packed sequences are, and those of a cache, only the launch knows:
  // a counter deals them.
  bool dealt = facts.varlen || (facts.isServed() && facts.batch > 1);
  SmallVector<int64_t> clusters = getClusters(facts, target, dealt);
  // Three warpgroups: the one shape that was measured to be the fastest and
  // spills nothing. Short sequences lose more to the rows that 192 does not
  // divide: 1024 took 1.05 times as long as with 128, 1.12 under a causal mask;
  // 1500, of which both make 1536, 0.91 times as long without a mask.
  int64_t fewest = !masked && llvm::alignTo(facts.queries, 192) <=
                                  llvm::alignTo(facts.queries, 128)
                       ? 1024
                       : 2048;
  bool three = facts.headDim <= 64 && facts.valueDim <= 64 &&
               facts.queries >= fewest && facts.keys >= fewest &&
               !facts.isNarrow();
  std::vector<PlanAttrInterface> plans;
  for (int64_t blockM : {192, 128, 64})
    for (int64_t blockN : getBlockSizes(facts))
      for (int64_t cluster : clusters) {
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
            if (isNarrow && overlap.turns && blockM != 192)
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

llvm::Error WsWgmmaSchedule::isApplicable(const ProblemFacts &facts,
                                          const TargetRow &target) const {
  // Accumulators of more columns leave no registers for a softmax. Results of
  // 32 bits take a few more: blocks of 16 keys spilled 4 bytes at 368, 12 at
  // 384. Who widens keys takes registers, too.
  bool isNarrow = facts.isNarrow() || facts.hasNarrowKeys();
  int64_t mostColumns = isNarrow                ? kUsualColumns
                        : facts.outType.isF32() ? kMostWideResults
                                                : kMostWholeColumns;
  if (llvm::Error error = checkWholeRowScales(getName(), facts))
    return error;
  return checkWgmma(getName(), facts, target, mostColumns, /*serves=*/true);
}

llvm::Error WsWgmmaSchedule::checkPlan(const ProblemFacts &facts,
                                       PlanAttrInterface planAttr,
                                       const TargetRow &target) const {
  auto plan = cast<WsWgmmaPlanAttr>(planAttr);
  if (llvm::Error error = checkPolicy(getName(), plan.getSoftmax()))
    return error;
  if (llvm::Error error =
          checkQKAhead(plan.getQkAhead(), plan.getKStages(), plan.getVStages()))
    return error;
  if (plan.getPvBehind() && facts.kScales)
    return llvm::createStringError(
        "scales of the rows of keys need pv_behind = false, got true");
  if (plan.getPShared() && facts.isNarrow())
    return llvm::createStringError(
        llvm::formatv("p_shared needs 16-bit operands, got {0} bits",
                      facts.elementType.getIntOrFloatBitWidth()));
  // A swizzle starts anew every 8 rows.
  int64_t part = 8 * plan.getCluster();
  if (plan.getBlockN() % part != 0)
    return llvm::createStringError(llvm::formatv(
        "cluster = {0} needs block_n to be a multiple of {1}, got {2}",
        plan.getCluster(), part, plan.getBlockN()));
  if (facts.isServed() && plan.getCluster() > 1)
    return llvm::createStringError(
        llvm::formatv("pages or lengths of the keys need cluster = 1, got {0}",
                      plan.getCluster()));
  if (llvm::Error error =
          checkNarrow(facts, plan.getBlockN(), plan.getKeyQuads()))
    return error;
  if (needsTransposer(facts) && plan.getLoaders() > 1)
    return llvm::createStringError(
        llvm::formatv("8-bit values whose keys are not contiguous need loaders "
                      "= 1, got {0}",
                      plan.getLoaders()));
  if ((facts.isNarrow() || facts.hasNarrowKeys()) && plan.getCluster() > 1)
    return llvm::createStringError(llvm::formatv(
        "8-bit {0} need cluster = 1, got {1}",
        facts.isNarrow() ? "operands" : "keys", plan.getCluster()));
  return checkSharedBytes(getSharedBytes(facts, plan, target), target);
}

KernelShape WsWgmmaSchedule::getKernelShape(const ProblemFacts &facts,
                                            PlanAttrInterface planAttr,
                                            const TargetRow &target) const {
  auto plan = cast<WsWgmmaPlanAttr>(planAttr);
  return getPersistentShape(plan.getCluster(), countThreads(facts, plan),
                            target);
}
