//===- TiledD.h - The schedule tiled_d --------------------------*- C++ -*-===//
//
// For wide heads on every chip that has cp.async. The columns of K and V come
// in slices, which have the slots of one ring in turns, so that shared memory
// holds a few slices of a block and not its rows (LeetCUDA's and FFPA's
// fine-grained tiling of QK and of QKV do so with slices of 16 columns). Warps
// that share rows divide the columns of the results, which no thread could hold
// alone.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_TILEDD_TILEDD_H
#define ATTN_LIB_SCHEDULE_TILEDD_TILEDD_H

#include "attn/Schedule/Core/Schedule.h"

namespace mlir::attn {

class TiledDSchedule : public ScheduleBase<TiledDPlanAttr> {
public:
  llvm::Error isApplicable(const ProblemFacts &facts,
                           const TargetRow &target) const override;
  llvm::Error checkPlan(const ProblemFacts &facts, PlanAttrInterface plan,
                        const TargetRow &target) const override;
  KernelShape getKernelShape(const ProblemFacts &facts, PlanAttrInterface plan,
                             const TargetRow &target) const override;
  LogicalResult emit(KernelContext &context,
                     PlanAttrInterface plan) const override;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_TILEDD_TILEDD_H
