//===- AttnTargetAttr.td - The target of a kernel -----------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNTARGETATTR_TD
#define ATTN_DIALECT_ATTN_IR_ATTNTARGETATTR_TD

include "attn/Dialect/Attn/IR/AttnDialect.td"

def Attn_TargetAttr : Attn_Attr<"Target", "target"> {
  let summary = "the chip and PTX version that a gpu.module is compiled for";
  let description = [{
    Stands in the target list of a `gpu.module`; all passes that depend on the
    chip read it from there. `chip` is a row of the target table (`sm_80`,
    `sm_90a`, `sm_100f`, ...). `ptx` is the PTX ISA version times ten; without
    it the chip's default is taken.

    The attribute implements `gpu::TargetAttrInterface`, so upstream's
    `gpu-module-to-binary` works with it and yields PTX, or a cubin through
    ptxas.

    Example:

    ```mlir
    gpu.module @kernels [#attn.target<chip = "sm_90a", ptx = 80>] {
    }
    ```
  }];
  let parameters = (ins
    StringRefParameter<"row of the target table">:$chip,
    DefaultValuedParameter<"unsigned", "0",
        "PTX ISA version times ten, 0 for the chip's default">:$ptx);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The PTX ISA version times ten that is in force: `ptx`, or the chip's
    /// default.
    unsigned getPTXVersion() const;
    /// The chip's row of the target table.
    const struct TargetRow &getRow() const;
  }];
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNTARGETATTR_TD
