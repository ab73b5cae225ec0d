//===- Passes.td - Conversions out of the attn dialect ------*- tablegen -*-===//

#ifndef ATTN_CONVERSION_PASSES_TD
#define ATTN_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertAttnToNVVMPass : Pass<"convert-attn-to-nvvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Convert a kernel's scalars to the LLVM and NVVM dialects";
  let description = [{
    Converts gpu, scf, arith, math and what is left of the attn dialect to llvm
    and nvvm ops in one step, with the target's data layout, 32-bit indices and
    the kernel attributes (block size, by-value parameters) set.

    `gpu.printf` becomes a call of `vprintf`, which the driver has: each thread
    that comes to it prints. Its format has to take the arguments that there are.

    A loop with `attn.rolled` that is known to have one trip is marked, so that
    ptxas leaves it a loop.

    Example: test/doc/convert-attn-to-nvvm.mlir
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::DLTIDialect"];
}

#endif // ATTN_CONVERSION_PASSES_TD
