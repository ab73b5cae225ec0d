//===- PlanRemarks.h - What attn-plan says about its choice -----*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PLANREMARKS_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PLANREMARKS_H

#include "attn/Planner/Choice/PlanCandidates.h"

namespace mlir::attn {

/// Says which plan is taken, from which `source`, and what was `measured`.
void report(AttentionOp op, const PlanCandidate &candidate,
            const llvm::Twine &source, const llvm::Twine &measured = "");

/// Compares the values of a parameter, each in the best plan of the chosen
/// schedule that has it.
void reportWays(AttentionOp op, ArrayRef<PlanCandidate> plans,
                StringRef parameter, StringRef what);

/// Says why the plan is not one of the target's default schedule.
void reportOtherSchedule(AttentionOp op, const PlanCandidates &candidates,
                         const TargetRow &target);

/// Says which option keeps the problem from the matrix instructions of the
/// target, if its plan uses those of older chips.
void reportSlowerSchedule(AttentionOp op, const PlanCandidates &candidates,
                          const TargetRow &target);

/// Says which board plans are for where the chip has several; `board` is the
/// name that was asked for, or empty.
void reportBoard(ModuleOp module, const TargetRow &target, StringRef board);

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PLANREMARKS_H
