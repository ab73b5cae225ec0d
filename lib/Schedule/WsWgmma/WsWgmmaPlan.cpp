//===- WsWgmmaPlan.cpp - Plans of ws_wgmma: legality and parameters -------===//

#include "../../Planner/Facts/Documents.h"
#include "../../Planner/Facts/TileBalance.h"
#include "../Core/CommonChecks.h"
#include "../Core/NarrowKeys.h"
#include "../Core/RoleRegisters.h"
#include "../Tma/TileWalk.h"
#include "../Wgmma/WgmmaFacts.h"
#include "FirstBlockKeys.h"
#include "WsWgmma.h"
#include "attn/Planner/Facts/Factor.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

static StringRef getName() { return WsWgmmaPlanAttr::getSyntax().schedule; }

/// Threads of a warpgroup.
static constexpr int64_t kWarpgroup = 128;

bool attn::producerLooksForKeys(const ProblemFacts &facts,
                                WsWgmmaPlanAttr plan) {
  return looksForKeys(facts) && !plan.getCutDocuments() &&
         !needsTransposer(facts) && plan.getCluster() == 1 &&
         plan.getLoaders() == 1;
}

bool attn::producerReadsTiles(const ProblemFacts &facts, WsWgmmaPlanAttr plan) {
  return needsTransposer(facts) || plan.getCluster() > 1 ||
         producerLooksForKeys(facts, plan);
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
  // Rows after a group's heads are those of the next one.
  bool hasWholeQueries =
      !plan.getPackHeads() ||
      countQueryRows(facts, plan.getPackHeads()) == facts.getGroup();
  if (plan.getEpilogue() != EpilogueKind::Tma || plan.getCutDocuments() ||
      !canStoreByTma(facts) || !hasWholeQueries ||
      (isOneBox && facts.valueDim > 256))
    return ResultBuffer::None;
  int64_t bytes = getResultBytes(facts, plan.getBlockM(), facts.valueDim);
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
    sum.add("o", getResultBytes(facts, plan.getBlockM(), facts.valueDim));
  return sum;
}

std::optional<std::string> attn::findUncut(const ProblemFacts &facts) {
  if (!findDocuments(facts))
    return "a mask of equal numbers of documents and nothing else, of as many "
           "queries as keys that are known";
  if (ShapedType::isDynamic(facts.batch))
    return "a known batch";
  if (facts.isNarrow() || facts.hasNarrowKeys())
    return "operands of 16 bits";
  // TMA starts a box of transposed values at a multiple of 16 bytes of keys.
  if (facts.hasTransposedValues())
    return "values whose columns are contiguous";
  if (facts.cuSeqlensQ || facts.isServed() || facts.hasBlockLists() ||
      facts.initO || facts.hasOutMod() || areResultsPartial(facts))
    return "whole batches whose results nothing changes";
  return std::nullopt;
}

int64_t attn::getDocumentAlign(WsWgmmaPlanAttr plan) {
  return plan.getSoftmax() == SoftmaxPolicy::Exact ? plan.getBlockN() : 1;
}

bool attn::isWide(const ProblemFacts &facts) {
  return std::max(facts.headDim, facts.valueDim) > kUsualColumns;
}

/// Returns true if a block of keys or values is loaded in many copies, whose
/// addresses take registers.
static bool isLoadedInManyBoxes(const ProblemFacts &facts) {
  static constexpr RegisterLimit kBoxes{"ws_wgmma.boxes"},
      kWideBoxes{"ws_wgmma.wide_boxes"};
  int64_t most = isWide(facts) ? kWideBoxes : kBoxes;
  int64_t bits = facts.elementType.getIntOrFloatBitWidth();
  return llvm::any_of(ArrayRef{facts.headDim, facts.valueDim},
                      [&](int64_t columns) {
                        if (isWide(facts))
                          columns = getSlotColumns(facts, columns);
                        int64_t span = SharedLayout::chooseSpan(columns, bits);
                        return span != 0 && columns * bits / 8 / span > most;
                      });
}

/// Returns true for wide rows in pages, each of which takes copies of its own.
static bool isLoadedInManyPages(const ProblemFacts &facts) {
  static constexpr RegisterLimit kPagedColumns{"ws_wgmma.paged_columns"};
  return facts.isPaged() &&
         std::max(facts.headDim, facts.valueDim) > kPagedColumns;
}

/// Returns true if consumers beside a warpgroup that widens keys leave
/// registers to the loading thread.
static bool leavesRegisters(const ProblemFacts &facts) {
  static constexpr RegisterLimit kWidenedColumns{"ws_wgmma.widened_columns"};
  return facts.hasNarrowKeys() &&
         std::max(facts.headDim, facts.valueDim) <= kWidenedColumns;
}

bool attn::widensInOrder(const ProblemFacts &facts, WsWgmmaPlanAttr plan) {
  return facts.hasNarrowKeys() && facts.valueDim > kMostWidenedAhead &&
         !plan.getQkAhead();
}

/// Returns the registers of a thread of the partition that loads.
static int64_t getProducerRegisters(const ProblemFacts &facts,
                                    WsWgmmaPlanAttr plan) {
  static constexpr RegisterLimit kLeast{"ws_wgmma.producer_registers"},
      kBoxes{"ws_wgmma.boxes_registers"},
      kTransposer{"ws_wgmma.transposer_registers"};
  if (needsTransposer(facts))
    return kTransposer;
  if (!widensInOrder(facts, plan) &&
      (isLoadedInManyBoxes(facts) || isLoadedInManyPages(facts) ||
       leavesRegisters(facts)))
    return kBoxes;
  return kLeast;
}

RegisterBudget attn::getRegisterBudget(const ProblemFacts &facts,
                                       WsWgmmaPlanAttr plan) {
  static constexpr RegisterLimit kWidener{"ws_wgmma.widener_registers"};
  int64_t threads = countThreads(facts, plan);
  int64_t consumers = plan.getBlockM() / 64;
  RegisterBudget budget;
  budget.producer = getProducerRegisters(facts, plan);
  if (facts.hasNarrowKeys())
    budget.widener = kWidener;
  budget.consumer =
      divideRegisters(threads, budget.producer + budget.widener, consumers);
  // One warpgroup cannot have all that is left; loads of pages can use it.
  if (facts.isPaged() && consumers == 1)
    budget.producer =
        divideRegisters(threads, budget.consumer + budget.widener, 1);
  return budget;
}

bool attn::rescores(const ProblemFacts &facts, WsWgmmaPlanAttr plan) {
  static constexpr Factor kColumns{"ws_wgmma.rescored_columns"};
  static constexpr RegisterLimit kColumnsOfThree{
      "ws_wgmma.rescored_columns_of_three"};
  double most = kColumns;
  if (plan.getBlockM() > 128)
    most = std::min(most, double(kColumnsOfThree));
  return plan.getQkAhead() && !plan.getPvBehind() && !facts.isNarrow() &&
         !facts.kScales && double(facts.valueDim) <= most &&
         plan.getSoftmax() == SoftmaxPolicy::Optimistic;
}

static llvm::Error isApplicable(const ProblemFacts &facts,
                                const TargetRow &target) {
  // Accumulators of more columns leave no registers for a softmax. Results of
  // 32 bits take a few more, and so does widening keys.
  static constexpr RegisterLimit kColumns{"ws_wgmma.whole_columns"},
      kColumnsF32{"ws_wgmma.whole_columns_f32"};
  bool isNarrow = facts.isNarrow() || facts.hasNarrowKeys();
  int64_t mostColumns = isNarrow                ? kUsualColumns
                        : facts.outType.isF32() ? kColumnsF32
                                                : kColumns;
  if (llvm::Error error = checkWholeRowScales(getName(), facts))
    return error;
  return checkWgmma(getName(), facts, target, mostColumns, /*serves=*/true,
                    /*splits=*/true, /*blockLists=*/true);
}

static llvm::Error checkPlan(const ProblemFacts &facts, WsWgmmaPlanAttr plan,
                             const TargetRow &target) {
  if (llvm::Error error = checkPolicy(getName(), plan.getSoftmax()))
    return error;
  if (llvm::Error error = checkExactMaxima(facts, plan.getSoftmax()))
    return error;
  if (llvm::Error error =
          checkQKAhead(plan.getQkAhead(), plan.getKStages(), plan.getVStages()))
    return error;
  if (llvm::Error error = checkTileRuns(facts, plan.getPackHeads(),
                                        plan.getOrder(), plan.getGroupHeads(),
                                        plan.getCluster(), plan.getBlockN()))
    return error;
  if (llvm::Error error = checkBlockLists(
          facts, plan.getBlockM() * plan.getCluster(), plan.getBlockN()))
    return error;
  if (plan.getCutDocuments())
    if (std::optional<std::string> expected = findUncut(facts))
      return llvm::createStringError(
          llvm::formatv("expected {0} for cut_documents", *expected));
  // How many tiles there are is known on the device alone.
  if (plan.getCutDocuments() && !plan.getDynamic())
    return llvm::createStringError(
        "expected dynamic = true for cut_documents, got false");
  int64_t queryRows = countQueryRows(facts, plan.getPackHeads());
  if (plan.getPackHeads() && plan.getBlockM() % queryRows != 0 &&
      queryRows % plan.getBlockM() != 0)
    return llvm::createStringError(llvm::formatv(
        "expected block_m to be 64 or 128 with pack_heads and queries of {0} "
        "rows, got {1}",
        queryRows, plan.getBlockM()));
  if (plan.getPvBehind() && facts.kScales)
    return llvm::createStringError(
        "scales of the rows of keys need pv_behind = false, got true");
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

static KernelShape getKernelShape(const ProblemFacts &facts,
                                  WsWgmmaPlanAttr plan,
                                  const TargetRow &target) {
  KernelShape shape = getPersistentShape(facts, getTilePlan(facts, plan),
                                         countThreads(facts, plan), target);
  if (plan.getCutDocuments())
    shape.cutTiles = {
        PlanTilesOp::getCapacity(facts.batch, facts.queries, plan.getBlockM()),
        plan.getBlockM(), plan.getBlockN(), getDocumentAlign(plan),
        countUnreadBlocks(facts, plan.getBlockM(), plan.getBlockN())};
  return shape;
}

const Schedule &attn::getWsWgmmaSchedule() {
  static const ProjectSchedule<WsWgmmaPlanAttr> schedule(
      {isApplicable, checkPlan, getKernelShape, emitWsWgmma});
  return schedule;
}
