//===- CopiedCost.cpp - What plans on cp.async take -----------------------===//

#include "CopiedCost.h"
#include "../../Schedule/Copied/GridTiles.h"
#include "../../Schedule/Core/CommonChecks.h"
#include "../Facts/BlockCount.h"
#include "attn/Planner/Facts/Factor.h"
#include "attn/Planner/Facts/RegisterLimit.h"
#include "attn/Schedule/Kernel/Scores.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

static constexpr Factor kF16ScoresError{"copied.f16_scores_error"},
    kF16BlockError{"copied.f16_block_error"}, kF16Error{"copied.f16_error"};

static double getErrorFactor(const CopiedPlan &plan) {
  double scores = plan.getScoreSums() == ScoreSums::F16 ? kF16ScoresError : 1;
  switch (plan.getResultSums()) {
  case ResultSums::F32:
    return scores;
  case ResultSums::F16Block:
    return std::max<double>(scores, kF16BlockError);
  case ResultSums::F16:
    return std::max<double>(scores, kF16Error);
  }
  llvm_unreachable("sums of no kind");
}

double attn::setCopiedBlockClocks(PlanEstimate &estimate,
                                  const ProblemFacts &facts,
                                  const CopiedExtents &extents,
                                  const CopiedPlan &plan,
                                  const TargetRow &target) {
  double blockM = plan.getBlockM(), blockN = plan.getBlockN();
  double warps = plan.getWarps();
  double rowGroups = extents.warpRows / 16;
  // Warps that share rows divide the results' columns, and where they exchange
  // scores the products with keys as well; each one has all of the softmax,
  // unless they exchange probabilities.
  double copies = plan.getColumnWarps();
  double scoreCopies = plan.exchangesScores() ? 1 : copies;
  double softmaxCopies = plan.gathersProbabilities() ? 1 : copies;
  double flop = 2 * blockM * blockN *
                (extents.keyColumns * scoreCopies + extents.valueColumns);
  bool isNative = facts.isNarrow() && target.mmaSyncFlopFp8 != 0;
  estimate.tensorClocks =
      flop / (isNative ? target.mmaSyncFlopFp8 : target.mmaSyncFlopF16);
  estimate.errorFactor = getErrorFactor(plan);
  estimate.expClocks = blockM * blockN * softmaxCopies / target.expPerClock;
  // Per warp: one HMMA for 16 x 8 x 16; one ldmatrix.x4 for 16 x 16 of K and V
  // (and Q, which two parts share where their products stand together). For 32
  // elements: scale, exponential, sum and half of a conversion, and where it is
  // needed the maximum. For each part: a vote, or the shuffles of the maximum.
  // Copies of 16 bytes a lane with their addresses; loop, barrier and waits.
  double parts = plan.getParts();
  double ownKeys = blockN * scoreCopies / copies;
  double ownDepth = extents.keyColumns / (plan.dividesDepth() ? copies : 1);
  double mma = rowGroups * (ownKeys / 8) * (extents.keyColumns / 16.0) +
               rowGroups * (extents.ownColumns / 8.0) * (blockN / 16);
  double loads = ownKeys / 16 * extents.keyColumns / 16 +
                 blockN / 16 * extents.ownColumns / 16 +
                 (plan.getQInRegs()
                      ? 0
                      : rowGroups * ownDepth / 16.0 * std::max(1.0, parts - 1));
  // 8-bit latent keys have the queries in memory that registers do not hold.
  if (extents.keepsQueries)
    loads += rowGroups * (extents.keyColumns - extents.heldQueryColumns) / 16.0;
  // An ldmatrix of 8-bit keys and values fetches two steps of 16. Each word
  // that it gives takes two conversions, and one permutation more of values.
  double conversions = 0;
  if (extents.widensKeys) {
    double words = ownKeys / 4 * extents.keyColumns / 32;
    double valueWords = blockN / 4 * extents.ownColumns / 32;
    // Without an instruction it is nine of integers and one product.
    double each = target.has(Capability::Fp8) ? 1 : 10;
    conversions = 2 * each * words + (2 * each + 1) * valueWords;
    loads -= (words + valueWords) / 4;
  }
  // 8-bit operands have as many in one instruction as 16-bit ones in two. Words
  // of values are permuted, and where there is no such instruction all words of
  // both operands become two of f16 at each product.
  if (extents.isNarrow) {
    double instructions = mma / 2;
    conversions = blockN / 4 * extents.ownColumns / 32;
    if (!isNative)
      conversions += 12 * instructions;
    else
      mma = instructions;
    loads /= 2;
  }
  double elements = rowGroups * 16 * blockN / 32 * softmaxCopies / copies;
  bool bets = plan.getSoftmax() == SoftmaxPolicy::Optimistic;
  double softmax = (bets ? 3.5 : 4.5) * elements +
                   parts * (bets ? 8 * rowGroups + 6 : 24 * rowGroups);
  if (plan.getSoftmax() == SoftmaxPolicy::Exact && !plan.gathersProbabilities())
    softmax += parts * rowGroups * 16 * extents.valueColumns / 32.0;
  double blockBytes = extents.kBytes + extents.vBytes;
  double chunks = blockBytes / (16 * 32 * warps);
  double instructions = mma + loads + conversions + softmax + 2 * chunks + 28;
  instructions += getScoreCost(facts).instructions * elements;
  estimate.issueClocks = instructions * warps / target.issuePerClock;
  double sharedBytes = loads * 512 * warps + blockBytes;
  // What is exchanged is written once and read by all that share its row. Of
  // probabilities and the maxima before them only the larger ones count.
  if (plan.exchangesScores())
    sharedBytes += extents.exchangeBytes * (1 + copies);
  estimate.sharedClocks = sharedBytes / target.sharedBytesPerClock;
  return softmax;
}

void attn::countCopiedTiles(PlanEstimate &estimate, const ProblemFacts &facts,
                            const CopiedPlan &plan) {
  double blockM = plan.getBlockM();
  auto [batch, heads, queries, keys] = getTypicalExtents(facts);
  int64_t packed = getPackedHeads(facts, plan);
  int64_t groups = int64_t(batch * heads) / packed;
  int64_t runs = countRuns(facts, plan);
  estimate.tiles =
      groups * int64_t(std::ceil(queries * packed / blockM)) * runs;
  estimate.ctaTiles = plan.getHeadTeams();
  estimate.blocks =
      countRunBlocks(countBlocks(facts, queries, keys,
                                 std::ceil(blockM / packed), plan.getBlockN()),
                     double(runs));
}

bool attn::isBoundByKeys(const ProblemFacts &facts) {
  return facts.isServed() || facts.kvSplits ||
         (!ShapedType::isDynamic(facts.queries) &&
          facts.queries <= kDecodedRows);
}

bool attn::savesTiles(const ProblemFacts &facts, int64_t blockM,
                      int64_t queryRows, int64_t decoded) {
  // The last tile of a head with more queries lacks few of its rows; of some
  // more, packing has to save a sixth of all tiles.
  constexpr int64_t kFewQueries = 128, kSomeQueries = 512;
  int64_t group = facts.getGroup();
  if (ShapedType::isDynamic(group) || group == 1 || group > kPackedHeadsLimit ||
      facts.hasBlockLists() || ShapedType::isDynamic(facts.queries) ||
      facts.queries > kSomeQueries || facts.queries * group <= decoded)
    return false;
  int64_t packed = llvm::divideCeil(facts.queries * queryRows, blockM);
  int64_t apart = group * llvm::divideCeil(facts.queries, blockM);
  return facts.queries <= kFewQueries ? packed < apart : 6 * packed < 5 * apart;
}

int64_t attn::countCTAs(const PlanEstimate &estimate, int64_t registers,
                        const CopiedPlan &plan, const TargetRow &target) {
  int64_t warps = plan.getTeams() * plan.getWarps();
  // Registers are given to warps in units.
  int64_t warpRegisters = llvm::alignTo(
      std::min<int64_t>(registers, target.registersPerThread) * 32,
      target.registerAllocationUnit);
  int64_t byRegisters = target.registersPerSM / (warpRegisters * warps);
  int64_t byShared =
      target.sharedBytesPerSM /
      (estimate.sharedBytes.getTotal() + target.sharedBytesReserved);
  int64_t byThreads = target.maxThreadsPerSM / (warps * 32);
  return std::max<int64_t>(1, std::min({byRegisters, byShared, byThreads,
                                        int64_t(target.maxCTAsPerSM)}));
}

int64_t attn::getRegisterLimit(int64_t threads, int64_t ctasPerSM,
                               const TargetRow &target) {
  return std::min<int64_t>(
      target.registersPerThread,
      llvm::alignDown(target.registersPerSM / (threads * ctasPerSM),
                      target.registerAllocationUnit));
}

int64_t attn::getConvertedRegisters(const ProblemFacts &facts,
                                    const TargetRow &target) {
  static constexpr RegisterLimit kConverted{"copied.converted_registers"};
  return facts.isNarrow() && target.mmaSyncFlopFp8 == 0 ? kConverted : 0;
}

bool attn::expectsSpills(PtxasCase asked, const CopiedPlan &plan,
                         int64_t ctasPerSM) {
  asked.known.registers = asked.copied->getRegisters(plan).getTotal() +
                          getConvertedRegisters(asked.facts, asked.target);
  return PtxasData::getShipped().findSpills(asked).value_or(
      asked.known.registers >
      getRegisterLimit(plan.getThreads(), ctasPerSM, asked.target));
}

PlanEstimate attn::estimateResources(const ProblemFacts &facts,
                                     const CopiedExtents &extents,
                                     const CopiedPlan &plan, int64_t ctasPerSM,
                                     const TargetRow &target) {
  PlanEstimate estimate;
  estimate.sharedBytes = extents.getSharedBytes(plan);
  estimate.registers = extents.getRegisters(plan);
  estimate.ctasPerSM = ctasPerSM;
  countCopiedTiles(estimate, facts, plan);
  setCopiedBlockClocks(estimate, facts, extents, plan, target);
  return estimate;
}

//===----------------------------------------------------------------------===//
// DRAM
//===----------------------------------------------------------------------===//

static constexpr Factor kDramShare{"copied.dram_share"};
/// The share of the nominal rate of L2 at which tiles read keys that others
/// have brought there.
static constexpr Factor kL2Share{"copied.l2_share"};
/// Microseconds from a copy's start to its end.
static constexpr Factor kCopyLatency{"copied.copy_latency"};
static constexpr Factor kPageLatency{"copied.page_latency"};
/// L2 fetches sectors, and a short piece of a page that lies apart takes as
/// long as some bytes more.
static constexpr int64_t kSectorBytes = 32;
static constexpr Factor kPieceBytes{"copied.piece_bytes"},
    kLongPiece{"copied.long_piece"};
/// The share of the shorter one of DRAM's time and all other that does not
/// hide behind the longer one.
static constexpr Factor kUnhiddenWork{"copied.unhidden_work"};

/// Bytes of K and V that a CTA keeps in flight: slots that are filled while
/// another one is read. With one stage K and V take turns.
static double getBytesInFlight(const CopiedExtents &extents,
                               const CopiedPlan &plan) {
  double block = extents.kBytes + extents.vBytes;
  double blocks = plan.getStages() == 1 ? 0.5 : plan.getStages() - 1;
  return plan.getTeams() * blocks * block;
}

/// Bytes of a row of keys and values, and of what belongs to it.
static double getRowBytes(const ProblemFacts &facts) {
  double elementBytes = facts.elementType.getIntOrFloatBitWidth() / 8.0;
  double keyBytes = facts.keyType.getIntOrFloatBitWidth() / 8.0;
  int64_t columns = facts.headDim + (facts.isLatent() ? 0 : facts.valueDim);
  double rowBytes = keyBytes * columns;
  if (facts.kRope)
    rowBytes += facts.getRopeColumns() * (elementBytes - keyBytes);
  if (facts.scaleGroup != 0)
    rowBytes += 4.0 * double(columns / facts.scaleGroup);
  return rowBytes;
}

/// What a row of a tensor in pages takes beside its own bytes where a CTA has
/// so many neighbouring heads.
static double getPieceBytes(const TensorFacts &tensor, int64_t heads) {
  if (!tensor || llvm::is_contained(tensor.strides, ShapedType::kDynamic))
    return 0;
  int64_t columns = tensor.shape[3], rows = 1;
  if (tensor.strides[2] == columns)
    rows = tensor.shape[2];
  if (tensor.strides[1] == columns * rows)
    rows *= heads;
  int64_t piece =
      rows * columns * tensor.elementType.getIntOrFloatBitWidth() / 8;
  if (double(piece) >= kLongPiece)
    return 0;
  double whole = double(llvm::alignTo(piece, kSectorBytes)) + kPieceBytes;
  return (whole - double(piece)) / double(rows);
}

/// The same of keys and values, and of what belongs to them.
double attn::getBytesBeside(const ProblemFacts &facts, int64_t heads) {
  if (!facts.isPaged())
    return 0;
  double bytes = 0;
  for (const TensorFacts *tensor :
       {&facts.k, &facts.v, &facts.kRope, &facts.kScales, &facts.vScales})
    if (tensor != &facts.v || !facts.isLatent())
      bytes += getPieceBytes(*tensor, heads);
  return bytes;
}

void attn::addDramTime(PlanEstimate &estimate, const ProblemFacts &facts,
                       const CopiedPlan &plan, const TargetRow &target) {
  addDramTime(estimate, facts, plan.getBlockN(),
              getBytesInFlight(CopiedExtents(facts, plan), plan), target,
              countRuns(facts, plan));
}

void attn::addDramTime(PlanEstimate &estimate, const ProblemFacts &facts,
                       int64_t blockN, double bytesInFlight,
                       const TargetRow &target, int64_t runs,
                       double loadedShare) {
  double elementBytes = facts.elementType.getIntOrFloatBitWidth() / 8.0;
  double resultBytes = facts.outType.getIntOrFloatBitWidth() / 8.0;
  double batch = getAssumedExtent(facts.batch, kAssumedBatch);
  double heads = getAssumedExtent(facts.heads, kAssumedHeads);
  int64_t group = facts.getGroup();
  double keyHeads = heads / (ShapedType::isDynamic(group) ? 1 : group);
  double queries = getAssumedExtent(facts.queries, kAssumedLength);
  double splits = runs != 0 ? runs : countRuns(facts);

  // Tiles of the same keys run side by side, and find them in L2.
  double ctaTiles = double(estimate.ctaTiles);
  double tileBytes = estimate.blocks * blockN * getRowBytes(facts);
  // What is beside short pieces of pages takes time, too.
  double movedBytes = tileBytes + estimate.blocks * blockN *
                                      getBytesBeside(facts, estimate.ctaTiles);
  double readers = std::max(1.0, estimate.tiles / (batch * keyHeads * splits));
  double rows = batch * heads * queries;
  double otherBytes =
      rows * (facts.headDim * elementBytes + facts.valueDim * resultBytes);
  // Partial results are written and read.
  if (facts.kvSplits > 0)
    otherBytes = rows * (facts.headDim * elementBytes +
                         2 * splits * (facts.valueDim * resultBytes + 4));
  estimate.dramBytes = estimate.tiles * tileBytes / readers + otherBytes;

  double bytesPerMicrosecond = kDramShare * target.dramGBPerSecond * 1000;
  estimate.dramRoofMicroseconds = estimate.dramBytes / bytesPerMicrosecond;
  double latency = kCopyLatency + (facts.isPaged() ? kPageLatency : 0);
  double tileLatency =
      ctaTiles * loadedShare * tileBytes / bytesInFlight * latency;
  // A tile that is bound by its products reads no faster alone.
  double blockClocks = ctaTiles * estimate.blocks * estimate.blockClocks;
  estimate.loneTileMicroseconds =
      std::max(tileLatency, blockClocks / target.clockMHz);
  // Keys that are loaded more than once pass from L2 each time.
  double sharedPerMicrosecond = kL2Share * target.l2BytesPerClock *
                                double(target.smCount) * target.clockMHz;
  // No rate, nor what is in flight, is a hard limit near the others.
  auto timeOf = [&](double tiles) {
    double read = tiles * movedBytes / readers / bytesPerMicrosecond;
    double again = readers * loadedShare > 1
                       ? tiles * loadedShare * movedBytes / sharedPerMicrosecond
                       : 0;
    return std::pow(std::pow(read, 4) + std::pow(again, 4) +
                        std::pow(tileLatency, 4),
                    0.25);
  };
  double slots = double(target.smCount) * estimate.ctasPerSM * ctaTiles;
  double full = std::floor(estimate.tiles / slots);
  double last = estimate.tiles - full * slots;
  estimate.dramMicroseconds = full * timeOf(slots) +
                              (last > 0 ? timeOf(last) : 0) +
                              otherBytes / bytesPerMicrosecond;
  estimate.microseconds +=
      std::max(0.0, estimate.dramMicroseconds -
                        (1 - kUnhiddenWork) * estimate.microseconds);
}
