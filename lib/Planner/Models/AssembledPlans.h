//===- AssembledPlans.h - Plans at the edge of registers --------*- C++ -*-===//

#ifndef ATTN_LIB_PLANNER_MODELS_ASSEMBLEDPLANS_H
#define ATTN_LIB_PLANNER_MODELS_ASSEMBLEDPLANS_H

#include "attn/Schedule/Core/Schedule.h"

namespace mlir::attn {

/// Tiles and rings of plans whose warps exchange probabilities, of which a sum
/// does not tell whether ptxas spills.
std::vector<TiledDPlanAttr> getAssembledPlans(MLIRContext *context);

/// True if `plan` is one of them and ptxas was seen not to spill for problems
/// like this one.
bool wasAssembled(const ProblemFacts &facts, TiledDPlanAttr plan,
                  const TargetRow &target);

} // namespace mlir::attn

#endif // ATTN_LIB_PLANNER_MODELS_ASSEMBLEDPLANS_H
