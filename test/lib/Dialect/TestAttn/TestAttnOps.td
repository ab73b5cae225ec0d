//===- TestAttnOps.td - Ops that only tests use -------------*- tablegen -*-===//

#ifndef ATTN_TEST_LIB_DIALECT_TESTATTN_TESTATTNOPS_TD
#define ATTN_TEST_LIB_DIALECT_TESTATTN_TESTATTNOPS_TD

include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "mlir/IR/OpBase.td"

def TestAttn_Dialect : Dialect {
  let name = "test_attn";
  let cppNamespace = "::mlir::attn::test";
}

def TestAttn_NeedsSM90Op
    : Op<TestAttn_Dialect, "needs_sm90", [AttnRequiresSM<90>]> {
  let summary = "an op that exists from sm_90 on";
  let assemblyFormat = "attr-dict";
}

#endif // ATTN_TEST_LIB_DIALECT_TESTATTN_TESTATTNOPS_TD
