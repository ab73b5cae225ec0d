//===- MlaCost.cpp - What a plan of mla is expected to take ---------------===//
//
// DRAM decides most problems (CopiedCost.h). The warps of a CTA compute a block
// together: its products, the exchange and the softmax follow each other, and
// only another CTA of the SM fills what they leave.
//
//===----------------------------------------------------------------------===//

#include "../../Schedule/Copied/GridTiles.h"
#include "../../Schedule/Mla/Mla.h"
#include "../../Schedule/Tma/RingFacts.h"
#include "CopiedCost.h"
#include "Models.h"
#include "attn/Planner/Facts/Factor.h"

using namespace mlir;
using namespace mlir::attn;

/// Clocks from a CTA's start to its first block, and from its last one to
/// its end: those of split_q, whose results leave in the same way.
static constexpr Factor kTileLatency{"mla.tile_latency"};
/// Clocks of a block in which all warps wait: for the copies' barrier, the
/// first fragments, the exchange.
static constexpr Factor kBlockLatency{"mla.block_latency"};
/// Clocks from one mma.sync to the next one that adds to its result.
static constexpr Factor kProductLatency{"mla.product_latency"};

/// The share of the busiest resource's clocks in which a CTA alone on its
/// SM waits for something else: for fragments, and with one slot for
/// copies.
static constexpr Factor kUnhiddenShare{"mla.unhidden_share"},
    kOneSlotShare{"mla.one_slot_share"};

static constexpr Factor kOneSlotFactor{"mla.one_slot_factor"};

static constexpr Factor kSmallBlocksFactor{"mla.small_blocks_factor"};

static constexpr Factor kAloneFactor{"mla.alone_factor"};

static constexpr Factor kWidenedFactor{"mla.widened_factor"},
    kWidenedCopiesFactor{"mla.widened_copies_factor"},
    kWidenedSharedFactor{"mla.widened_shared_factor"},
    kWidenedSlotFactor{"mla.widened_slot_factor"}, kLoneShare{"mla.lone_share"};

/// The clocks of a block of 8-bit keys.
static double getWidenedClocks(const PlanEstimate &estimate,
                               const CopiedPlan &plan, double ctasPerSM) {
  double groups = plan.getRowWarps();
  double latency = kBlockLatency / ctasPerSM;
  double products = std::max({estimate.tensorClocks, estimate.expClocks,
                              estimate.issueClocks}) *
                        (plan.gathersProbabilities() ? kWidenedFactor
                                                     : kWidenedCopiesFactor) +
                    latency;
  double shared = estimate.sharedClocks * kWidenedSharedFactor + latency;
  if (ctasPerSM == 1) {
    products *= 1 + kLoneShare / (groups * groups);
    shared *= 1 + kLoneShare / groups;
  }
  return std::max(products, shared) *
         (plan.getStages() == 1 ? kWidenedSlotFactor : 1);
}

/// Sets what a block takes on tensor cores and shared memory by wgmma, where
/// each warpgroup computes all scores and its own columns of the results; the
/// clocks of the two products.
static double setWgmmaClocks(PlanEstimate &estimate,
                             const CopiedExtents &extents, MlaPlanAttr plan,
                             const TargetRow &target) {
  double rows = plan.getBlockM(), keys = plan.getBlockN();
  double groups = plan.getWarpsN();
  double scores =
      2 * rows * keys * extents.keyColumns * groups / target.tensorFlopF16;
  double results =
      2 * rows * keys * extents.valueColumns / target.tensorFlopF16;
  estimate.tensorClocks = scores + results;
  double operands =
      groups * (extents.qBytes + extents.kBytes) / target.sharedBytesPerClock;
  estimate.sharedClocks =
      operands + (keys * extents.valueColumns * 2 + extents.kBytes) /
                     target.sharedBytesPerClock;
  return std::max(scores, operands) + results;
}

/// Clocks from the moment a slot is free until its first keys have come,
/// and bytes of the others in a clock; clocks from one role's hand-over to
/// the other one's first instruction, of which a block has three.
static constexpr Factor kLoadLatency{"mla.load_latency"},
    kLoadBytes{"mla.load_bytes"}, kHandOverLatency{"mla.hand_over_latency"};
static constexpr Factor kOwnFactor{"mla.own_factor"};

static constexpr Factor kFewRowsFactor{"mla.few_rows_factor"};
static constexpr Factor kFewRows{"mla.few_rows"};
/// Scales the time of many tiles with more than kFewRows rows, up to 32, whose
/// keys TMA copies; the other factor is for few such tiles and cp.async.
static constexpr Factor kMiddleRowsFactor{"mla.middle_rows_factor"};
static constexpr Factor kFewCopiedRowsFactor{"mla.few_copied_rows_factor"};

static constexpr Factor kCopiedWidenedFactor{"mla.copied_widened_factor"};

/// What scores in a warpgroup of their own change beside what their clocks and
/// DRAM's time say.
static double getOwnFactor(const ProblemFacts &facts, MlaPlanAttr plan) {
  int64_t rows = countLatentRows(facts);
  if (facts.hasNarrowKeys())
    return loadsLatentByTma(facts, plan) ? 1 : kCopiedWidenedFactor;
  if (rows > 32)
    return kOwnFactor;
  bool isOneRun = countRuns(facts) <= 1;
  if (double(rows) <= kFewRows)
    return kFewRowsFactor;
  if (!loadsLatentByTma(facts, plan))
    return isOneRun ? kFewRowsFactor : kFewCopiedRowsFactor;
  return isOneRun ? kMiddleRowsFactor : 1;
}

static constexpr Factor kHeldFactor{"mla.held_factor"},
    kHeldAloneFactor{"mla.held_alone_factor"};

static constexpr Factor kWidenedOwnFactor{"mla.widened_own_factor"};

static constexpr Factor kWidenedTileLatency{"mla.widened_tile_latency"};

/// Sets what a block takes where scores have a warpgroup of their own: each
/// slot goes through loads, scores, softmax and results, one after the other,
/// and the slots through these beside each other.
static void setOwnClocks(PlanEstimate &estimate, const CopiedExtents &extents,
                         MlaPlanAttr plan, const TargetRow &target) {
  double rows = plan.getBlockM(), keys = plan.getBlockN();
  estimate.tensorClocks = 2 * rows * keys *
                          (extents.keyColumns + extents.valueColumns) /
                          target.tensorFlopF16;
  estimate.expClocks = rows * keys / target.expPerClock;
  double results = keys * extents.valueColumns * 2 + 2 * rows * keys * 4;
  estimate.sharedClocks = (extents.qBytes + 2 * extents.kBytes + results) /
                          target.sharedBytesPerClock;
  double load = kLoadLatency + extents.kBytes / kLoadBytes;
  if (extents.widensKeys) {
    // Shared memory is busy for three quarters of a block: keys of 8 bits are
    // written and read, and so are widened ones, which results read once more.
    double wide = keys * extents.keyColumns * 2;
    estimate.sharedClocks =
        (extents.qBytes + 2 * wide + 2 * extents.kBytes + results) /
        target.sharedBytesPerClock;
    estimate.blockClocks =
        std::max(estimate.sharedClocks * kWidenedOwnFactor, load);
    return;
  }
  // The second half of what is handed on in halves is computed under the
  // products of the first one.
  double softmax = estimate.expClocks;
  if (plan.getSoftmax() == SoftmaxPolicy::Lagged)
    softmax /= 2;
  double turn = load + estimate.tensorClocks + softmax + kBlockLatency +
                3 * kHandOverLatency;
  estimate.blockClocks = std::max({estimate.tensorClocks, estimate.sharedClocks,
                                   load, turn / plan.getStages()});
}

bool MlaModel::isExpectedToSpill(const ProblemFacts &facts,
                                 PlanAttrInterface planAttr,
                                 const TargetRow &target) const {
  auto plan = cast<MlaPlanAttr>(planAttr);
  CopiedExtents extents(facts, plan);
  KnownSums known;
  known.fillsTiles = fillsTiles(facts, plan);
  known.renewsEntry = renewsEntry(facts, plan);
  known.loadsByTma = loadsLatentByTma(facts, plan);
  known.rows = countLatentRows(facts);
  known.packedHeads = getPackedHeads(facts, plan);
  return expectsSpills(
      {facts, plan, target, int64_t(plan.getBlockN()), &extents, known}, plan,
      plan.getCtasPerSm());
}

/// Returns what equal runs of all keys are to their CTAs: a batch of one run
/// each.
static ProblemFacts getEqualRuns(const ProblemFacts &facts, int64_t runs) {
  ProblemFacts equal = facts;
  equal.batch = runs;
  if (!ShapedType::isDynamic(facts.keys))
    equal.keys = llvm::divideCeil(facts.batch * facts.keys, runs);
  equal.kvSplits = 1;
  return equal;
}

PlanEstimate MlaModel::estimate(const ProblemFacts &facts,
                                PlanAttrInterface planAttr,
                                const TargetRow &target) const {
  auto plan = cast<MlaPlanAttr>(planAttr);
  if (int64_t runs = plan.getDealtRuns()) {
    MlaPlanAttr::Parameters parameters = plan.getParameters();
    parameters.dealtRuns = 0;
    PlanEstimate equal =
        estimate(getEqualRuns(facts, runs),
                 MlaPlanAttr::get(plan.getContext(), parameters), target);
    // Sequences that begin later in a run.
    equal.microseconds +=
        equal.tileClocks * double(facts.batch) / double(runs) / target.clockMHz;
    return equal;
  }
  CopiedPlan copied(getUnheldPlan(plan));
  CopiedExtents extents(facts, copied);
  PlanEstimate estimate =
      estimateResources(facts, extents, copied, plan.getCtasPerSm(), target);
  // The k-steps of a product add to one accumulator after the other.
  double chain = kProductLatency * extents.keyColumns / 16.0;
  double products =
      std::max(chain, estimate.tensorClocks * extents.keyColumns /
                          (extents.keyColumns + extents.valueColumns)) +
      estimate.tensorClocks / 2;
  if (plan.getWgmma())
    products = setWgmmaClocks(estimate, extents, plan, target);
  bool isOwn = plan.getScore() == ScoreWork::Own;
  double busiest = std::max({estimate.tensorClocks, estimate.expClocks,
                             estimate.issueClocks, estimate.sharedClocks});
  double serial = products + estimate.expClocks + kBlockLatency;
  double ctas = plan.getCtasPerSm();
  double unhidden =
      kUnhiddenShare + (plan.getStages() == 1 ? kOneSlotShare : 0);
  estimate.blockClocks =
      std::max(busiest * (1 + unhidden / ctas), serial / ctas);
  if (extents.widensKeys && !isOwn)
    estimate.blockClocks = std::max(getWidenedClocks(estimate, copied, ctas),
                                    serial / (ctas * copied.getRowWarps()));
  estimate.sharedBytes = getMlaSharedBytes(facts, plan);
  if (isOwn)
    setOwnClocks(estimate, extents, plan, target);
  // The next tile's keys are loaded while results are stored.
  estimate.tileClocks = kTileLatency / (isOwn ? 2 : ctas);
  if (isOwn && extents.widensKeys)
    estimate.tileClocks = kWidenedTileLatency;
  estimate.waves = estimate.tiles / (double(target.smCount) * ctas);
  double clocks =
      std::ceil(estimate.waves) * ctas *
      (estimate.tileClocks + std::ceil(estimate.blocks) * estimate.blockClocks);
  estimate.microseconds = clocks / target.clockMHz;
  // A slot that is widened is filled anew at once.
  if (isOwn && extents.widensKeys)
    addDramTime(estimate, facts, plan.getBlockN(), extents.kBytes, target,
                countRuns(facts, copied));
  else
    addDramTime(estimate, facts, copied, target);
  if (isOwn)
    estimate.microseconds *= getOwnFactor(facts, plan);
  if (isOwn && plan.getQInRegs())
    estimate.microseconds *= countLatentRows(facts) > plan.getBlockM()
                                 ? kHeldFactor
                                 : kHeldAloneFactor;
  if (plan.getStages() == 1 && plan.getBlockM() == 16 &&
      plan.getBlockN() >= 64 && getBoxRows(facts, plan.getBlockN()) > 1)
    estimate.microseconds *= kOneSlotFactor;
  bool isSmall = plan.getBlockM() == 16 && plan.getBlockN() <= 16;
  if (extents.widensKeys && plan.getBlockN() <= 32)
    isSmall = plan.getBlockM() == 16 || copied.gathersProbabilities();
  if (!plan.getWgmma() && isSmall)
    estimate.microseconds *= kSmallBlocksFactor;
  if (plan.getCtasPerSm() == 1 && !plan.getWgmma() &&
      (!extents.widensKeys || plan.getWarpsM() == 1))
    estimate.microseconds *= kAloneFactor;
  return estimate;
}
