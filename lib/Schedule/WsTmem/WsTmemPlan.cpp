//===- WsTmemPlan.cpp - Plans of ws_tmem: legality and cost ---------------===//
//
// Nothing of what is estimated here was measured: no board with these chips has
// run a kernel of this schedule. Rates are those of the target table, and what
// does not hide is what the cycle model says
// (docs/Rationale/Schedules.md).
//
//===----------------------------------------------------------------------===//

#include "../../Planner/Facts/BlockCount.h"
#include "../../Planner/Facts/TileBalance.h"
#include "../Copied/CopiedChecks.h"
#include "../Copied/GridTiles.h"
#include "../Core/CommonChecks.h"
#include "../Core/NarrowKeys.h"
#include "../Tma/TileWalk.h"
#include "../Wgmma/WgmmaFacts.h"
#include "WsTmemMemory.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

static StringRef getName() { return WsTmemPlanAttr::getSyntax().schedule; }

/// Most columns of queries and keys: of more, shared memory has no slots beside
/// the queries.
static constexpr int64_t kMostTmemColumns = 640;

int64_t attn::getSliceColumns(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  // As many as fill a slot of values.
  if (hasHalfTiles(facts, plan))
    return kHalfTileKeys * kHalfTileColumns / plan.getBlockN();
  return hasOneTile(plan)
             ? kTensorSliceBytes * 8 / facts.elementType.getIntOrFloatBitWidth()
             : getKeyColumns(facts);
}

int64_t attn::countKeySlices(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  return llvm::divideCeil(facts.headDim, getSliceColumns(facts, plan));
}

bool attn::hasWideHeads(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  return hasOneTile(plan) &&
         (facts.headDim > kUsualColumns || plan.getValueCtas() > 1);
}

int64_t attn::countThreads(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  constexpr int64_t warpgroup = 128;
  return plan.getThreads() + (facts.hasNarrowKeys() ? warpgroup : 0);
}

int64_t attn::getPartKeys(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  if (!hasOneTile(plan))
    return plan.getBlockN();
  if (hasHalfTiles(facts, plan))
    return kHalfTileKeys;
  // As many as fill a slot of keys.
  if (hasWideHeads(facts, plan))
    return plan.getBlockN() * getSliceColumns(facts, plan) /
           getOwnValueColumns(facts, plan);
  return kTensorPartKeys;
}

TmemRegisters attn::getTmemRegisters(const ProblemFacts &facts,
                                     WsTmemPlanAttr plan) {
  static constexpr RegisterLimit kUsual{"ws_tmem.loader_registers"},
      kWide{"ws_tmem.wide_loader_registers"},
      kLone{"ws_tmem.lone_loader_registers"},
      kOwn{"ws_tmem.own_loader_registers"},
      kResults{"ws_tmem.results_registers"},
      kHalfResults{"ws_tmem.half_results_registers"},
      kPair{"ws_tmem.pair_registers"}, kWidener{"ws_tmem.widener_registers"};
  TmemRegisters registers;
  registers.others = hasOneTile(plan)        ? kLone
                     : hasWideQueries(facts) ? kWide
                     : plan.getOwnBlocks()   ? kOwn
                                             : kUsual;
  if ((plan.getPair() && hasOneTile(plan)) || countClusterPairs(plan) > 1)
    registers.others += kPair;
  if (hasOneTile(plan))
    registers.results = hasHalfTiles(facts, plan) ? kHalfResults : kResults;
  if (facts.hasNarrowKeys())
    registers.widener = kWidener;
  registers.softmax =
      divideRegisters(countThreads(facts, plan),
                      registers.others + registers.results + registers.widener,
                      plan.getTiles());
  return registers;
}

bool attn::sharesRing(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  if (hasOneTile(plan))
    return hasWideHeads(facts, plan);
  return (!plan.getPair() || plan.getOneRing()) &&
         getKeyColumns(facts) == getValueColumns(facts);
}

int64_t attn::getOwnValueColumns(const ProblemFacts &facts,
                                 WsTmemPlanAttr plan) {
  if (hasHalfTiles(facts, plan))
    return kHalfTileColumns / 2;
  // Such that slots of values can be as large as those of keys.
  if (hasWideHeads(facts, plan))
    return std::max<int64_t>(
        getSliceColumns(facts, plan),
        llvm::PowerOf2Ceil(getOwnResultColumns(facts, plan)));
  return getValueColumns(facts) / countPairCTAs(plan);
}

int64_t attn::getOwnResultColumns(const ProblemFacts &facts,
                                  WsTmemPlanAttr plan) {
  return facts.valueDim / plan.getValueCtas();
}

int64_t attn::getStoredColumns(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  constexpr int64_t most = 32;
  if (hasHalfTiles(facts, plan))
    return kHalvedColumns;
  int64_t own = getOwnResultColumns(facts, plan), columns = most;
  // Groups are of one size.
  while (facts.hasPartialScales() && own % columns != 0)
    columns -= kDimStep;
  return columns;
}

static int64_t countUnitGroups(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  return hasOneTile(plan) ? facts.valueDim / getStoredColumns(facts, plan) : 1;
}

int64_t attn::getResultTensorColumns(const ProblemFacts &facts,
                                     WsTmemPlanAttr plan) {
  // Whole boxes.
  if (hasWideHeads(facts, plan))
    return llvm::alignTo(getOwnResultColumns(facts, plan),
                         getSliceColumns(facts, plan));
  return getValueColumns(facts);
}

ResourceSum attn::getTensorColumns(const ProblemFacts &facts,
                                   WsTmemPlanAttr plan) {
  ResourceSum sum;
  if (hasHalfTiles(facts, plan)) {
    sum.add("s", plan.getBlockN() / 2, countScoreSlots(plan));
    sum.add("o", getResultTensorColumns(facts, plan) / 2);
    return sum;
  }
  sum.add("s", plan.getBlockN(), plan.getTiles() * countScoreSlots(plan));
  if (plan.getPBeside())
    sum.add("p", getProbabilityColumns(facts, plan), plan.getTiles());
  sum.add("o", getResultTensorColumns(facts, plan), plan.getTiles());
  return sum;
}

bool attn::canHalve(const ProblemFacts &facts) {
  constexpr int64_t vectorBits = 128;
  return facts.valueDim * facts.outType.getIntOrFloatBitWidth() %
             (2 * vectorBits) ==
         0;
}

int64_t attn::getProbabilityColumns(const ProblemFacts &facts,
                                    WsTmemPlanAttr plan) {
  constexpr int64_t columnBits = 32;
  return plan.getBlockN() * facts.elementType.getIntOrFloatBitWidth() /
         columnBits;
}

int64_t attn::getFrontKeys(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  // With the policy optimistic all probabilities come before one vote.
  if (!plan.getPParts() || hasHalfTiles(facts, plan) ||
      plan.getSoftmax() == SoftmaxPolicy::Optimistic)
    return 0;
  // In whole slots of values.
  if (hasOneTile(plan))
    return llvm::alignDown(plan.getBlockN() / 2, getPartKeys(facts, plan));
  // In steps of the contraction. Over the scores the first product is on the
  // way to the next ones, so that fewer keys are waited for before it.
  int64_t eighths = plan.getPBeside() ? 6 : 5;
  return llvm::alignDown(plan.getBlockN() * eighths / 8,
                         facts.isNarrow() ? 32 : 16);
}

bool attn::holdsKeys(WsTmemPlanAttr plan) {
  // A slot that is handed back fills while the next products run. Those of keys
  // need all of shared memory's port, those of values half of it: where scores
  // come after results of a block, both kinds of slots fill under the latter.
  // Fewer slots leave no time for it.
  return !hasOneTile(plan) && !plan.getPBeside() && plan.getKvStages() >= 4;
}

bool attn::canStoreRowsByTma(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  // Rows after a group's heads are those of the next one.
  return canStoreByTma(facts) &&
         (!plan.getPackHeads() ||
          countQueryRows(facts, plan.getPackHeads()) == facts.getGroup());
}

/// Bytes of the rings and of the mbarriers.
static ResourceSum getRingBytes(const ProblemFacts &facts,
                                WsTmemPlanAttr plan) {
  int64_t bytes = facts.elementType.getIntOrFloatBitWidth() / 8;
  ResourceSum sum;
  int64_t tiles = plan.getTiles(), columns = getSliceColumns(facts, plan);
  int64_t rows = getTileRows(facts, plan);
  sum.add("q", rows * columns * bytes, tiles * countKeySlices(facts, plan));
  // Probabilities, and numbers of rows that pass between two threads of a
  // softmax, or of those that store partial results.
  if (hasHalfTiles(facts, plan)) {
    sum.add("p", rows * plan.getBlockN() * bytes);
    sum.add("rows", 2 * 4 * rows, facts.hasPartialScales() ? 2 : 1);
  }
  int64_t slots = tiles + plan.getKvStages();
  sum.add(sharesRing(facts, plan) ? "kv" : "k",
          getOwnKeys(plan) * columns * bytes, plan.getKvStages());
  if (!sharesRing(facts, plan)) {
    sum.add("v",
            getPartKeys(facts, plan) * getOwnValueColumns(facts, plan) * bytes,
            plan.getKvStages());
    slots += plan.getKvStages();
  }
  if (facts.hasNarrowKeys()) {
    // As many slots of 8 bits.
    int64_t narrow = getOwnKeys(plan) * columns;
    int64_t rings = 1;
    if (!sharesRing(facts, plan)) {
      narrow += getPartKeys(facts, plan) * getOwnValueColumns(facts, plan);
      rings = 2;
    }
    sum.add("raw", narrow, plan.getKvStages());
    slots += rings * plan.getKvStages();
  }
  // Two mbarriers for each slot and for each channel of a tile's tensor memory,
  // and one more where probabilities are handed on in two parts. Where results
  // may take the queries' memory, two for each tile. With one tile there are
  // slots of two blocks' scores, and channels of the results and of what they
  // are multiplied by, a number for each row. The address of tensor memory
  // passes through bytes of a slot.
  int64_t tileBarriers = plan.getPBeside() ? 4 : 2;
  if (hasOneTile(plan))
    tileBarriers = 2 * (countScoreSlots(plan) + 3);
  if (plan.getEpilogue() == EpilogueKind::Tma && !plan.getOHalves())
    tileBarriers += 2;
  if (getFrontKeys(facts, plan) != 0)
    tileBarriers += countScoreSlots(plan);
  bool gathers = gathersKeys(facts);
  if (gathers) {
    slots += kRowStages;
    sum.add("rows", 4 * plan.getBlockN(), kRowStages);
  }
  sum.add("barriers", 8, 2 * slots + tiles * tileBarriers);
  if (hasOneTile(plan))
    sum.add("factors", 4, facts.initLse ? 2 * rows : rows);
  // Each of two warpgroups, what multiplies and what loads, and what loads once
  // more where it reads.
  int64_t roles = (loaderReadsTiles(plan) ? 5 : 4) + (gathers ? 1 : 0) +
                  (facts.hasNarrowKeys() ? 1 : 0);
  if (plan.getDynamic())
    sum.add("tile", getTileSlotBytes(roles), kTileStages);
  if (plan.getClc())
    sum.add("tile", getResponseSlotBytes(roles), kTileStages);
  return sum;
}

/// Bytes of memory of their own for the results of a tile.
static int64_t getStagedBytes(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  int64_t columns = getStagedColumns(facts, plan);
  return columns == 0 ? 0 : getResultBytes(facts, kTmemRows, columns);
}

/// Bytes that lie between those of two tiles.
static int64_t getStagedGaps(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  constexpr int64_t alignment = 128;
  int64_t bytes = getStagedBytes(facts, plan);
  return (plan.getTiles() - 1) * (llvm::alignTo(bytes, alignment) - bytes);
}

ResultBuffer attn::getTmemResultBuffer(const ProblemFacts &facts,
                                       WsTmemPlanAttr plan,
                                       const TargetRow &target) {
  int64_t bytes = getStagedBytes(facts, plan);
  if (bytes == 0)
    return ResultBuffer::None;
  bool fits = getRingBytes(facts, plan).getTotal() + plan.getTiles() * bytes +
                  getStagedGaps(facts, plan) <=
              target.sharedBytesPerCTA;
  // What TMA reads is free later than the threads know that they have stored.
  bool mayShare = plan.getEpilogue() == EpilogueKind::Tma &&
                  !plan.getOHalves() && fitQuerySlot(facts, kTmemRows);
  return fits || !mayShare ? ResultBuffer::Own : ResultBuffer::Queries;
}

ResourceSum attn::getTmemSharedBytes(const ProblemFacts &facts,
                                     WsTmemPlanAttr plan,
                                     const TargetRow &target) {
  ResourceSum sum = getRingBytes(facts, plan);
  if (getTmemResultBuffer(facts, plan, target) == ResultBuffer::Own) {
    sum.add("o", getStagedBytes(facts, plan), plan.getTiles());
    sum.add("gaps", getStagedGaps(facts, plan));
  }
  return sum;
}

int64_t attn::getStagedColumns(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  if (plan.getEpilogue() != EpilogueKind::Staged &&
      plan.getEpilogue() != EpilogueKind::Tma)
    return 0;
  return plan.getOHalves() ? facts.valueDim / 2 : facts.valueDim;
}

static llvm::Error isApplicable(const ProblemFacts &facts,
                                const TargetRow &target) {
  auto unsupported = [&](const llvm::Twine &what) {
    return makeUnsupported(getName(), what);
  };
  if (!target.has(Capability::Tcgen05))
    return makeLacking(getName(),
                       llvm::formatv("{0}, which has no tcgen05, expected {1}",
                                     target.chip,
                                     getCapabilityChips(Capability::Tcgen05)));
  Parts parts;
  parts.narrow = parts.lengths = parts.pages = parts.partialResults = true;
  parts.resultScales = parts.blockLists = true;
  parts.latent = parts.init = parts.narrowKeys = parts.addedKeys = true;
  parts.mostColumns = kMostTmemColumns;
  if (llvm::Error error = checkCommon(getName(), facts, parts))
    return error;
  if (llvm::Error error = checkPackedRuns(getName(), facts))
    return error;
  if (facts.hasTransposedValues())
    return unsupported("values whose keys are contiguous");
  if (facts.hasNarrowKeys() && facts.kRope)
    return unsupported("rotated columns apart ('rope') beside 8-bit keys");
  if (llvm::Error error = checkNarrowKeys(getName(), facts))
    return error;
  return checkMappable(getName(), facts,
                       /*gathers=*/target.has(Capability::TmaPair));
}

/// Refuses values whose halves are not whole boxes, which no row ends in.
static llvm::Error checkPair(const ProblemFacts &facts, WsTmemPlanAttr plan,
                             const TargetRow &target) {
  int64_t columns = facts.isNarrow() ? 64 : 32;
  if (!plan.getPair())
    return llvm::Error::success();
  if (plan.getOneRing() && !sharesRing(facts, plan))
    return makeUnsupported(
        getName(), llvm::formatv("one_ring with keys of {0} columns and values "
                                 "of {1}, expected as many",
                                 facts.headDim, facts.valueDim));
  assert(target.getClusteredSMs(2) > 0 && "chips with pairs have SMs in pairs");
  if (gathersKeys(facts))
    return makeUnsupported(getName(), "pair with rows of keys that are copied "
                                      "one by one, expected pair = false");
  if (facts.valueDim % columns == 0)
    return llvm::Error::success();
  return makeUnsupported(
      getName(),
      llvm::formatv("pair with values of {0} columns, expected a multiple of "
                    "{1}, or pair = false",
                    facts.valueDim, columns));
}

/// Refuses what products of M = 128 in a pair do not take.
static llvm::Error checkHalfTiles(const ProblemFacts &facts,
                                  WsTmemPlanAttr plan) {
  auto refuse = [&](const llvm::Twine &what) {
    return makeUnsupported(getName(), "pair with a head dimension of " +
                                          Twine(facts.headDim) + " and " +
                                          what);
  };
  if (plan.getBlockN() != kHalvedColumns &&
      plan.getBlockN() != 2 * kHalvedColumns)
    return refuse("block_n = " + Twine(plan.getBlockN()) + ", expected " +
                  Twine(kHalvedColumns) + " or " + Twine(2 * kHalvedColumns));
  if (facts.valueDim % kHalfTileColumns != 0)
    return refuse("a value dimension of " + Twine(facts.valueDim) +
                  ", expected a multiple of " + Twine(kHalfTileColumns));
  if (plan.getPParts())
    return refuse("p_parts = true, expected false");
  if (plan.getSoftmax() != SoftmaxPolicy::Threshold &&
      plan.getSoftmax() != SoftmaxPolicy::Exact)
    return refuse("the softmax policy '" +
                  stringifySoftmaxPolicy(plan.getSoftmax()) +
                  "', expected 'threshold' or 'exact'");
  return llvm::Error::success();
}

/// Refuses wide heads in two tiles, values that two CTAs cannot divide, and
/// blocks whose parts of values are no steps of a product.
static llvm::Error checkWide(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  if (facts.headDim > kUsualColumns && !hasOneTile(plan))
    return makeUnsupported(
        getName(),
        llvm::formatv("a head dimension of {0} with tiles = {1}, expected 1",
                      facts.headDim, plan.getTiles()));
  if (facts.isLatent() && !hasOneTile(plan))
    return makeUnsupported(getName(), "the latent form ('rope_dim') with two "
                                      "tiles, expected tiles = 1");
  if (facts.isLatent() && plan.getPair() && !hasHalfTiles(facts, plan))
    return makeUnsupported(
        getName(), llvm::formatv("the latent form ('rope_dim') with a head "
                                 "dimension of {0} and a pair, expected pair = "
                                 "false",
                                 facts.headDim));
  if (hasHalfTiles(facts, plan))
    return checkHalfTiles(facts, plan);
  if (plan.getBlockN() > kHalvedColumns)
    return makeUnsupported(
        getName(),
        llvm::formatv("block_n = {0} with a head dimension of {1}, expected up "
                      "to {2}",
                      plan.getBlockN(), facts.headDim, kHalvedColumns));
  int64_t slice = getSliceColumns(facts, plan);
  if ((facts.qRope || facts.kRope) && facts.valueDim % slice != 0)
    return makeUnsupported(
        getName(),
        llvm::formatv("a value dimension of {0} with rotated columns apart "
                      "('rope'), expected a multiple of {1}",
                      facts.valueDim, slice));
  if (!hasWideHeads(facts, plan))
    return llvm::Error::success();
  if (facts.valueDim % (kDimStep * plan.getValueCtas()) != 0)
    return makeUnsupported(
        getName(), llvm::formatv("value_ctas = {0} with a value dimension of "
                                 "{1}, expected a multiple of {2}",
                                 plan.getValueCtas(), facts.valueDim,
                                 kDimStep * plan.getValueCtas()));
  constexpr int64_t step = 16;
  int64_t columns = getOwnValueColumns(facts, plan);
  int64_t least = std::max<int64_t>(kTensorPartKeys, step * columns / slice);
  if (plan.getBlockN() % least != 0)
    return makeUnsupported(
        getName(), llvm::formatv("block_n = {0} with values of {1} columns in "
                                 "a CTA, expected a multiple of {2}",
                                 plan.getBlockN(), columns, least));
  return llvm::Error::success();
}

static llvm::Error checkPlan(const ProblemFacts &facts, WsTmemPlanAttr plan,
                             const TargetRow &target) {
  if (plan.getEpilogue() == EpilogueKind::Shuffled)
    return makeUnsupported(getName(),
                           "the epilogue 'shuffled', expected 'auto', "
                           "'direct', 'staged' or 'tma'");
  if (llvm::Error error =
          checkTileRuns(facts, plan.getPackHeads(), plan.getOrder(),
                        plan.getGroupHeads(), /*together=*/1, plan.getBlockN()))
    return error;
  if (llvm::Error error = checkDealtRuns(facts, plan.getDealtRuns()))
    return error;
  if (llvm::Error error = checkPair(facts, plan, target))
    return error;
  if (llvm::Error error = checkWide(facts, plan))
    return error;
  if (llvm::Error error =
          checkBlockLists(facts,
                          countPairCTAs(plan) * countClusterPairs(plan) *
                              plan.getTiles() * getTileRows(facts, plan),
                          plan.getBlockN()))
    return error;
  // A thread has fewer columns at a time than groups may have.
  if (facts.hasResultScales() && hasOneTile(plan))
    return makeUnsupported(getName(),
                           "scales of the output in a plan of one tile");
  if (facts.hasResultScales() && getStagedColumns(facts, plan) != 0)
    return makeUnsupported(
        getName(),
        "scales of the output with results that pass through shared memory, "
        "expected the epilogue 'auto' or 'direct'");
  if (facts.hasPartialScales() && getStagedColumns(facts, plan) != 0)
    return makeUnsupported(
        getName(),
        "partial results of f16 that pass through shared memory, expected the "
        "epilogue 'auto' or 'direct'");
  if (plan.getEpilogue() == EpilogueKind::Tma && areResultsPartial(facts))
    return makeUnsupported(getName(), "the epilogue 'tma' with runs of keys");
  if (plan.getEpilogue() == EpilogueKind::Tma && !canStoreByTma(facts))
    return makeUnsupported(
        getName(), "the epilogue 'tma' with " +
                       findUnmappable(facts.o).value_or(
                           "packed sequences, which end before their tensor"));
  if (plan.getEpilogue() == EpilogueKind::Tma &&
      !canStoreRowsByTma(facts, plan))
    return makeUnsupported(
        getName(),
        llvm::formatv("the epilogue 'tma' with packed groups of {0} heads, "
                      "expected a power of two",
                      facts.getGroup()));
  if (llvm::Error error = checkExactMaxima(facts, plan.getSoftmax()))
    return error;
  // A thread adds up a whole row, so that the sums of flat ones say nothing
  // about the few exponents that 8 bits have.
  if (facts.isNarrow() && plan.getSoftmax() == SoftmaxPolicy::Optimistic)
    return makeUnsupported(getName(),
                           "the softmax policy 'optimistic' with 8-bit "
                           "operands, expected 'exact', 'threshold' or "
                           "'lagged'");
  if (facts.hasNarrowKeys() && (!hasOneTile(plan) || plan.getPair()))
    return makeUnsupported(
        getName(), "8-bit keys beside 16-bit queries with two tiles or a pair, "
                   "expected tiles = 1 and pair = false");
  if (facts.isNarrow() && hasOneTile(plan))
    return makeUnsupported(getName(),
                           "8-bit operands with tiles = 1, expected 2");
  if (llvm::Error error = checkNarrowParts(facts, plan.getBlockN()))
    return error;
  if (plan.getOHalves() && !canHalve(facts))
    return makeUnsupported(
        getName(),
        llvm::formatv("o_halves with results of {0} bytes a row, expected a "
                      "multiple of 32",
                      facts.valueDim * facts.outType.getIntOrFloatBitWidth() /
                          8));
  ResourceSum columns = getTensorColumns(facts, plan);
  if (columns.getTotal() > kTmemColumns)
    return makeUnsupported(
        getName(),
        llvm::formatv("{0} columns of tensor memory, expected up to {1}",
                      columns.str(), kTmemColumns));
  return checkSharedBytes(getTmemSharedBytes(facts, plan, target), target);
}

static KernelShape getKernelShape(const ProblemFacts &facts,
                                  WsTmemPlanAttr plan,
                                  const TargetRow &target) {
  KernelShape shape = getPersistentShape(facts, getTilePlan(facts, plan),
                                         countThreads(facts, plan), target);
  shape.grid.front() = countClusteredSMs(plan, target);
  if (plan.getClc()) {
    shape.grid.front() = *shape.tiles;
    if (shape.cluster > 1)
      shape.grid.front() = *shape.tiles * shape.cluster;
  }
  shape.dealsRuns = plan.getDealtRuns() != 0;
  shape.plannedRuns = plan.getDealtRuns();
  return shape;
}

/// Emits the kernel. Groups of partial results, which problems are planned
/// without, are those that the plan has by then.
static LogicalResult emitKernel(KernelContext &context, WsTmemPlanAttr plan) {
  const ProblemFacts &facts = context.facts;
  int64_t groups = countUnitGroups(facts, plan);
  if (facts.hasPartialScales() && facts.getUnitGroups() != groups)
    return AttentionOp(facts.op).emitOpError(
               "expected partial results of f16 with scales of ")
           << groups << " groups of columns in ws_tmem, got "
           << facts.getUnitGroups();
  return emitWsTmem(context, plan);
}

const Schedule &attn::getWsTmemSchedule() {
  static const ProjectSchedule<WsTmemPlanAttr> schedule(
      {isApplicable, checkPlan, getKernelShape, emitKernel, dropHeadGroups,
       countUnitGroups});
  return schedule;
}
