//===- Outline.h - An attention becomes a kernel ----------------*- C++ -*-===//

#ifndef ATTN_SCHEDULE_CORE_OUTLINE_H
#define ATTN_SCHEDULE_CORE_OUTLINE_H

#include "attn/Schedule/Core/Schedule.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::attn {

/// Replaces a planned attention on memrefs by a gpu.launch_func of a kernel of
/// its own, in a new gpu.module with a `#attn.target` for `target`. The
/// schedule of the plan emits the body; the kernel carries its launch record.
/// `symbols` is the table of the enclosing module. Errors are diagnostics at
/// the op.
LogicalResult outlineAttention(AttentionOp op, const TargetRow &target,
                               SymbolTable &symbols);

/// The same with a schedule that need not be registered. The op of `facts` is
/// erased.
LogicalResult outlineAttention(const ProblemFacts &facts,
                               const Schedule &schedule, PlanAttrInterface plan,
                               const TargetRow &target, SymbolTable &symbols);

/// Fails with a diagnostic at the first attn.combine: no schedule computes one,
/// and what nobody lowers must not pass for compiled.
LogicalResult refuseCombines(ModuleOp module);

/// The launch record of a kernel as the attribute `attn.launch`: the fields of
/// docs/LaunchRecord.md under the same names. Shared memory is 0 until
/// attn-allocate-shared has run.
DictionaryAttr buildLaunchAttr(KernelContext &context, StringRef kernel,
                               const KernelShape &shape);

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_CORE_OUTLINE_H
