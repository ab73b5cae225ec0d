//===- ExampleSchedule.td - The plan of the schedule example -*- tablegen -*-=//
//
// docs/HowTo/add-schedule.md shows this file.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_LIB_EXAMPLESCHEDULE_EXAMPLESCHEDULE_TD
#define ATTN_TEST_LIB_EXAMPLESCHEDULE_EXAMPLESCHEDULE_TD

include "attn/Dialect/Attn/IR/PlanBase.td"

def Example_Dialect : Dialect {
  let name = "example";
  let cppNamespace = "::mlir::attn::example";
  let useDefaultAttributePrinterParser = 1;
}

def Example_PlanAttr : Attn_Plan<Example_Dialect, "Plan", "plan", "example", (ins
    Attn_PlanInt<2, "Warps of a CTA, which owns 16 query rows for each">:$warps,
    Attn_PlanInt<32, "Keys of a block, a multiple of 16">:$block_n,
    Attn_PlanBool<true,
      "K and V of a block are copied while the block before is multiplied">:$ahead)> {
  let description = [{
    A CTA owns 16 query rows for each of its `warps`, and walks all keys in
    blocks of `block_n`.
  }];
}

#endif // ATTN_TEST_LIB_EXAMPLESCHEDULE_EXAMPLESCHEDULE_TD
