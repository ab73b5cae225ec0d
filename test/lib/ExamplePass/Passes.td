//===- Passes.td - The pass of docs/HowTo/add-pass.md ------*- tablegen -*-===//

#ifndef ATTN_TEST_LIB_EXAMPLEPASS_PASSES_TD
#define ATTN_TEST_LIB_EXAMPLEPASS_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExampleLimitSharedPass : Pass<"example-limit-shared", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Refuse kernels that take more shared memory than they may";
  let description = [{
    Needs kernels whose shared memory is laid out, which `attn-allocate-shared`
    does, and changes nothing. A kernel with more than `limit` bytes is an error;
    the others get a remark of the category `example.limit-shared`.
  }];
  let options = [
    Option<"limit", "limit", "int64_t", "49152",
           "Bytes of shared memory that a CTA may have.">
  ];
  let statistics = [Statistic<"numWithin", "num-within", "Number of kernels within the limit">];
}

#endif // ATTN_TEST_LIB_EXAMPLEPASS_PASSES_TD
