//===- AttnInterfaces.td - Interfaces and traits ------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNINTERFACES_TD
#define ATTN_DIALECT_ATTN_IR_ATTNINTERFACES_TD

include "mlir/IR/OpBase.td"

/// Trait: the op needs at least compute capability `sm` (80 for sm_80).
/// Checked against the `#attn.target` of the enclosing gpu.module by
/// `attn::verifyArch`, which each pass that lowers runs first.
class AttnRequiresSM<int sm>
    : ParamNativeOpTrait<"AttnRequiresSM", !cast<string>(sm)> {
  let cppNamespace = "::mlir::attn";
}

def Attn_TileLayoutInterface : AttrInterface<"TileLayoutAttrInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    A layout of a register tile: which thread holds which element in which
    register.
  }];
  let methods = [
    InterfaceMethod<[{
      Returns the layout of a tile of `shape` with elements of `elementBits`
      bits, or an error that says why this layout cannot hold such a tile.
    }], "::llvm::Expected<::mlir::attn::TileLayout>", "toTileLayout",
      (ins "::llvm::ArrayRef<int64_t>":$shape, "unsigned":$elementBits)>,
  ];
}

def Attn_BufferLayoutInterface : AttrInterface<"BufferLayoutAttrInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    A layout of a buffer in shared memory: at which offset each element lies.
    Shapes are those of one slot; a leading ring dimension is not part of it.
  }];
  let methods = [
    InterfaceMethod<[{
      Returns the layout of a slot of `shape` with elements of `elementBits`
      bits, or an error that says why this layout cannot hold such a slot.
    }], "::llvm::Expected<::mlir::attn::SharedLayout>", "toSharedLayout",
      (ins "::llvm::ArrayRef<int64_t>":$shape, "unsigned":$elementBits)>,
  ];
}

def Attn_PlanInterface : AttrInterface<"PlanAttrInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    A plan: the name of a schedule and the value of each of its parameters.
  }];
  let methods = [
    InterfaceMethod<"Returns the registered name of the schedule.",
      "::llvm::StringRef", "getSchedule", (ins)>,
    InterfaceMethod<"Returns the number of threads of a CTA.",
      "int64_t", "getThreads", (ins)>,
  ];
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNINTERFACES_TD
