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
#include "../Seen/PtxasData.h"
#include "CopiedCost.h"
#include "Models.h"

using namespace mlir;
using namespace mlir::attn;

/// Clocks from a CTA's start to its first block, and from its last one to its
/// end: those of split_q, whose results leave in the same way.
static constexpr double kTileLatency = 6400;
/// Clocks of a block in which all warps wait: for the copies' barrier, the
/// first fragments, the exchange.
static constexpr double kBlockLatency = 500;
/// Clocks from one mma.sync to the next one that adds to its result.
static constexpr double kProductLatency = 33;

/// The share of the busiest resource's clocks in which a CTA alone on its SM
/// waits for something else: for fragments, and with one slot for copies. Of 17
/// plans on an H200 those with one CTA took 1.2 to 1.4 times the busiest
/// resource's clocks, those with two 1.1 times.
static constexpr double kUnhiddenShare = 0.25, kOneSlotShare = 0.15;

/// What a plan of mma.sync with one slot of 64 keys takes longer, which is not
/// filled while they are multiplied, than one with two of 32: 1.001 to 1.007
/// times the time of 16 heads (H100). Of 32 rows more blocks are more to
/// compute, where a page is a key more addresses.
static constexpr double kOneSlotFactor = 1.008;

/// What blocks of 16 keys take longer than those of 32, of which there are half
/// as many: 1.02 times the time with pages of 64, 1.05 with pages of a key (16
/// heads, H100); and of 8-bit keys those of 32 than those of 64, 1.01 to 1.035,
/// where warps exchange probabilities up to 1.15.
static constexpr double kSmallBlocksFactor = 1.02;

/// What a CTA of mma.sync takes longer alone on its SM, whose copies nobody
/// starts while it computes: 1.04 to 1.24 times the time of two CTAs with the
/// same tile (16 and 32 rows, six plans on an H200).
static constexpr double kAloneFactor = 1.1;

/// What a block of 8-bit keys takes longer than the clocks of tensor cores and
/// issue, more where each warp has all of the softmax, and than those of shared
/// memory, as its fragments are made one after the other, beside
/// `kBlockLatency` for each CTA of an SM; with one slot, which is not filled
/// meanwhile; and at most in a CTA alone on its SM, where all warps wait for
/// the same copies: groups of rows do not wait for each other. Ten plans of 16,
/// 32 and 64 rows took 0.86 to 1.16 times what this says (H100, 1755 MHz).
static constexpr double kWidenedFactor = 1.6, kWidenedCopiesFactor = 1.75,
                        kWidenedSharedFactor = 1.15, kWidenedSlotFactor = 1.1,
                        kLoneShare = 0.8;

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

/// Clocks from the moment a slot is free until its first keys have come, and
/// bytes of the others in a clock; clocks from one role's hand-over to the
/// other one's first instruction, of which a block has three. With one ring
/// that cp.async filled, a block's copies on the way at a time, blocks of 64
/// keys took 3530 clocks with 128 heads and blocks of 32 keys 2282 (H200);
/// slices by TMA take 0.95 to 0.98 of that, which is not counted.
static constexpr double kLoadLatency = 1030, kLoadBytes = 29.5,
                        kHandOverLatency = 100;
/// What DRAM's time in whole waves of tiles is too much for CTAs that load the
/// next tile's keys before they store results: 32 heads took 0.92 of the time
/// of the best plan without (768 sequences of 1024 keys, H200).
static constexpr double kOwnFactor = 0.92;

/// What many tiles of up to 16 rows take longer than with two CTAs of mma.sync:
/// 1.03 to 1.05 times the time (16 heads, H100 and H200), and of up to 32 in
/// pages of a key, which cp.async copies: 1.04 and 1.02. Few tiles of up to 16
/// rows, in half as many runs, 1.01 to 1.10 in seven batches, with 20 and 32
/// rows 0.93 to 0.97 (H100).
static constexpr double kFewRowsFactor = 1.04;
static constexpr int64_t kFewRows = 16;
/// The same of many tiles of 17 to 32 rows whose keys TMA copies: 0.99 to 1.02
/// times the time on H100s (17 to 32 heads), 0.88 to 0.93 on H200s (20 to 32),
/// whose DRAM does not hide the fragments. The same PTX runs on both.
static constexpr double kMiddleRowsFactor = 0.98;
/// The same of few tiles of 17 to 32 rows whose keys cp.async copies: 1.003 to
/// 1.007 times the time (H100), which is less than between numbers of runs.
static constexpr double kFewCopiedRowsFactor = 1.02;

/// What widened keys take longer that cp.async copies: 1.11 times the time in
/// pages of 16, 1.07 to 1.33 times in pages of a key (H100).
static constexpr double kCopiedWidenedFactor = 1.15;

/// What scores in a warpgroup of their own change beside what their clocks and
/// DRAM's time say.
static double getOwnFactor(const ProblemFacts &facts, MlaPlanAttr plan) {
  int64_t rows = countLatentRows(facts);
  if (facts.hasNarrowKeys())
    return loadsLatentByTma(facts, plan) ? 1 : kCopiedWidenedFactor;
  if (rows > 32)
    return kOwnFactor;
  bool isOneRun = countRuns(facts) <= 1;
  if (rows <= kFewRows)
    return kFewRowsFactor;
  if (!loadsLatentByTma(facts, plan))
    return isOneRun ? kFewRowsFactor : kFewCopiedRowsFactor;
  return isOneRun ? kMiddleRowsFactor : 1;
}

/// What scores that hold queries in registers change: where several tiles read
/// a sequence's keys, so that products decide, and where one does, whose
/// queries are not on their way while the tile before them is computed (H100).
static constexpr double kHeldFactor = 0.98, kHeldAloneFactor = 1.01;

/// What a block of widened keys takes longer than shared memory is busy: four
/// kernels of 64 and 128 heads took 1.2 to 1.31 times as long (H100).
static constexpr double kWidenedOwnFactor = 1.3;

/// Clocks of a tile beside its blocks: queries come when the tile before needs
/// no more of them, and become f16, before its first scores. Four runs of keys
/// in place of two, one tile more, took 11700 clocks more (H100), of which a
/// first tile waits for nobody.
static constexpr double kWidenedTileLatency = 9000;

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
  if (std::optional<bool> spills = PtxasData::getShipped().findSpills(
          {facts, plan, target, int64_t(plan.getBlockN()), &extents, known}))
    return *spills;
  return extents.getRegisters(plan).getTotal() >
         getRegisterLimit(plan.getThreads(), plan.getCtasPerSm(), target);
}

PlanEstimate MlaModel::estimate(const ProblemFacts &facts,
                                PlanAttrInterface planAttr,
                                const TargetRow &target) const {
  auto plan = cast<MlaPlanAttr>(planAttr);
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
