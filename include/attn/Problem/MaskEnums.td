//===- MaskEnums.td - Enumerations of masks -----------------*- tablegen -*-===//
//
// Apart from those of the dialect, since what reads launch records and computes
// the reference needs them without MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PROBLEM_MASKENUMS_TD
#define ATTN_PROBLEM_MASKENUMS_TD

include "mlir/IR/EnumAttr.td"

class Attn_MaskEnum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::attn";
  let genSpecializedAttr = 0;
}

def Attn_MaskKind : Attn_MaskEnum<"MaskKind", "which keys a query attends to", [
  I32EnumAttrCase<"None", 0, "none">,
  I32EnumAttrCase<"Causal", 1, "causal">,
  I32EnumAttrCase<"Window", 2, "window">]>;

def Attn_MaskAlign : Attn_MaskEnum<"MaskAlign",
    "where the diagonal of a mask lies when Nq and Nk differ", [
  I32EnumAttrCase<"TopLeft", 0, "top_left">,
  I32EnumAttrCase<"BottomRight", 1, "bottom_right">]>;

#endif // ATTN_PROBLEM_MASKENUMS_TD
