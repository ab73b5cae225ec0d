//===- PlanModels.h - The model of a schedule -------------------*- C++ -*-===//

#ifndef ATTN_PLANNER_MODELS_PLANMODELS_H
#define ATTN_PLANNER_MODELS_PLANMODELS_H

#include "attn/Schedule/Core/Schedule.h"

namespace mlir::attn {

/// Returns the model that compares the plans of `schedule`, which is one of
/// getSchedules() or brings its own.
const PlanModel &getPlanModel(const Schedule &schedule);

} // namespace mlir::attn

#endif // ATTN_PLANNER_MODELS_PLANMODELS_H
