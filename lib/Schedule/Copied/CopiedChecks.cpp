//===- CopiedChecks.cpp - Which problems and plans cp.async takes ---------===//

#include "CopiedChecks.h"
#include "../Core/CommonChecks.h"
#include "CopiedExtents.h"
#include "GridTiles.h"
#include "attn/Schedule/Core/CombineSchedule.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

llvm::Error attn::checkCopied(llvm::StringRef schedule,
                              const ProblemFacts &facts, Parts parts) {
  parts.lengths = parts.pages = parts.partialResults = parts.init = true;
  parts.addedKeys = true;
  if (llvm::Error error = checkCommon(schedule, facts, parts))
    return error;
  if (llvm::Error error = checkPackedRuns(schedule, facts))
    return error;
  if (facts.hasTransposedValues())
    return makeUnsupported(schedule,
                           "'v' whose keys are contiguous, expected a stride "
                           "of 1 along the head dimension");
  for (const TensorFacts *tensor : {&facts.q, &facts.k, &facts.v, &facts.kRope,
                                    &facts.qRope, &facts.addedK, &facts.addedV})
    if (*tensor && tensor->getRowAlignment() < 4)
      return makeUnsupported(
          schedule, llvm::formatv("rows of '{0}' that start at multiples of "
                                  "{1} bytes, expected 4, 8 or 16",
                                  tensor->name, tensor->getRowAlignment()));
  return llvm::Error::success();
}

/// Checks that warps have no parts of a run's keys, which begin elsewhere for
/// other queries of the tile.
static llvm::Error checkRunTeams(const ProblemFacts &facts,
                                 const CopiedPlan &plan) {
  if (!facts.hasRuns() || plan.getKeyTeams() == 1)
    return llvm::Error::success();
  return llvm::createStringError(llvm::formatv(
      "expected warps_n * cta_heads = warps with run_keys, by which all warps "
      "have all keys of a run, got {0} parts of keys",
      plan.getKeyTeams()));
}

llvm::Error attn::checkRunKeys(const ProblemFacts &facts, int64_t blockN) {
  if (facts.runKeys % blockN == 0)
    return llvm::Error::success();
  return llvm::createStringError(
      llvm::formatv("expected run_keys to be a multiple of block_n, {0}, "
                    "got {1}",
                    blockN, facts.runKeys));
}

int64_t attn::getPackedHeads(const ProblemFacts &facts,
                             const CopiedPlan &plan) {
  return plan.getPackHeads() ? facts.getGroup() : 1;
}

/// Accumulators of f16, which mma.sync has for operands of f16.
static llvm::Error checkSums(const ProblemFacts &facts,
                             const CopiedPlan &plan) {
  if (facts.elementType.isF16())
    return llvm::Error::success();
  llvm::StringRef name, value;
  if (plan.getScoreSums() != ScoreSums::F32) {
    name = "accumulate_s";
    value = stringifyScoreSums(plan.getScoreSums());
  } else if (plan.getResultSums() != ResultSums::F32) {
    name = "accumulate_o";
    value = stringifyResultSums(plan.getResultSums());
  } else {
    return llvm::Error::success();
  }
  std::string type;
  llvm::raw_string_ostream(type) << facts.elementType;
  return llvm::createStringError(llvm::formatv(
      "expected operands of f16 for {0} = {1}, got {2}", name, value, type));
}

llvm::Error attn::checkDealtRuns(const ProblemFacts &facts, int64_t runs) {
  if (runs == 0)
    return llvm::Error::success();
  if (facts.kvSplits < 2 || facts.runKeys)
    return llvm::createStringError(
        "expected kv_splits of at least 2 without run_keys for dealt_runs");
  if (!facts.hasLengths() || ShapedType::isDynamic(facts.batch) ||
      facts.batch > DealRunOp::kMostSequences)
    return llvm::createStringError(llvm::formatv(
        "expected lengths of a known number of sequences up to {0} for "
        "dealt_runs",
        DealRunOp::kMostSequences));
  if (runs <= facts.batch)
    return llvm::createStringError(llvm::formatv(
        "expected dealt_runs of more than the {0} sequences, got {1}",
        facts.batch, runs));
  // Tiles of all heads have numbers of 32 bits.
  int64_t most =
      std::numeric_limits<int32_t>::max() / std::max<int64_t>(1, facts.heads);
  if (runs > most)
    return llvm::createStringError(
        llvm::formatv("expected dealt_runs of at most {0} with {1} heads, got "
                      "{2}",
                      most, facts.heads, runs));
  if (!facts.o.value.getDefiningOp<memref::AllocOp>())
    return llvm::createStringError("expected partial results in memory of "
                                   "memref.alloc for dealt_runs");
  return llvm::Error::success();
}

/// Heads of one CTA, whose teams do not meet.
static llvm::Error checkHeadTeams(const ProblemFacts &facts,
                                  const CopiedPlan &plan) {
  int64_t heads = plan.getHeadTeams();
  if (heads == 1)
    return llvm::Error::success();
  int64_t all = facts.heads;
  if (!ShapedType::isDynamic(all))
    all /= getPackedHeads(facts, plan);
  if (ShapedType::isDynamic(all) || all % heads != 0)
    return llvm::createStringError(llvm::formatv(
        "expected cta_heads to divide the heads that tiles have, {0}, got {1}",
        ShapedType::isDynamic(all) ? std::string("which are dynamic")
                                   : std::to_string(all),
        heads));
  if (mergesRuns(facts, plan))
    return llvm::createStringError(
        "expected cta_heads = 1 with combine = launch, got " +
        llvm::Twine(heads));
  return llvm::Error::success();
}

llvm::Error attn::checkCopiedPlan(llvm::StringRef schedule,
                                  const ProblemFacts &facts,
                                  const CopiedPlan &plan,
                                  const TargetRow &target) {
  // Whoever has the scores alone hands probabilities on.
  if (plan.getScore() != ScoreWork::Own)
    if (llvm::Error error = checkPolicy(schedule, plan.getSoftmax()))
      return error;
  if (llvm::Error error = checkExactMaxima(facts, plan.getSoftmax()))
    return error;
  if (plan.getEpilogue() == EpilogueKind::Tma)
    return makeUnsupported(schedule, "results that TMA stores");
  // Some teams still read the states of others.
  if (plan.getEpilogue() == EpilogueKind::Staged && plan.getKeyTeams() > 1)
    return llvm::createStringError(
        "expected the epilogue 'auto', 'direct' or 'shuffled' with teams that "
        "divide keys, got 'staged'");
  // With 8-bit operands a thread has even and odd columns of two tiles.
  constexpr int64_t kNarrowColumns = 16;
  if (facts.isNarrow())
    if (llvm::Error error = checkScaleColumns(schedule, facts, kNarrowColumns))
      return error;
  if (plan.getPackHeads())
    if (llvm::Error error = checkPackedHeads(facts, plan.getGroupHeads()))
      return error;
  if (llvm::Error error = checkRunKeys(facts, plan.getBlockN()))
    return error;
  if (llvm::Error error = checkRunTeams(facts, plan))
    return error;
  if (llvm::Error error =
          checkBlockLists(facts, plan.getBlockM(), plan.getBlockN()))
    return error;
  if (llvm::Error error = checkDealtRuns(facts, plan.getDealtRuns()))
    return error;
  if (llvm::Error error = checkHeadTeams(facts, plan))
    return error;
  if (llvm::Error error = checkSums(facts, plan))
    return error;
  CopiedExtents extents(facts, plan);
  if (plan.sharesRing() && !plan.getSlice() &&
      extents.keyColumns != extents.valueColumns)
    return llvm::createStringError(
        llvm::formatv("expected slots of one size with share = kv, got rows of "
                      "{0} columns of "
                      "K and {1} of V",
                      extents.keyColumns, extents.valueColumns));
  if (llvm::Error error =
          checkSharedBytes(extents.getSharedBytes(plan), target))
    return error;
  // Groups of one batch only: batches may be many at the launch.
  if (int64_t group = plan.getGroupHeads())
    if (ShapedType::isDynamic(facts.heads) || facts.heads % group != 0)
      return llvm::createStringError(llvm::formatv(
          "expected group_heads to divide the number of heads, {0}, got {1}",
          ShapedType::isDynamic(facts.heads) ? std::string("which is dynamic")
                                             : std::to_string(facts.heads),
          group));
  return checkGrid(getTileGrid(facts, plan),
                   {facts.q, facts.k, facts.cuSeqlensQ});
}

llvm::Error attn::checkCTAsFit(int64_t ctasPerSM, const ResourceSum &shared,
                               const TargetRow &target) {
  int64_t all = ctasPerSM * (shared.getTotal() + target.sharedBytesReserved);
  if (all <= target.sharedBytesPerSM)
    return llvm::Error::success();
  return llvm::createStringError(llvm::formatv(
      "does not fit: {0} CTAs with shared memory {1} and {2} for the system "
      "take {3}, an SM of {4} has {5}",
      ctasPerSM, shared.str(), target.sharedBytesReserved, all, target.chip,
      target.sharedBytesPerSM));
}

std::string attn::describeCopiedSums(const ProblemFacts &facts,
                                     const CopiedPlan &plan) {
  // Products of wgmma are added up in another way, and teams have parts of the
  // keys, which differ with the rows of a tile.
  if (plan.getWgmma() || plan.getKeyTeams() != 1)
    return "";
  // How rows of keys are divided into groups with products of their own.
  int64_t group = CopiedExtents(facts, plan).groupColumns;
  // A warp that has whole rows exchanges none.
  llvm::StringRef score =
      plan.getColumnWarps() == 1 ? "all" : stringifyScoreWork(plan.getScore());
  return llvm::formatv(
      "{0} keys in {1} parts, {2} scores by {3} warps, slices of {4} and "
      "groups of {5} columns, scores {6}, results {7}, softmax {8}",
      plan.getBlockN(), plan.getParts(), score, plan.getColumnWarps(),
      plan.getSlice(), group, stringifyScoreSums(plan.getScoreSums()),
      stringifyResultSums(plan.getResultSums()),
      stringifySoftmaxPolicy(plan.getSoftmax()));
}
