//===- ExamplePasses.h - The pass of docs/HowTo/add-pass.md -----*- C++ -*-===//

#ifndef ATTN_TEST_LIB_EXAMPLEPASS_EXAMPLEPASSES_H
#define ATTN_TEST_LIB_EXAMPLEPASS_EXAMPLEPASSES_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Pass/Pass.h"

namespace mlir::attn::example {

#define GEN_PASS_DECL
#include "ExamplePasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "ExamplePasses.h.inc"

} // namespace mlir::attn::example

#endif // ATTN_TEST_LIB_EXAMPLEPASS_EXAMPLEPASSES_H
