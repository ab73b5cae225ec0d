//===- MlaPlan.cpp - Plans of mla: legality and parameters ----------------===//

#include "../Copied/CopiedChecks.h"
#include "../Copied/CopiedExtents.h"
#include "../Copied/CopiedKernel.h"
#include "../Copied/GridTiles.h"
#include "../Tma/RingFacts.h"
#include "../Tma/TileWalk.h"
#include "Mla.h"
#include "MlaKernel.h"
#include "attn/Schedule/Core/MergedCombine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

static StringRef getName() { return MlaPlanAttr::getSyntax().schedule; }

/// Most columns of the keys: those of the models that there are, and some more.
static constexpr int64_t kMostColumns = 640;

int64_t attn::countLatentRows(const ProblemFacts &facts) {
  int64_t queries = ShapedType::isDynamic(facts.queries)
                        ? 1
                        : std::max<int64_t>(1, facts.queries);
  return queries * getAssumedExtent(facts.heads, kAssumedHeads);
}

/// 8-bit latent columns, of which a panel in shared memory shares a scale, and
/// rotated ones of 16 bits beside scales, of 8 without.
static llvm::Error checkNarrowKeys(llvm::StringRef schedule,
                                   const ProblemFacts &facts) {
  if (facts.getRopeColumns() != 0 && bool(facts.kRope) != bool(facts.kScales))
    return makeUnsupported(
        schedule, llvm::formatv("8-bit keys with {0} alone, expected rotated "
                                "columns of their own ('rope') and scales of "
                                "rows ('scales'), or neither",
                                facts.kRope ? "'rope'" : "'scales'"));
  if (facts.kScales && facts.scaleGroup != kGroupColumns)
    return makeUnsupported(
        schedule, llvm::formatv("scales of {0} columns, expected one for each "
                                "{1}",
                                facts.scaleGroup, kGroupColumns));
  if (facts.valueDim % kGroupColumns != 0)
    return makeUnsupported(
        schedule, llvm::formatv("a value dimension of {0} of 8-bit keys, "
                                "expected a multiple of {1}",
                                facts.valueDim, kGroupColumns));
  int64_t step = facts.kRope ? 16 : 32;
  if (facts.getRopeColumns() % step != 0)
    return makeUnsupported(
        schedule, llvm::formatv("{0} rotated columns beside 8-bit ones, "
                                "expected a multiple of {1}",
                                facts.getRopeColumns(), step));
  return llvm::Error::success();
}

static llvm::Error isApplicable(const ProblemFacts &facts, const TargetRow &) {
  if (!facts.isLatent())
    return makeLacking(getName(), "values that are not columns of the keys, "
                                  "expected the latent form ('rope_dim')");
  Parts parts;
  parts.latent = parts.narrowKeys = parts.rowScales = true;
  parts.mostColumns = kMostColumns;
  if (llvm::Error error = checkCopied(getName(), facts, parts))
    return error;
  if (facts.headDim % 16 != 0)
    return makeUnsupported(
        getName(), llvm::formatv("a head dimension of {0} with 'rope_dim', "
                                 "expected a multiple of 16",
                                 facts.headDim));
  if (facts.hasNarrowKeys())
    return checkNarrowKeys(getName(), facts);
  if (facts.kRope) {
    if (facts.getRopeColumns() % 16 == 0)
      return llvm::Error::success();
    return makeUnsupported(getName(),
                           llvm::formatv("{0} rotated columns apart ('rope'), "
                                         "expected a multiple of 16",
                                         facts.getRopeColumns()));
  }
  // Values are whole panels of the keys in shared memory.
  unsigned bits = facts.elementType.getIntOrFloatBitWidth();
  int64_t panel = SharedLayout::chooseSpan(facts.headDim, bits) * 8 / bits;
  if (facts.valueDim % panel != 0)
    return makeUnsupported(
        getName(),
        llvm::formatv("a value dimension of {0} with a head dimension of {1}, "
                      "expected a multiple of {2}",
                      facts.valueDim, facts.headDim, panel));
  return llvm::Error::success();
}

MlaPlanAttr attn::getUnheldPlan(MlaPlanAttr plan) {
  MlaPlanAttr::Parameters parameters = plan.getParameters();
  if (plan.getScore() == ScoreWork::Own)
    parameters.qInRegs = false;
  return MlaPlanAttr::get(plan.getContext(), parameters);
}

/// Returns the bytes that warps which divide a row's columns exchange to find
/// its units.
static int64_t getUnitBytes(MlaPlanAttr plan) {
  bool exchanges = plan.getScore() == ScoreWork::Own && plan.getWarpsN() > 1;
  return exchanges ? plan.getBlockM() * plan.getWarpsN() * kRowOwners * 4 : 0;
}

namespace {
/// Bytes of the slots of the keys, and mbarriers of their rings, of plans whose
/// scores have a warpgroup.
struct LatentSlots {
  int64_t rawBytes = 0, wideBytes = 0, barriers = 0;
};
} // namespace

static LatentSlots getLatentSlots(const ProblemFacts &facts, MlaPlanAttr plan) {
  LatentSlots sum;
  int64_t bytes = facts.elementType.getIntOrFloatBitWidth() / 8;
  int64_t slices = countLatentSlices(facts, plan);
  auto add = [&](int64_t first, int64_t columns, bool isValue) {
    int64_t stages =
        plan.getStages() + (hasSpareSlot(facts, first, isValue) ? 1 : 0);
    int64_t elements = plan.getBlockN() * columns;
    sum.wideBytes += stages * elements * bytes;
    sum.barriers += (isValue ? 3 : 2) * stages;
    if (!facts.hasNarrowKeys())
      return;
    sum.rawBytes += countRawSlots(isValue) * elements;
    sum.barriers += 2 * countRawSlots(isValue);
  };
  for (int64_t i = 0; i < slices; ++i)
    add(i * facts.valueDim / slices, facts.valueDim / slices, /*isValue=*/true);
  add(facts.valueDim, llvm::alignTo(facts.headDim, 16) - facts.valueDim,
      /*isValue=*/false);
  return sum;
}

ResourceSum attn::getMlaSharedBytes(const ProblemFacts &facts,
                                    MlaPlanAttr plan) {
  if (plan.getScore() != ScoreWork::Own)
    return CopiedExtents(facts, plan).getSharedBytes(plan);
  // Queries in registers leave their bytes to another slot for keys.
  MlaPlanAttr unheld = getUnheldPlan(plan);
  CopiedExtents extents(facts, unheld);
  int64_t bytes = facts.elementType.getIntOrFloatBitWidth() / 8;
  LatentSlots slots = getLatentSlots(facts, plan);
  ResourceSum sum;
  if (facts.hasNarrowKeys()) {
    sum.add("q", extents.qBytes);
    sum.add("k", slots.rawBytes);
    sum.add("k_wide", slots.wideBytes);
  } else {
    sum = extents.getSharedBytes(unheld);
  }
  sum.add("p", plan.getBlockM() * plan.getBlockN() * bytes);
  sum.add("factor", plan.getBlockM() * 4);
  sum.add("scale", plan.getBlockM() * 4);
  if (facts.hasPartialScales())
    sum.add("units", getUnitBytes(plan));
  // Mbarriers: three for each slot of values, two for each one of the other
  // columns and of keys that are not widened yet, of p and scale, and of each
  // slice of q that TMA copies, or of q; one more for p where it is handed over
  // in halves.
  int64_t slices = countLatentSlices(facts, plan);
  bool isHeld = holdsLatentQueries(facts, plan);
  int64_t queries =
      loadsLatentByTma(facts, plan) && loadsQueriesByTma(facts, plan)
          ? slices + 1 - isHeld
          : 1;
  bool inHalves = plan.getSoftmax() == SoftmaxPolicy::Lagged;
  sum.add("barriers", 8,
          slots.barriers + 3 * isHeld + 4 + inHalves + 2 * queries);
  return sum;
}

int64_t attn::countLatentThreads(const ProblemFacts &facts, MlaPlanAttr plan) {
  bool widens = facts.hasNarrowKeys() && plan.getScore() == ScoreWork::Own;
  return plan.getThreads() + (widens ? 32 * kWarpgroupWarps : 0);
}

bool attn::hasSpareSlot(const ProblemFacts &facts, int64_t first,
                        bool isValue) {
  return facts.hasNarrowKeys() && isValue && first == 0;
}

bool attn::loadsLatentByTma(const ProblemFacts &facts, MlaPlanAttr plan) {
  constexpr int64_t kMostBoxes = 2;
  bool hasManyBoxes =
      facts.hasNarrowKeys() &&
      plan.getBlockN() > kMostBoxes * getBoxRows(facts, plan.getBlockN());
  // The number of tiles tells how queries are loaded.
  return !ShapedType::isDynamic(facts.batch) && !findUnmappable(facts) &&
         !hasManyBoxes;
}

bool attn::loadsQueriesByTma(const ProblemFacts &facts, MlaPlanAttr plan) {
  int64_t group = getPackedHeads(facts, plan);
  return !ShapedType::isDynamic(group) &&
         !ShapedType::isDynamic(facts.queries) &&
         (plan.getBlockM() % group == 0 || group % plan.getBlockM() == 0);
}

bool attn::holdsLatentQueries(const ProblemFacts &facts, MlaPlanAttr plan) {
  return plan.getQInRegs() && plan.getScore() == ScoreWork::Own;
}

int64_t attn::countLatentSlices(const ProblemFacts &facts, MlaPlanAttr plan) {
  // Each warpgroup has 16 columns or more of each slice.
  return facts.valueDim < 32 * plan.getWarpsN() ? 1 : 2;
}

bool attn::fillsTiles(const ProblemFacts &facts, MlaPlanAttr plan) {
  return !ShapedType::isDynamic(facts.heads) &&
         !ShapedType::isDynamic(facts.queries) &&
         countLatentRows(facts) % plan.getBlockM() == 0;
}

bool attn::renewsEntry(const ProblemFacts &facts, MlaPlanAttr plan) {
  return facts.hasNarrowKeys() && !ShapedType::isDynamic(facts.heads) &&
         !ShapedType::isDynamic(facts.queries) && countLatentRows(facts) > 32 &&
         !fillsTiles(facts, plan);
}

bool attn::leavesInSlices(const ProblemFacts &facts, MlaPlanAttr plan) {
  return countLatentSlices(facts, plan) > 1 && plan.getCluster() == 1 &&
         (fillsTiles(facts, plan) || facts.outType.isF32());
}

static int64_t countUnitGroups(const ProblemFacts &facts, MlaPlanAttr plan) {
  bool isSliced =
      plan.getScore() == ScoreWork::Own && leavesInSlices(facts, plan);
  return isSliced ? countLatentSlices(facts, plan) : 1;
}

/// Names the plan with another form of the scores that fits the chip's shared
/// memory; empty if there is none.
static std::string getAlternatives(const ProblemFacts &facts, MlaPlanAttr plan,
                                   const TargetRow &target) {
  std::string text;
  for (int64_t blockN : {plan.getBlockN(), plan.getBlockN() / 2, int64_t(16)})
    for (ScoreWork score : {ScoreWork::Shard, ScoreWork::Twice})
      for (int64_t stages : {int64_t(2), int64_t(plan.getWgmma() ? 2 : 1)}) {
        MlaPlanAttr::Parameters other = plan.getParameters();
        other.blockN = blockN;
        other.score = score;
        other.stages = stages;
        other.cluster = 1;
        other.dealtRuns = 0;
        other.qInRegs &= !other.wgmma;
        if (other.softmax == SoftmaxPolicy::Lagged)
          other.softmax = SoftmaxPolicy::Optimistic;
        if (blockN < 16 || blockN % 16 != 0 ||
            (score == ScoreWork::Shard &&
             (other.wgmma || blockN % (8 * other.warpsN) != 0)))
          continue;
        auto attr = MlaPlanAttr::get(plan.getContext(), other);
        ResourceSum shared = getMlaSharedBytes(facts, attr);
        if (shared.getTotal() <= target.sharedBytesPerCTA && text.empty())
          text = llvm::formatv(
              "; block_n = {0}, stages = {1} and score = {2} take {3}", blockN,
              stages, stringifyScoreWork(score), shared.str());
      }
  return text;
}

/// Checks what only plans need whose scores have a warpgroup of their own.
static llvm::Error checkOwnScores(const ProblemFacts &facts, MlaPlanAttr plan) {
  if (facts.initLse)
    return makeUnsupported(plan.getSchedule(),
                           "a state to go on from ('init') with score = own");
  if (plan.getEpilogue() == EpilogueKind::Staged)
    return llvm::createStringError(
        "expected the epilogue 'auto', 'direct' or 'shuffled' with score = "
        "own, got 'staged'");
  if (plan.getCtasPerSm() != 1)
    return llvm::createStringError(
        llvm::formatv("expected ctas_per_sm = 1 with score = own, got {0}",
                      plan.getCtasPerSm()));
  if (plan.getQInRegs() &&
      (plan.getBlockN() != plan.getBlockM() || !loadsLatentByTma(facts, plan) ||
       !loadsQueriesByTma(facts, plan)))
    return llvm::createStringError(
        "expected block_n = block_m, and keys and queries that TMA copies, "
        "with q_in_regs and score = own");
  if (plan.getSoftmax() == SoftmaxPolicy::Lagged && plan.getBlockN() % 32 != 0)
    return llvm::createStringError(
        llvm::formatv("expected block_n to be a multiple of 32 with softmax = "
                      "lagged, got {0}",
                      plan.getBlockN()));
  if (plan.getCombine() != CombineWay::Kernel)
    return llvm::createStringError(
        "expected combine = kernel with score = own, got launch");
  if (facts.cuSeqlensQ)
    return llvm::createStringError(
        "expected queries of one length with score = own, got packed ones");
  if (ShapedType::isDynamic(facts.batch))
    return llvm::createStringError(
        "expected a static batch with score = own, got a dynamic one");
  return llvm::Error::success();
}

/// Checks what only plans need whose CTAs copy keys for each other.
static llvm::Error checkCluster(const ProblemFacts &facts, MlaPlanAttr plan) {
  int64_t ctas = plan.getCluster();
  if (ctas == 1)
    return llvm::Error::success();
  if (plan.getQInRegs())
    return llvm::createStringError(llvm::formatv(
        "expected q_in_regs = false with cluster = {0}, got true", ctas));
  int64_t rows = ctas * plan.getBlockM();
  int64_t group = facts.getGroup();
  if (ShapedType::isDynamic(group) || !plan.getPackHeads() || group % rows != 0)
    return llvm::createStringError(llvm::formatv(
        "expected a multiple of {0} heads with cluster = {1}, got {2}", rows,
        ctas,
        ShapedType::isDynamic(group) ? std::string("a dynamic number")
                                     : std::to_string(group)));
  int64_t boxRows = getBoxRows(facts, plan.getBlockN());
  if (!facts.isPaged() || boxRows != plan.getBlockN())
    return llvm::createStringError(llvm::formatv(
        "expected pages of a multiple of block_n = {0} keys with cluster = "
        "{1}, got {2}",
        plan.getBlockN(), ctas,
        facts.isPaged() ? "copies of " + std::to_string(boxRows)
                        : std::string("none")));
  return llvm::Error::success();
}

/// Checks what only plans need that widen 8-bit keys in shared memory.
static llvm::Error checkWidenedPlan(const ProblemFacts &facts,
                                    MlaPlanAttr plan) {
  // Keys times their scales, rounded to f16, are an error of 2e-2 of the LSE
  // where scores are 40; to multiply f32 scores, each group of columns has sums
  // of its own, and the warpgroup of the scores no registers for these.
  if (facts.kScales)
    return llvm::createStringError(
        "expected 8-bit keys without scales of rows with score = own");
  if (plan.getQInRegs())
    return llvm::createStringError(
        "expected q_in_regs = false with 8-bit keys and score = own, got true");
  if (plan.getCluster() != 1)
    return llvm::createStringError(llvm::formatv(
        "expected cluster = 1 with 8-bit keys and score = own, got {0}",
        plan.getCluster()));
  return llvm::Error::success();
}

/// Checks what only plans for 8-bit keys need: fragments are made by mma.sync,
/// of queries in registers, and pairs of columns for each warp.
static llvm::Error checkNarrowPlan(const ProblemFacts &facts, MlaPlanAttr plan,
                                   int64_t group) {
  if (plan.getScore() == ScoreWork::Own)
    return checkWidenedPlan(facts, plan);
  if (plan.getWgmma())
    return llvm::createStringError(
        "expected score = own with 8-bit keys and wgmma, got " +
        stringifyScoreWork(plan.getScore()));
  if (!plan.getQInRegs())
    return llvm::createStringError(
        "expected q_in_regs with 8-bit keys beside 16-bit queries");
  // Each group of columns has probabilities of its own then.
  if (facts.kScales && CopiedPlan(plan).gathersProbabilities())
    return llvm::createStringError(
        "expected softmax = optimistic or threshold with score = shard and "
        "scales of rows, got exact");
  if (group % (16 * plan.getWarpsN()) != 0 || plan.getBlockN() % 16 != 0)
    return llvm::createStringError(llvm::formatv(
        "expected up to {0} warps_n and a block_n of a multiple of 16 with "
        "8-bit keys, got {1} and {2}",
        group / 16, plan.getWarpsN(), plan.getBlockN()));
  return llvm::Error::success();
}

int64_t attn::countSequenceTiles(const ProblemFacts &facts, MlaPlanAttr plan) {
  return llvm::divideCeil(countLatentRows(facts),
                          plan.getCluster() * plan.getBlockM());
}

/// Checks what only plans need whose CTAs have equal runs of all keys.
static llvm::Error checkEqualRuns(const ProblemFacts &facts, MlaPlanAttr plan) {
  int64_t runs = plan.getDealtRuns();
  if (runs == 0)
    return llvm::Error::success();
  bool isKnown =
      llvm::none_of(ArrayRef({facts.batch, facts.heads, facts.queries}),
                    ShapedType::isDynamic);
  if (!isKnown || !facts.hasLengths() || facts.batch < 1 ||
      facts.batch > PlanPiecesOp::kMostSequences)
    return llvm::createStringError(llvm::formatv(
        "expected known heads and queries, and lengths of a known number of "
        "sequences up to {0} for dealt_runs",
        PlanPiecesOp::kMostSequences));
  if (!facts.kvSplits || facts.runKeys)
    return llvm::createStringError(
        "expected kv_splits without run_keys for dealt_runs");
  int64_t records = PlanPiecesOp::countRecords(runs, facts.batch);
  if (facts.kvSplits * facts.batch < records)
    return llvm::createStringError(llvm::formatv(
        "expected kv_splits of at least {0}, memory for the pieces that {1} "
        "dealt_runs have of {2} sequences, got {3}",
        llvm::divideCeil(records, facts.batch), runs, facts.batch,
        facts.kvSplits));
  if (facts.heads > 1 && !plan.getPackHeads())
    return llvm::createStringError(
        "expected pack_heads with dealt_runs, got false");
  CombineOp combine = findMergedCombine(facts.op);
  if (!combine || combine.getOScales())
    return llvm::createStringError(
        "expected partial results in memory of memref.alloc, which one "
        "attn.combine merges to results without scales, for dealt_runs");
  return llvm::Error::success();
}

static llvm::Error checkPlan(const ProblemFacts &facts, MlaPlanAttr plan,
                             const TargetRow &target) {
  if (facts.valueDim % (8 * plan.getWarpsN()) != 0)
    return llvm::createStringError(llvm::formatv(
        "expected warps_n to divide the value dimension's {0} groups of 8 "
        "columns, got {1}",
        facts.valueDim / 8, plan.getWarpsN()));
  if (plan.getWgmma() && !target.has(Capability::Wgmma))
    return llvm::createStringError(
        llvm::formatv("{0} has no wgmma, expected {1}", target.chip,
                      getCapabilityChips(Capability::Wgmma)));
  if (plan.getWgmma() && !llvm::isPowerOf2_64(facts.valueDim))
    return llvm::createStringError(llvm::formatv(
        "expected a power of two as value dimension with wgmma, got {0}",
        facts.valueDim));
  if (facts.hasNarrowKeys())
    if (llvm::Error error = checkNarrowPlan(facts, plan, kGroupColumns))
      return error;
  if (plan.getScore() == ScoreWork::Own)
    if (llvm::Error error = checkOwnScores(facts, plan))
      return error;
  if (llvm::Error error = checkCluster(facts, plan))
    return error;
  if (llvm::Error error = checkEqualRuns(facts, plan))
    return error;
  ResourceSum shared = getMlaSharedBytes(facts, plan);
  // Runs are planned with partial results of f32, and may be of f16 then.
  if (areResultsPartial(facts) && !facts.hasPartialScales())
    shared.add("units", getUnitBytes(plan));
  if (shared.getTotal() > target.sharedBytesPerCTA)
    return llvm::createStringError(
        llvm::formatv("does not fit: shared memory {0} exceeds {1} on {2}{3}",
                      shared.str(), target.sharedBytesPerCTA, target.chip,
                      getAlternatives(facts, plan, target)));
  if (llvm::Error error = checkCopiedPlan(getName(), facts, plan, target))
    return error;
  return checkCTAsFit(plan.getCtasPerSm(), shared, target);
}

static KernelShape getKernelShape(const ProblemFacts &facts, MlaPlanAttr plan,
                                  const TargetRow &target) {
  KernelShape shape;
  shape.threads = countLatentThreads(facts, plan);
  // One CTA for each SM of the target's board. They walk all tiles, so any
  // number is right.
  if (plan.getScore() == ScoreWork::Own) {
    shape.cluster = plan.getCluster();
    shape.releasesNext = shape.fillsSMs = true;
    shape.grid = {int64_t(target.getClusteredSMs(shape.cluster)), 1, 1};
    shape.tiles = countDealtTiles(facts, getTilePlan(facts, plan));
    if (int64_t runs = plan.getDealtRuns()) {
      shape.equalRuns = {runs, plan.getBlockN(), plan.getStartBlocks(),
                         plan.getPieceBlocks()};
      shape.grid[0] = runs * countSequenceTiles(facts, plan) * shape.cluster;
    }
    return shape;
  }
  shape.grid = getTileGrid(facts, plan);
  shape.mergesRuns = mergesRuns(facts, plan);
  shape.warps = {{plan.getWarpsM(), plan.getWarpsN()}};
  shape.ctasPerSM = plan.getCtasPerSm();
  return shape;
}

static LogicalResult emit(KernelContext &context, MlaPlanAttr plan) {
  if (plan.getScore() == ScoreWork::Own)
    return MlaKernel(context, plan).run();
  return emitCopied(context, plan);
}

static std::string describeSums(const ProblemFacts &facts, MlaPlanAttr plan) {
  // Partitions have fragments of other forms.
  return plan.getScore() == ScoreWork::Own ? ""
                                           : describeCopiedSums(facts, plan);
}

const Schedule &attn::getMlaSchedule() {
  static const ProjectSchedule<MlaPlanAttr> schedule(
      {isApplicable, checkPlan, getKernelShape, emit,
       /*completeParameters=*/nullptr, countUnitGroups, describeSums});
  return schedule;
}
