//===- CheckForms.h - What a target cannot do is an error -------*- C++ -*-===//

#ifndef ATTN_TARGET_PTX_CHECKFORMS_H
#define ATTN_TARGET_PTX_CHECKFORMS_H

#include "attn/Target/TargetTable.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir::attn {

/// Checks that every operation of `module` is one that `target` and PTX version
/// `ptx` (times ten) can do, by the form table. Covers the nvvm dialect,
/// llvm.call_intrinsic, llvm.inline_asm and nvvm.inline_ptx (by the mnemonics
/// in their text), and the operations of the llvm dialect that NVPTX cannot
/// select. What is in no table is an error too, because LLVM ends the process
/// on what it cannot select. All errors are reported, each at its operation.
LogicalResult checkForms(gpu::GPUModuleOp module, const TargetRow &target,
                         unsigned ptx);

/// Checks `module` for what LLVM or ptxas accept and translate into something
/// else than was meant: predicates on nvvm operations, waits that do not name
/// the registers they wait for, by-value parameters that become local copies,
/// setmaxnreg without a register bound, and others; docs/Rationale/Driver.md
/// lists them. All errors are reported, each at its operation.
LogicalResult checkPitfalls(gpu::GPUModuleOp module);

} // namespace mlir::attn

#endif // ATTN_TARGET_PTX_CHECKFORMS_H
