//===- CopiedExtents.cpp - What a plan on cp.async holds ------------------===//

#include "CopiedExtents.h"
#include "GridTiles.h"
#include "attn/Layout/SharedLayout.h"
#include "attn/Planner/Facts/Factor.h"
#include "attn/Planner/Facts/RegisterLimit.h"
#include "attn/Schedule/Kernel/RowState.h"
#include "attn/Schedule/Kernel/Scores.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

/// Most registers of results, and runs of a tile's keys, beside which 8-bit
/// latent keys have half of the queries in registers.
static constexpr RegisterLimit kHeldResults{"mla.held_results"};
static constexpr Factor kFewRuns{"mla.few_runs"};

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
  isNarrow = facts.isNarrow();
  keyColumns = llvm::alignTo(facts.headDim, isNarrow ? 32 : 16);
  // Rows of 8-bit values are whole spans of a swizzle.
  valueColumns = llvm::alignTo(facts.valueDim, isNarrow ? 32 : 1);
  hasPadding = valueColumns != facts.valueDim;
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
    kBytes = plan.getBlockN() *
             (valueColumns * keyBytes +
              facts.getRopeColumns() * (facts.kRope ? bytes : keyBytes));
    int64_t groups = valueColumns / groupColumns;
    // Beside few results a thread holds half of the queries, beside more none,
    // unless a warp has all rows.
    heldKeyGroups = groups > 2 ? groups / 2 : groups;
    // A short run does not pay for loading more than the first group.
    if (hasWideResults())
      heldKeyGroups = plan.getBlockM() > 16 ? 0 : heldKeyGroups;
    else if (plan.gathersProbabilities() && double(countRuns(facts)) > kFewRuns)
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
  hasIndices = facts.hidesPlaces();
  isMasked = facts.mask.getKind() != MaskKind::None || facts.hasMaskMod() ||
             facts.hidesPlaces() || ShapedType::isDynamic(facts.keys) ||
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

int64_t CopiedExtents::getNarrowResultRegisters(const CopiedPlan &plan) const {
  if (plan.getResultSums() != ResultSums::F16)
    return 0;
  return warpRows / 16 * (ownColumns / 8) * 2;
}

/// The kernels that copy by cp.async, in the register model.
static constexpr llvm::StringLiteral kCopiedKernel("copied");

void CopiedExtents::setFragments(RegisterFeatures &features,
                                 const CopiedPlan &plan) const {
  // Fragments of 16 rows: 4 registers for 8 columns of an accumulator and for
  // 16 columns of an operand (PTX ISA, mma.m16n8k16).
  features.rowGroups = warpRows / 16;
  features.o = ownColumns / 8 * 4;
  features.narrowResults = getNarrowResultRegisters(plan);
  // Sums of a block, or of a slice of it, beside the accumulator.
  if (plan.getResultSums() == ResultSums::F16Block)
    features.sums = (plan.getSlice() ? plan.getSlice() : valueColumns) /
                    plan.getColumnWarps() / 8 * 2;
  // The products of two parts are live together.
  int64_t partN = plan.getBlockN() / plan.getParts();
  int64_t live = plan.getParts() > 1 ? 2 * partN : partN;
  // A warp's own scores and all probabilities, or all scores; at a vote both.
  if (plan.gathersProbabilities())
    live /= plan.getColumnWarps();
  features.s = live / 8 * 4;
  // A fragment of 8-bit operands has 32 columns.
  int64_t depth = isNarrow ? 32 : 16;
  features.p = partN / depth * 4;
  features.keepsQueries = keepsQueries;
  features.holdsQueries = keepsQueries || plan.getQInRegs();
  features.heldKeyGroups = heldKeyGroups;
  if (keepsQueries)
    features.q = heldQueryColumns / 16 * 4;
  else if (plan.getQInRegs())
    features.q = keyColumns / depth * 4;
  features.partN = partN;
}

RegisterFeatures
CopiedExtents::getRegisterFeatures(const CopiedPlan &plan) const {
  RegisterFeatures features;
  setFragments(features, plan);
  features.blockN = plan.getBlockN();
  features.blockRest = plan.getBlockN() % 32;
  features.parts = plan.getParts();
  features.stages = plan.getStages();
  features.columnWarps = plan.getColumnWarps();
  features.isSliced = plan.getSlice() != 0;
  if (plan.getSlice())
    features.slices = (keyColumns + valueColumns) / plan.getSlice();
  features.streamsQueries = plan.getStreamsQ();
  features.hasPadding = hasPadding;
  features.valueColumns = valueColumns;
  features.valueRest = valueColumns % 16;
  features.unequalColumns = keyColumns != valueColumns;
  features.keyExcess = std::max<int64_t>(0, keyColumns - valueColumns) / 8;
  features.equalSteps = keyColumns == int64_t(llvm::alignTo(valueColumns, 16));
  features.isExact = plan.getSoftmax() == SoftmaxPolicy::Exact;
  features.isExactAlone = features.isExact && !plan.gathersProbabilities();
  features.gathers = plan.gathersProbabilities();
  features.hasDivisor = hasDivisor;
  features.score = scoreRegisters;
  features.isLatent = isLatent;
  features.hasScales = !scaleRings.empty();
  features.hasGroups = groupColumns != 0;
  features.hasWideResults = hasWideResults();
  features.isMasked = isMasked;
  features.isWindowed = isWindowed;
  features.isBounded = isBounded;
  features.isPaged = isPaged;
  features.isPacked = isPacked;
  features.isPartial = isPartial;
  features.hasInit = hasInit;
  features.hasWideOutput = hasWideOutput;
  features.hasStrides = dynamicStrides;
  return features;
}

int64_t CopiedExtents::getOwnRowRegisters(const CopiedPlan &plan) const {
  return RegisterModel::getUsed()
      .count(kCopiedKernel, getRegisterFeatures(plan), "own rows")
      .getTotal();
}

ResourceSum CopiedExtents::getRegisters(const CopiedPlan &plan) const {
  return RegisterModel::getUsed().count(kCopiedKernel,
                                        getRegisterFeatures(plan));
}
