//===- SplitQPlan.cpp - Plans of split_q: legality and parameters ---------===//

#include "../Copied/CopiedChecks.h"
#include "../Copied/CopiedExtents.h"
#include "../Copied/CopiedKernel.h"
#include "../Copied/GridTiles.h"
#include "../Core/NarrowKeys.h"
#include "SplitQ.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

const Schedule &attn::getSplitQSchedule() {
  static const SplitQSchedule schedule;
  return schedule;
}

llvm::Error SplitQSchedule::isApplicable(const ProblemFacts &facts,
                                         const TargetRow &) const {
  Parts parts;
  parts.narrowKeys = parts.rowScales = parts.resultScales = true;
  if (llvm::Error error = checkCopied(getName(), facts, parts))
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

llvm::Error SplitQSchedule::checkPlan(const ProblemFacts &facts,
                                      PlanAttrInterface planAttr,
                                      const TargetRow &target) const {
  auto plan = cast<SplitQPlanAttr>(planAttr);
  if (llvm::Error error = checkCopiedPlan(getName(), facts, plan, target))
    return error;
  return checkWidening(facts, plan);
}

KernelShape SplitQSchedule::getKernelShape(const ProblemFacts &facts,
                                           PlanAttrInterface planAttr,
                                           const TargetRow &) const {
  auto plan = cast<SplitQPlanAttr>(planAttr);
  KernelShape shape;
  shape.grid = getTileGrid(facts, plan);
  shape.mergesRuns = mergesRuns(facts, plan);
  shape.threads = plan.getThreads();
  shape.warps = {{plan.getWarps(), 1}};
  return shape;
}

FailureOr<PlanAttrInterface> SplitQSchedule::setParameters(
    llvm::function_ref<InFlightDiagnostic()> emitError, PlanAttrInterface plan,
    llvm::ArrayRef<PlanParameter> parameters) const {
  // Groups belong to one order, and to heads with tiles of their own.
  return Schedule::setParameters(emitError, plan, dropHeadGroups(parameters));
}

LogicalResult SplitQSchedule::emit(KernelContext &context,
                                   PlanAttrInterface plan) const {
  return emitCopied(context, cast<SplitQPlanAttr>(plan));
}
