//===- CombineSchedule.h - How partial results are merged -------*- C++ -*-===//
//
// The schedule `combine` of attn.combine: a thread owns up to four columns of a
// row of the result and walks the row's partial results.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_CORE_COMBINESCHEDULE_H
#define ATTN_SCHEDULE_CORE_COMBINESCHEDULE_H

#include "attn/Planner/Facts/CombineFacts.h"
#include "attn/Planner/Facts/ProblemFacts.h"
#include "attn/Schedule/Core/KernelFrame.h"
#include "llvm/Support/Error.h"

namespace mlir::attn {

/// Partial results of a row that a thread asks for together: so many get no
/// loop, more get one over groups of them.
inline constexpr int64_t kUnrolledSplits = 16;
/// Neighbouring columns of a row that a thread owns at most.
inline constexpr int64_t kMaxCombineColumns = 4;

/// The plan that a combine gets where it has none.
CombinePlanAttr getDefaultCombinePlan(MLIRContext *context);

/// Success if `plan` computes the combine; else the reason.
llvm::Error checkCombinePlan(const CombineFacts &facts, PlanAttrInterface plan);

/// True if what a combine of the problem's runs writes may have the scales that
/// its output has.
bool mayMergeScales(const ProblemFacts &facts);

/// Refuses scales of groups of columns of results that are no multiple of
/// `step`: so many columns threads have together.
llvm::Error checkScaleColumns(llvm::StringRef schedule,
                              const ProblemFacts &facts, int64_t step);

/// The frame of the kernel: partial_o, partial_lse, o and lse, then extents and
/// strides that only the launch decides.
class CombineFrame : public KernelFrame {
public:
  CombineFrame(const CombineFacts &facts, const TargetRow &target);
};

/// Grid and block of the kernel.
KernelShape getCombineShape(const CombineFacts &facts, CombinePlanAttr plan);

/// CTAs of the kernel, if they are known.
std::optional<int64_t> countCombineCtas(const CombineFacts &facts,
                                        CombinePlanAttr plan);

/// Emits the kernel's body at the frame's builder.
void emitCombine(CombineFrame &frame, const CombineFacts &facts,
                 CombinePlanAttr plan);

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_CORE_COMBINESCHEDULE_H
