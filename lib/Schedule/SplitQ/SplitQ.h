//===- SplitQ.h - The schedule split_q --------------------------*- C++ -*-===//
//
// FlashAttention-2 style (Dao, "FlashAttention-2: Faster Attention with Better
// Parallelism and Work Partitioning", 2023): a CTA owns block_m query rows of
// one head, its warps own 16 or 32 of them each, and all walk the keys in
// blocks of block_n, from the last to the first.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_SPLITQ_SPLITQ_H
#define ATTN_LIB_SCHEDULE_SPLITQ_SPLITQ_H

#include "attn/Schedule/Core/Schedule.h"

namespace mlir::attn {

class SplitQSchedule : public ScheduleBase<SplitQPlanAttr> {
public:
  llvm::Error isApplicable(const ProblemFacts &facts,
                           const TargetRow &target) const override;
  llvm::Error checkPlan(const ProblemFacts &facts, PlanAttrInterface plan,
                        const TargetRow &target) const override;
  FailureOr<PlanAttrInterface>
  setParameters(llvm::function_ref<InFlightDiagnostic()> emitError,
                PlanAttrInterface plan,
                llvm::ArrayRef<PlanParameter> parameters) const override;
  KernelShape getKernelShape(const ProblemFacts &facts, PlanAttrInterface plan,
                             const TargetRow &target) const override;
  LogicalResult emit(KernelContext &context,
                     PlanAttrInterface plan) const override;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_SPLITQ_SPLITQ_H
