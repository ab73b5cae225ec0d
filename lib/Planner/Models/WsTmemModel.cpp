//===- WsTmemModel.cpp - Plans of ws_tmem: which, and their time ----------===//

#include "../../Schedule/Copied/GridTiles.h"
#include "../../Schedule/Core/CommonChecks.h"
#include "../../Schedule/Wgmma/WgmmaFacts.h"
#include "../../Schedule/WsTmem/WsTmem.h"
#include "../Facts/BlockCount.h"
#include "../Facts/TileBalance.h"
#include "../Seen/PtxasData.h"
#include "CopiedCost.h"
#include "Models.h"
#include "attn/Planner/Facts/Factor.h"
#include "attn/Planner/Facts/RegisterLimit.h"
#include "attn/Planner/Facts/RegisterModel.h"
#include "attn/Schedule/Kernel/Scores.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

static constexpr Factor kTileClocks{"ws_tmem.tile_clocks"},
    kColumnClocks{"ws_tmem.column_clocks"},
    kStagedClocks{"ws_tmem.staged_clocks"};
static constexpr Factor kStoredClocks{"ws_tmem.stored_clocks"},
    kLateQueryClocks{"ws_tmem.late_query_clocks"};
/// Clocks of a block for barriers: where scores are handed back before
/// their exponentials, and where the next ones wait for the probabilities.
static constexpr Factor kBesideClocks{"ws_tmem.beside_clocks"},
    kOverlaidClocks{"ws_tmem.overlaid_clocks"};
/// Clocks of a block for barriers of a pair of CTAs, whose next scores wait for
/// the probabilities.
static constexpr Factor kPairClocks{"ws_tmem.pair_clocks"};
/// Clocks of a block for barriers of one CTA that hands keys back later.
static constexpr Factor kHeldClocks{"ws_tmem.held_clocks"};
/// Clocks of the thread that loads for each copy of rows that lie apart.
static constexpr Factor kGatherClocks{"ws_tmem.gather_clocks"};
/// Elements that a warpgroup widens in a clock.
static constexpr Factor kWidenedElements{"ws_tmem.widened_elements"};
/// Clocks that a block takes in addition if K and V share three slots.
static constexpr Factor kShortRingClocks{"ws_tmem.short_ring_clocks"};

/// Clocks that a block and a tile take in addition if a CTA has one tile: what
/// of a softmax exponentials do not hide, and what of a tile nothing hides.
static constexpr Factor kLoneClocks{"ws_tmem.lone_clocks"},
    kLoneTileClocks{"ws_tmem.lone_tile_clocks"};

static constexpr Factor kExactClocks{"ws_tmem.exact_clocks"},
    kDecidedClocks{"ws_tmem.decided_clocks"},
    kLaggedClocks{"ws_tmem.lagged_clocks"},
    kOptimisticClocks{"ws_tmem.optimistic_clocks"};
/// Clocks that a block of optimistic takes in addition if the next scores wait
/// for the probabilities, which are handed on at once.
static constexpr Factor kChainedClocks{"ws_tmem.chained_clocks"};

/// True if probabilities find columns of their own.
static bool fitsBeside(const ProblemFacts &facts, WsTmemPlanAttr::Parameters p,
                       MLIRContext *context) {
  p.pBeside = true;
  return getTensorColumns(facts, WsTmemPlanAttr::get(context, p)).getTotal() <=
         kTmemColumns;
}

/// Returns true if no plan with two tiles in a CTA is legal.
static bool needsOneTile(const ProblemFacts &facts) {
  return facts.isLatent() || facts.hasNarrowKeys() ||
         std::max(facts.headDim, facts.valueDim) > kUsualColumns;
}

/// Returns true if plans with one tile in a CTA are worth comparing: where two
/// leave no columns of tensor memory for the scores of 128 keys or are not
/// legal, a second one would have no rows, or lists of blocks are those of one.
static bool isWorthOneTile(const ProblemFacts &facts, bool packs) {
  auto plan = WsTmemPlanAttr::get(AttentionOp(facts.op).getContext(),
                                  WsTmemPlanAttr::Parameters());
  if (getTensorColumns(facts, plan).getTotal() > kTmemColumns ||
      facts.blockRows % (kMostTmemTiles * kTmemRows) != 0 ||
      needsOneTile(facts))
    return true;
  return packs && getAssumedExtent(facts.queries, kAssumedLength) *
                          countQueryRows(facts, packs) <=
                      kTmemRows;
}

/// Returns the fewest slots of each ring beside which results may take memory
/// of their own: a shared one holds the next keys beside the values.
static int64_t getLeastSlots(const ProblemFacts &facts,
                             const WsTmemPlanAttr::Parameters &p,
                             MLIRContext *context) {
  return sharesRing(facts, WsTmemPlanAttr::get(context, p)) ? 3 : 2;
}

/// Returns the lengths of blocks that are worth comparing: shorter ones where
/// slots and scores of 128 keys do not fit, or may not in registers.
static SmallVector<int64_t> listBlocks(const ProblemFacts &facts,
                                       const TargetRow &target,
                                       MLIRContext *context) {
  WsTmemPlanAttr::Parameters p;
  p.kvStages = 2;
  p.epilogue = EpilogueKind::Direct;
  auto fits = [&](int64_t blockN) {
    p.blockN = blockN;
    auto plan = WsTmemPlanAttr::get(context, p);
    return getTensorColumns(facts, plan).getTotal() <= kTmemColumns &&
           getTmemSharedBytes(facts, plan, target).getTotal() <=
               target.sharedBytesPerCTA;
  };
  if (fits(128) && !hasWideQueries(facts))
    return {128, 64};
  return {128, 96, 64};
}

/// How many exponentials of 16 a polynomial takes over: as many as made blocks
/// fastest in the cycle model (docs/CycleModel.md).
static int64_t choosePolynomial(const TargetRow &target, bool beside,
                                SoftmaxPolicy softmax) {
  static constexpr Factor kScarceExponentials{"ws_tmem.scarce_exponentials"};
  bool isBet = softmax == SoftmaxPolicy::Optimistic;
  // Where the chip has many, the longer products of wide heads hide them.
  if (target.expPerClock > kScarceExponentials)
    return beside && !isBet ? 2 : 0;
  // Without a bound on exponents a polynomial takes more instructions.
  if (isBet)
    return 5;
  return beside ? 6 : 7;
}

/// Returns true if plans that pack the heads of a group are worth comparing:
/// packing has to leave fewer tiles. That such tiles walk fewer keys under a
/// mask is no reason of its own (docs/Rationale/Schedules.md).
static bool isWorthPacking(const ProblemFacts &facts) {
  int64_t group = facts.getGroup();
  if (ShapedType::isDynamic(group) || group == 1 || group > kPackedHeadsLimit ||
      facts.hasBlockLists())
    return false;
  constexpr int64_t rows = kMostTmemTiles * kTmemRows;
  int64_t queries = getAssumedExtent(facts.queries, kAssumedLength);
  return llvm::divideCeil(queries * llvm::PowerOf2Ceil(group), rows) <
         group * llvm::divideCeil(queries, rows);
}

/// The keys of a block of which a lost bet finds the exponents in registers,
/// with probabilities over the scores and in columns of their own.
static constexpr RegisterLimit kBetKeys{"ws_tmem.bet_keys"},
    kBetKeysBeside{"ws_tmem.bet_keys_beside"};

namespace {

/// The plans of a problem that are worth comparing.
class CandidateList {
public:
  CandidateList(const WsTmemModel &model, const ProblemFacts &facts,
                const TargetRow &target)
      : model(model), facts(facts), target(target),
        context(AttentionOp(facts.op).getContext()) {}

  /// Adds plans with two tiles in a CTA, and with one.
  void addTwoTiles(int64_t blockN, SoftmaxPolicy softmax, bool packs);
  void addOneTile(int64_t blockN, SoftmaxPolicy softmax, bool packs);
  /// Adds plans of pairs of CTAs with half of the rows of a tile each.
  void addHalfTiles(SoftmaxPolicy softmax, bool packs);

  std::vector<PlanAttrInterface> plans;

private:
  /// Adds the plan with the most slots, at least `least`. Returns how many
  /// these are, 0 if it does not fit.
  int64_t add(WsTmemPlanAttr::Parameters p, int64_t least);
  /// Adds plans whose results pass through shared memory.
  void addStaged(WsTmemPlanAttr::Parameters p);
  void setOrder(WsTmemPlanAttr::Parameters &p);
  /// Adds a plan of one tile, whose exponentials polynomials may compute.
  void addLone(WsTmemPlanAttr::Parameters p);
  bool isMasked() const { return facts.mask.getKind() != MaskKind::None; }

  const WsTmemModel &model;
  const ProblemFacts &facts;
  const TargetRow &target;
  MLIRContext *context;
};

} // namespace

int64_t CandidateList::add(WsTmemPlanAttr::Parameters p, int64_t least) {
  for (int64_t stages : {10, 9, 8, 7, 6, 5, 4, 3, 2}) {
    // More slots are short ones of wide heads, whose keys have many slices.
    if (stages > 6 && !hasWideHeads(facts, WsTmemPlanAttr::get(context, p)))
      continue;
    // Slots of whole blocks hold keys and values by turns.
    if (stages == 5 && p.tiles != 1)
      continue;
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
}

void CandidateList::setOrder(WsTmemPlanAttr::Parameters &p) {
  p.order = isMasked() && !areResultsPartial(facts) ? TileOrder::LongestFirst
                                                    : TileOrder::RowMajor;
  if (p.order == TileOrder::LongestFirst && !p.packHeads)
    p.groupHeads = chooseGroupHeads(facts, target, kTmemRows * p.tiles,
                                    p.blockN, target.getClusteredSMs(1));
}

void CandidateList::addStaged(WsTmemPlanAttr::Parameters p) {
  // Results take no memory that K and V need, and half of it where that gives
  // these a slot.
  p.epilogue = EpilogueKind::Staged;
  int64_t least = getLeastSlots(facts, p, context);
  int64_t slots = add(p, least);
  p.oHalves = true;
  if (canHalve(facts) && slots != 0)
    add(p, slots + 1);
  p.oHalves = false;
  // By TMA where they take no memory but the queries'.
  p.epilogue = EpilogueKind::Tma;
  p.kvStages = std::max(slots + 1, least);
  if (canStoreRowsByTma(facts, WsTmemPlanAttr::get(context, p)) &&
      getTmemResultBuffer(facts, WsTmemPlanAttr::get(context, p), target) ==
          ResultBuffer::Queries)
    add(p, p.kvStages);
}

void CandidateList::addTwoTiles(int64_t blockN, SoftmaxPolicy softmax,
                                bool packs) {
  WsTmemPlanAttr::Parameters p;
  p.packHeads = packs;
  // A lost bet has no registers for more keys.
  if (softmax == SoftmaxPolicy::Optimistic) {
    p.blockN = kBetKeysBeside;
    bool isBeside = fitsBeside(facts, p, context);
    blockN = std::min<int64_t>(blockN, isBeside ? kBetKeysBeside : kBetKeys);
  }
  p.blockN = blockN;
  p.softmax = softmax;
  p.pBeside = fitsBeside(facts, p, context);
  p.polynomial = choosePolynomial(target, p.pBeside, softmax);
  p.pParts = softmax != SoftmaxPolicy::Optimistic;
  p.ownBlocks = isMasked();
  setOrder(p);
  if (!facts.hasResultScales())
    addStaged(p);
  p.epilogue = EpilogueKind::Direct;
  add(p, /*least=*/2);
}

void CandidateList::addOneTile(int64_t blockN, SoftmaxPolicy softmax,
                               bool packs) {
  WsTmemPlanAttr::Parameters p;
  p.tiles = 1;
  p.blockN = blockN;
  p.packHeads = packs;
  p.softmax = softmax;
  p.pParts = true;
  p.epilogue = EpilogueKind::Direct;
  p.valueCtas = facts.valueDim > kUsualColumns ? 2 : 1;
  addLone(p);
}

void CandidateList::addHalfTiles(SoftmaxPolicy softmax, bool packs) {
  WsTmemPlanAttr::Parameters p;
  p.tiles = 1;
  p.pair = true;
  p.packHeads = packs;
  p.softmax = softmax;
  p.pParts = false;
  p.epilogue = EpilogueKind::Direct;
  if (!hasHalfTiles(facts, WsTmemPlanAttr::get(context, p)))
    return;
  // More keys read the queries less often, fewer leave less of a last block
  // without keys.
  for (int64_t blockN : {256, 128}) {
    p.blockN = blockN;
    addLone(p);
  }
}

void CandidateList::addLone(WsTmemPlanAttr::Parameters p) {
  setOrder(p);
  // Operands may take longer than a softmax without polynomials.
  PlanEstimate units =
      model.estimate(facts, WsTmemPlanAttr::get(context, p), target);
  if (units.expClocks + kLoneClocks > units.sharedClocks)
    p.polynomial = choosePolynomial(target, /*beside=*/true, p.softmax);
  add(p, /*least=*/2);
}

std::vector<PlanAttrInterface>
WsTmemModel::getCandidates(const ProblemFacts &facts,
                           const TargetRow &target) const {
  CandidateList list(*this, facts, target);
  SmallVector<int64_t> blocks =
      listBlocks(facts, target, AttentionOp(facts.op).getContext());
  // Of two plans that take as long the first one is taken.
  for (bool packs : {false, true}) {
    if (packs && !isWorthPacking(facts))
      continue;
    for (int64_t blockN : blocks)
      for (SoftmaxPolicy softmax :
           {SoftmaxPolicy::Threshold, SoftmaxPolicy::Lagged,
            SoftmaxPolicy::Optimistic, SoftmaxPolicy::Exact})
        if (!needsOneTile(facts) &&
            (!facts.isNarrow() || softmax != SoftmaxPolicy::Optimistic))
          list.addTwoTiles(blockN, softmax, packs);
    if (facts.isNarrow() || facts.hasResultScales() ||
        !isWorthOneTile(facts, packs))
      continue;
    for (int64_t blockN : {128, 96, 64})
      for (SoftmaxPolicy softmax :
           {SoftmaxPolicy::Threshold, SoftmaxPolicy::Lagged,
            SoftmaxPolicy::Exact})
        list.addOneTile(blockN, softmax, packs);
    for (SoftmaxPolicy softmax :
         {SoftmaxPolicy::Threshold, SoftmaxPolicy::Exact})
      list.addHalfTiles(softmax, packs);
  }
  return list.plans;
}

/// Bytes of K and V that a CTA copies while a slot is read.
static double getBytesInFlight(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  int64_t columns = getKeyColumns(facts);
  if (hasWideHeads(facts, plan))
    columns = getSliceColumns(facts, plan);
  else if (!sharesRing(facts, plan))
    columns += getValueColumns(facts);
  return double(plan.getKvStages() - 1) * getOwnKeys(plan) * columns *
         facts.elementType.getIntOrFloatBitWidth() / 8;
}

/// Returns the clocks that a block takes in addition to threshold's.
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

/// Returns the copies by which a block's keys and values come where their rows
/// lie apart: four rows of a span of columns each.
static double countGathers(const ProblemFacts &facts, WsTmemPlanAttr plan) {
  if (!gathersKeys(facts))
    return 0;
  int64_t bits = facts.elementType.getIntOrFloatBitWidth();
  auto countSpans = [&](int64_t columns) {
    int64_t span = SharedLayout::chooseSpan(columns, bits) * 8 / bits;
    return double(llvm::divideCeil(columns, span));
  };
  int64_t values = hasWideHeads(facts, plan)
                       ? getResultTensorColumns(facts, plan)
                       : getOwnValueColumns(facts, plan);
  constexpr double rows = 4;
  return plan.getBlockN() / rows *
         (countSpans(getSliceColumns(facts, plan)) *
              double(countKeySlices(facts, plan)) +
          countSpans(values));
}

/// Returns the clocks of a block of the policy threshold with as many slots as
/// it needs, given those of each unit, and of them those in which threads ask
/// what stands in the places of keys.
static double getBusyClocks(const ProblemFacts &facts, WsTmemPlanAttr plan,
                            const PlanEstimate &units, double askedClocks) {
  double others =
      std::max({units.tensorClocks, units.expClocks, units.issueClocks});
  double most = std::max(others, units.sharedClocks);
  if (hasOneTile(plan))
    return std::max(most + kHeldClocks,
                    units.expClocks + kLoneClocks + askedClocks);
  if (plan.getPBeside())
    return most + kBesideClocks;
  // Copies of keys and of values wait for each other in the ring of one CTA
  // alone. Elsewhere the wait for probabilities hides where operands take long
  // enough.
  if (!sharesRing(facts, plan) || plan.getPair())
    return std::max(others + (plan.getPair() ? kPairClocks : kOverlaidClocks),
                    units.sharedClocks + kHeldClocks);
  return most + (holdsKeys(plan) ? kHeldClocks : kOverlaidClocks);
}

/// Returns the scores of a block that a thread has in registers: those of a
/// row, or of half of one.
static int64_t countScoresOfThread(const ProblemFacts &facts,
                                   WsTmemPlanAttr plan) {
  return plan.getBlockN() * getTileRows(facts, plan) / kTmemRows;
}

bool WsTmemModel::isExpectedToSpill(const ProblemFacts &facts,
                                    PlanAttrInterface planAttr,
                                    const TargetRow &target) const {
  auto plan = cast<WsTmemPlanAttr>(planAttr);
  int64_t block = plan.getBlockN();
  if (std::optional<bool> spills = PtxasData::getShipped().findSpills(
          {facts, plan, target, block, nullptr, {}}))
    return *spills;
  // In the place of scores probabilities come, and later a row of results,
  // unless another warpgroup has these.
  RegisterFeatures features;
  features.s = countScoresOfThread(facts, plan);
  if (!hasOneTile(plan))
    features.s = std::max(features.s, facts.valueDim);
  return RegisterModel::getUsed().count("ws_tmem", features).getTotal() >
         getTmemRegisters(facts, plan).softmax;
}

PlanAttrInterface
LightenedWsTmemModel::lighten(PlanAttrInterface planAttr) const {
  // The unit for exponentials needs no coefficients.
  WsTmemPlanAttr::Parameters p = cast<WsTmemPlanAttr>(planAttr).getParameters();
  if (p.polynomial == 0)
    return {};
  --p.polynomial;
  return WsTmemPlanAttr::get(planAttr.getContext(), p);
}

PlanEstimate WsTmemModel::estimate(const ProblemFacts &facts,
                                   PlanAttrInterface planAttr,
                                   const TargetRow &target) const {
  auto plan = cast<WsTmemPlanAttr>(planAttr);
  PlanEstimate estimate;
  estimate.sharedBytes = getTmemSharedBytes(facts, plan, target);
  RegisterFeatures features;
  features.s = countScoresOfThread(facts, plan);
  if (plan.getSoftmax() == SoftmaxPolicy::Optimistic)
    features.p = plan.getBlockN() / 2;
  estimate.registers = RegisterModel::getUsed().count("ws_tmem", features);
  estimate.ctasPerSM = 1;

  int64_t ctas = countPairCTAs(plan), cluster = countClusterCTAs(plan);
  int64_t tileRows = getTileRows(facts, plan);
  double blockM = tileRows * plan.getTiles(), blockN = plan.getBlockN();
  auto [batch, heads, queries, keys] = getTypicalExtents(facts);
  double runs = double(countRuns(facts, plan.getDealtRuns()));
  double groups =
      batch * heads / (plan.getPackHeads() ? double(facts.getGroup()) : 1);
  double rows = double(countQueryRows(facts, plan.getPackHeads()));
  double rowsTogether = blockM * double(ctas * countClusterPairs(plan));
  estimate.tiles =
      int64_t(groups * runs * std::ceil(queries * rows / rowsTogether)) *
      cluster;
  estimate.waves = estimate.tiles / double(countClusteredSMs(plan, target));
  estimate.blocks = countRunBlocks(
      countBlocks(facts, queries, keys, std::ceil(rowsTogether / rows), blockN),
      runs);

  double columns =
      getKeyDepth(facts) + (hasWideHeads(facts, plan)
                                ? getResultTensorColumns(facts, plan)
                                : facts.valueDim);
  estimate.tensorClocks =
      2 * blockM * blockN * columns /
      (facts.isNarrow() ? target.tensorFlopFp8 : target.tensorFlopF16);
  double elements = blockM * blockN;
  estimate.expClocks =
      elements * (16 - plan.getPolynomial()) / 16 / target.expPerClock;
  // Warp instructions for 32 scores: scale, exponential, half a sum, a maximum,
  // half a packing; a polynomial takes four more.
  constexpr double instructions = 3.5;
  estimate.issueClocks = (instructions + 4.0 * plan.getPolynomial() / 16) *
                         elements / 32 / target.issuePerClock;
  // A softmax alone hides what it asks behind products only.
  double askedClocks = 0;
  if (facts.hidesPlaces())
    askedClocks =
        getScoreCost(facts).instructions * elements / 32 / target.issuePerClock;
  estimate.issueClocks += askedClocks;
  // Operands of the products, each read for each of the two tiles, and what TMA
  // writes: of keys and values those that the CTA has of a pair.
  double operands = blockN * columns / double(ctas);
  // Keys of 8 bits are written, read and written again: twice what is written
  // of 16 bits.
  double filled = facts.hasNarrowKeys() ? 2 * operands : operands;
  // Probabilities of half tiles are written, and read by each product.
  if (hasHalfTiles(facts, plan))
    filled += blockM * blockN * (1 + facts.valueDim / kHalfTileColumns);
  estimate.sharedClocks =
      facts.elementType.getIntOrFloatBitWidth() / 8 *
      (plan.getTiles() * (tileRows * facts.headDim + operands) + filled) /
      target.sharedBytesPerClock;
  estimate.blockClocks = getBusyClocks(facts, plan, estimate, askedClocks);
  // Maxima of 8-bit probabilities that may grow by nothing change as often as
  // exact ones.
  bool asks = plan.getSoftmax() == SoftmaxPolicy::Threshold;
  double way = getWayClocks(plan);
  if (facts.isNarrow())
    way = asks ? double(kDecidedClocks) : std::max<double>(way, kExactClocks);
  estimate.blockClocks += way;
  estimate.blockClocks = std::max<double>(
      estimate.blockClocks, kGatherClocks * countGathers(facts, plan));
  if (facts.hasNarrowKeys())
    estimate.blockClocks =
        std::max<double>(estimate.blockClocks, operands / kWidenedElements);
  if (sharesRing(facts, plan) && plan.getKvStages() < 4)
    estimate.blockClocks += kShortRingClocks;
  // The CTA loads its rows of queries, and stores those of results.
  estimate.tileClocks = kTileClocks + kColumnClocks * columns * blockM /
                                          (kMostTmemTiles * kTmemRows);
  if (hasOneTile(plan))
    estimate.tileClocks += kLoneTileClocks;
  if (getStagedColumns(facts, plan) != 0)
    estimate.tileClocks += kStagedClocks * facts.valueDim;
  if (getTmemResultBuffer(facts, plan, target) == ResultBuffer::Queries)
    estimate.tileClocks +=
        estimate.waves > 1 ? kLateQueryClocks : kStoredClocks;
  double clocks = estimate.tileClocks + estimate.blocks * estimate.blockClocks;
  estimate.microseconds = std::ceil(estimate.waves) * clocks / target.clockMHz;
  int64_t rowColumns = facts.headDim + (facts.isLatent() ? 0 : facts.valueDim);
  double loadedShare = columns / double(ctas * rowColumns);
  // Where a CTA has all queries that need some keys, these may come too late.
  if (queries * rows <= rowsTogether || areResultsPartial(facts))
    addDramTime(estimate, facts, plan.getBlockN(),
                getBytesInFlight(facts, plan), target,
                countRuns(facts, plan.getDealtRuns()), loadedShare);
  return estimate;
}
