//===- SplitQPlan.cpp - Plans of split_q: legality and parameters ---------===//
//
// FlashAttention-2 style (Dao, "FlashAttention-2: Faster Attention with Better
// Parallelism and Work Partitioning", 2023): a CTA owns block_m query rows of
// one head, its warps own 16 or 32 of them each, and all walk the keys in
// blocks of block_n, from the last to the first.
//
//===----------------------------------------------------------------------===//

#include "../Copied/CopiedChecks.h"
#include "../Copied/CopiedExtents.h"
#include "../Copied/CopiedKernel.h"
#include "../Copied/GridTiles.h"
#include "../Core/NarrowKeys.h"
#include "attn/Schedule/Core/Schedule.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

static StringRef getName() { return SplitQPlanAttr::getSyntax().schedule; }

static llvm::Error isApplicable(const ProblemFacts &facts,
                                const TargetRow &target) {
  Parts parts;
  parts.narrow = parts.narrowKeys = parts.rowScales = parts.resultScales = true;
  parts.blockLists = true;
  if (llvm::Error error = checkCopied(getName(), facts, parts))
    return error;
  if (llvm::Error error = checkNarrowOperands(getName(), facts, target))
    return error;
  return checkNarrowKeys(getName(), facts);
}

/// Plans that widen keys as fragments of f16.
static llvm::Error checkWidening(const ProblemFacts &facts,
                                 SplitQPlanAttr plan) {
  if (!facts.hasNarrowKeys())
    return llvm::Error::success();
  if (!plan.getQInRegs() && !hasGroupScales(facts))
    return llvm::createStringError(
        "expected q_in_regs with 8-bit keys beside 16-bit queries that have no "
        "scales of groups of columns");
  if (plan.getAccumulateS() != ScoreSums::F32 ||
      plan.getAccumulateO() != ResultSums::F32)
    return llvm::createStringError(
        "expected sums of f32 with 8-bit keys beside 16-bit queries");
  // Slots of scales are those of one ring of K and one of V.
  if (facts.kScales &&
      (plan.getParts() > 1 || plan.getShare() != KVShare::None))
    return llvm::createStringError(llvm::formatv(
        "expected parts = 1 and share = none with scales of the rows of keys, "
        "got {0} and {1}",
        plan.getParts(), stringifyKVShare(plan.getShare())));
  return llvm::Error::success();
}

static llvm::Error checkPlan(const ProblemFacts &facts, SplitQPlanAttr plan,
                             const TargetRow &target) {
  if (llvm::Error error = checkCopiedPlan(getName(), facts, plan, target))
    return error;
  if (llvm::Error error =
          checkNarrowParts(facts, plan.getBlockN() / plan.getParts()))
    return error;
  return checkWidening(facts, plan);
}

static KernelShape getKernelShape(const ProblemFacts &facts,
                                  SplitQPlanAttr plan, const TargetRow &) {
  KernelShape shape;
  shape.grid = getTileGrid(facts, plan);
  shape.mergesRuns = mergesRuns(facts, plan);
  shape.threads = plan.getThreads();
  shape.warps = {{plan.getWarps(), 1}};
  return shape;
}

static LogicalResult emit(KernelContext &context, SplitQPlanAttr plan) {
  return emitCopied(context, plan);
}

static std::string describeSums(const ProblemFacts &facts,
                                SplitQPlanAttr plan) {
  return describeCopiedSums(facts, plan);
}

const Schedule &attn::getSplitQSchedule() {
  static const ProjectSchedule<SplitQPlanAttr> schedule(
      {isApplicable, checkPlan, getKernelShape, emit, dropHeadGroups,
       /*countUnitGroups=*/nullptr, describeSums});
  return schedule;
}
