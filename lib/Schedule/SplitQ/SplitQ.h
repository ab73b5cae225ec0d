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

class SplitQSchedule : public ScheduleOf<SplitQPlanAttr> {
public:
  std::vector<PlanAttrInterface>
  getCandidates(const ProblemFacts &facts,
                const TargetRow &target) const override;
  llvm::Error isApplicable(const ProblemFacts &facts,
                           const TargetRow &target) const override;
  llvm::Error checkPlan(const ProblemFacts &facts, PlanAttrInterface plan,
                        const TargetRow &target) const override;
  bool isExpectedToSpill(const ProblemFacts &facts, PlanAttrInterface plan,
                         const TargetRow &target) const override;
  PlanEstimate estimate(const ProblemFacts &facts, PlanAttrInterface plan,
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

/// True if ptxas 13.0 was seen to spill this plan at these head dimensions,
/// whatever its registers' sum says (SeenSpills.cpp).
bool wasSeenToSpill(const ProblemFacts &facts, SplitQPlanAttr plan,
                    const TargetRow &target);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_SPLITQ_SPLITQ_H
