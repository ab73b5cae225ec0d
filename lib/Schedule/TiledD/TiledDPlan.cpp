//===- TiledDPlan.cpp - Plans of tiled_d: legality and parameters ---------===//

#include "../Copied/CopiedChecks.h"
#include "../Copied/CopiedKernel.h"
#include "../Copied/GridTiles.h"
#include "../Core/CommonChecks.h"
#include "TiledD.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

const Schedule &attn::getTiledDSchedule() {
  static const TiledDSchedule schedule;
  return schedule;
}

llvm::Error TiledDSchedule::isApplicable(const ProblemFacts &facts,
                                         const TargetRow &) const {
  Parts parts;
  parts.mostColumns = kMostTiledColumns;
  return checkCopied(getName(), facts, parts);
}

llvm::Error TiledDSchedule::checkPlan(const ProblemFacts &facts,
                                      PlanAttrInterface plan,
                                      const TargetRow &target) const {
  return checkCopiedPlan(getName(), facts, cast<TiledDPlanAttr>(plan), target);
}

KernelShape TiledDSchedule::getKernelShape(const ProblemFacts &facts,
                                           PlanAttrInterface planAttr,
                                           const TargetRow &) const {
  auto plan = cast<TiledDPlanAttr>(planAttr);
  KernelShape shape;
  shape.grid = getTileGrid(facts, plan);
  shape.threads = plan.getThreads();
  shape.warps = {{plan.getWarpsM(), plan.getWarpsN()}};
  return shape;
}

LogicalResult TiledDSchedule::emit(KernelContext &context,
                                   PlanAttrInterface plan) const {
  return emitCopied(context, cast<TiledDPlanAttr>(plan));
}
