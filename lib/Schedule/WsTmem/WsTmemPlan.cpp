//===- WsTmemPlan.cpp - Plans of ws_tmem: legality and cost ---------------===//
//
// Nothing of what is estimated here was measured: no board with these chips has
// run a kernel of this schedule. Rates are those of the target table, and what
// does not hide is what the cycle model says
// (docs/Rationale/Schedules/TensorMemory.md).
//
//===----------------------------------------------------------------------===//

#include "../Copied/CopiedCost.h"
#include "../Core/AttentionEmitter.h"
#include "../Core/CommonChecks.h"
#include "../Problem/BlockCount.h"
#include "../Problem/TileBalance.h"
#include "../Tma/RingFacts.h"
#include "WsTmem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

const Schedule &attn::getWsTmemSchedule() {
  static const WsTmemSchedule schedule;
  return schedule;
}

// What nothing hides, fitted to the cycle model's traces of D 64 and 128 with
// 1024 and 2048 keys (docs/CycleModel.md): times of these are within 3 %.
/// Clocks of a tile: in all, for each column of Q and of the results, and what
/// results that pass through shared memory save of the latter: stores of
/// threads, each with a row of its own, take L2 twice as long.
static constexpr double kTileClocks = 2300, kColumnClocks = 16.5,
                        kStagedClocks = -8;
/// The same of results that TMA stores from the queries' memory: where a CTA
/// has one tile, their stores take L2 half as long as those of threads, which
/// is much or little with what is believed of L2; where it has more, the next
/// queries wait for them.
static constexpr double kStoredClocks = -50, kLateQueryClocks = 1500;
/// Clocks of a block for barriers: where scores are handed back before their
/// exponentials, and where the next ones wait for the probabilities.
static constexpr double kBesideClocks = 250, kOverlaidClocks = 190;
/// The latter where keys are handed back later.
static constexpr double kHeldClocks = 10;
/// The same where K and V share a ring of three slots.
static constexpr double kShortRingClocks = 16;

/// Clocks of a block that another policy takes more than threshold, in that
/// corner of the cycle model in which it is worst for it, the least of those
/// seen (docs/CycleModel.md): what no board has measured is taken where it is
/// faster in all of them. Of optimistic those of a block of 96 keys.
static constexpr double kExactClocks = 790, kLaggedClocks = 110,
                        kOptimisticClocks = 300;
/// The same of optimistic where the next scores wait for the probabilities,
/// which are handed on at once.
static constexpr double kChainedClocks = 650;

/// What packed plans of so few rows, which 'decode' has tiles for, have beside
/// their time: in the cycle model it takes half of that, but has the same.
static constexpr int64_t kDecodedRows = 32;
static constexpr double kDecodedMargin = 2;

bool attn::sharesRing(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  return getKeyColumns(facts) == getValueColumns(facts);
}

/// Columns of tensor memory that the tiles take.
static ResourceSum getTensorColumns(const ProblemFacts &facts,
                                    WsTmemPlanAttr plan) {
  ResourceSum sum;
  sum.add("s", plan.getBlockN(), kTmemTiles);
  if (plan.getPBeside())
    sum.add("p", plan.getBlockN() / 2, kTmemTiles);
  sum.add("o", getValueColumns(facts), kTmemTiles);
  return sum;
}

/// True if probabilities find columns of their own.
static bool fitsBeside(const ProblemFacts &facts, WsTmemPlanAttr::Parameters p,
                       MLIRContext *context) {
  p.pBeside = true;
  return getTensorColumns(facts, WsTmemPlanAttr::get(context, p)).getTotal() <=
         kTmemColumns;
}

/// True if half of a row of results is aligned as the whole is staged.
static bool canHalve(const ProblemFacts &facts) {
  constexpr int64_t vectorBits = 128;
  return facts.valueDim * facts.outType.getIntOrFloatBitWidth() %
             (2 * vectorBits) ==
         0;
}

int64_t attn::getFrontKeys(WsTmemPlanAttr plan) {
  // All probabilities stand behind one vote with the policy optimistic.
  if (!plan.getPParts() || plan.getSoftmax() == SoftmaxPolicy::Optimistic)
    return 0;
  // In steps of the contraction. Over the scores the first product is on the
  // way to the next ones, so that fewer keys are waited for in front of it.
  int64_t eighths = plan.getPBeside() ? 6 : 5;
  return llvm::alignDown(plan.getBlockN() * eighths / 8, 16);
}

bool attn::holdsKeys(WsTmemPlanAttr plan) {
  // A slot that is handed back fills while the products behind that run. Those
  // of keys need all of shared memory's port, those of values half of it: with
  // scores behind results of a block, both kinds of slots fill under the
  // latter. Fewer slots leave no time for it.
  return !plan.getPBeside() && plan.getKvStages() >= 4;
}

/// How many exponentials of 16 a polynomial takes over: as many as made blocks
/// fastest in the cycle model (docs/CycleModel.md).
static int64_t choosePolynomial(const TargetRow &target, bool beside,
                                SoftmaxPolicy softmax) {
  constexpr double kScarceExponentials = 16;
  bool isBet = softmax == SoftmaxPolicy::Optimistic;
  // Where the chip has many, the longer products of wide heads hide them.
  if (target.expPerClock > kScarceExponentials)
    return beside && !isBet ? 2 : 0;
  // Without a bound on exponents a polynomial takes more instructions.
  if (isBet)
    return 5;
  return beside ? 6 : 7;
}

int64_t attn::getTmemPackedHeads(const ProblemFacts &facts,
                                 WsTmemPlanAttr plan) {
  return plan.getPackHeads() ? facts.getGroup() : 1;
}

int64_t attn::getTmemQueryRows(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  // Tiles are of whole queries, which one box brings.
  return llvm::PowerOf2Ceil(getTmemPackedHeads(facts, plan));
}

bool attn::canStoreRowsByTma(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  // Rows behind a group's heads are those of the next one.
  return canStoreByTma(facts) &&
         getTmemQueryRows(facts, plan) == getTmemPackedHeads(facts, plan);
}

/// Bytes of the rings and of the mbarriers.
static ResourceSum getRingBytes(const ProblemFacts &facts,
                                WsTmemPlanAttr plan) {
  int64_t bytes = facts.elementType.getIntOrFloatBitWidth() / 8;
  ResourceSum sum;
  sum.add("q", kTmemRows * getKeyColumns(facts) * bytes, kTmemTiles);
  int64_t slots = kTmemTiles + plan.getKvStages();
  sum.add(sharesRing(facts, plan) ? "kv" : "k",
          plan.getBlockN() * getKeyColumns(facts) * bytes, plan.getKvStages());
  if (!sharesRing(facts, plan)) {
    sum.add("v", plan.getBlockN() * getValueColumns(facts) * bytes,
            plan.getKvStages());
    slots += plan.getKvStages();
  }
  // Two mbarriers for each slot and for each channel of a tile's tensor memory,
  // and one more where probabilities are handed on in two parts. Where results
  // may take the queries' memory, two for each tile. The address of tensor
  // memory passes through bytes of a slot.
  int64_t handed = plan.getPBeside() ? 4 : 2;
  if (plan.getEpilogue() == EpilogueKind::Tma && !plan.getOHalves())
    handed += 2;
  if (getFrontKeys(plan) != 0)
    ++handed;
  sum.add("barriers", 8, 2 * slots + kTmemTiles * handed);
  // Each of two softmaxes, what multiplies and what loads.
  constexpr int64_t roles = 4;
  if (plan.getDynamic())
    sum.add("tile", getTileSlotBytes(roles), kTileStages);
  return sum;
}

/// Bytes of memory of their own for the results of a tile.
static int64_t getStagedBytes(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  return getResultBytes(facts, kTmemRows) * getStagedColumns(facts, plan) /
         facts.valueDim;
}

ResultBuffer attn::getTmemResultBuffer(const ProblemFacts &facts,
                                       WsTmemPlanAttr plan,
                                       const TargetRow &target) {
  int64_t bytes = getStagedBytes(facts, plan);
  if (bytes == 0)
    return ResultBuffer::None;
  bool fits = getRingBytes(facts, plan).getTotal() + kTmemTiles * bytes <=
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
  if (getTmemResultBuffer(facts, plan, target) == ResultBuffer::Own)
    sum.add("o", getStagedBytes(facts, plan), kTmemTiles);
  return sum;
}

int64_t attn::getStagedColumns(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  if (plan.getEpilogue() != EpilogueKind::Staged &&
      plan.getEpilogue() != EpilogueKind::Tma)
    return 0;
  return plan.getOHalves() ? facts.valueDim / 2 : facts.valueDim;
}

/// Whether plans that pack the heads of a group are worth comparing: where
/// fewer tiles have all rows. That tiles of fewer queries walk fewer keys under
/// a mask made none faster in the cycle model
/// (docs/Rationale/Schedules/PaddedGroups.md).
static bool isWorthPacking(const ProblemFacts &facts) {
  int64_t group = facts.getGroup();
  if (ShapedType::isDynamic(group) || group == 1 || group > kPackedHeadsLimit)
    return false;
  constexpr int64_t rows = kTmemTiles * kTmemRows;
  int64_t queries = getAssumedExtent(facts.queries, kAssumedLength);
  return llvm::divideCeil(queries * llvm::PowerOf2Ceil(group), rows) <
         group * llvm::divideCeil(queries, rows);
}

std::vector<PlanAttrInterface>
WsTmemSchedule::getCandidates(const ProblemFacts &facts,
                              const TargetRow &target) const {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  bool masked = facts.mask.getKind() != MaskKind::None;
  std::vector<PlanAttrInterface> plans;
  // Adds the plan with the most slots, at least `least`; how many these are.
  auto add = [&](WsTmemPlanAttr::Parameters p, int64_t least) -> int64_t {
    for (int64_t stages : {6, 4, 3, 2}) {
      if (stages < least)
        return 0;
      p.kvStages = stages;
      auto plan = WsTmemPlanAttr::get(context, p);
      bool fits = getTmemSharedBytes(facts, plan, target).getTotal() <=
                  target.sharedBytesPerCTA;
      if (fits || stages == 2)
        plans.push_back(plan);
      if (fits)
        return stages;
    }
    return 0;
  };
  auto addShape = [&](int64_t blockN, SoftmaxPolicy softmax, bool packs) {
    WsTmemPlanAttr::Parameters p;
    p.packHeads = packs;
    // Of more keys a lost bet has no registers.
    if (softmax == SoftmaxPolicy::Optimistic) {
      p.blockN = getTmemBetKeys(/*beside=*/true);
      blockN = std::min(blockN, getTmemBetKeys(fitsBeside(facts, p, context)));
    }
    p.blockN = blockN;
    p.softmax = softmax;
    p.pBeside = fitsBeside(facts, p, context);
    p.polynomial = choosePolynomial(target, p.pBeside, softmax);
    p.pParts = softmax != SoftmaxPolicy::Optimistic;
    p.ownBlocks = masked;
    p.order = masked ? TileOrder::LongestFirst : TileOrder::RowMajor;
    if (masked && !packs)
      p.groupHeads = chooseGroupHeads(facts, target, kTmemRows * kTmemTiles,
                                      blockN, target.getClusteredSMs(1));
    // Results take no memory that K and V need, and half of it where that
    // gives these a slot.
    p.epilogue = EpilogueKind::Staged;
    int64_t slots = add(p, /*least=*/3);
    p.oHalves = true;
    if (canHalve(facts) && slots != 0)
      add(p, slots + 1);
    p.oHalves = false;
    // By TMA where they take no memory but the queries'.
    p.epilogue = EpilogueKind::Tma;
    p.kvStages = slots + 1;
    if (slots != 0 &&
        canStoreRowsByTma(facts, WsTmemPlanAttr::get(context, p)) &&
        getTmemResultBuffer(facts, WsTmemPlanAttr::get(context, p), target) ==
            ResultBuffer::Queries)
      add(p, slots + 1);
    p.epilogue = EpilogueKind::Direct;
    add(p, /*least=*/2);
  };
  // Of two plans that take as long the first one is taken.
  for (bool packs : {false, true}) {
    if (packs && !isWorthPacking(facts))
      continue;
    for (int64_t blockN : {128, 64})
      for (SoftmaxPolicy softmax :
           {SoftmaxPolicy::Threshold, SoftmaxPolicy::Lagged,
            SoftmaxPolicy::Optimistic, SoftmaxPolicy::Exact})
        addShape(blockN, softmax, packs);
  }
  return plans;
}

llvm::Error WsTmemSchedule::isApplicable(const ProblemFacts &facts,
                                         const TargetRow &target) const {
  auto unsupported = [&](const llvm::Twine &what) {
    return makeUnsupported(getName(), what);
  };
  if (!target.has(Capability::Tcgen05))
    return unsupported(llvm::formatv("{0}, which has no tcgen05, expected {1}",
                                     target.chip,
                                     getCapabilityChips(Capability::Tcgen05)));
  Parts parts;
  parts.lengths = parts.pages = true;
  if (llvm::Error error = checkCommon(getName(), facts, parts))
    return error;
  if (facts.headDim > kTmemRows || facts.valueDim > kTmemRows)
    return unsupported(llvm::formatv(
        "a head dimension of {0}, expected up to {1}, so that two "
        "tiles' scores and results fit tensor memory",
        std::max(facts.headDim, facts.valueDim), kTmemRows));
  if (facts.hasTransposedValues())
    return unsupported("values whose keys are contiguous");
  return checkMappable(getName(), facts);
}

llvm::Error WsTmemSchedule::checkPlan(const ProblemFacts &facts,
                                      PlanAttrInterface planAttr,
                                      const TargetRow &target) const {
  auto plan = cast<WsTmemPlanAttr>(planAttr);
  if (plan.getEpilogue() == EpilogueKind::Shuffled)
    return makeUnsupported(getName(),
                           "the epilogue 'shuffled', expected 'auto', "
                           "'direct', 'staged' or 'tma'");
  if (plan.getPackHeads())
    if (llvm::Error error = checkPackedHeads(facts, plan.getGroupHeads()))
      return error;
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

KernelShape WsTmemSchedule::getKernelShape(const ProblemFacts &,
                                           PlanAttrInterface plan,
                                           const TargetRow &target) const {
  KernelShape shape;
  // One CTA for each SM. They walk all tiles, so any number is right.
  shape.grid = {int64_t(target.getClusteredSMs(1)), 1, 1};
  shape.threads = plan.getThreads();
  return shape;
}

FailureOr<PlanAttrInterface> WsTmemSchedule::setParameters(
    llvm::function_ref<InFlightDiagnostic()> emitError, PlanAttrInterface plan,
    llvm::ArrayRef<PlanParameter> parameters) const {
  return Schedule::setParameters(emitError, plan, dropHeadGroups(parameters));
}

/// Bytes of K and V that are copied while a slot is read.
static double getBytesInFlight(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  int64_t columns = getKeyColumns(facts);
  if (!sharesRing(facts, plan))
    columns += getValueColumns(facts);
  return double(plan.getKvStages() - 1) * plan.getBlockN() * columns *
         facts.elementType.getIntOrFloatBitWidth() / 8;
}

/// Returns what a block takes more than with the policy threshold.
static double getWayClocks(WsTmemPlanAttr plan) {
  switch (plan.getSoftmax()) {
  case SoftmaxPolicy::Exact:
    return kExactClocks;
  case SoftmaxPolicy::Threshold:
    return 0;
  case SoftmaxPolicy::Lagged:
    return kLaggedClocks;
  case SoftmaxPolicy::Optimistic:
    return plan.getPBeside() ? kOptimisticClocks : kChainedClocks;
  }
  llvm_unreachable("unknown policy");
}

PlanEstimate WsTmemSchedule::estimate(const ProblemFacts &facts,
                                      PlanAttrInterface planAttr,
                                      const TargetRow &target) const {
  auto plan = cast<WsTmemPlanAttr>(planAttr);
  PlanEstimate estimate;
  estimate.sharedBytes = getTmemSharedBytes(facts, plan, target);
  estimate.registers.add("s", plan.getBlockN());
  if (plan.getSoftmax() == SoftmaxPolicy::Optimistic)
    estimate.registers.add("p", plan.getBlockN() / 2);
  estimate.registers.add("other", kTmemBesideRegisters);
  estimate.ctasPerSM = 1;

  double blockM = kTmemRows * kTmemTiles, blockN = plan.getBlockN();
  double queries = getAssumedExtent(facts.queries, kAssumedLength);
  double keys = getAssumedExtent(facts.keys, kAssumedLength);
  double groups = facts.batch * getAssumedExtent(facts.heads, kAssumedHeads) /
                  getTmemPackedHeads(facts, plan);
  double rows = getTmemQueryRows(facts, plan);
  estimate.tiles = int64_t(groups * std::ceil(queries * rows / blockM));
  estimate.waves = estimate.tiles / double(target.getClusteredSMs(1));
  estimate.blocks =
      countBlocks(facts, queries, keys, std::ceil(blockM / rows), blockN);

  double columns = llvm::alignTo(facts.headDim, 16) + facts.valueDim;
  estimate.tensorClocks = 2 * blockM * blockN * columns / target.tensorFlopF16;
  double elements = blockM * blockN;
  estimate.expClocks =
      elements * (16 - plan.getPolynomial()) / 16 / target.expPerClock;
  // Warp instructions for 32 scores: scale, exponential, half a sum, a maximum,
  // half a packing; a polynomial takes four more.
  constexpr double instructions = 3.5;
  estimate.issueClocks = (instructions + 4.0 * plan.getPolynomial() / 16) *
                         elements / 32 / target.issuePerClock;
  // Operands of the products, each read for each of the two tiles, and what TMA
  // writes.
  estimate.sharedClocks =
      2 *
      (kTmemTiles * (kTmemRows * facts.headDim + blockN * columns) +
       blockN * columns) /
      target.sharedBytesPerClock;
  estimate.blockClocks =
      std::max({estimate.tensorClocks, estimate.expClocks, estimate.issueClocks,
                estimate.sharedClocks}) +
      (plan.getPBeside() ? kBesideClocks
       : holdsKeys(plan) ? kHeldClocks
                         : kOverlaidClocks);
  estimate.blockClocks += getWayClocks(plan);
  if (sharesRing(facts, plan) && plan.getKvStages() < 4)
    estimate.blockClocks += kShortRingClocks;
  estimate.tileClocks = kTileClocks + kColumnClocks * columns;
  if (getStagedColumns(facts, plan) != 0)
    estimate.tileClocks += kStagedClocks * facts.valueDim;
  if (getTmemResultBuffer(facts, plan, target) == ResultBuffer::Queries)
    estimate.tileClocks +=
        estimate.waves > 1 ? kLateQueryClocks : kStoredClocks;
  double clocks = estimate.tileClocks + estimate.blocks * estimate.blockClocks;
  estimate.microseconds = std::ceil(estimate.waves) * clocks / target.clockMHz;
  // Where a CTA has all queries that need some keys, these may come too late.
  if (queries * rows <= blockM)
    addDramTime(estimate, facts, plan.getBlockN(),
                getBytesInFlight(facts, plan), target);
  if (plan.getPackHeads() && queries * rows <= kDecodedRows)
    estimate.margin = kDecodedMargin;
  return estimate;
}
