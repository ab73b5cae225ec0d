//===- Outline.h - Problems become kernels ----------------------*- C++ -*-===//

#ifndef ATTN_SCHEDULE_CORE_OUTLINE_H
#define ATTN_SCHEDULE_CORE_OUTLINE_H

#include "attn/Schedule/Core/Schedule.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::attn {

/// Turns the problems of a module into kernels, in the order in which it gets
/// them. Each becomes a gpu.launch_func of a kernel with a launch, in a
/// gpu.module with an `#attn.target`; a combine of partial results that the
/// function allocates becomes a kernel of the module of the attention that
/// writes them, the next step of its launch, or a part of its kernel, if the
/// plan says so. Errors are diagnostics at the op.
class Outliner {
public:
  /// `symbols` is the table of the module.
  Outliner(const TargetRow &target, SymbolTable &symbols);

  /// Replaces a planned problem on memrefs.
  LogicalResult outline(AttentionOp op);
  LogicalResult outline(CombineOp op);
  /// The same with a schedule that need not be registered. The op of `facts` is
  /// erased.
  LogicalResult outline(ProblemFacts facts, const Schedule &schedule,
                        PlanAttrInterface plan);

private:
  /// Who writes a partial result that is a workspace.
  struct Writer {
    gpu::GPUModuleOp module;
    TensorFacts result;
    /// The tensors of the writer's launch.
    SmallVector<TensorFacts> tensors;
    /// Whether it deals runs.
    bool areDealt = false;
    /// Whether its CTAs leave no room on their SMs to those of the next step.
    bool fillsSMs = false;
    /// The records of equal runs, and how many runs there are; without value
    /// where it has no such runs.
    TensorFacts work = {};
    int64_t equalRuns = 0;
    /// Tensors that its regions read from outside, and the number of scalars.
    SmallVector<TensorFacts> captures = {};
    int64_t scalars = 0;
  };
  gpu::GPUModuleOp createModule(Operation *op);

  const TargetRow &target;
  SymbolTable &symbols;
  llvm::DenseMap<Value, Writer> written;
  /// Combines that the kernel of their attention computes.
  llvm::DenseSet<Operation *> merged;
};

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_CORE_OUTLINE_H
