//===- TwoPass.td - The plan of the schedule two_pass -------*- tablegen -*-===//

include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "mlir/IR/AttrTypeBase.td"

def TwoPass_Dialect : Dialect {
  let name = "two_pass";
  let cppNamespace = "::two_pass";
  let useDefaultAttributePrinterParser = 1;
}

def TwoPass_PlanAttr : AttrDef<TwoPass_Dialect, "Plan",
    [DeclareAttrInterfaceMethods<Attn_PlanInterface>]> {
  let mnemonic = "plan";
  let summary = "plan of the schedule two_pass";
  let description = [{
    A CTA owns 16 query rows for each of its `warps`, and walks the keys twice
    in blocks of `block_n`.
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "4">:$warps,
    DefaultValuedParameter<"int64_t", "32">:$block_n);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}
