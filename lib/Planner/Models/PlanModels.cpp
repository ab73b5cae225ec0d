//===- PlanModels.cpp - The model of a schedule ---------------------------===//

#include "attn/Planner/Models/PlanModels.h"
#include "Models.h"
#include "llvm/Support/ErrorHandling.h"

using namespace mlir;
using namespace mlir::attn;

const PlanModel &attn::getPlanModel(const Schedule &schedule) {
  if (const PlanModel *own = schedule.getOwnModel())
    return *own;
  static const OfferedTiledDModel tiledD;
  if (&schedule == &getTiledDSchedule())
    return tiledD;
  static const UnofferedWsMlaModel wsMla;
  if (&schedule == &getWsMlaSchedule())
    return wsMla;
  static const LightenedWsTmemModel wsTmem;
  if (&schedule == &getWsTmemSchedule())
    return wsTmem;
#define ATTN_SCHEDULE(name)                                                    \
  static const name##Model model##name;                                        \
  if (&schedule == &get##name##Schedule())                                     \
    return model##name;
#include "attn/Schedule/Core/Schedules.def"
#undef ATTN_SCHEDULE
  llvm_unreachable("registerSchedule refuses schedules without a model");
}
