//===- Passes.td - From NVVM to PTX -------------------------*- tablegen -*-===//

#ifndef ATTN_TARGET_PTX_PASSES_TD
#define ATTN_TARGET_PTX_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnEmitPTXPass : Pass<"attn-emit-ptx", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Translate a gpu.module to PTX and attach the text to it";
  let description = [{
    The module holds llvm and nvvm operations and has exactly one
    `#attn.target`. Afterwards its attribute `attn.ptx` holds the PTX text; the
    operations stay, so that kernels keep their attributes (launch record). With
    `assemble`, ptxas runs on the text: its resource counts become the
    attribute `attn.ptxas` of each kernel, and its messages about lost
    performance become warnings.

    Whatever the chip or the PTX version cannot do, and what LLVM is known to
    translate wrongly, is an error at the operation.

    Example: test/doc/attn-emit-ptx.mlir
  }];
  let options = [
    Option<"pipeline", "pipeline", "std::string", "\"\"",
           "LLVM passes before instruction selection, in LLVM's textual form; "
           "empty takes the default.">,
    Option<"codegenLevel", "codegen-level", "unsigned", "1",
           "Optimization level of instruction selection, 0 to 3.">,
    Option<"debugLines", "debug-lines", "bool", "false",
           "Print .loc lines.">,
    Option<"check", "check", "bool", "true",
           "Refuse what the target cannot do before LLVM sees it.">,
    Option<"assemble", "assemble", "bool", "false",
           "Run ptxas on the text and read its log.">,
    Option<"assembleFor", "assemble-for", "std::string", "\"\"",
           "Chip that ptxas compiles for; empty takes the target's.">,
    Option<"output", "output", "std::string", "\"\"",
           "File that the text is written to; '-' is standard output.">,
    Option<"cubin", "cubin", "std::string", "\"\"",
           "File that the binary is written to, with assemble.">
  ];
}

def AttnCheckFormsPass : Pass<"attn-check-forms", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Refuse what the target of a gpu.module cannot do";
  let description = [{
    The checks of `attn-emit-ptx` alone: each operation of the llvm and nvvm
    dialects, each intrinsic and each instruction in inline assembly is looked
    up in the form table for the chip and PTX version of the module's
    `#attn.target`.

    Example: test/doc/attn-check-forms.mlir
  }];
}

#endif // ATTN_TARGET_PTX_PASSES_TD
