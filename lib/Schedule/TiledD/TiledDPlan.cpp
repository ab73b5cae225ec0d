//===- TiledDPlan.cpp - Plans of tiled_d: legality and parameters ---------===//
//
// For wide heads on every chip that has cp.async. The columns of K and V come
// in slices, which have the slots of one ring in turns, so that shared memory
// holds a few slices of a block and not its rows (LeetCUDA's and FFPA's
// fine-grained tiling of QK and of QKV do so with slices of 16 columns). Warps
// that share rows divide the columns of the results, which no thread could hold
// alone.
//
//===----------------------------------------------------------------------===//

#include "../Copied/CopiedChecks.h"
#include "../Copied/CopiedKernel.h"
#include "../Copied/GridTiles.h"
#include "../Core/CommonChecks.h"
#include "attn/Schedule/Core/Schedule.h"

using namespace mlir;
using namespace mlir::attn;

static StringRef getName() { return TiledDPlanAttr::getSyntax().schedule; }

static llvm::Error isApplicable(const ProblemFacts &facts, const TargetRow &) {
  Parts parts;
  parts.mostColumns = kMostTiledColumns;
  return checkCopied(getName(), facts, parts);
}

static llvm::Error checkPlan(const ProblemFacts &facts, TiledDPlanAttr plan,
                             const TargetRow &target) {
  return checkCopiedPlan(getName(), facts, plan, target);
}

static KernelShape getKernelShape(const ProblemFacts &facts,
                                  TiledDPlanAttr plan, const TargetRow &) {
  KernelShape shape;
  shape.grid = getTileGrid(facts, plan);
  shape.threads = plan.getThreads();
  shape.warps = {{plan.getWarpsM(), plan.getWarpsN()}};
  return shape;
}

static LogicalResult emit(KernelContext &context, TiledDPlanAttr plan) {
  return emitCopied(context, plan);
}

const Schedule &attn::getTiledDSchedule() {
  static const ProjectSchedule<TiledDPlanAttr> schedule(
      {isApplicable, checkPlan, getKernelShape, emit, dropHeadGroups});
  return schedule;
}
