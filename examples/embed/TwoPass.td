//===- TwoPass.td - The plan of the schedule two_pass -------*- tablegen -*-===//

include "attn/Dialect/Attn/IR/PlanBase.td"

def TwoPass_Dialect : Dialect {
  let name = "two_pass";
  let cppNamespace = "::two_pass";
  let useDefaultAttributePrinterParser = 1;
}

def TwoPass_PlanAttr : Attn_Plan<TwoPass_Dialect, "Plan", "plan", "two_pass", (ins
    Attn_PlanInt<4, "Warps of a CTA, which owns 16 query rows for each">:$warps,
    Attn_PlanInt<32, "Keys of a block, a multiple of 16">:$block_n)> {
  let description = [{
    A CTA owns 16 query rows for each of its `warps`, and walks the keys twice
    in blocks of `block_n`.
  }];
}
