//===- SeenSpills.h - Plans of split_q that were seen to spill --*- C++ -*-===//

#ifndef ATTN_LIB_PLANNER_MODELS_SEENSPILLS_H
#define ATTN_LIB_PLANNER_MODELS_SEENSPILLS_H

#include "attn/Planner/Facts/PlanModel.h"

namespace mlir::attn {

/// True if ptxas 13.0 was seen to spill this plan at these head dimensions,
/// whatever its registers' sum says (SeenSpills.cpp).
bool wasSeenToSpill(const ProblemFacts &facts, SplitQPlanAttr plan,
                    const TargetRow &target);

} // namespace mlir::attn

#endif // ATTN_LIB_PLANNER_MODELS_SEENSPILLS_H
