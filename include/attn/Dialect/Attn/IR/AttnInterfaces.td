//===- AttnInterfaces.td - Interfaces and traits ------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNINTERFACES_TD
#define ATTN_DIALECT_ATTN_IR_ATTNINTERFACES_TD

include "mlir/IR/OpBase.td"

def Attn_ArchOpInterface : OpInterface<"ArchOpInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    An op that does not exist on all chips. `attn::verifyArch` holds it against
    the `#attn.target` of the enclosing gpu.module.
  }];
  let methods = [
    InterfaceMethod<
      "Returns the least compute capability that has the op, 80 for sm_80.",
      "int", "getMinimumSM">,
  ];
}

/// The implementation of Attn_ArchOpInterface by a constant.
class Attn_MinimumSM<int sm>
    : ParamNativeOpTrait<"AttnRequiresSM", !cast<string>(sm)> {
  let cppNamespace = "::mlir::attn";
}

/// Trait: the op needs at least compute capability `sm` (80 for sm_80). An op
/// some of whose forms need more has
/// DeclareOpInterfaceMethods<Attn_ArchOpInterface> instead.
class AttnRequiresSM<int sm>
    : TraitList<[Attn_ArchOpInterface, Attn_MinimumSM<sm>]>;

def Attn_AsyncOpInterface : OpInterface<"AsyncOpInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    An op that starts accesses to shared memory which end later, closes a group of
    them, or waits for groups. Its accesses are those that
    `MemoryEffectOpInterface` states for its operands; an op that only closes or
    waits has none.
  }];
  let methods = [
    InterfaceMethod<"Returns what carries out the accesses.",
      "const ::mlir::attn::AsyncEngine &", "getAsyncEngine">,
    InterfaceMethod<[{
      True if the op closes a group: its own accesses, and those that the
      executing thread started since the last group, end together.
    }], "bool", "closesGroup", (ins), "", "return false;">,
    InterfaceMethod<[{
      If the op waits: how many of the youngest groups it leaves pending. All
      others have ended behind it.
    }], "::std::optional<int64_t>", "getAwaitedGroups", (ins), "",
      "return ::std::nullopt;">,
    InterfaceMethod<[{
      True if each warpgroup touches its own part of the operand's rows only, the
      first warpgroup the first part.
    }], "bool", "touchesOwnRows", (ins "::mlir::OpOperand &":$operand), "",
      "return false;">,
    InterfaceMethod<[{
      Returns the token of the channel's slot that the accesses go to and that
      counts their bytes, or null.
    }], "::mlir::Value", "getSlotToken", (ins), "", "return {};">,
  ];
}

/// The implementation of getAsyncEngine by a row of AsyncEngine.h.
class Attn_AsyncBy<string engine>
    : ParamNativeOpTrait<"AttnAsyncBy", "&" # engine> {
  let cppNamespace = "::mlir::attn";
}

/// Trait: the op's accesses are carried out by `engine`. What else the op has to
/// say of Attn_AsyncOpInterface stands in its class.
class AttnAsync<string engine>
    : TraitList<[Attn_AsyncOpInterface, Attn_AsyncBy<engine>]>;

def Attn_LayoutOpInterface : OpInterface<"LayoutOpInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    An op on register tiles that fixes layouts, or whose tiles have related ones.
    `attn-infer-layouts` asks it. `accumulator` is the layout of a product's result
    in the warps that hold the op's tiles. Elementwise ops of other dialects need
    none of this.
  }];
  let methods = [
    InterfaceMethod<"Adds the pairs of tiles whose layouts are related.",
      "void", "getLayoutLinks",
      (ins "::llvm::SmallVectorImpl<::mlir::attn::LayoutLink> &":$links), "",
      "return;">,
    InterfaceMethod<[{
      Adds the tiles whose layouts the op gives or wants, while they are
      `#attn.auto`.
    }], "void", "getLayoutAnchors",
      (ins "::mlir::attn::MmaLayoutAttr":$accumulator,
           "::llvm::SmallVectorImpl<::mlir::attn::LayoutAnchor> &":$anchors), "",
      "return;">,
    InterfaceMethod<[{
      Returns the layout that an operand has to have now that the results have
      theirs, or null if any will do.
    }], "::mlir::Attribute", "getOperandLayout",
      (ins "::mlir::OpOperand &":$operand,
           "::mlir::attn::MmaLayoutAttr":$accumulator), "", "return {};">,
    InterfaceMethod<[{
      True if all tiles have the layout of the result, as those of ops with the
      trait `ElementwiseMappable` have.
    }], "bool", "isElementwiseOnTiles", (ins), "", "return false;">,
  ];
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
    Attributes that derive from `Attn_Plan` (PlanBase.td) define `getThreads`
    only.
  }];
  let methods = [
    InterfaceMethod<"Returns the registered name of the schedule.",
      "::llvm::StringRef", "getSchedule", (ins)>,
    InterfaceMethod<"Returns the number of threads of a CTA.",
      "int64_t", "getThreads", (ins)>,
    InterfaceMethod<[{
      Returns the parameters in the order in which they print, with this plan's
      values.
    }], "::std::vector<::mlir::attn::PlanParameterInfo>", "listParameters",
      (ins)>,
    InterfaceMethod<[{
      Returns the plan with parameters replaced, which together may be right
      where one by one they are not; null after a diagnostic of `emitError`.
    }], "::mlir::attn::PlanAttrInterface", "withParameters",
      (ins "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError,
           "::llvm::ArrayRef<::mlir::attn::PlanParameter>":$parameters)>,
  ];
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNINTERFACES_TD
