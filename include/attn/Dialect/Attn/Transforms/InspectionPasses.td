//===- InspectionPasses.td - Passes that change nothing -----*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_INSPECTIONPASSES_TD
#define ATTN_DIALECT_ATTN_TRANSFORMS_INSPECTIONPASSES_TD

include "mlir/Pass/PassBase.td"

def AttnPrintLayoutsPass : Pass<"attn-print-layouts", "::mlir::ModuleOp"> {
  let summary = "Print pictures of layouts";
  let description = [{
    Prints a picture of each distinct layout of register tiles and buffers in
    the module, with its linear map, to stdout; with `svg` each one becomes a
    file in `output-dir`. Of a ring one slot is drawn. `#attn.auto` is not a
    layout yet and is left out. The IR does not change.

    With `layout`, prints that layout for a tile or buffer of `shape` instead,
    whether the module has it or not:

    ```
    attn-opt --attn-print-layouts="layout=#attn.mma<warps=[4,1]> shape=64x16 element=f32" /dev/null
    ```

    A layout with spaces is put in braces: `layout={#attn.swizzled<span = 64>}`.
    [Layouts](Layouts.md) says how to read the pictures.

    Example: test/doc/attn-print-layouts.mlir
  }];
  let options = [
    Option<"layout", "layout", "std::string", "\"\"",
           "Print this layout instead of those in the module.">,
    Option<"shape", "shape", "std::string", "\"\"",
           "The shape for `layout`, such as 64x16.">,
    Option<"element", "element", "std::string", "\"f32\"",
           "The element type for `layout`.">,
    Option<"svg", "svg", "bool", "false",
           "Write SVG files instead of text.">,
    Option<"outputDir", "output-dir", "std::string", "\".\"",
           "The folder for SVG files; made where it is missing.">
  ];
  let dependentDialects = ["::mlir::attn::AttnDialect"];
}

def AttnVerifyArchPass : Pass<"attn-verify-arch", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Check that the target has every op of a kernel";
  let description = [{
    An op that needs a later chip than the `#attn.target` of its gpu.module is
    an error. Modules without an `#attn.target` are not checked.

    Example: test/doc/attn-verify-arch.mlir
  }];
}

def AttnVerifyRungPass : Pass<"attn-verify-rung", "::mlir::ModuleOp"> {
  let summary = "Check that a file is not behind a rung";
  let description = [{
    A pipeline that starts over with a kernel which has been through a part of it
    would change it: barriers that were taken out by hand would come back. The
    passes that end a rung write its name on the gpu.module, as `attn.rung`; where
    nothing says it, the ops decide, with a remark. A rung behind `last` is an
    error, and so are several rungs in a file, and ops that belong to another rung
    than the gpu.module says. `attn-compile` goes on from any rung.

    Example: test/doc/attn-verify-rung.mlir
  }];
  let options = [
    Option<"last", "last", "std::string", "\"tile\"",
           "The last rung that may come in.">
  ];
}

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_INSPECTIONPASSES_TD
