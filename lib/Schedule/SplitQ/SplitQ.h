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

/// The extents of a plan's buffers and the sums that follow from them.
struct SplitQExtents {
  SplitQExtents(const ProblemFacts &facts, SplitQPlanAttr plan);

  /// Columns of the Q and K buffers: the head dimension in whole k-steps of the
  /// matrix instruction (16).
  int64_t keyColumns;
  /// Columns of the V buffers.
  int64_t valueColumns;
  /// Rows of one warp.
  int64_t warpRows;
  /// Bytes of Q, of one slot of K and of one slot of V, and of a tile of O.
  int64_t qBytes, kBytes, vBytes, oBytes;

  /// True if addresses take registers that would be constants otherwise.
  bool dynamicStrides;
  /// True if rows of K and V have to be found one by one.
  bool isPaged;
  /// Temporaries of what stands between products and softmax.
  int64_t scoreRegisters = 0;

  ResourceSum getSharedBytes(SplitQPlanAttr plan) const;
  /// What a block takes where rows of K and V have different lengths, and do
  /// not share the thread's offsets, predicates and swizzles: what ptxas 13.0
  /// was seen to need, or to spill without, of 103 masked kernels for sm_80.
  /// The limit of the exact softmax holds them already. Only that limit counts
  /// them: figures of speed and occupancy were taken without.
  int64_t getOwnRowRegisters(SplitQPlanAttr plan) const;
  ResourceSum getRegisters(SplitQPlanAttr plan) const;
};

/// True if ptxas 13.0 was seen to spill this plan at these head dimensions,
/// whatever its registers' sum says (SeenSpills.cpp).
bool wasSeenToSpill(const ProblemFacts &facts, SplitQPlanAttr plan,
                    const TargetRow &target);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_SPLITQ_SPLITQ_H
