//===- CopiedExtents.cpp - What a plan on cp.async holds ------------------===//

#include "CopiedExtents.h"
#include "GridTiles.h"
#include "attn/Layout/SharedLayout.h"
#include "attn/Schedule/Kernel/RowState.h"
#include "attn/Schedule/Kernel/Scores.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

/// Most registers of results, and runs of a tile's keys, beside which 8-bit
/// latent keys have half of the queries in registers.
static constexpr int64_t kHeldResults = 64, kFewRuns = 8;

/// Bytes that all buffers start at a multiple of.
static constexpr int64_t kBufferAlignment = 128;

bool attn::hasGroupScales(const ProblemFacts &facts) {
  return facts.kScales && (facts.headDim != facts.scaleGroup ||
                           facts.valueDim != facts.scaleGroup);
}

bool CopiedExtents::hasWideResults() const {
  return ownColumns / 8 * 4 * (warpRows / 16) > kHeldResults;
}

CopiedExtents::CopiedExtents(const ProblemFacts &facts,
                             const CopiedPlan &plan) {
  int64_t bytes = facts.elementType.getIntOrFloatBitWidth() / 8;
  int64_t keyBytes = facts.keyType.getIntOrFloatBitWidth() / 8;
  widensKeys = facts.hasNarrowKeys();
  keyColumns = llvm::alignTo(facts.headDim, 16);
  valueColumns = facts.valueDim;
  if (int64_t slice = plan.getSlice()) {
    keyColumns = llvm::alignTo(facts.headDim, slice);
    valueColumns = llvm::alignTo(facts.valueDim, slice);
    sliceBytes = plan.getStages() * plan.getBlockN() * slice * keyBytes;
    hasPadding = keyColumns != facts.headDim || valueColumns != facts.valueDim;
    if (plan.getStreamsQ())
      querySliceBytes = plan.getStages() * plan.getBlockM() * slice * bytes;
  }
  warpRows = plan.getBlockM() / plan.getRowWarps();
  ownColumns = valueColumns / plan.getColumnWarps();
  qBytes = plan.getBlockM() * keyColumns * bytes;
  kBytes = plan.getBlockN() * keyColumns * keyBytes;
  isLatent = facts.isLatent();
  vBytes = isLatent ? 0 : plan.getBlockN() * valueColumns * keyBytes;
  if (isLatent && widensKeys)
    groupColumns = kGroupColumns;
  else if (hasGroupScales(facts))
    groupColumns = facts.scaleGroup;
  else if (widensKeys && !plan.getQInRegs())
    groupColumns = kGroupColumns;
  if (isLatent && widensKeys) {
    kBytes =
        plan.getBlockN() * (valueColumns * keyBytes +
                            facts.ropeDim * (facts.kRope ? bytes : keyBytes));
    int64_t groups = valueColumns / groupColumns;
    // Beside results of 64 registers a thread holds half of the queries, beside
    // more none. Two warps of 16 rows, which would be such, spill instead: they
    // took 1.00 to 1.06 of the time of four (H100).
    heldKeyGroups = groups > 2 ? groups / 2 : groups;
    // Of probabilities exchanged in many runs a second group took longer: 1.036
    // times the time of 33 runs (8 sequences, H100 and H200); of four runs the
    // first group alone did, 1.006 and 1.015.
    if (hasWideResults())
      heldKeyGroups = plan.getBlockM() > 16 ? 0 : heldKeyGroups;
    else if (plan.gathersProbabilities() && countRuns(facts) > kFewRuns)
      heldKeyGroups = std::min<int64_t>(heldKeyGroups, 1);
    heldQueryColumns = heldKeyGroups * groupColumns;
    // Keys are on their way before queries are read.
    keepsQueries = true;
  }
  for (const TensorFacts *scales : {&facts.kScales, &facts.vScales})
    if (*scales)
      scaleRings.push_back(plan.getStages() * plan.getBlockN() *
                           scales->shape.back() * 4);
  teamAlignment = kBufferAlignment;
  for (int64_t columns : {groupColumns ? groupColumns : keyColumns,
                          groupColumns ? groupColumns : valueColumns})
    teamAlignment = std::max<int64_t>(
        teamAlignment, 8 * SharedLayout::chooseSpan(columns, keyBytes * 8));
  exchangeBytes =
      plan.exchangesScores() ? plan.getBlockM() * plan.getBlockN() * 4 : 0;
  // Probabilities, or in front of them a maximum for each owner of a row.
  if (plan.gathersProbabilities())
    exchangeBytes =
        plan.getBlockM() * std::max(plan.getBlockN() * bytes,
                                    kRowOwners * plan.getColumnWarps() * 4);
  if (plan.dividesDepth())
    exchangeBytes = plan.getColumnWarps() * exchangeBytes /
                    (plan.getScoreSums() == ScoreSums::F16 ? 2 : 1);
  dynamicStrides = false;
  for (const TensorFacts *tensor : {&facts.q, &facts.k, &facts.v, &facts.o})
    dynamicStrides |= llvm::is_contained(tensor->strides, ShapedType::kDynamic);
  isPaged = facts.isPaged();
  isPacked = static_cast<bool>(facts.cuSeqlensQ);
  hasInit = static_cast<bool>(facts.initLse);
  hasWideOutput = facts.outType.isF32();
  isBounded = facts.hasLengths() && !facts.isPaged();
  isPartial = areResultsPartial(facts);
  isWindowed = facts.mask.getKind() == MaskKind::Window;
  hasIndices = static_cast<bool>(facts.selected);
  isMasked = facts.mask.getKind() != MaskKind::None || facts.hasMaskMod() ||
             facts.selected || ShapedType::isDynamic(facts.keys) ||
             facts.keys % plan.getBlockN() != 0;
  scoreRegisters += getScoreCost(facts).registers;
  oBytes = plan.getBlockM() * valueColumns *
           facts.outType.getIntOrFloatBitWidth() / 8;
  // Two rows of 16 are a thread's, with m, l and, of some, a divisor.
  hasDivisor = dividesByRounded(facts);
  stateElements =
      32 *
      llvm::alignTo(
          warpRows / 16 * (valueColumns / 8 * 4 + (hasDivisor ? 6 : 4)), 4);
}

ResourceSum CopiedExtents::getSharedBytes(const CopiedPlan &plan) const {
  // The tile of O takes dead bytes, and so do K and V where Q is in registers:
  // what is live together and largest counts.
  ResourceSum sum;
  if (plan.getSlice()) {
    sum.add("q", plan.getStreamsQ() ? querySliceBytes : qBytes);
    sum.add("kv", sliceBytes);
    if (exchangeBytes)
      sum.add("scores", exchangeBytes);
    if (plan.getEpilogue() == EpilogueKind::Staged && oBytes > sum.getTotal()) {
      sum = ResourceSum();
      sum.add("o", oBytes);
    }
    return sum;
  }
  int64_t slots = plan.sharesRing() ? kBytes : kBytes + vBytes;
  int64_t rings = plan.getStages() * slots, teams = plan.getTeams();
  // Rings of scales follow each other, and the last one of a team the next
  // team's buffers; behind all others nothing follows.
  int64_t scales = 0;
  if (!scaleRings.empty()) {
    for (int64_t bytes : scaleRings)
      scales = llvm::alignTo(scales, kBufferAlignment) + bytes;
    if (teams > 1)
      scales = llvm::alignTo(rings + scales, teamAlignment) - rings;
  }
  // Queries are in registers before scores are exchanged.
  bool hasLargeQ =
      !keepsQueries &&
      qBytes > rings + scales + (plan.getQInRegs() ? exchangeBytes : 0);
  if (!plan.getQInRegs() || hasLargeQ)
    sum.add("q", qBytes, teams);
  if (!plan.getQInRegs() || !hasLargeQ) {
    sum.add(plan.sharesRing() ? "kv" : "k", kBytes, teams * plan.getStages());
    if (!plan.sharesRing())
      sum.add("v", vBytes, teams * plan.getStages());
    if (keepsQueries)
      sum.add("q", qBytes);
    if (scales)
      sum.add("scales", scales, teams);
    sum.add("scores", exchangeBytes);
  }
  if (plan.getKeyTeams() > 1 && teams * stateElements * 4 > sum.getTotal()) {
    sum = ResourceSum();
    sum.add("states", stateElements * 4, teams);
  }
  if (plan.getEpilogue() == EpilogueKind::Staged && oBytes > sum.getTotal()) {
    sum = ResourceSum();
    sum.add("o", oBytes);
  }
  return sum;
}

/// True if values are so wide that ptxas was seen to keep more beside them.
static bool hasWideValues(int64_t valueColumns, const CopiedPlan &plan) {
  return valueColumns > 192 && plan.getBlockN() > 32;
}

/// The same for an odd number of 8-column groups, which is read ahead.
static bool hasWideOddValues(int64_t valueColumns) {
  return valueColumns % 16 != 0 && valueColumns >= 152;
}

/// True if "wide odd v" holds more than rows of unequal length take, which it
/// does where Q has no registers.
static bool coversUnevenRows(int64_t valueColumns, const CopiedPlan &plan) {
  return hasWideOddValues(valueColumns) && !plan.getQInRegs();
}

int64_t CopiedExtents::getOwnRowRegisters(const CopiedPlan &plan) const {
  if (isLatent || plan.getSoftmax() == SoftmaxPolicy::Exact ||
      keyColumns == int64_t(llvm::alignTo(valueColumns, 16)) ||
      coversUnevenRows(valueColumns, plan))
    return 0;
  int64_t own = 14;
  if (hasWideValues(valueColumns, plan))
    own = 10;
  else if (plan.getBlockN() >= 128)
    own = plan.getParts() == 4 ? 24 : 4;
  // With two groups of rows "long k" holds some of them.
  if (warpRows > 16)
    own -= std::clamp<int64_t>((keyColumns - valueColumns) / 8, 0, own);
  return own;
}

int64_t CopiedExtents::getNarrowResultRegisters(const CopiedPlan &plan) const {
  if (plan.getResultSums() != ResultSums::F16)
    return 0;
  return warpRows / 16 * (ownColumns / 8) * 2;
}

/// What masks of long blocks were seen to need beside many results of f16, or
/// to spill: up to 208 bytes of 64 keys, up to 20 of 32.
static int64_t getMaskedRegisters(int64_t blockN, bool isWindowed) {
  if (blockN > 32)
    return 60;
  if (blockN < 32)
    return 0;
  return isWindowed ? 40 : 36;
}

/// Slices of a block from which on kernels keep more addresses: where warps
/// exchange probabilities masked ones of D 1024 in slices of 128 spilled up to
/// 32 bytes, of D 896 none; elsewhere D 272 in slices of 16 and D 544 to 832 in
/// slices of 32 did, 4 to 68 bytes.
static constexpr int64_t kManySlices = 16, kManyOtherSlices = 34;

void CopiedExtents::addSliceRegisters(ResourceSum &sum,
                                      const CopiedPlan &plan) const {
  if (plan.getColumnWarps() > 1)
    sum.add("exchange", 20);
  if (plan.getStreamsQ())
    sum.add("q slices", 8);
  if (keyColumns != valueColumns)
    sum.add("own rows", plan.getColumnWarps() > 1 ? 12 : 24);
  // Where warps exchange probabilities, each has few scores: padding and
  // strides of the launch were seen to fit beside.
  bool gathers = plan.gathersProbabilities();
  if (hasPadding && !gathers)
    sum.add("padding", plan.getBlockN() / 2 - 4);
  int64_t slices = (keyColumns + valueColumns) / plan.getSlice();
  if (gathers ? isMasked && slices >= kManySlices : slices >= kManyOtherSlices)
    sum.add("slices", gathers ? 16 : 44);
  // The largest exponents of parts of rows: without, 4 bytes were spilled of
  // a plan near the limit.
  if (hasDivisor)
    sum.add("divisor", 6);
  // Rings of eight slots make the loop long.
  int64_t narrow = getNarrowResultRegisters(plan);
  bool hasMany =
      narrow >= kManyNarrowResults || (narrow > 0 && plan.getStages() > 4);
  if (hasMany &&
      (isMasked || plan.getBlockN() % 32 != 0 || plan.getStages() > 4))
    sum.add("f16 o", getMaskedRegisters(plan.getBlockN(), isWindowed));
  if (dynamicStrides && !gathers)
    sum.add("strides", 40);
  if (isPaged)
    sum.add("pages", 60);
  // Bounds of packed sequences, and results that are gone on from: without,
  // 4 to 16 and 4 to 24 bytes were spilled of plans near the limit.
  if (isPacked)
    sum.add("sequences", hasPadding ? 28 : 16);
  if (hasInit)
    sum.add("init o", 16);
  // Without, plans at the limit spilled 4 to 12 bytes, and 40 and 44.
  if (hasWideOutput && !gathers)
    sum.add("f32 results", 16);
  if (!gathers && slices >= kManySlices &&
      (isBounded || (hasPadding && isMasked)))
    sum.add("last keys", 8);
  sum.add("score", scoreRegisters);
}

ResourceSum CopiedExtents::getRegisters(const CopiedPlan &plan) const {
  // Fragments of 16 rows: 4 registers for 8 columns of an accumulator and for
  // 16 columns of an operand (PTX ISA, mma.m16n8k16).
  int64_t rowGroups = warpRows / 16;
  ResourceSum sum;
  bool isNarrow = plan.getResultSums() == ResultSums::F16;
  sum.add("o", ownColumns / 8 * (isNarrow ? 2 : 4), rowGroups);
  // Sums of a block, or of a slice of it, beside the accumulator.
  if (plan.getResultSums() == ResultSums::F16Block)
    sum.add("sums",
            (plan.getSlice() ? plan.getSlice() : valueColumns) /
                plan.getColumnWarps() / 8 * 2,
            rowGroups);
  // The products of two parts are live together.
  int64_t partN = plan.getBlockN() / plan.getParts();
  int64_t live = plan.getParts() > 1 ? 2 * partN : partN;
  // A warp's own scores and all probabilities, or all scores; at a vote both.
  bool gathers = plan.gathersProbabilities();
  if (gathers)
    live /= plan.getColumnWarps();
  sum.add("s", live / 8 * 4, rowGroups);
  bool exact = plan.getSoftmax() == SoftmaxPolicy::Exact && !gathers;
  if (!exact)
    sum.add("p", partN / 16 * 4, rowGroups);
  if (keepsQueries)
    sum.add("q", heldQueryColumns / 16 * 4, rowGroups);
  else if (plan.getQInRegs())
    sum.add("q", keyColumns / 16 * 4, rowGroups);
  else
    sum.add("q step", 4, rowGroups);
  sum.add("row values", hasDivisor ? 8 : 6, rowGroups);
  // Addresses, fragments of K and V on their way, temporaries of the masks.
  sum.add("other", exact && !plan.getSlice() ? 70 + 10 * rowGroups : 33);
  // ptxas 13.0 was seen to keep more addresses of blocks of 128 keys, and of
  // copies that do not run ahead.
  if (!exact && !(gathers && plan.getSlice()) && plan.getBlockN() >= 128)
    sum.add("long blocks", partN >= 128 ? 32 : 27);
  if (!exact && plan.getStages() == 1)
    sum.add("copies", 12);
  if (plan.getSlice()) {
    addSliceRegisters(sum, plan);
    return sum;
  }
  if (isLatent) {
    if (isPaged)
      sum.add("pages", 24);
    // Scales of a group on their way: beside 64 registers of results they were
    // not seen to spill, beside 128 blocks of 64 keys were, 4 to 20 bytes, in
    // pages and without, and those that hold queries, 44 bytes (ptxas 13.0).
    if (!scaleRings.empty() && hasWideResults() &&
        (heldKeyGroups != 0 || partN >= 64))
      sum.add("scales", 44);
    else if (keepsQueries)
      sum.add("scales", 4);
    sum.add("score", scoreRegisters);
    return sum;
  }
  // Scales of a group on their way, and probabilities of 32 bits.
  if (groupColumns)
    sum.add("scales", 20 + partN / 8 * 4, rowGroups);
  // An odd number of 8-column groups of V is read for two k-steps at once, so
  // that the second one's fragments wait in registers.
  if (valueColumns % 16 != 0 && partN > 16)
    sum.add("v ahead", valueColumns / 8 * 2 + 12);
  // What masked kernels of wide values were seen to need beside.
  if (!exact && hasWideOddValues(valueColumns))
    sum.add("wide odd v", 21);
  if (!exact && hasWideValues(valueColumns, plan))
    sum.add("wide v", 13);
  sum.add("own rows", getOwnRowRegisters(plan));
  if (!exact && keyColumns > valueColumns)
    sum.add("long k", (keyColumns - valueColumns) / 8);
  // Two groups of rows with all of their scores at the vote.
  if (!exact && rowGroups > 1 && partN > 32)
    sum.add("vote", 6);
  if (dynamicStrides)
    sum.add("strides", 12);
  // Addresses of partial results: 12 to 16 bytes were spilled at the limit
  // without.
  if (isPartial)
    sum.add("partial o", 4);
  if (isPaged)
    sum.add("pages", 24);
  sum.add("score", scoreRegisters);
  return sum;
}
