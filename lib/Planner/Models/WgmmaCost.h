//===- WgmmaCost.h - What blocks multiplied by wgmma take -------*- C++ -*-===//

#ifndef ATTN_LIB_PLANNER_MODELS_WGMMACOST_H
#define ATTN_LIB_PLANNER_MODELS_WGMMACOST_H

#include "attn/Planner/Facts/PlanModel.h"

namespace mlir::attn {

/// Sets the clocks of an SM that a block of `blockN` keys and a tile of
/// `blockM` rows take on each resource.
void setResourceClocks(PlanEstimate &estimate, const ProblemFacts &facts,
                       const TargetRow &target, double blockM, double blockN,
                       SoftmaxPolicy softmax);

} // namespace mlir::attn

#endif // ATTN_LIB_PLANNER_MODELS_WGMMACOST_H
