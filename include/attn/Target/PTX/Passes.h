//===- Passes.h - From NVVM to PTX ------------------------------*- C++ -*-===//

#ifndef ATTN_TARGET_PTX_PASSES_H
#define ATTN_TARGET_PTX_PASSES_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Pass/Pass.h"

namespace mlir::attn {

#define GEN_PASS_DECL
#include "attn/Target/PTX/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "attn/Target/PTX/Passes.h.inc"

/// The one #attn.target of `module`, or an error at the module.
FailureOr<TargetAttr> getTarget(gpu::GPUModuleOp module);

/// Makes #attn.target a target that upstream's gpu-module-to-binary can use:
/// with format=isa it yields PTX, with format=bin a cubin through ptxas.
void registerTargetInterfaces(DialectRegistry &registry);

} // namespace mlir::attn

#endif // ATTN_TARGET_PTX_PASSES_H
